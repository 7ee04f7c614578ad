#include "test/support/edge_rig.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "test/support/scratch.h"
#include "test/support/unit.h"

#define NOBODY      65534
#define PATIENCE_MS 20000
#define LOOK_MS     20

/* ---- the system ---- */

static void
become_nobody(void)
{
	if (geteuid() != 0)
		return;
	assert_int_equal(setgroups(0, NULL), 0);
	assert_int_equal(setresgid(NOBODY, NOBODY, NOBODY), 0);
	assert_int_equal(setresuid(NOBODY, NOBODY, NOBODY), 0);
}

static void
write_config(const struct edge_rig *g)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	CLEANUP_FREE char *path = mem_format("%s/anvil.yml", g->dir);

	assert_non_null(path);
	buf_printf(&text,
	    "version: 1\ndata_dir: %s/data\nruntime_dir: %s/run\nkeys_file: %s/keys.json\n"
	    "listen: [\"unix:%s/http.sock\"]\npublic_url: http://anvil.example:8470\n"
	    "shards: 2\nruns: {sandbox: none}\n"
	    "limits: {public_per_minute_per_address: %d}\n",
	    g->dir, g->dir, g->dir, g->dir, EDGE_PUBLIC_LIMIT);
	assert_int_equal(io_write_file(AT_FDCWD, path, text.data, text.len, 0600), 0);
}

static void
spawn(struct edge_rig *g)
{
	CLEANUP_FREE char *program = scratch_program("anvild");
	CLEANUP_FREE char *config = mem_format("%s/anvil.yml", g->dir);
	CLEANUP_FREE char *log = mem_format("%s/log", g->dir);
	int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	g->pid = fork();
	assert_true(g->pid >= 0);
	if (g->pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
		(void)dup2(fd, 1);
		(void)dup2(fd, 2);
		(void)execl(program, program, "-c", config, "--stop-runs", (char *)NULL);
		_exit(127);
	}
	io_close(&fd);
}

static void
show_log(const struct edge_rig *g)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	CLEANUP_FREE char *path = mem_format("%s/log", g->dir);

	if (io_read_file(AT_FDCWD, path, 4u << 20, &b) == 0 && buf_cstr(&b) != NULL)
		print_error("%s", (const char *)b.data);
}

static int
all_are_up(struct edge_rig *g)
{
	if (edge_ask(g, 0, "GET", "/healthz", NULL) != 200)
		return 0;
	for (int i = 0; i < 4; i++)
		if (strcmp(edge_text(g, edge_fmt("actors.%d.state", i)), "up") != 0)
			return 0;
	return 1;
}

void
edge_await(struct edge_rig *g)
{
	struct mono_time end = mono_add_ms(clock_mono(), PATIENCE_MS);

	while (!all_are_up(g)) {
		if (mono_diff_ms(clock_mono(), end) < 0) {
			show_log(g);
			fail_msg("anvil did not come up");
		}
		(void)poll(NULL, 0, LOOK_MS);
	}
}

void
edge_start(struct edge_rig *g)
{
	CLEANUP_FREE char *run = NULL;
	int err;

	become_nobody();
	*g = (struct edge_rig) { .dirfd = -1 };
	g->dir = scratch_new();
	edge_move(g);
	write_config(g);
	spawn(g);
	edge_await(g);
	run = mem_format("%s/run", g->dir);
	g->dirfd = io_open_dir(AT_FDCWD, run);
	assert_true(g->dirfd >= 0);
	g->ctl = client_new(g->dirfd);
	assert_non_null(g->ctl);
	assert_non_null(edge_rpc(g, "supervisor", "supervisor.drain", "{}", &err));
}

int
edge_stop(struct edge_rig *g)
{
	struct mono_time end = mono_add_ms(clock_mono(), PATIENCE_MS);
	int status = -1;

	(void)kill(g->pid, SIGTERM);
	while (waitpid(g->pid, &status, WNOHANG) == 0) {
		if (mono_diff_ms(clock_mono(), end) < 0)
			(void)kill(g->pid, SIGKILL);
		(void)poll(NULL, 0, LOOK_MS);
	}
	if (status != 0)
		show_log(g);
	g->ctl = client_free(g->ctl);
	io_close(&g->dirfd);
	json_decref(g->json);
	buf_done(&g->body);
	scratch_free(g->dir);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

/* ---- HTTP ---- */

int
edge_dial(const struct edge_rig *g)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	(void)snprintf(to.sun_path, sizeof(to.sun_path), "%s/http.sock", g->dir);
	if (connect(fd, (struct sockaddr *)(void *)&to, sizeof(to)) < 0)
		io_close(&fd);
	return fd;
}

