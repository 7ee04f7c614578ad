#include "lib/base/repourl.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/ascii.h"
#include "lib/base/base.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/utf8.h"

#define HOST_MAX  253 /* Bytes of a DNS name.     */
#define LABEL_MAX 63
#define PORT_MAX  65535
#define GIT       ".git"
#define GIT_LEN   4

#define SAY_SCHEME   "The URL must begin with https://."
#define SAY_TOO_LONG "The URL must have at most 2,048 bytes."
#define SAY_NO_REPOSITORY \
	"The URL needs the path of a repository behind its host, such as /owner/name."
#define SAY_BAD_HOST \
	"The host must be a public DNS name of two labels or more, such as git.example.com."

enum scheme { SCHEME_HTTPS, SCHEME_HTTP, SCHEME_FILE, SCHEME_COUNT };

static const struct scheme_row {
	const char *prefix;
	long port; /* Left out of the result; 0: the scheme has none. */
} schemes[SCHEME_COUNT] = {
	[SCHEME_HTTPS] = { "https://", 443 },
	[SCHEME_HTTP] = { "http://", 80 },
	[SCHEME_FILE] = { "file://", 0 },
};

/* A piece of the cleaned input. */
struct span {
	const char *p;
	size_t n;
};

struct url {
	enum scheme scheme;
	struct span user; /* p is NULL without "@".                     */
	struct span host; /* As written.                                */
	struct span port; /* p is NULL without ":".                     */
	struct span path; /* With its first "/"; empty when none.       */
	struct span tail; /* "?" or "#" and what follows.               */
};

/* Where the result grows.  The path is written from its end to its beginning, so that ".."
 * needs no memory of what came before. */
struct output {
	char head[HOST_MAX + 32]; /* Scheme, host and port. */
	size_t head_len;
	char path[REPOURL_MAX + GIT_LEN + 1];
	size_t path_at; /* Its first byte; sizeof(path): none. */
};

/* ---- taking it apart --------------------------------------------------------------- */

/* 1 when ${s} begins with ${word}, which is in lower case, in any case. */
static int
begins(struct span s, const char *word)
{
	size_t len = strlen(word);

	if (s.n < len)
		return 0;
	for (size_t i = 0; i < len; i++)
		if (ascii_lower(s.p[i]) != word[i])
			return 0;
	return 1;
}

/* First of the bytes of ${set} in ${s}, or its end. */
static size_t
find_any(struct span s, const char *set)
{
	size_t i = 0;

	while (i < s.n && (s.p[i] == '\0' || strchr(set, s.p[i]) == NULL))
		i++;
	return i;
}

static struct span
cut(struct span s, size_t from)
{
	return (struct span) { s.p + from, s.n - from };
}

/* Trims, and copies to ${out} without tab, CR and LF; what is left has no control. */
static const char *
clean(struct span in, char *out, struct span *ret)
{
	size_t len = 0;

	while (in.n > 0 && ascii_is_space(in.p[0]))
		in = cut(in, 1);
	while (in.n > 0 && ascii_is_space(in.p[in.n - 1]))
		in.n--;
	for (size_t i = 0; i < in.n; i++)
		if (in.p[i] != '\t' && in.p[i] != '\r' && in.p[i] != '\n')
			out[len++] = in.p[i];
	*ret = (struct span) { out, len };
	if (!utf8_valid(out, len))
		return "The URL must be valid UTF-8.";
	if (utf8_has_control(out, len))
		return "The URL must not contain control characters.";
	if (memchr(out, '\\', len) != NULL)
		return "The URL must be written with \"/\", without a backslash.";
	return NULL;
}

static const char *
scheme_fault(struct span in, const struct repourl_flags *f, int local_fits)
{
	if (begins(in, schemes[SCHEME_HTTP].prefix))
		return "The URL must begin with https:// "
		       "(the setting repositories.allow_http would allow http://).";
	if (begins(in, schemes[SCHEME_FILE].prefix) && local_fits)
		return "The URL must begin with https:// "
		       "(the setting repositories.allow_local would allow file://).";
	if (f->allow_http && f->allow_local && local_fits)
		return "The URL must begin with https://, http:// or file://.";
	if (f->allow_http)
		return "The URL must begin with https:// or http://.";
	if (f->allow_local && local_fits)
		return "The URL must begin with https:// or file://.";
	return SAY_SCHEME;
}

