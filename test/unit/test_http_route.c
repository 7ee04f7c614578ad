/* From targets to segments, parameters, routes and client addresses. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/http/conn.h"

/* A request with this head and no connection. */
static struct http_req *
req_of(const char *method, const char *target, const char *fields)
{
	static struct http_server srv;
	struct conn c = { .srv = &srv };
	struct http_req *req = req_new(&c);
	char *text = mem_format("%s %s HTTP/1.1\r\nHost: a\r\n%s\r\n", method, target, fields);
	size_t used;

	assert_non_null(req);
	assert_int_equal(
	    head_feed(&req->head, (const uint8_t *)text, strlen(text), 8192, 32768, &used),
	    HEAD_DONE);
	free(text);
	req->conn = NULL;
	req->srv = NULL;
	return req;
}

static void
segments_are_decoded_once_and_slashes_are_not_forgiven(void **state)
{
	static const struct {
		const char *path;
		int n;
		const char *seg[4];
	} cases[] = {
		{ "/", 0, { NULL } },
		{ "/a", 1, { "a" } },
		{ "/a/b%20c/%2525", 3, { "a", "b c", "%25" } },
		{ "/a/", 2, { "a", "" } },
		{ "//a", 2, { "", "a" } },
		{ "/a%2Fb/..", 2, { "a/b", ".." } },
		{ "/+", 1, { "+" } },
		{ "/%c3%a9", 1, { "\xc3\xa9" } },
		{ "/a%", -1, { NULL } },
		{ "/a%2", -1, { NULL } },
		{ "/a%2/b", -1, { NULL } },
		{ "/a%zz", -1, { NULL } },
		{ "/a%00", -1, { NULL } },
		{ "/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16", 16, { "1" } },
		{ "/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17", -1, { NULL } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct http_req *req = req_of("GET", cases[i].path, "");

		assert_int_equal(http_req_segments(req), cases[i].n);
		for (int k = 0; k < 4 && cases[i].seg[k] != NULL; k++)
			assert_string_equal(http_req_segment(req, k), cases[i].seg[k]);
		assert_null(http_req_segment(req, cases[i].n));
		assert_null(http_req_segment(req, -1));
		req_free(req, 0);
	}
}

static void
query_parameters_are_decoded_and_doubles_are_seen(void **state)
{
	struct http_req *req = req_of("GET",
	    "/a?x=1&y=a+b%26c&z&&=e&n%61me=v&x=2&bad=%zz&nul=%00&%zz=1&last=%e2%82%ac", "");
	const char *value = "untouched";

	(void)state;
	assert_int_equal(http_req_query(req, "x", &value), E_EXISTS);
	assert_int_equal(http_req_query(req, "none", &value), E_NOENT);
	assert_int_equal(http_req_query(req, "bad", &value), E_INVAL);
	assert_int_equal(http_req_query(req, "nul", &value), E_INVAL);
	assert_string_equal(value, "untouched");
	assert_int_equal(http_req_query(req, "y", &value), 0);
	assert_string_equal(value, "a b&c");
	assert_int_equal(http_req_query(req, "z", &value), 0);
	assert_string_equal(value, "");
	assert_int_equal(http_req_query(req, "", &value), 0);
	assert_string_equal(value, "e");
	assert_int_equal(http_req_query(req, "name", &value), 0);
	assert_string_equal(value, "v");
	assert_int_equal(http_req_query(req, "last", &value), 0);
	assert_string_equal(value, "\xe2\x82\xac");
	req_free(req, 0);

	req = req_of("GET", "/a?a&a&a&a&a&a&a&b", "");
	assert_int_equal(http_req_query(req, "b", &value), 0);
	assert_int_equal(http_req_query(req, "a", &value), E_EXISTS);
	req_free(req, 0);
	req = req_of("GET", "/a", "");
	assert_int_equal(http_req_query(req, "a", &value), E_NOENT);
	req_free(req, 0);
}

static void
decoding_survives_every_failed_allocation(void **state)
{
	const struct http_route *route;
	char allow[HTTP_ALLOW_SIZE];
	const char *value;

	(void)state;
	for (int n = 0; n < 2; n++) {
		struct http_req *req = req_of("GET", "/a?b=c", "");

		mem_fault_arm(0);
		if (n == 0)
			assert_int_equal(http_req_query(req, "b", &value), E_NOMEM);
		else
			assert_int_equal(http_route_find(NULL, 0, req, &route, allow), E_NOMEM);
		assert_true(mem_fault_hit());
		mem_fault_arm(-1);
		assert_int_equal(http_req_query(req, "b", &value), 0);
		assert_int_equal(http_req_segments(req), 1);
		req_free(req, 0);
	}
}

static void
run_nothing(void *arg, struct http_req *req)
{
	(void)arg;
	(void)req;
}

static void
routes_are_found_by_method_and_path(void **state)
{
	static const struct http_route table[] = {
		{ "GET", "/", run_nothing, 0 },
		{ "GET", "/api/projects", run_nothing, 0 },
		{ "POST", "/api/projects", run_nothing, 0 },
		{ "GET", "/api/projects/mine", run_nothing, 0 },
		{ "GET", "/api/projects/{projectId}", run_nothing, 0 },
		{ "PATCH", "/api/projects/{projectId}", run_nothing, 0 },
		{ "PUT", "/api/projects/{projectId}/hooks/{provider}", run_nothing, 0 },
		{ "GET", "/api/runs/{runId}/logs", run_nothing, HTTP_ROUTE_NO_HEAD },
	};
	static const struct {
		const char *method, *path;
		int r, row;
		const char *param0, *param1, *allow;
	} cases[] = {
		{ "GET", "/", 0, 0, NULL, NULL, NULL },
		{ "HEAD", "/api/projects", 0, 1, NULL, NULL, NULL },
		{ "POST", "/api/projects", 0, 2, NULL, NULL, NULL },
		{ "GET", "/api/projects/mine", 0, 3, NULL, NULL, NULL },
		{ "GET", "/api/projects/m%69ne", 0, 3, NULL, NULL, NULL },
		{ "GET", "/api/projects/prj%5f1", 0, 4, "prj_1", NULL, NULL },
		{ "PATCH", "/api/projects/mine", 0, 5, "mine", NULL, NULL },
		{ "PUT", "/api/projects/p/hooks/q", 0, 6, "p", "q", NULL },
		{ "GET", "/api/runs/r/logs", 0, 7, "r", NULL, NULL },
		{ "HEAD", "/api/runs/r/logs", E_METHOD, 0, NULL, NULL, "GET" },
		{ "DELETE", "/api/projects", E_METHOD, 0, NULL, NULL, "GET, HEAD, POST" },
		{ "DELETE", "/api/projects/mine", E_METHOD, 0, NULL, NULL, "GET, HEAD, PATCH" },
		{ "OPTIONS", "/api/projects/p/hooks/q", E_METHOD, 0, NULL, NULL, "PUT" },
		{ "get", "/api/projects", E_METHOD, 0, NULL, NULL, "GET, HEAD, POST" },
		{ "OPTIONS", "*", E_NOENT, 0, NULL, NULL, NULL },
		{ "GET", "/api/projects/", E_NOENT, 0, NULL, NULL, NULL },
		{ "GET", "/api//projects", E_NOENT, 0, NULL, NULL, NULL },
		{ "GET", "//api/projects", E_NOENT, 0, NULL, NULL, NULL },
		{ "GET", "/api/Projects", E_NOENT, 0, NULL, NULL, NULL },
		{ "GET", "/api/project", E_NOENT, 0, NULL, NULL, NULL },
		{ "GET", "/api/projects/a/b", E_NOENT, 0, NULL, NULL, NULL },
		{ "GET", "/api%2fprojects", E_NOENT, 0, NULL, NULL, NULL },
		{ "GET", "/api/projects/%00", E_NOENT, 0, NULL, NULL, NULL },
		{ "GET", "/api", E_NOENT, 0, NULL, NULL, NULL },
		{ "GET", "//", E_NOENT, 0, NULL, NULL, NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct http_req *req = req_of(cases[i].method, cases[i].path, "");
		const struct http_route *route = NULL;
		char allow[HTTP_ALLOW_SIZE] = "";
		int r = http_route_find(table, ARRAY_LEN(table), req, &route, allow);

		if (r != cases[i].r)
			fail_msg("%s %s: %d", cases[i].method, cases[i].path, r);
		if (r == 0)
			assert_ptr_equal(route, &table[cases[i].row]);
		assert_string_equal(allow, cases[i].allow != NULL ? cases[i].allow : "");
		if (cases[i].param0 != NULL)
			assert_string_equal(http_req_param(req, 0), cases[i].param0);
		else
			assert_null(http_req_param(req, 0));
		if (cases[i].param1 != NULL)
			assert_string_equal(http_req_param(req, 1), cases[i].param1);
		assert_null(http_req_param(req, 2));
		req_free(req, 0);
	}
}

static void
the_client_is_the_rightmost_address_that_is_not_trusted(void **state)
{
	static const struct {
		const char *peer, *fields, *client; /* peer NULL: a Unix socket */
	} cases[] = {
		{ "192.0.2.1", "", "192.0.2.1" },
		{ "192.0.2.1", "X-Forwarded-For: 1.1.1.1\r\n", "192.0.2.1" },
		{ "10.1.2.3", "", "10.1.2.3" },
		{ "10.1.2.3", "X-Forwarded-For: 1.1.1.1\r\n", "1.1.1.1" },
		{ "10.1.2.3", "X-Forwarded-For: 6.6.6.6, 1.1.1.1 ,10.9.9.9\r\n", "1.1.1.1" },
		{ "10.1.2.3", "x-forwarded-for: 6.6.6.6\r\nX-Forwarded-For: 10.0.0.1\r\n",
		    "6.6.6.6" },
		{ "10.1.2.3", "X-Forwarded-For: 10.0.0.2, 10.0.0.1\r\n", "10.0.0.2" },
		{ "10.1.2.3", "X-Forwarded-For: 1.1.1.1, unknown, 10.0.0.1\r\n", "10.0.0.1" },
		{ "10.1.2.3", "X-Forwarded-For: 1.1.1.1,\r\n", "10.1.2.3" },
		{ "10.1.2.3", "X-Forwarded-For:\r\n", "10.1.2.3" },
		{ "10.1.2.3", "X-Forwarded-For: 1.1.1.1:8080\r\n", "1.1.1.1" },
		{ "10.1.2.3", "X-Forwarded-For: [2001:db8::1]:80\r\n", "2001:db8::1" },
		{ "10.1.2.3", "X-Forwarded-For: 2001:DB8::1\r\n", "2001:db8::1" },
		{ "10.1.2.3", "X-Forwarded-For: ::ffff:1.2.3.4\r\n", "1.2.3.4" },
		{ "::ffff:10.1.2.3", "X-Forwarded-For: 1.1.1.1\r\n", "1.1.1.1" },
		{ "2001:db8:0:1fff::1", "X-Forwarded-For: 1.1.1.1\r\n", "1.1.1.1" },
		{ "2001:db8:0:2000::1", "X-Forwarded-For: 1.1.1.1\r\n", "2001:db8:0:2000::1" },
		{ NULL, "", "unix" },
		{ NULL, "X-Forwarded-For: 6.6.6.6, 1.1.1.1, 10.0.0.1\r\n", "1.1.1.1" },
	};
	struct client_proxies p = { NULL, 0 };

	(void)state;
	assert_int_equal(client_proxies_add(&p, "10.0.0.0/8"), 0);
	assert_int_equal(client_proxies_add(&p, "2001:db8::/51"), 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct http_req *req = req_of("GET", "/", cases[i].fields);
		struct sockaddr_storage ss = { .ss_family = AF_UNIX };
		struct sockaddr_in *v4 = (void *)&ss;
		struct sockaddr_in6 *v6 = (void *)&ss;
		struct client_addr peer, got;
		char text[CLIENT_TEXT_SIZE];

		if (cases[i].peer != NULL && strchr(cases[i].peer, ':') == NULL) {
			ss.ss_family = AF_INET;
			inet_pton(AF_INET, cases[i].peer, &v4->sin_addr);
		} else if (cases[i].peer != NULL) {
			ss.ss_family = AF_INET6;
			inet_pton(AF_INET6, cases[i].peer, &v6->sin6_addr);
		}
		client_addr_set(&peer, &ss);
		client_resolve(&p, &peer, &req->head, &got);
		client_addr_format(&got, text);
		assert_string_equal(text, cases[i].client);
		req_free(req, 0);
	}
	client_proxies_done(&p);
}

static void
malformed_networks_are_refused(void **state)
{
	static const char *const bad[] = { "", "10", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/8x",
		"::/129", "a.b.c.d", "10.0.0.0/-1", "/8", "1.2.3.4.5",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" };
	static const char *const good[] = { "0.0.0.0/0", "::1", "::/0", "192.0.2.7/32" };
	struct client_proxies p = { NULL, 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(client_proxies_add(&p, bad[i]), E_INVAL);
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		assert_int_equal(client_proxies_add(&p, good[i]), 0);
	mem_fault_arm(0);
	assert_int_equal(client_proxies_add(&p, "::1"), E_NOMEM);
	mem_fault_arm(-1);
	assert_int_equal(p.n, ARRAY_LEN(good));
	client_proxies_done(&p);
}

static void
content_codings_and_single_headers_are_judged(void **state)
{
	struct http_req *req = req_of(
	    "GET", "/", "Content-Encoding: Identity\r\nA: 1\r\nA: 2\r\n");

	(void)state;
	assert_true(http_req_is_identity(req));
	assert_int_equal(http_req_header_count(req, "a"), 2);
	assert_null(http_req_header_once(req, "A"));
	assert_string_equal(http_req_header(req, "A"), "1");
	assert_string_equal(http_req_header_once(req, "host"), "a");
	req_free(req, 0);
	req = req_of("GET", "/", "Content-Encoding: identity\r\nContent-Encoding: gzip\r\n");
	assert_false(http_req_is_identity(req));
	req_free(req, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(segments_are_decoded_once_and_slashes_are_not_forgiven),
		cmocka_unit_test(query_parameters_are_decoded_and_doubles_are_seen),
		cmocka_unit_test(decoding_survives_every_failed_allocation),
		cmocka_unit_test(routes_are_found_by_method_and_path),
		cmocka_unit_test(the_client_is_the_rightmost_address_that_is_not_trusted),
		cmocka_unit_test(malformed_networks_are_refused),
		cmocka_unit_test(content_codings_and_single_headers_are_judged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
