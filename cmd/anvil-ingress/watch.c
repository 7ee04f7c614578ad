#include "cmd/anvil-ingress/watch.h"

#include <string.h>
#include <strings.h>

#include "cmd/anvil-ingress/answer.h"
#include "cmd/anvil-ingress/query.h"
#include "cmd/anvil-ingress/routes.h"
#include "lib/base/err.h"

#define SEQ_MAX INT64_C(999999999999999999)

int
watch_read_seq(const char *text, int64_t min, int64_t *ret)
{
	return query_number(text, min, SEQ_MAX, ret);
}

int
watch_from(struct exchange *x, int64_t *ret)
{
	const char *text;

	*ret = 0;
	if (routes_query(x, "from", "Integer", &text) < 0)
		return E_INVAL;
	if (text == NULL || watch_read_seq(text, 1, ret) == 0)
		return 0;
	answer_bad_query(x, HTTP_CODE_INVALID_REQUEST, "from", "Integer",
	    "A line number, 1 or more, in decimal.");
	return E_INVAL;
}

/* Scheme and authority, as a browser writes them: without the port that the scheme has. */
static int
is_origin_of(const char *origin, const char *scheme, const char *host)
{
	size_t n = strlen(scheme), nhost = strlen(host);
	const char *port = strcmp(scheme, "https://") == 0 ? ":443" : ":80";

	if (strncasecmp(origin, scheme, n) != 0)
		return 0;
	if (nhost > strlen(port) && strcmp(host + nhost - strlen(port), port) == 0 &&
	    strncasecmp(origin + n, host, nhost - strlen(port)) == 0 &&
	    origin[n + nhost - strlen(port)] == '\0')
		return 1;
	return strcasecmp(origin + n, host) == 0;
}

int
watch_origin_is_ours(const struct exchange *x, const char *origin)
{
	const char *host = http_req_host(x->req);

	if (is_origin_of(
		origin, x->in->public_is_https ? "https://" : "http://", x->in->public_host))
		return 1;
	return host[0] != '\0' &&
	    (is_origin_of(origin, "http://", host) || is_origin_of(origin, "https://", host));
}

size_t
watch_stream_unsent(const struct viewer *v)
{
	return http_stream_unsent(v->x->req);
}

static void
on_room(void *arg, struct http_req *req)
{
	(void)req;
	viewer_on_room(arg);
}

void
watch_stream_want(struct viewer *v, size_t low)
{
	http_stream_want(v->x->req, low, on_room, v);
}
