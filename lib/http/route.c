#include "lib/http/route.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/http/conn.h"

/* 1 when the segments of ${req} fit ${pattern}; tells which are its parameters. */
static int
pattern_fits(const char *pattern, struct http_req *req, const char **param, int *ret_nparams)
{
	int i = 0, nparams = 0;

	while (*pattern == '/' && pattern[1] != '\0') {
		const char *seg = http_req_segment(req, i++);
		size_t n = strcspn(++pattern, "/");

		if (seg == NULL)
			return 0;
		if (*pattern == '{') {
			must(pattern[n - 1] == '}' && nparams < HTTP_PARAMS_MAX);
			if (*seg == '\0')
				return 0;
			param[nparams++] = seg;
		} else if (strlen(seg) != n || memcmp(seg, pattern, n) != 0) {
			return 0;
		}
		pattern += n;
	}
	*ret_nparams = nparams;
	return i == http_req_segments(req);
}

static int
method_fits(const struct http_route *r, const char *method)
{
	if (strcmp(r->method, method) == 0)
		return 1;
	return strcmp(r->method, "GET") == 0 && strcmp(method, "HEAD") == 0 &&
	    (r->flags & HTTP_ROUTE_NO_HEAD) == 0;
}

static void
allow_add(char *allow, const char *method)
{
	size_t have = strlen(allow), n = strlen(method);
	const char *at = strstr(allow, method);

	/* Several rows may have the same method. */
	if (at != NULL && (at[n] == ',' || at[n] == '\0') && (at == allow || at[-1] == ' '))
		return;
	snprintf(allow + have, HTTP_ALLOW_SIZE - have, "%s%s", have > 0 ? ", " : "", method);
}

int
http_route_find(const struct http_route *table, size_t n, struct http_req *req,
    const struct http_route **ret_route, char *ret_allow)
{
	const char *method = http_req_method(req), *param[HTTP_PARAMS_MAX];
	char allow[HTTP_ALLOW_SIZE] = "";
	int nparams = 0;
	size_t i;

	if (http_req_segments(req) == SEGMENTS_UNKNOWN)
		return E_NOMEM;
	for (i = 0; i < n && req->nsegments >= 0; i++) {
		const struct http_route *r = &table[i];

		if (!pattern_fits(r->pattern, req, param, &nparams))
			continue;
		if (method_fits(r, method)) {
			memcpy(req->param, param, (size_t)nparams * sizeof(*param));
			req->nparams = nparams;
			*ret_route = r;
			return 0;
		}
		allow_add(allow, r->method);
		if (strcmp(r->method, "GET") == 0 && (r->flags & HTTP_ROUTE_NO_HEAD) == 0)
			allow_add(allow, "HEAD");
	}
	if (allow[0] == '\0')
		return E_NOENT;
	memcpy(ret_allow, allow, sizeof(allow));
	return E_METHOD;
}

const char *
http_req_param(const struct http_req *req, int i)
{
	return i >= 0 && i < req->nparams ? req->param[i] : NULL;
}
