/*
 * The checkout child against an HTTP server on loopback: who is given the credential.
 *
 * The server runs git http-backend for /open, and for /private behind a login; other paths
 * refuse or redirect.  Each request's path and Authorization are kept in a file.
 */
#include <arpa/inet.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/io.h"
#include "test/support/checkout_run.h"

#define LOGIN "Basic YWxpY2U6c2VjcmV0LXRva2Vu" /* alice:secret-token */
#define TOKEN "alice:secret-token"

struct server {
	struct checkout_place place;
	int port;
	pid_t pid;
	FILE *log;
};

static struct checkout_run r;
static char url[128];

/* ---- the server --------------------------------------------------------------------- */

struct request {
	char method[8], path[512], query[256], type[128], login[256];
	size_t length;
};

static int
read_line(FILE *f, char *line, size_t size)
{
	if (fgets(line, (int)size, f) == NULL)
		return -1;
	line[strcspn(line, "\r\n")] = '\0';
	return 0;
}

static int
read_request(FILE *f, struct request *q)
{
	char line[1024], *mark;

	memset(q, 0, sizeof(*q));
	if (read_line(f, line, sizeof(line)) < 0 ||
	    sscanf(line, "%7s %511s", q->method, q->path) != 2)
		return -1;
	mark = strchr(q->path, '?');
	if (mark != NULL) {
		(void)snprintf(q->query, sizeof(q->query), "%s", mark + 1);
		*mark = '\0';
	}
	while (read_line(f, line, sizeof(line)) == 0 && line[0] != '\0') {
		char *value = line + strcspn(line, ":");

		if (*value == ':')
			*value++ = '\0';
		value += strspn(value, " ");
		if (strcasecmp(line, "content-type") == 0)
			(void)snprintf(q->type, sizeof(q->type), "%.127s", value);
		if (strcasecmp(line, "authorization") == 0)
			(void)snprintf(q->login, sizeof(q->login), "%.255s", value);
		if (strcasecmp(line, "content-length") == 0)
			q->length = strtoul(value, NULL, 10);
	}
	return 0;
}

static void
answer(FILE *f, const char *status, const char *header)
{
	(void)fprintf(f, "HTTP/1.1 %s\r\n%sContent-Length: 0\r\nConnection: close\r\n\r\n",
	    status, header);
}

/* CGI: the body by a file, the answer's headers as they are. */
static void
run_backend(const struct server *sv, FILE *f, const struct request *q, const char *path)
{
	char body[160], command[2048], status[64];
	FILE *out, *in;
	int c;

	(void)snprintf(body, sizeof(body), "%s/body", sv->place.base);
	out = fopen(body, "w");
	must(out != NULL);
	for (size_t i = 0; i < q->length && (c = getc(f)) != EOF; i++)
		(void)putc(c, out);
	(void)fclose(out);
	(void)snprintf(command, sizeof(command),
	    "HOME=%s GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*' "
	    "GIT_PROJECT_ROOT=%s GIT_HTTP_EXPORT_ALL=1 REQUEST_METHOD=%s PATH_INFO='%s' "
	    "QUERY_STRING='%s' CONTENT_TYPE='%s' CONTENT_LENGTH=%zu git http-backend < %s",
	    sv->place.base, sv->place.base, q->method, path, q->query, q->type, q->length,
	    body);
	in = popen(command, "r");
	must(in != NULL);
	if (fscanf(in, "Status: %63[^\r\n]\r\n", status) == 1)
		(void)fprintf(f, "HTTP/1.1 %s\r\nConnection: close\r\n", status);
	else
		(void)fprintf(f, "HTTP/1.1 200 OK\r\nConnection: close\r\n");
	while ((c = getc(in)) != EOF)
		(void)putc(c, f);
	(void)pclose(in);
}

/* What git shows of a server that has something to say: a line of any length. */
static void
say_error(FILE *f, int nbytes)
{
	(void)fprintf(f,
	    "HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement\r\n"
	    "Connection: close\r\n\r\n001e# service=git-upload-pack\n0000%04xERR ",
	    nbytes + 8);
	for (int i = 0; i < nbytes; i++)
		(void)putc(i < nbytes - 1 ? 'x' : '!', f);
}