/* Takes the chunks apart. */
static void
unchunk(struct buf *b)
{
	size_t at = 0, to = 0;

	for (;;) {
		char *end;
		size_t n;

		assert_non_null(buf_cstr(b));
		n = strtoul((const char *)b->data + at, &end, 16);
		at = (size_t)((uint8_t *)end - b->data) + 2;
		if (n == 0)
			break;
		assert_true(at + n <= b->len);
		memmove(b->data + to, b->data + at, n);
		to += n;
		at += n + 2;
	}
	b->len = to;
}

static void
take_answer(struct edge_rig *g)
{
	const char *text = buf_cstr(&g->body),
		   *end = text != NULL ? strstr(text, "\r\n\r\n") : NULL;
	size_t n;

	g->json = (json_decref(g->json), NULL);
	g->status = 0;
	g->head[0] = '\0';
	if (end == NULL)
		return;
	n = (size_t)(end - text) + 2;
	assert_true(n < sizeof(g->head));
	memcpy(g->head, text, n);
	g->head[n] = '\0';
	g->status = atoi(g->head + strlen("HTTP/1.1 "));
	buf_consume(&g->body, n + 2);
	if (edge_header(g, "Transfer-Encoding") != NULL)
		unchunk(&g->body);
	(void)json_text_parse((const char *)g->body.data, g->body.len, 32, &g->json);
}

void
edge_receive(struct edge_rig *g, int fd)
{
	char piece[4096];
	ssize_t n;

	buf_reset(&g->body);
	if (fd >= 0)
		while ((n = read(fd, piece, sizeof(piece))) > 0)
			assert_int_equal(buf_add(&g->body, piece, (size_t)n), 0);
	io_close(&fd);
	take_answer(g);
}

void
edge_raw(struct edge_rig *g, const char *text, size_t n)
{
	int fd = edge_dial(g);

	/* A server that refuses early may close before it has read everything. */
	if (fd >= 0)
		(void)send(fd, text, n, MSG_NOSIGNAL);
	edge_receive(g, fd);
}

static void
write_head(struct edge_rig *g, struct buf *b, const char *method, const char *path,
    const char *headers)
{
	buf_printf(b,
	    "%s %s HTTP/1.1\r\nHost: anvil.example:8470\r\nConnection: close\r\n"
	    "X-Forwarded-For: %s\r\n%s",
	    method, path, g->address, headers);
	if (g->session[0] != '\0')
		buf_printf(b, "Authorization: Bearer %s\r\n", g->session);
}

int
edge_ask_with(struct edge_rig *g, int status, const char *method, const char *path,
    const char *headers, const char *body)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;

	write_head(g, &b, method, path, headers);
	if (body != NULL)
		buf_printf(&b, "Content-Length: %zu\r\n\r\n%s", strlen(body), body);
	else
		buf_add_str(&b, "\r\n");
	assert_false(b.failed);
	edge_raw(g, (const char *)b.data, b.len);
	if (status != 0 && g->status != status)
		fail_msg("%s %s: %d and not %d: %s", method, path, g->status, status,
		    buf_cstr(&g->body));
	return g->status;
}

int
edge_ask(struct edge_rig *g, int status, const char *method, const char *path, const char *body)
{
	return edge_ask_with(g, status, method, path,
	    body != NULL ? "Content-Type: application/json\r\n" : "", body);
}

int
edge_send(struct edge_rig *g, const char *method, const char *path)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	int fd = edge_dial(g);

	assert_true(fd >= 0);
	write_head(g, &b, method, path, "");
	buf_add_str(&b, "\r\n");
	assert_int_equal(io_write_all(fd, b.data, b.len), 0);
	return fd;
}

void
edge_refused(struct edge_rig *g, int status, const char *code, const char *method,
    const char *path, const char *body)
{
	const json_t *error, *details;

	(void)edge_ask(g, status, method, path, body);
	error = json_object_get(g->json, "error");
	if (strcmp(edge_text(g, "error.code"), code) != 0)
		fail_msg(
		    "%s %s: %s and not %s", method, path, edge_text(g, "error.code"), code);
	assert_int_equal(json_object_size(g->json), 1);
	assert_int_equal(json_object_size(error), 3);
	assert_true(json_string_length(json_object_get(error, "message")) > 0);
	details = json_object_get(error, "details");
	assert_true(json_is_null(details) || json_is_object(details));
	assert_string_equal(edge_header(g, "Content-Type"), "application/json");
}

void
edge_move(struct edge_rig *g)
{
	g->naddresses++;
	(void)snprintf(g->address, sizeof(g->address), "198.51.%d.%d", g->naddresses / 250,
	    g->naddresses % 250 + 1);
}

/* ---- what came ---- */

