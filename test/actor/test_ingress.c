/*
 * test/actor/test_ingress.c -- the HTTP edge as clients meet it: every answer, routes, bodies, sessions,
 * invites.  The real anvild, ingress and two shards, over real connections.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/id.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "test/support/edge_rig.h"
#include "test/support/scratch.h"
#include "test/support/unit.h"

#define LOGIN  "/api/public/auth/login"
#define ACCEPT "/api/public/auth/invite/accept"

static struct edge_rig rig;
static struct edge_rig *const g = &rig;

/* Each test comes from an address of its own, signed out. */
static int
begin(void **state)
{
	(void)state;
	edge_move(g);
	g->session[0] = '\0';
	return 0;
}

/* ---- every answer ---- */

static void
check_headers_with(const char *cache)
{
	static const char *const want[][2] = { { "X-Content-Type-Options", "nosniff" },
		{ "X-Frame-Options", "DENY" },
		{ "Referrer-Policy", "strict-origin-when-cross-origin" },
		{ "X-Permitted-Cross-Domain-Policies", "none" } };

	assert_non_null(edge_header(g, "X-Request-Id"));
	assert_int_equal(strlen(edge_header(g, "X-Request-Id")), 22);
	assert_string_equal(edge_header(g, "Cache-Control"), cache);
	assert_null(edge_header(g, "Strict-Transport-Security"));
	assert_null(edge_header(g, "Set-Cookie"));
	assert_null(edge_header(g, "Access-Control-Allow-Origin"));
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		assert_non_null(edge_header(g, want[i][0]));
		assert_string_equal(edge_header(g, want[i][0]), want[i][1]);
	}
	assert_non_null(strstr(edge_header(g, "Content-Security-Policy"),
	    "connect-src 'self' ws://anvil.example:8470 wss://anvil.example:8470; "));
}

static void
check_headers(void)
{
	check_headers_with("no-store");
}

static void
every_answer_carries_the_same_headers(void **state)
{
	static const char *const paths[] = { "/healthz", "/api/openapi.json",
		"/api/public/app-config", "/api/private/me", "/api/nothing", "/assets/none" };
	char first[32];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		(void)edge_ask(g, 0, "GET", paths[i], NULL);
		check_headers();
		(void)edge_ask(g, 0, "DELETE", paths[i], NULL);
		check_headers();
	}
	(void)edge_ask_with(g, 200, "GET", "/healthz", "X-Request-Id: mine\r\n", NULL);
	check_headers();
	(void)snprintf(first, sizeof(first), "%s", edge_header(g, "X-Request-Id"));
	(void)edge_ask(g, 200, "GET", "/healthz", NULL);
	assert_string_not_equal(first, edge_header(g, "X-Request-Id"));
}

static void
every_path_is_the_document_but_for_files(void **state)
{
	static const char *const pages[] = { "/", "/app/projects", "/app/runs/run_1",
		"/index.html", "/nothing", "/assets" };
	char tag[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
		(void)edge_ask(g, 200, "GET", pages[i], NULL);
		check_headers_with("no-cache");
		assert_string_equal(edge_header(g, "Content-Type"), "text/html; charset=utf-8");
		assert_non_null(strstr((const char *)buf_cstr(&g->body), "<base href=\"/\">"));
	}
	(void)edge_ask(g, 200, "GET", "/assets/main.js", NULL);
	check_headers_with("no-cache");
	assert_string_equal(edge_header(g, "Content-Type"), "text/javascript; charset=utf-8");
	(void)snprintf(tag, sizeof(tag), "If-None-Match: %s\r\n", edge_header(g, "ETag"));
	(void)edge_ask_with(g, 304, "GET", "/assets/main.js", tag, NULL);
	check_headers_with("no-cache");
	assert_int_equal(g->body.len, 0);
	(void)edge_ask(g, 200, "HEAD", "/assets/main.js", NULL);
	assert_int_equal(g->body.len, 0);
}

static void
another_host_joins_the_policy_only_when_it_is_a_plain_one(void **state)
{
	static const char with[] = "GET /healthz HTTP/1.1\r\nHost: [::1]:80\r\n"
				   "Connection: close\r\n\r\n",
			  odd[] = "GET /healthz HTTP/1.1\r\nHost: a_b\r\n"
				  "Connection: close\r\n\r\n";

	(void)state;
	edge_raw(g, with, sizeof(with) - 1);
	assert_int_equal(g->status, 200);
	assert_non_null(strstr(edge_header(g, "Content-Security-Policy"),
	    "wss://anvil.example:8470 ws://[::1]:80 wss://[::1]:80;"));
	edge_raw(g, odd, sizeof(odd) - 1);
	assert_null(strstr(g->head, "a_b"));
}