static void
serve_request(const struct server *sv, FILE *f, const struct request *q)
{
	char header[1024];

	(void)fprintf(sv->log, "%s %s\n", q->path, q->login);
	(void)fflush(sv->log);
	header[0] = '\0';
	if (strncmp(q->path, "/open/", 6) == 0) {
		run_backend(sv, f, q, q->path + 5);
	} else if (strncmp(q->path, "/private/", 9) == 0 && strcmp(q->login, LOGIN) == 0) {
		run_backend(sv, f, q, q->path + 8);
	} else if (strncmp(q->path, "/private/", 9) == 0) {
		answer(f, "401 Unauthorized", "WWW-Authenticate: Basic realm=\"x\"\r\n");
	} else if (strncmp(q->path, "/says/", 6) == 0) {
		say_error(f, atoi(q->path + 6));
	} else if (strncmp(q->path, "/forbidden/", 11) == 0) {
		answer(f, "403 Forbidden", "");
	} else if (strncmp(q->path, "/to-host/", 9) == 0) {
		(void)snprintf(header, sizeof(header),
		    "Location: http://localhost:%d/private/src%s?%s\r\n", sv->port,
		    strstr(q->path, "/info"), q->query);
		answer(f, "302 Found", header);
	} else if (strncmp(q->path, "/to-port/", 9) == 0) {
		(void)snprintf(header, sizeof(header),
		    "Location: http://127.0.0.1:%d/private/src%s?%s\r\n", sv->port + 1,
		    strstr(q->path, "/info"), q->query);
		answer(f, "302 Found", header);
	} else if (strncmp(q->path, "/to-path/", 9) == 0) {
		(void)snprintf(header, sizeof(header), "Location: /private/src%s?%s\r\n",
		    strstr(q->path, "/info"), q->query);
		answer(f, "302 Found", header);
	} else {
		answer(f, "404 Not Found", "");
	}
}

static void
serve(const struct server *sv, int listener)
{
	for (;;) {
		int fd = accept(listener, NULL, NULL);
		struct request q;
		FILE *f;

		if (fd < 0)
			continue;
		f = fdopen(fd, "r+");
		must(f != NULL);
		if (read_request(f, &q) == 0) {
			(void)fseek(f, 0, SEEK_CUR);
			serve_request(sv, f, &q);
		}
		(void)fflush(f);
		(void)shutdown(fd, SHUT_WR);
		(void)fclose(f);
	}
}