static const char *
take_scheme(struct span *in, const struct repourl_flags *f, int local_fits, struct url *u)
{
	const int allowed[SCHEME_COUNT] = {
		[SCHEME_HTTPS] = 1,
		[SCHEME_HTTP] = f->allow_http,
		[SCHEME_FILE] = f->allow_local && local_fits,
	};

	for (int s = 0; s < SCHEME_COUNT; s++)
		if (allowed[s] && begins(*in, schemes[s].prefix)) {
			u->scheme = (enum scheme)s;
			*in = cut(*in, strlen(schemes[s].prefix));
			return NULL;
		}
	return scheme_fault(*in, f, local_fits);
}

/* Splits what follows "://".  A bracketed host may hold colons. */
static void
take_apart(struct span in, struct url *u)
{
	size_t end = find_any(in, "/?#");
	struct span auth = { in.p, end };
	const char *at = end > 0 ? memrchr(auth.p, '@', end) : NULL;
	size_t colon = 0;

	in = cut(in, end);
	end = find_any(in, "?#");
	u->path = (struct span) { in.p, end };
	u->tail = cut(in, end);
	if (at != NULL) {
		u->user = (struct span) { auth.p, (size_t)(at - auth.p) };
		auth = cut(auth, u->user.n + 1);
	}
	if (auth.n > 0 && auth.p[0] == '[')
		colon = find_any(auth, "]");
	colon += find_any(cut(auth, colon), ":");
	u->host = (struct span) { auth.p, colon };
	if (colon < auth.n)
		u->port = cut(auth, colon + 1);
}

static const char *
extras_fault(const struct url *u)
{
	if (u->user.n > 0)
		return "The URL must not contain a user name or password; "
		       "store a token with the project instead.";
	if (u->scheme == SCHEME_FILE && u->tail.n > 0)
		return "A file:// URL must have no query and no fragment.";
	if (u->tail.n > 2 || (u->tail.n == 2 && memcmp(u->tail.p, "?#", 2) != 0))
		return "The URL must end with its path, without a query or fragment.";
	return NULL;
}

/* ---- host and port ------------------------------------------------------------------ */

/* 1 for four decimals 0..255 without leading zeros. */
static int
is_ipv4(const char *host)
{
	struct in_addr addr;
	char again[INET_ADDRSTRLEN];

	return inet_pton(AF_INET, host, &addr) == 1 &&
	    inet_ntop(AF_INET, &addr, again, sizeof(again)) != NULL && strcmp(host, again) == 0;
}

/* 1 when a browser would read a name that ends in ${label} as a number. */
static int
is_numeric(const char *label, size_t n)
{
	size_t i = 0;
	int hex = n >= 2 && label[0] == '0' && label[1] == 'x';

	for (i = hex ? 2 : 0; i < n; i++)
		if (hex ? !ascii_is_hex(label[i]) : !ascii_is_digit(label[i]))
			return 0;
	return 1;
}

static const char *
label_fault(const char *label, size_t n)
{
	if (n == 0)
		return "The host must not have an empty label or end with a dot.";
	if (n > LABEL_MAX)
		return "Each label of the host must have at most 63 bytes.";
	for (size_t i = 0; i < n; i++)
		if (!ascii_is_digit(label[i]) && !ascii_is_alpha(label[i]) && label[i] != '-')
			return "The host may have letters, digits, \"-\" and dots only.";
	if (label[0] == '-' || label[n - 1] == '-')
		return "No label of the host may begin or end with \"-\".";
	return NULL;
}

/* Judges a lower-cased name that is no address. */
static const char *
name_fault(const char *host, const struct repourl_flags *f)
{
	const char *label = host, *dot;
	const char *why;
	size_t nlabels = 0, n;

	for (;; label = dot + 1) {
		dot = strchrnul(label, '.');
		n = (size_t)(dot - label);
		if ((why = label_fault(label, n)) != NULL)
			return why;
		nlabels++;
		if (*dot == '\0')
			break;
	}
	if (is_numeric(label, n))
		return f->allow_private_hosts
		    ? "An IPv4 address must be written as four decimals, such as 192.0.2.1."
		    : SAY_BAD_HOST;
	if ((nlabels == 1 || strcmp(label, "localhost") == 0) && !f->allow_private_hosts)
		return "The host must be a public DNS name such as git.example.com (the setting "
		       "repositories.allow_private_hosts would allow this one).";
	return NULL;
}