const char *
edge_header(const struct edge_rig *g, const char *name)
{
	static char value[2048];
	size_t n = strlen(name);

	for (const char *p = strstr(g->head, "\r\n"); p != NULL; p = strstr(p + 2, "\r\n")) {
		const char *end = strstr(p + 2, "\r\n");

		if (end == NULL || strncasecmp(p + 2, name, n) != 0 || p[2 + n] != ':')
			continue;
		(void)snprintf(
		    value, sizeof(value), "%.*s", (int)(end - p - (ptrdiff_t)n - 4), p + n + 4);
		return value;
	}
	return NULL;
}

static const json_t *
find(const struct edge_rig *g, const char *path)
{
	const json_t *j = g->json;
	char word[64];

	while (j != NULL && *path != '\0') {
		size_t n = strcspn(path, ".");

		(void)snprintf(word, sizeof(word), "%.*s", (int)n, path);
		j = json_is_array(j) ? json_array_get(j, (size_t)atoi(word))
				     : json_object_get(j, word);
		path += n + (path[n] == '.');
	}
	return j;
}

const char *
edge_text(const struct edge_rig *g, const char *path)
{
	const json_t *j = find(g, path);

	if (j == NULL)
		return "(none)";
	return json_is_string(j) ? json_string_value(j)
	    : json_is_null(j)    ? "(null)"
				 : "(other)";
}

const char *
edge_value(const struct edge_rig *g, const char *path)
{
	static char text[4096];
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	const json_t *j = find(g, path);

	if (j == NULL)
		return "(none)";
	assert_int_equal(json_text_dump(&b, j), 0);
	(void)snprintf(text, sizeof(text), "%s", buf_cstr(&b));
	return text;
}

const char *
edge_issues(const struct edge_rig *g)
{
	static char text[2048];
	const json_t *issues = find(g, "error.details.issues"), *issue;
	size_t i, at = 0;

	text[0] = '\0';
	json_array_foreach (issues, i, issue)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s:%s",
		    i > 0 ? " " : "", json_string_value(json_object_get(issue, "path")),
		    json_string_value(json_object_get(issue, "expected")));
	return text;
}

/* ---- the rest ---- */

const json_t *
edge_rpc(struct edge_rig *g, const char *address, const char *method, const char *params,
    int *ret_err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	struct client_reply r;

	assert_int_equal(buf_add_str(&b, params), 0);
	client_forget(g->ctl);
	*ret_err = client_call(g->ctl, address, method, &b, 10000, &r);
	return r.result;
}

void
edge_sign_in(struct edge_rig *g, const char *slug)
{
	char text[256];
	int err;

	(void)snprintf(text, sizeof(text),
	    "{\"email\":\"%s@example.com\",\"slug\":\"%s\",\"displayName\":\"%s\","
	    "\"password\":\"" EDGE_PASSWORD "\"}",
	    slug, slug, slug);
	assert_non_null(edge_rpc(g, "ingress", "user.bootstrap", text, &err));
	g->session[0] = '\0';
	(void)snprintf(text, sizeof(text),
	    "{\"email\":\"%s@example.com\",\"password\":\"" EDGE_PASSWORD "\"}", slug);
	(void)edge_ask(g, 200, "POST", "/api/public/auth/login", text);
	(void)snprintf(g->session, sizeof(g->session), "%s", edge_text(g, "sessionId"));
}

pid_t
edge_pid(struct edge_rig *g, const char *address)
{
	int err;
	const json_t *list = edge_rpc(g, "supervisor", "supervisor.list", "{}", &err), *actor;
	size_t i;

	json_array_foreach (json_object_get(list, "actors"), i, actor)
		if (strcmp(json_string_value(json_object_get(actor, "address")), address) == 0)
			return (pid_t)json_integer_value(json_object_get(actor, "pid"));
	fail_msg("%s is not in the list", address);
	return 0;
}

const char *
edge_project(struct edge_rig *g, const char *slug, char out[96])
{
	char body[256];

	(void)snprintf(body, sizeof(body),
	    "{\"projectSlug\":\"%s\",\"name\":\"%s\",\"repoUrl\":\"https://example.com/a/b\","
	    "\"defaultBranch\":\"main\"}",
	    slug, slug);
	(void)edge_ask(g, 201, "POST", "/api/private/projects", body);
	(void)snprintf(out, 96, "/api/private/projects/%s", edge_text(g, "project.id"));
	return out;
}

const char *
edge_trigger(struct edge_rig *g, const char *project, char out[96])
{
	(void)edge_ask(g, 202, "POST", edge_fmt("%s/runs", project), "{}");
	(void)snprintf(out, 96, "/api/private/runs/%s", edge_text(g, "runId"));
	return out;
}

const char *
edge_kind(const json_t *result)
{
	return result != NULL ? json_string_value(json_object_get(result, "kind")) : "(none)";
}

const char *
edge_fmt(const char *fmt, ...)
{
	static char texts[16][512];
	static unsigned next;
	char *text = texts[next++ % ARRAY_LEN(texts)];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(texts[0]), fmt, ap);
	va_end(ap);
	return text;
}
