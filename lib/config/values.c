/* What the text of a setting may be. */
#include <arpa/inet.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "lib/base/ascii.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/repourl.h"
#include "lib/base/utf8.h"
#include "lib/config/settings.h"

#define USER_MAX  32
#define TOKEN_MAX 1024
#define PORT_MAX  65535
#define UNIX      "unix:"

static int
keep(struct arena *arena, const char *in, size_t n, const char **ret)
{
	const char *copy = arena_strndup(arena, in, n);

	if (copy == NULL)
		return E_NOMEM;
	*ret = copy;
	return 0;
}

int
value_user(struct arena *arena, const char *in, size_t n, const char **ret)
{
	if (n > USER_MAX || (n > 0 && !ascii_is_alpha(in[0]) && in[0] != '_'))
		return E_INVAL;
	for (size_t i = 0; i < n; i++)
		if (!ascii_is_alpha(in[i]) && !ascii_is_digit(in[i]) && in[i] != '_' &&
		    in[i] != '-' && in[i] != '.')
			return E_INVAL;
	return keep(arena, in, n, ret);
}

int
value_path(struct arena *arena, const char *in, size_t n, const char **ret)
{
	if (n == 0 || in[0] != '/' || n >= PATH_MAX || utf8_has_control(in, n))
		return E_INVAL;
	while (n > 1 && in[n - 1] == '/')
		n--;
	return keep(arena, in, n, ret);
}

int
value_optional_path(struct arena *arena, const char *in, size_t n, const char **ret)
{
	return n == 0 ? keep(arena, in, n, ret) : value_path(arena, in, n, ret);
}

/* ---- addresses ---------------------------------------------------------------------------- */

/* The usual form of ${n} bytes that are an address of ${family}.  0 or E_INVAL. */
static int
address_text(int family, const char *in, size_t n, char out[INET6_ADDRSTRLEN])
{
	char text[INET6_ADDRSTRLEN];
	struct in6_addr addr;

	if (n == 0 || n >= sizeof(text) || memchr(in, '\0', n) != NULL)
		return E_INVAL;
	memcpy(text, in, n);
	text[n] = '\0';
	if (inet_pton(family, text, &addr) != 1 ||
	    inet_ntop(family, &addr, out, INET6_ADDRSTRLEN) == NULL)
		return E_INVAL;
	return 0;
}

int
value_address(struct arena *arena, const char *in, size_t n, const char **ret)
{
	char out[INET6_ADDRSTRLEN];

	if (address_text(AF_INET, in, n, out) < 0 && address_text(AF_INET6, in, n, out) < 0)
		return E_INVAL;
	return keep(arena, out, strlen(out), ret);
}

/* 1..65535 without a leading zero. */
static int
is_port(const char *p, size_t n)
{
	long port = 0;

	if (n == 0 || n > 5 || p[0] == '0')
		return 0;
	for (size_t i = 0; i < n; i++) {
		if (!ascii_is_digit(p[i]))
			return 0;
		port = port * 10 + (p[i] - '0');
	}
	return port <= PORT_MAX;
}

static int
listen_inet(struct arena *arena, const char *in, size_t n, const char **ret)
{
	const char *colon = memrchr(in, ':', n);
	size_t host, port;
	char text[INET6_ADDRSTRLEN];
	int six = n > 0 && in[0] == '[';

	if (colon == NULL)
		return E_INVAL;
	host = (size_t)(colon - in);
	port = n - host - 1;
	if (!is_port(colon + 1, port))
		return E_INVAL;
	if (six && (host < 2 || in[host - 1] != ']'))
		return E_INVAL;
	if (six ? address_text(AF_INET6, in + 1, host - 2, text) < 0
		: address_text(AF_INET, in, host, text) < 0)
		return E_INVAL;
	*ret = arena_format(arena, six ? "[%s]:%.*s" : "%s:%.*s", text, (int)port, colon + 1);
	return *ret == NULL ? E_NOMEM : 0;
}

int
value_listen(struct arena *arena, const char *in, size_t n, const char **ret)
{
	const size_t scheme = strlen(UNIX);
	const char *path;
	int r;

	if (n < scheme || memcmp(in, UNIX, scheme) != 0)
		return listen_inet(arena, in, n, ret);
	/* The kernel keeps a socket's path in a field of fixed size. */
	if (n - scheme >= sizeof(((struct sockaddr_un *)NULL)->sun_path))
		return E_INVAL;
	r = value_path(arena, in + scheme, n - scheme, &path);
	if (r < 0)
		return r;
	if (path[1] == '\0')
		return E_INVAL;
	return keep(arena, in, n, ret);
}

/* ---- others -------------------------------------------------------------------------------- */

int
value_url(struct arena *arena, const char *in, size_t n, const char **ret)
{
	static const struct repourl_flags any_host = { .allow_http = 1,
		.allow_private_hosts = 1 };
	char url[REPOURL_SIZE];
	int r = repourl_normalise_instance(in, n, &any_host, url, NULL);

	return r < 0 ? r : keep(arena, url, strlen(url), ret);
}

int
value_level(struct arena *arena, const char *in, size_t n, const char **ret)
{
	enum log_level level;
	int r = keep(arena, in, n, ret);

	return r < 0 ? r : log_level_parse(*ret, &level);
}

int
value_sandbox(struct arena *arena, const char *in, size_t n, const char **ret)
{
	int r = keep(arena, in, n, ret);

	if (r < 0)
		return r;
	return strcmp(*ret, "bwrap") == 0 || strcmp(*ret, "none") == 0 ? 0 : E_INVAL;
}

int
value_token(struct arena *arena, const char *in, size_t n, const char **ret)
{
	if (n > TOKEN_MAX)
		return E_INVAL;
	for (size_t i = 0; i < n; i++)
		if (in[i] <= ' ' || in[i] > '~')
			return E_INVAL;
	return keep(arena, in, n, ret);
}