static const char *
ipv6_to_text(const char *host, size_t n, const struct repourl_flags *f, char *out, size_t size)
{
	char inner[INET6_ADDRSTRLEN], text[INET6_ADDRSTRLEN];
	struct in6_addr addr;

	if (n < 2 || host[n - 1] != ']' || n - 2 >= sizeof(inner))
		return "An IPv6 address must be written in brackets, such as [2001:db8::1].";
	memcpy(inner, host + 1, n - 2);
	inner[n - 2] = '\0';
	if (inet_pton(AF_INET6, inner, &addr) != 1 ||
	    inet_ntop(AF_INET6, &addr, text, sizeof(text)) == NULL)
		return "An IPv6 address must be written in brackets, such as [2001:db8::1].";
	if (!f->allow_private_hosts)
		return "The host must be a public DNS name such as git.example.com (the setting "
		       "repositories.allow_private_hosts would allow addresses).";
	(void)snprintf(out, size, "[%s]", text);
	return NULL;
}

/* Writes the host, lower-cased, to ${out} of HOST_MAX + 1 bytes. */
static const char *
host_to_text(struct span host, const struct repourl_flags *f, char *out)
{
	if (host.n == 0)
		return "The URL needs a host behind \"://\", such as https://git.example.com/a/b.";
	for (size_t i = 0; i < host.n; i++) {
		if ((unsigned char)host.p[i] >= 0x80)
			return "The host must be ASCII; write an international name in its "
			       "xn-- form.";
		if (host.p[i] == '%')
			return "The host must be written without percent escapes; write an "
			       "international name in its xn-- form.";
	}
	if (host.n > HOST_MAX)
		return "The host must have at most 253 bytes.";
	if (host.p[0] == '[')
		return ipv6_to_text(host.p, host.n, f, out, HOST_MAX + 1);
	for (size_t i = 0; i < host.n; i++)
		out[i] = ascii_lower(host.p[i]);
	out[host.n] = '\0';
	if (!is_ipv4(out))
		return name_fault(out, f);
	if (!f->allow_private_hosts)
		return "The host must be a public DNS name such as git.example.com (the setting "
		       "repositories.allow_private_hosts would allow addresses).";
	return NULL;
}

/* *ret_port is -1 when none is to be written. */
static const char *
port_value(const struct url *u, long *ret_port)
{
	long port = 0;

	*ret_port = -1;
	if (u->port.n == 0)
		return NULL;
	for (size_t i = 0; i < u->port.n; i++) {
		if (!ascii_is_digit(u->port.p[i]))
			return "The port must be a decimal number up to 65535.";
		port = port * 10 + (u->port.p[i] - '0');
		if (port > PORT_MAX)
			return "The port must be a decimal number up to 65535.";
	}
	if (port != schemes[u->scheme].port)
		*ret_port = port;
	return NULL;
}

static const char *
put_head(const struct url *u, const struct repourl_flags *f, struct output *o)
{
	char host[HOST_MAX + 1] = "";
	const char *why = NULL;
	long port = -1;
	int n;

	if (u->scheme == SCHEME_FILE) {
		if (u->host.n > 0 || u->port.p != NULL || u->user.p != NULL)
			return "A file:// URL must have no host: file:///absolute/path.";
	} else if ((why = host_to_text(u->host, f, host)) == NULL) {
		why = port_value(u, &port);
	}
	if (why != NULL)
		return why;
	n = port < 0
	    ? snprintf(o->head, sizeof(o->head), "%s%s", schemes[u->scheme].prefix, host)
	    : snprintf(
		  o->head, sizeof(o->head), "%s%s:%ld", schemes[u->scheme].prefix, host, port);
	must(n > 0 && (size_t)n < sizeof(o->head));
	o->head_len = (size_t)n;
	return NULL;
}

/* ---- path --------------------------------------------------------------------------- */

/* How many dots ${s} stands for, "%2e" counting as one; 0: it is a name (or empty). */
static size_t
dots_of(struct span s)
{
	size_t dots = 0;

	while (s.n > 0 && dots < 3) {
		size_t len = s.p[0] == '.' ? 1 : begins(s, "%2e") ? 3 : 0;

		if (len == 0)
			return 0;
		s = cut(s, len);
		dots++;
	}
	return dots < 3 ? dots : 0;
}