static void
malformed_requests_are_refused_as_json_and_cut(void **state)
{
	static const char twice[] = "GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n";

	(void)state;
	edge_raw(g, twice, sizeof(twice) - 1);
	assert_int_equal(g->status, 400);
	assert_string_equal(edge_text(g, "error.code"), "bad_request");
}

static void
health_tells_of_every_actor_and_of_no_run(void **state)
{
	static const char *const names[] = { "supervisor", "ingress", "project/0",
		"project/1" };
	char path[32];

	(void)state;
	/* Dispatch is drained, and the supervisor says so within a second. */
	for (int i = 0; i < 500 && strcmp(edge_text(g, "status"), "degraded") != 0; i++) {
		(void)poll(NULL, 0, 10);
		(void)edge_ask(g, 200, "GET", "/healthz", NULL);
	}
	assert_string_equal(edge_value(g, "reasons"), "[\"draining\"]");
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		(void)snprintf(path, sizeof(path), "actors.%zu.address", i);
		assert_string_equal(edge_text(g, path), names[i]);
		(void)snprintf(path, sizeof(path), "actors.%zu.state", i);
		assert_string_equal(edge_text(g, path), "up");
		(void)snprintf(path, sizeof(path), "actors.%zu.ageMs", i);
		assert_true(atoi(edge_value(g, path)) >= 0);
	}
	assert_string_equal(edge_text(g, "actors.4"), "(none)");
}

static void
the_document_has_exactly_the_routes_that_are_served(void **state)
{
	const char *path;
	json_t *paths, *ops, *document;
	int n = 0;

	(void)state;
	edge_sign_in(g, "reader");
	(void)edge_ask(g, 200, "GET", "/api/openapi.json", NULL);
	assert_string_equal(edge_text(g, "openapi"), "3.1.0");
	document = json_incref(g->json);
	paths = json_object_get(document, "paths");
	json_object_foreach (paths, path, ops) {
		char allow[128];
		const char *method;
		json_t *op;

		/* A method that nothing has: the answer lists those there are. */
		(void)edge_ask(g, 405, "TRACE", path, NULL);
		(void)snprintf(allow, sizeof(allow), "%s", edge_header(g, "Allow"));
		json_object_foreach (ops, method, op) {
			char upper[16] = "";

			for (size_t i = 0; method[i] != '\0' && i < sizeof(upper) - 1; i++)
				upper[i] = (char)(method[i] - 'a' + 'A');
			assert_non_null(strstr(allow, upper));
			n++;
		}
	}
	json_decref(document);
	assert_true(n >= 16);
}

