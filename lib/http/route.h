/*
 * lib/http/route.h -- from method and path to a row of a constant table.  Included by http.h.
 */
#ifndef LIB_HTTP_ROUTE_H
#define LIB_HTTP_ROUTE_H

#include <stddef.h>

struct http_req;

#define HTTP_PARAMS_MAX 4
#define HTTP_ALLOW_SIZE 128

typedef void http_handler_fn(void *arg, struct http_req *req);

enum http_route_flag {
	HTTP_ROUTE_NO_HEAD = 1 << 0, /* A GET that HEAD does not reach: sockets, events. */
	/* From here on the table's owner may define bits of its own. */
	HTTP_ROUTE_USER = 1 << 8,
};

struct http_route {
	const char *method;  /* "GET"; it serves HEAD too.                              */
	const char *pattern; /* "/api/private/projects/{projectId}/runs"; a segment is
	                      * either literal or one parameter.                        */
	http_handler_fn *run;
	unsigned flags;
};

/*
 * First row of ${table} that fits; its parameters are kept with the request.
 * 0; E_NOENT: no row has this path; E_METHOD: some have, and ${ret_allow} (HTTP_ALLOW_SIZE
 * bytes) lists their methods, such as "GET, HEAD, POST"; E_NOMEM.  Outputs not named are untouched.
 */
int http_route_find(const struct http_route *table, size_t n, struct http_req *req,
    const struct http_route **ret_route, char *ret_allow);

/* Decoded parameter of the row that was found, in the order of the pattern, never empty;
 * NULL: it has not that many. */
const char *http_req_param(const struct http_req *req, int i);

#endif