static int
path_push(struct output *o, char c)
{
	if (o->path_at == 0)
		return 0;
	o->path[--o->path_at] = c;
	return 1;
}

/* Puts "/" and the segment before what is there.  0: no room. */
static int
push_segment(struct output *o, struct span s)
{
	static const char hex[] = "0123456789ABCDEF";

	for (size_t i = s.n; i-- > 0;) {
		unsigned char c = (unsigned char)s.p[i];

		if (c < 0x80 && strchr(" \"<>`{}", c) == NULL) {
			if (!path_push(o, (char)c))
				return 0;
		} else if (!path_push(o, hex[c & 15]) || !path_push(o, hex[c >> 4]) ||
		    !path_push(o, '%')) {
			return 0;
		}
	}
	return path_push(o, '/');
}

/* From the last segment to the first: a ".." takes away the next name to its left, and empty
 * segments count only once a name stands behind them (no trailing slash is kept). */
static const char *
put_path(struct span path, struct output *o)
{
	size_t end = path.n, skip = 0;

	o->path_at = sizeof(o->path);
	while (end > 0) {
		const char *slash = memrchr(path.p, '/', end);
		size_t from = (size_t)(slash - path.p) + 1;
		struct span s = { path.p + from, end - from };
		size_t dots = dots_of(s);

		end = from - 1;
		if (dots == 2)
			skip++;
		else if (dots == 1 || (skip == 0 && s.n == 0 && o->path_at == sizeof(o->path)))
			continue;
		else if (skip > 0)
			skip--;
		else if (!push_segment(o, s))
			return SAY_TOO_LONG;
	}
	return NULL;
}

/* Without its ".git" a last segment may be empty, or a dot segment that was none before. */
static int
ends_in_name(const char *path, size_t n)
{
	const char *slash = memrchr(path, '/', n);
	struct span last = { slash + 1, n - (size_t)(slash + 1 - path) };

	return last.n > 0 && dots_of(last) == 0;
}

/* Copies head and path, less one ".git" when ${drop_git}. */
static const char *
put_together(const struct output *o, int drop_git, char *out)
{
	const char *path = o->path + o->path_at;
	size_t n = sizeof(o->path) - o->path_at;

	if (drop_git && n >= GIT_LEN && memcmp(path + n - GIT_LEN, GIT, GIT_LEN) == 0)
		n -= GIT_LEN;
	if (n > 0 && !ends_in_name(path, n))
		return SAY_NO_REPOSITORY;
	if (o->head_len + n > REPOURL_MAX)
		return SAY_TOO_LONG;
	memcpy(out, o->head, o->head_len);
	memcpy(out + o->head_len, path, n);
	out[o->head_len + n] = '\0';
	return NULL;
}

/* ---- the two kinds --------------------------------------------------------------------- */

static int
normalise(struct span in, const struct repourl_flags *f, int instance, char *out,
    const char **ret_message)
{
	CLEANUP_FREE char *copy = mem_alloc(in.n + 1);
	struct url u = { .scheme = SCHEME_HTTPS };
	struct output o;
	const char *why;

	if (copy == NULL)
		return E_NOMEM;
	if ((why = clean(in, copy, &in)) == NULL &&
	    (why = take_scheme(&in, f, !instance, &u)) == NULL) {
		take_apart(in, &u);
		why = extras_fault(&u);
	}
	if (why == NULL && (why = put_head(&u, f, &o)) == NULL)
		why = put_path(u.path, &o);
	if (why == NULL && !instance && o.path_at == sizeof(o.path))
		why = SAY_NO_REPOSITORY;
	if (why == NULL)
		why = put_together(&o, !instance && u.scheme != SCHEME_FILE, out);
	if (why == NULL)
		return 0;
	if (ret_message != NULL)
		*ret_message = why;
	return E_INVAL;
}

int
repourl_normalise(const char *in, size_t n, const struct repourl_flags *flags,
    char out[REPOURL_SIZE], const char **ret_message)
{
	return normalise((struct span) { in, n }, flags, 0, out, ret_message);
}

int
repourl_normalise_instance(const char *in, size_t n, const struct repourl_flags *flags,
    char out[REPOURL_SIZE], const char **ret_message)
{
	return normalise((struct span) { in, n }, flags, 1, out, ret_message);
}