static void
unknown_paths_and_wrong_methods_are_told_apart(void **state)
{
	static const struct {
		const char *method, *path, *allow; /* NULL: 404 */
	} rows[] = {
		{ "GET", "/api/public/nothing", NULL },
		{ "POST", "/api/nothing", NULL },
		{ "GET", "/api/public/app-config/", NULL },
		{ "GET", "/api//public/app-config", NULL },
		{ "GET", "/metrics", NULL },
		{ "GET", "/assets/nothing.js", NULL },
		{ "GET", "/assets/../index.html", NULL },
		{ "POST", "/api/public/app-config", "GET, HEAD" },
		{ "GET", LOGIN, "POST" },
		{ "OPTIONS", LOGIN, "POST" },
		{ "POST", "/healthz", "GET, HEAD" },
		{ "POST", "/index.html", "GET, HEAD" },
		{ "POST", "/", "GET, HEAD" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		edge_refused(g, rows[i].allow != NULL ? 405 : 404,
		    rows[i].allow != NULL ? "method_not_allowed" : "not_found", rows[i].method,
		    rows[i].path, NULL);
		if (rows[i].allow != NULL)
			assert_string_equal(edge_header(g, "Allow"), rows[i].allow);
	}
	(void)edge_ask(g, 204, "GET", "/api/%70ublic/app%2Dconfig", NULL);
	(void)edge_ask(g, 200, "HEAD", "/healthz", NULL);
	assert_int_equal(g->body.len, 0);
}

/* ---- who asks ---- */

static void
private_routes_want_a_session_before_anything_else(void **state)
{
	static const char *const paths[] = { "/api/private/me", "/api/private/nothing",
		"/api/private/%zz", "/api/private/", "/api/private/projects/prj_1" };
	static const char *const bad[] = { "", "Authorization:\r\n",
		"Authorization: Bearer\r\n", "Authorization: Basic YTpi\r\n",
		"Authorization: Bearer a\r\nAuthorization: Bearer a\r\n" };
	char header[128];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		edge_refused(g, 401, "missing_authorization", "GET", paths[i], NULL);
		assert_string_equal(edge_header(g, "WWW-Authenticate"), "Bearer");
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		(void)edge_ask_with(g, 401, "DELETE", "/api/private/me", bad[i], NULL);
		assert_string_equal(edge_text(g, "error.code"), "missing_authorization");
	}
	(void)edge_ask_with(g, 401, "GET", "/api/private/me",
	    "Authorization: Bearer 0123456789012345678901234567890123456789012\r\n", NULL);
	assert_string_equal(edge_text(g, "error.code"), "invalid_session");
	assert_string_equal(edge_header(g, "WWW-Authenticate"), "Bearer");
	(void)edge_ask_with(
	    g, 401, "GET", "/api/private/me", "Authorization: Bearer x y\r\n", NULL);
	assert_string_equal(edge_text(g, "error.code"), "invalid_session");

	edge_sign_in(g, "ada");
	(void)snprintf(header, sizeof(header), "Authorization: bEARER \t%s \r\n", g->session);
	for (size_t i = 1; i < ARRAY_LEN(paths) - 1; i++)
		edge_refused(g, 404, "not_found", "GET", paths[i], NULL);
	edge_refused(g, 405, "method_not_allowed", "DELETE", "/api/private/me", NULL);
	g->session[0] = '\0';
	(void)edge_ask_with(g, 200, "GET", "/api/private/me", header, NULL);
	assert_string_equal(edge_text(g, "user.email"), "ada@example.com");
	assert_string_equal(edge_text(g, "user.disabledAt"), "(null)");
	assert_string_equal(edge_value(g, "inviteTtlSeconds"), "604800");
}

static void
bodies_are_strict(void **state)
{
	static const struct {
		const char *body, *code, *issues;
	} rows[] = {
		{ "", "invalid_json", "" },
		{ "{", "invalid_json", "" },
		{ "{} {}", "invalid_json", "" },
		{ "\xef\xbb\xbf{}", "invalid_json", "" },
		{ "{\"email\":\"a\",\"email\":\"b\"}", "invalid_json", "" },
		{ "{\"email\":\"\xff\"}", "invalid_json", "" },
		{ "[]", "invalid_request", ":Object" },
		{ "null", "invalid_request", ":Object" },
		{ "{}", "invalid_request", "email:Email password:String" },
		{ "{\"x\":1,\"password\":1,\"email\":null}", "invalid_request",
		    "email:Email password:String x:absent" },
		{ "{\"email\":\"a@b\",\"password\":\"a\\u0000b\"}", "invalid_request",
		    "password:String" },
		{ "{\"email\":\"a b@c\",\"password\":\"\"}", "invalid_request", "email:Email" },
		{ "{\"email\":\"a\",\"password\":\"\"}", "invalid_request", "email:Email" },
	};
	CLEANUP_FREE char *deep = mem_calloc(1, 200);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		edge_refused(g, 400, rows[i].code, "POST", LOGIN, rows[i].body);
		if (strcmp(edge_issues(g), rows[i].issues) != 0)
			fail_msg("%s: %s", rows[i].body, edge_issues(g));
	}
	memset(deep, '[', 65);
	memset(deep + 65, ']', 65);
	edge_refused(g, 400, "invalid_json", "POST", LOGIN, deep);
}

