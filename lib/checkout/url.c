/*
 * Where a repository URL leads, and whether the configuration lets anvil go there.
 *
 * URLs were validated when the project was stored; this is the second look, because the
 * configuration may have changed since.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/checkout/co.h"

static int
copy_lower(char *out, size_t size, const char *p, size_t n)
{
	if (n >= size)
		return E_INVAL;
	for (size_t i = 0; i < n; i++)
		out[i] = (char)tolower((unsigned char)p[i]);
	out[n] = '\0';
	return 0;
}

/* host, host:port, [v6] and [v6]:port. */
static int
parse_authority(const char *p, size_t n, struct co_origin *ret)
{
	const char *end = p + n, *host = p, *host_end, *port;

	if (n == 0 || memchr(p, '@', n) != NULL)
		return E_INVAL;
	if (*p == '[') {
		host++;
		host_end = memchr(p, ']', n);
		if (host_end == NULL)
			return E_INVAL;
		port = host_end + 1;
	} else {
		host_end = memchr(p, ':', n);
		if (host_end == NULL)
			host_end = end;
		port = host_end;
	}
	if (host_end == host ||
	    copy_lower(ret->host, sizeof(ret->host), host, (size_t)(host_end - host)) < 0)
		return E_INVAL;
	if (port == end)
		return snprintf(ret->port, sizeof(ret->port), "%s",
			   strcmp(ret->scheme, "http") == 0 ? "80" : "443") < 0
		    ? E_INVAL
		    : 0;
	if (*port++ != ':' || port == end || (size_t)(end - port) >= sizeof(ret->port))
		return E_INVAL;
	memcpy(ret->port, port, (size_t)(end - port));
	ret->port[end - port] = '\0';
	return strspn(ret->port, "0123456789") == strlen(ret->port) ? 0 : E_INVAL;
}

int
co_origin_parse(const char *url, struct co_origin *ret)
{
	const char *sep = strstr(url, "://");

	memset(ret, 0, sizeof(*ret));
	if (sep == NULL ||
	    copy_lower(ret->scheme, sizeof(ret->scheme), url, (size_t)(sep - url)) < 0)
		return E_INVAL;
	sep += 3;
	if (strcmp(ret->scheme, "file") == 0)
		return *sep == '/' ? 0 : E_INVAL;
	if (strcmp(ret->scheme, "https") != 0 && strcmp(ret->scheme, "http") != 0)
		return E_INVAL;
	return parse_authority(sep, strcspn(sep, "/?#"), ret);
}

int
co_origin_equal(const struct co_origin *a, const struct co_origin *b)
{
	return strcmp(a->scheme, b->scheme) == 0 && strcmp(a->host, b->host) == 0 &&
	    strcmp(a->port, b->port) == 0;
}

static int
is_private_host(const char *host)
{
	struct in6_addr v6;
	struct in_addr v4;
	size_t n = strlen(host);

	return strchr(host, '.') == NULL || inet_pton(AF_INET, host, &v4) == 1 ||
	    inet_pton(AF_INET6, host, &v6) == 1 ||
	    (n > 10 && strcmp(host + n - 10, ".localhost") == 0);
}

int
co_origin_check(struct co *co)
{
	const struct checkout_request *req = &co->req;

	if (co_origin_parse(req->url, &co->origin) < 0)
		return co_fail_reason(co, "the repository URL is not one that can be fetched");
	if (strcmp(co->origin.scheme, "file") == 0)
		return req->allow_local
		    ? 0
		    : co_fail_reason(co, "file:// needs repositories.allow_local");
	if (strcmp(co->origin.scheme, "http") == 0 && !req->allow_http)
		return co_fail_reason(co, "http:// needs repositories.allow_http");
	if (is_private_host(co->origin.host) && !req->allow_private_hosts)
		return co_fail_reason(
		    co, "host %s needs repositories.allow_private_hosts", co->origin.host);
	return 0;
}