static int
start_server(void **state)
{
	struct server *sv = calloc(1, sizeof(*sv));
	struct sockaddr_in a = { .sin_family = AF_INET,
		.sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(a);
	char log[160];
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	must(sv != NULL && listener >= 0);
	checkout_place_make(&sv->place);
	checkout_sh(&sv->place,
	    "printf 'version: 1\\n' > .anvil.yml; git add .anvil.yml; git commit -qm one; "
	    "git config uploadpack.allowAnySHA1InWant true");
	must(bind(listener, (struct sockaddr *)&a, sizeof(a)) == 0 &&
	    listen(listener, 16) == 0 &&
	    getsockname(listener, (struct sockaddr *)&a, &len) == 0);
	sv->port = ntohs(a.sin_port);
	(void)snprintf(log, sizeof(log), "%s/log", sv->place.base);
	sv->log = fopen(log, "w+");
	must(sv->log != NULL);
	sv->pid = fork();
	if (sv->pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve(sv, listener);
	}
	(void)close(listener);
	*state = sv;
	return 0;
}

static int
stop_server(void **state)
{
	struct server *sv = *state;

	(void)kill(sv->pid, SIGKILL);
	(void)waitpid(sv->pid, NULL, 0);
	(void)fclose(sv->log);
	checkout_run_done(&r);
	memset(&r, 0, sizeof(r));
	checkout_place_remove(&sv->place);
	free(sv);
	return 0;
}

/* ---- tests -------------------------------------------------------------------------- */

static void
go(const struct server *sv, const char *path, const char *token, const char *commit)
{
	checkout_run_init(&r, &sv->place);
	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%d%s", sv->port, path);
	r.req.url = url;
	r.req.token = token;
	r.req.commit = commit;
	r.req.allow_http = 1;
	r.req.allow_private_hosts = 1;
	checkout_run_go(&r, &sv->place);
}

/* Requests with a login, as the server has seen them. */
static const char *
logins(const struct server *sv)
{
	return checkout_sh_line(&sv->place, "grep -c Basic ../log || true");
}

static void
expect_failed(enum checkout_failure failure, const char *text)
{
	assert_int_equal(r.done, 0);
	assert_int_equal(r.failed, 1);
	assert_int_equal(r.failure, failure);
	assert_string_equal((char *)r.text.data, text);
}

static void
open_repository_needs_no_credential_and_gets_none(void **state)
{
	const struct server *sv = *state;

	go(sv, "/open/src", TOKEN, NULL);
	assert_int_equal(r.done, 1);
	assert_string_equal(logins(sv), "0");
	assert_true(r.received > 0);
	go(sv, "/open/src", NULL, NULL);
	assert_int_equal(r.done, 1);
	assert_int_equal(r.received, 0);
}

static void
private_repository_is_fetched_with_the_token(void **state)
{
	const struct server *sv = *state;

	go(sv, "/private/src", TOKEN, NULL);
	assert_int_equal(r.done, 1);
	/* It is nowhere on disk but in the server's own log of this test. */
	assert_string_equal(
	    checkout_sh_line(&sv->place, "grep -rl secret-token ../ws ../cache || echo none"),
	    "none");
	assert_string_equal(
	    checkout_sh_line(&sv->place, "git -C ../ws config remote.origin.url"), url);
}

static void
single_commit_is_fetched_over_http(void **state)
{
	const struct server *sv = *state;
	char sha[64];

	(void)snprintf(sha, sizeof(sha), "%s",
	    checkout_sh_line(&sv->place,
		"echo x > x; git add x; git commit -qm x; git rev-parse HEAD; "
		"git reset -q --hard HEAD^"));
	go(sv, "/private/src", TOKEN, sha);
	assert_int_equal(r.done, 1);
	assert_string_equal(r.sha, sha);
	checkout_sh(&sv->place, "git config uploadpack.allowAnySHA1InWant false");
	go(sv, "/private/src", TOKEN, "0123456789012345678901234567890123456789");
	expect_failed(CHECKOUT_COMMIT_UNREACHABLE,
	    "commit 0123456789012345678901234567890123456789 is no longer reachable (history was "
	    "rewritten)");
}

static void
wrong_and_missing_credentials_are_told_apart(void **state)
{
	const struct server *sv = *state;

	go(sv, "/private/src", "alice:wrong-token", NULL);
	expect_failed(CHECKOUT_CREDENTIAL_REFUSED, "The repository refused the credential.");
	go(sv, "/private/src", NULL, NULL);
	expect_failed(CHECKOUT_CREDENTIAL_REFUSED,
	    "The repository needs a credential; the project has none.");
	go(sv, "/forbidden/src", TOKEN, NULL);
	expect_failed(CHECKOUT_CREDENTIAL_REFUSED, "The repository refused the credential.");
	go(sv, "/forbidden/src", NULL, NULL);
	expect_failed(
	    CHECKOUT_CHECKOUT_FAILED, "Checkout failed: unexpected http status code: 403");
	go(sv, "/nothing/src", TOKEN, NULL);
	expect_failed(
	    CHECKOUT_CHECKOUT_FAILED, "Checkout failed: unexpected http status code: 404");
}

/* The parent redacts it before anything is cut. */
static void
what_the_server_says_is_told_whole(void **state)
{
	const struct server *sv = *state;

	for (size_t n = 600; n < 65536; n += 60000) {
		char path[32];

		(void)snprintf(path, sizeof(path), "/says/%zu/src", n);
		go(sv, path, TOKEN, NULL);
		assert_int_equal(r.failure, CHECKOUT_CHECKOUT_FAILED);
		assert_true(r.text.len > n);
		assert_int_equal(r.text.data[r.text.len - 1], '!');
		assert_int_equal(
		    strncmp((char *)r.text.data, "Checkout failed: remote error: xxx", 34), 0);
	}
}

static void
redirect_elsewhere_is_not_followed(void **state)
{
	const struct server *sv = *state;

	go(sv, "/to-host/src", TOKEN, NULL);
	expect_failed(CHECKOUT_CHECKOUT_FAILED,
	    "Checkout failed: cannot redirect from '127.0.0.1' to 'localhost'");
	go(sv, "/to-port/src", TOKEN, NULL);
	expect_failed(CHECKOUT_CHECKOUT_FAILED,
	    "Checkout failed: the repository redirects to another server: 127.0.0.1");
	assert_string_equal(logins(sv), "0");
}

static void
redirect_on_the_same_server_is_followed(void **state)
{
	const struct server *sv = *state;

	go(sv, "/to-path/src", TOKEN, NULL);
	assert_int_equal(r.done, 1);
}

static void
server_that_is_not_there_is_said(void **state)
{
	const struct server *sv = *state;

	(void)kill(sv->pid, SIGKILL);
	(void)waitpid(sv->pid, NULL, WNOWAIT);
	go(sv, "/open/src", TOKEN, NULL);
	expect_failed(
	    CHECKOUT_CHECKOUT_FAILED, "Checkout failed: connection failed: Connection refused");
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, start_server, stop_server)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(open_repository_needs_no_credential_and_gets_none),
		TEST(private_repository_is_fetched_with_the_token),
		TEST(single_commit_is_fetched_over_http),
		TEST(wrong_and_missing_credentials_are_told_apart),
		TEST(what_the_server_says_is_told_whole),
		TEST(redirect_elsewhere_is_not_followed),
		TEST(redirect_on_the_same_server_is_followed),
		TEST(server_that_is_not_there_is_said),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