static void
media_types_encodings_and_sizes_are_checked_before_the_body(void **state)
{
	static const char *const good[] = { "", "Content-Type: application/json\r\n",
		"Content-Type: Application/JSON ; charset=x\r\n",
		"Content-Encoding: identity\r\n" };
	static const char *const bad[] = { "Content-Type: text/plain\r\n", "Content-Type:\r\n",
		"Content-Type: application/jsonx\r\n", "Content-Encoding: gzip\r\n" };
	static const char chunked[] = "POST " LOGIN
				      " HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 203.0.113.9\r\n"
				      "Transfer-Encoding: chunked\r\n\r\n";
	CLEANUP(buf_done) struct buf b = BUF_INIT;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		(void)edge_ask_with(g, 400, "POST", LOGIN, good[i], "{}");
		assert_string_equal(edge_text(g, "error.code"), "invalid_request");
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		(void)edge_ask_with(g, 415, "POST", LOGIN, bad[i], "{}");
		assert_string_equal(edge_text(g, "error.code"), "unsupported_media_type");
	}
	/* Declared too large; the type would be wrong as well. */
	(void)edge_ask_with(g, 413, "POST", LOGIN,
	    "Content-Type: text/plain\r\nContent-Length: 65537\r\n\r\n", NULL);
	assert_string_equal(edge_text(g, "error.code"), "payload_too_large");
	check_headers();
	/* Counted too large. */
	buf_add_str(&b, chunked);
	buf_add_str(&b, "10001\r\n");
	assert_int_equal(buf_reserve(&b, 65537), 0);
	memset(b.data + b.len, ' ', 65537);
	b.len += 65537;
	edge_raw(g, (const char *)b.data, b.len);
	assert_int_equal(g->status, 413);
	assert_string_equal(edge_text(g, "error.code"), "payload_too_large");
}

static void
a_wrong_login_says_nothing_about_why(void **state)
{
	static const char *const bodies[] = {
		"{\"email\":\"grace@example.com\",\"password\":\"wrong\"}",
		"{\"email\":\"grace@example.com\",\"password\":\"\"}",
		"{\"email\":\"nobody@example.com\",\"password\":\"correct horse\"}",
	};
	char message[128] = "";
	int err;

	(void)state;
	edge_sign_in(g, "grace");
	g->session[0] = '\0';
	for (size_t i = 0; i <= ARRAY_LEN(bodies); i++) {
		if (i == ARRAY_LEN(bodies))
			assert_non_null(edge_rpc(
			    g, "ingress", "user.disable", "{\"user\":\"grace\"}", &err));
		edge_refused(g, 401, "invalid_credentials", "POST", LOGIN,
		    i < ARRAY_LEN(bodies)
			? bodies[i]
			: "{\"email\":\"grace@example.com\",\"password\":\"correct horse\"}");
		assert_string_equal(edge_header(g, "WWW-Authenticate"), "Bearer");
		if (message[0] != '\0')
			assert_string_equal(message, edge_text(g, "error.message"));
		(void)snprintf(message, sizeof(message), "%s", edge_text(g, "error.message"));
	}
}

static void
an_address_is_trimmed_and_lowered_and_the_eleventh_login_waits(void **state)
{
	const char *body = "{\"email\":\" Alan@Example.COM \",\"password\":\"correct horse\"}";

	(void)state;
	edge_sign_in(g, "alan"); /* the first attempt */
	g->session[0] = '\0';
	for (int i = 2; i <= 10; i++)
		(void)edge_ask(g, 200, "POST", LOGIN, body);
	edge_refused(g, 429, "rate_limited", "POST", LOGIN, body);
	assert_string_equal(edge_header(g, "Retry-After"), "60");
	/* What is refused before it is looked at does not count, and others go on. */
	edge_refused(g, 400, "invalid_request", "POST", LOGIN, "{\"email\":\"alan\"}");
	edge_refused(g, 401, "invalid_credentials", "POST", LOGIN,
	    "{\"email\":\"alan2@example.com\",\"password\":\"x\"}");
}

static void
an_address_of_a_client_may_ask_so_often(void **state)
{
	(void)state;
	for (int i = 0; i < EDGE_PUBLIC_LIMIT; i++)
		(void)edge_ask(g, i % 2 == 0 ? 204 : 404, "GET",
		    i % 2 == 0 ? "/api/public/app-config" : "/api/public/nothing", NULL);
	edge_refused(g, 429, "rate_limited", "GET", "/api/public/app-config", NULL);
	assert_string_equal(edge_header(g, "Retry-After"), "60");
	edge_refused(g, 429, "rate_limited", "GET", "/api/public/nothing", NULL);
	edge_refused(g, 401, "missing_authorization", "GET", "/api/private/me", NULL);
	(void)edge_ask(g, 200, "GET", "/api/openapi.json", NULL);
	edge_move(g);
	(void)edge_ask(g, 204, "GET", "/api/public/app-config", NULL);
}

