#include <string.h>

#include "lib/base/enc.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/http/conn.h"

/* Decodes ${n} bytes to ${out}, which gets a NUL as well.  Bytes written without it, or -1: a
 * malformed escape or an encoded NUL. */
static long
percent_decode(const char *p, size_t n, int plus, char *out)
{
	char *begin = out;
	size_t i;

	for (i = 0; i < n; i++) {
		char c = p[i];

		if (c == '%') {
			int hi = i + 2 < n ? hex_value(p[i + 1]) : -1;
			int lo = hi >= 0 ? hex_value(p[i + 2]) : -1;

			if (lo < 0 || (hi | lo) == 0)
				return -1;
			c = (char)(hi * 16 + lo);
			i += 2;
		} else if (c == '+' && plus) {
			c = ' ';
		}
		*out++ = c;
	}
	*out = '\0';
	return out - begin;
}

/* ---- path ------------------------------------------------------------------------------ */

static int
path_split(struct http_req *req, const char *path)
{
	size_t len = strlen(path);
	char *out;
	size_t at, end;
	int n = 0;
	long got;

	if (len == 0 || path[0] != '/')
		return -1;
	if (len == 1)
		return 0;
	/* Each segment loses its slash and gains a NUL. */
	out = req->path = mem_alloc(len + 1);
	if (out == NULL)
		return SEGMENTS_UNKNOWN;
	for (at = 1; at <= len; at = end + 1) {
		for (end = at; end < len && path[end] != '/'; end++)
			;
		got = n < HTTP_SEGMENTS_MAX ? percent_decode(path + at, end - at, 0, out) : -1;
		if (got < 0)
			return -1;
		req->segment[n++] = out;
		out += got + 1;
	}
	return n;
}

int
http_req_segments(struct http_req *req)
{
	if (req->nsegments == SEGMENTS_UNKNOWN)
		req->nsegments = path_split(req, http_req_path(req));
	return req->nsegments;
}

const char *
http_req_segment(struct http_req *req, int i)
{
	return i >= 0 && i < http_req_segments(req) ? req->segment[i] : NULL;
}

/* ---- query ----------------------------------------------------------------------------- */

/* In `query` each parameter is one byte (good or not), name, NUL, value, NUL. */
#define QUERY_GOOD 'g'
#define QUERY_BAD  'b'

static void
query_add(struct http_req *req, const char *p, size_t n)
{
	const char *eq = memchr(p, '=', n);
	size_t name_len = eq != NULL ? (size_t)(eq - p) : n;
	size_t value_len = eq != NULL ? n - name_len - 1 : 0;
	char *mark = req->query + req->query_len;
	long name, value;

	name = percent_decode(p, name_len, 1, mark + 1);
	if (name < 0)
		return; /* a name that nothing can know */
	value = percent_decode(eq != NULL ? eq + 1 : p, value_len, 1, mark + name + 2);
	*mark = value < 0 ? QUERY_BAD : QUERY_GOOD;
	if (value < 0) {
		mark[name + 2] = '\0';
		value = 0;
	}
	req->query_len += (size_t)(name + value) + 3;
}

static int
query_parse(struct http_req *req)
{
	const char *p = http_req_query_text(req);
	size_t n;

	/* A parameter and its '&' become at most two bytes more. */
	req->query = mem_alloc(strlen(p) * 3 + 4);
	if (req->query == NULL)
		return E_NOMEM;
	while (*p != '\0') {
		n = strcspn(p, "&");
		if (n > 0)
			query_add(req, p, n);
		p += n;
		p += *p == '&';
	}
	return 0;
}

int
http_req_query(struct http_req *req, const char *name, const char **ret_value)
{
	const char *found = NULL, *p;
	size_t at;
	int bad = 0;

	if (req->query == NULL && query_parse(req) < 0)
		return E_NOMEM;
	for (at = 0; at < req->query_len;) {
		p = req->query + at;
		at += strlen(p) + 1;
		at += strlen(req->query + at) + 1;
		if (strcmp(p + 1, name) != 0)
			continue;
		if (found != NULL)
			return E_EXISTS;
		found = p + strlen(p) + 1;
		bad = *p == QUERY_BAD;
	}
	if (found == NULL)
		return E_NOENT;
	if (bad)
		return E_INVAL;
	*ret_value = found;
	return 0;
}