static void
logging_out_ends_the_session_and_never_complains(void **state)
{
	(void)state;
	edge_sign_in(g, "barbara");
	(void)edge_ask(g, 200, "GET", "/api/private/me", NULL);
	(void)edge_ask_with(
	    g, 204, "POST", "/api/public/auth/logout", "Content-Type: x\r\n", "!");
	edge_refused(g, 401, "invalid_session", "GET", "/api/private/me", NULL);
	(void)edge_ask(g, 204, "POST", "/api/public/auth/logout", NULL);
	g->session[0] = '\0';
	(void)edge_ask(g, 204, "POST", "/api/public/auth/logout", NULL);
	(void)edge_ask_with(
	    g, 204, "POST", "/api/public/auth/logout", "Authorization: Bearer ?\r\n", NULL);
}

static void
disabling_and_a_new_password_take_effect_at_once(void **state)
{
	int err;

	(void)state;
	edge_sign_in(g, "dennis");
	assert_string_equal(
	    edge_kind(edge_rpc(g, "ingress", "user.disable", "{\"user\":\"dennis\"}", &err)),
	    "ok");
	edge_refused(g, 403, "user_disabled", "GET", "/api/private/me", NULL);
	edge_refused(g, 403, "user_disabled", "GET", "/api/private/nothing", NULL);
	assert_string_equal(
	    edge_kind(edge_rpc(g, "ingress", "user.enable", "{\"user\":\"dennis\"}", &err)),
	    "ok");
	(void)edge_ask(g, 200, "GET", "/api/private/me", NULL);
	assert_string_equal(
	    edge_kind(edge_rpc(g, "ingress", "user.resetPassword",
		"{\"user\":\"dennis@example.com\",\"password\":\"another horse\"}", &err)),
	    "ok");
	edge_refused(g, 401, "invalid_session", "GET", "/api/private/me", NULL);
	g->session[0] = '\0';
	(void)edge_ask(g, 401, "POST", LOGIN,
	    "{\"email\":\"dennis@example.com\",\"password\":\"correct horse\"}");
	(void)edge_ask(g, 200, "POST", LOGIN,
	    "{\"email\":\"dennis@example.com\",\"password\":\"another horse\"}");
	assert_string_equal(
	    edge_kind(edge_rpc(g, "ingress", "user.disable", "{\"user\":\"nobody\"}", &err)),
	    "not_found");
}

/* ---- invites ---- */

static const char *
acceptance(const char *token, const char *name, const char *password)
{
	static char body[512];

	(void)snprintf(body, sizeof(body),
	    "{\"token\":\"%s\",\"email\":\"%s@example.com\",\"displayName\":\"%s\","
	    "\"slug\":\"%s\",\"password\":\"%s\"}",
	    token, name, name, name, password);
	return body;
}

static void
an_invite_lasts_as_long_as_was_asked(void **state)
{
	static const struct {
		const char *body;
		int64_t ms;
	} good[] = { { "{}", 604800000 }, { "{\"expiresInHours\":1}", 3600000 },
		{ "{\"expiresInHours\":1.5}", 5400000 },
		{ "{\"expiresInHours\":720}", 2592000000 },
		{ "{\"expiresInHours\":1.0000001}", 3600000 } };
	static const char *const bad[] = { "0", "0.999", "720.001", "-1", "1e300" };
	char body[64];
	int64_t made, until;

	(void)state;
	edge_sign_in(g, "ines");
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		(void)edge_ask(g, 201, "POST", "/api/private/invites", good[i].body);
		assert_int_equal(clock_parse(edge_text(g, "createdAt"), &made), 0);
		assert_int_equal(clock_parse(edge_text(g, "expiresAt"), &until), 0);
		assert_int_equal(until - made, good[i].ms);
		assert_true(id_check(ID_INVITE, edge_text(g, "inviteId")));
		assert_int_equal(strlen(edge_text(g, "token")), 43);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		(void)snprintf(body, sizeof(body), "{\"expiresInHours\":%s}", bad[i]);
		edge_refused(
		    g, 400, "invalid_invite_ttl", "POST", "/api/private/invites", body);
	}
	edge_refused(g, 400, "invalid_request", "POST", "/api/private/invites",
	    "{\"expiresInHours\":\"1\"}");
	edge_refused(g, 400, "invalid_request", "POST", "/api/private/invites",
	    "{\"expiresInHours\":null}");
}

static void
a_refused_acceptance_leaves_the_invite_and_a_good_one_uses_it_up(void **state)
{
	char token[64];

	(void)state;
	edge_sign_in(g, "john");
	(void)edge_ask(g, 201, "POST", "/api/private/invites", "{}");
	(void)snprintf(token, sizeof(token), "%s", edge_text(g, "token"));
	g->session[0] = '\0';
	edge_refused(
	    g, 400, "invalid_password", "POST", ACCEPT, acceptance(token, "edsger", "1234567"));
	edge_refused(
	    g, 409, "email_taken", "POST", ACCEPT, acceptance(token, "john", "12345678"));
	edge_refused(g, 409, "slug_taken", "POST", ACCEPT,
	    edge_fmt("{\"slug\":\"john\",\"email\":\"other@example.com\",\"displayName\":\"J\","
		     "\"password\":\"12345678\",\"token\":\"%s\"}",
		token));
	(void)edge_ask(g, 201, "POST", ACCEPT, acceptance(token, "edsger", "12345678"));
	assert_string_equal(edge_text(g, "user.slug"), "edsger");
	(void)snprintf(g->session, sizeof(g->session), "%s", edge_text(g, "sessionId"));
	(void)edge_ask(g, 200, "GET", "/api/private/me", NULL);
	g->session[0] = '\0';
	edge_refused(g, 409, "invite_already_used", "POST", ACCEPT,
	    acceptance(token, "niklaus", "12345678"));
	/* That was the fifth attempt; the sixth is refused before its fields are judged. */
	edge_refused(g, 429, "rate_limited", "POST", ACCEPT, acceptance(token, "x", ""));
	edge_refused(g, 404, "invite_not_found", "POST", ACCEPT,
	    acceptance("nothing", "niklaus", "12345678"));
	edge_refused(g, 400, "invalid_request", "POST", ACCEPT, acceptance(token, "", ""));
	assert_string_equal(edge_issues(g), "slug:Slug");
}

static void
of_two_acceptances_at_once_one_wins(void **state)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	const json_t *made;
	char token[64];
	int statuses[2], err;
	pid_t pid;
	int fds[2];

	(void)state;
	made = edge_rpc(g, "ingress", "user.invite", "{}", &err);
	assert_string_equal(edge_kind(made), "invited");
	(void)snprintf(
	    token, sizeof(token), "%s", json_string_value(json_object_get(made, "token")));
	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		unsigned char status = edge_ask(g, 0, "POST", ACCEPT,
					   acceptance(token, "one", "12345678")) == 201;

		_exit(write(fds[1], &status, 1) == 1 ? 0 : 1);
	}
	statuses[0] = edge_ask(g, 0, "POST", ACCEPT, acceptance(token, "two", "12345678")) ==
	    201;
	if (!statuses[0])
		assert_string_equal(edge_text(g, "error.code"), "invite_already_used");
	close(fds[1]);
	assert_int_equal(io_read_all(fds[0], 16, &b), 0);
	close(fds[0]);
	assert_int_equal(b.len, 1);
	statuses[1] = b.data[0];
	assert_int_equal(statuses[0] + statuses[1], 1);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static int
start_all(void **state)
{
	(void)state;
	edge_start(g);
	return 0;
}

static int
stop_all(void **state)
{
	(void)state;
	return edge_stop(g);
}

int
main(void)
{
#define TEST(fn) cmocka_unit_test_setup(fn, begin)
	const struct CMUnitTest tests[] = {
		TEST(every_answer_carries_the_same_headers),
		TEST(every_path_is_the_document_but_for_files),
		TEST(another_host_joins_the_policy_only_when_it_is_a_plain_one),
		TEST(malformed_requests_are_refused_as_json_and_cut),
		TEST(health_tells_of_every_actor_and_of_no_run),
		TEST(the_document_has_exactly_the_routes_that_are_served),
		TEST(unknown_paths_and_wrong_methods_are_told_apart),
		TEST(private_routes_want_a_session_before_anything_else),
		TEST(bodies_are_strict),
		TEST(media_types_encodings_and_sizes_are_checked_before_the_body),
		TEST(a_wrong_login_says_nothing_about_why),
		TEST(an_address_is_trimmed_and_lowered_and_the_eleventh_login_waits),
		TEST(an_address_of_a_client_may_ask_so_often),
		TEST(logging_out_ends_the_session_and_never_complains),
		TEST(disabling_and_a_new_password_take_effect_at_once),
		TEST(an_invite_lasts_as_long_as_was_asked),
		TEST(a_refused_acceptance_leaves_the_invite_and_a_good_one_uses_it_up),
		TEST(of_two_acceptances_at_once_one_wins),
	};

	return cmocka_run_group_tests(tests, start_all, stop_all);
}
