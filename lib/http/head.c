#include "lib/http/head.h"

#include <limits.h>
#include <string.h>
#include <strings.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"

#define METHOD_MAX      24                 /* bytes of a method */
#define VERSION_LEN     8                  /* "HTTP/1.1" */
#define LENGTH_MAX      ((int64_t)1 << 53) /* largest Content-Length read as a number */
#define LINE_EXTRA      (METHOD_MAX + VERSION_LEN + 4) /* a first line beyond its target */
#define AUTHORITY_EXTRA 300                            /* scheme and host of an absolute form */
#define FIELDS_MIN      16

void
head_init(struct head *h)
{
	memset(h, 0, sizeof(*h));
}

void
head_done(struct head *h)
{
	/* Heads carry session ids, tickets and secrets of forges. */
	if (h->text.data != NULL)
		buf_wipe(&h->text);
	free(h->fields);
	h->fields = NULL;
	h->nfields = h->fields_cap = 0;
}

const char *
head_text(const struct head *h, uint32_t at)
{
	return (const char *)h->text.data + at;
}

/* ---- characters ---------------------------------------------------------------------- */

static int
is_token(uint8_t c)
{
	static const char marks[] = "!#$%&'*+-.^_`|~";

	if ((c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z'))
		return 1;
	return c != '\0' && strchr(marks, c) != NULL;
}

/* Host and port: what RFC 3986 allows in them, no user information. */
static int
is_host(uint8_t c)
{
	static const char marks[] = "!$%&'()*+,-.:;=[]_~";

	if ((c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z'))
		return 1;
	return c != '\0' && strchr(marks, c) != NULL;
}

static int
is_value(uint8_t c)
{
	return c == '\t' || (c >= ' ' && c != 0x7f);
}

static int
is_blank(uint8_t c)
{
	return c == ' ' || c == '\t';
}

/* ---- first line ---------------------------------------------------------------------- */

/* `scheme://authority` before the path is cut off; what is left begins with '/'. */
static int
head_absolute(struct head *h, size_t at, size_t len)
{
	uint8_t *t = h->text.data + at;
	size_t skip, end;

	if (len >= 7 && strncasecmp((const char *)t, "http://", 7) == 0)
		skip = 7;
	else if (len >= 8 && strncasecmp((const char *)t, "https://", 8) == 0)
		skip = 8;
	else
		return 400;
	for (end = skip; end < len && is_host(t[end]); end++)
		;
	if (end == skip || end > AUTHORITY_EXTRA)
		return 400;
	h->authority = (uint32_t)(at + skip);
	h->authority_len = (uint32_t)(end - skip);
	if (end == len || t[end] == '?') {
		/* An empty path means "/"; the byte before it is free once authority moves. */
		memmove(t + skip - 1, t + skip, end - skip);
		h->authority--;
		t[--end] = '/';
	}
	if (t[end] != '/')
		return 400;
	h->path = (uint32_t)(at + end);
	return 0;
}

static int
head_target(struct head *h, size_t at, size_t len, size_t target_max)
{
	const uint8_t *t = h->text.data + at;
	size_t i;
	int r;

	for (i = 0; i < len; i++)
		if (t[i] <= ' ' || t[i] >= 0x7f || t[i] == '#')
			return 400;
	h->path = (uint32_t)at;
	if (t[0] == '*') {
		if (len != 1 || strcmp(head_text(h, 0), "OPTIONS") != 0)
			return 400;
	} else if (t[0] != '/') {
		r = head_absolute(h, at, len);
		if (r != 0)
			return r;
	}
	h->text.data[at + len] = '\0';
	h->query = h->path + (uint32_t)strcspn(head_text(h, h->path), "?");
	if (h->query < at + len)
		h->text.data[h->query++] = '\0';
	return at + len - h->path > target_max ? 414 : 0;
}

/* METHOD SP target SP HTTP/1.x; ${n} bytes, the CRLF is gone. */
static int
head_first_line(struct head *h, size_t n, size_t target_max)
{
	uint8_t *t = h->text.data;
	size_t method, end;

	for (method = 0; method < n && is_token(t[method]); method++)
		;
	if (method == 0 || method > METHOD_MAX || method == n || t[method] != ' ')
		return 400;
	for (end = method + 1; end < n && t[end] != ' '; end++)
		;
	if (end == method + 1 || n - end != VERSION_LEN + 1)
		return end - method - 1 > target_max + AUTHORITY_EXTRA ? 414 : 400;
	if (memcmp(t + end + 1, "HTTP/1.", 7) != 0 || (t[n - 1] != '0' && t[n - 1] != '1'))
		return 400;
	h->minor = t[n - 1] == '1';
	t[method] = '\0';
	return head_target(h, method + 1, end - method - 1, target_max);
}

/* ---- header lines -------------------------------------------------------------------- */

int
head_split_field(const uint8_t *line, size_t n, size_t *ret_name_len, size_t *ret_value,
    size_t *ret_value_len)
{
	size_t name, at, end = n, i;

	for (name = 0; name < n && is_token(line[name]); name++)
		;
	if (name == 0 || name == n || line[name] != ':')
		return 0;
	for (i = name + 1; i < n; i++)
		if (!is_value(line[i]))
			return 0;
	for (at = name + 1; at < n && is_blank(line[at]); at++)
		;
	while (end > at && is_blank(line[end - 1]))
		end--;
	*ret_name_len = name;
	*ret_value = at;
	*ret_value_len = end - at;
	return 1;
}

static int
head_length(struct head *h, const char *value)
{
	int64_t n = 0;

	if (h->has_length || value[0] == '\0')
		return 400;
	for (; *value != '\0'; value++) {
		if (*value < '0' || *value > '9')
			return 400;
		n = n * 10 + (*value - '0');
		if (n > LENGTH_MAX)
			return 400;
	}
	h->has_length = 1;
	h->length = n;
	return 0;
}

/* The headers that decide about framing and identity. */
static int
head_know(struct head *h, const struct head_field *f)
{
	const char *name = head_text(h, f->name), *value = head_text(h, f->value);
	size_t i;

	if (strcasecmp(name, "Content-Length") == 0)
		return head_length(h, value);
	if (strcasecmp(name, "Transfer-Encoding") == 0) {
		if (h->has_coding || strcasecmp(value, "chunked") != 0)
			return 400;
		h->has_coding = 1;
	} else if (strcasecmp(name, "Host") == 0) {
		if (h->has_host || value[0] == '\0')
			return 400;
		for (i = 0; value[i] != '\0'; i++)
			if (!is_host((uint8_t)value[i]))
				return 400;
		h->has_host = 1;
		h->host = f->value;
	} else if (strcasecmp(name, "Expect") == 0) {
		h->expects |= strcasecmp(value, "100-continue") == 0;
	}
	return 0;
}

static int
head_add_field(struct head *h, size_t at, size_t n)
{
	size_t name_len, value, value_len;
	struct head_field *f;

	if (!head_split_field(h->text.data + at, n, &name_len, &value, &value_len))
		return 400;
	if (h->nfields == h->fields_cap) {
		uint32_t cap = h->fields_cap == 0 ? FIELDS_MIN : h->fields_cap * 2;

		f = mem_realloc(h->fields, cap * sizeof(*f));
		if (f == NULL)
			return 503;
		h->fields = f;
		h->fields_cap = cap;
	}
	f = &h->fields[h->nfields++];
	f->name = (uint32_t)at;
	f->value = (uint32_t)(at + value);
	/* Where value_len is 0 this may be the CR of the line: it is in the buffer as well. */
	h->text.data[at + name_len] = '\0';
	h->text.data[at + value + value_len] = '\0';
	return head_know(h, f);
}

/* What only the whole head can tell. */
static int
head_finish(struct head *h)
{
	const char *host;

	if (h->minor == 1 && !h->has_host)
		return 400;
	if (h->has_coding && (h->has_length || h->minor == 0))
		return 400;
	if (h->has_coding)
		h->length = -1;
	if (h->authority != 0 && h->has_host) {
		host = head_text(h, h->host);
		if (strlen(host) != h->authority_len ||
		    strncasecmp(host, head_text(h, h->authority), h->authority_len) != 0)
			return 400;
	}
	if (h->minor == 0)
		h->expects = 0;
	h->keep_alive = h->minor == 1 ? !head_has_token(h, "Connection", "close")
				      : head_has_token(h, "Connection", "keep-alive") &&
		!head_has_token(h, "Connection", "close");
	h->done = 1;
	return HEAD_DONE;
}

/* ---- feeding ------------------------------------------------------------------------- */

/* A complete line of ${n} bytes begins at h->line, its CRLF not counted. */
static int
head_line(struct head *h, size_t n, size_t target_max)
{
	size_t at = h->line;

	h->line = (uint32_t)h->text.len;
	if (h->fields_start != 0)
		return n == 0 ? head_finish(h) : head_add_field(h, at, n);
	if (n == 0 && !h->blank_seen) {
		/* RFC 9112 2.2: old clients send one too many behind a body. */
		h->blank_seen = 1;
		h->line = 0;
		h->text.len = 0;
		return HEAD_MORE;
	}
	h->fields_start = h->line;
	return head_first_line(h, n, target_max);
}

/* A line that has not ended yet may be too long already. */
static int
head_judge_partial(const struct head *h, size_t target_max, size_t fields_max)
{
	size_t have = h->text.len - h->line;

	if (h->fields_start != 0)
		return h->text.len - h->fields_start > fields_max + 2 ? 431 : HEAD_MORE;
	if (have <= target_max + AUTHORITY_EXTRA + LINE_EXTRA)
		return HEAD_MORE;
	return memchr(h->text.data, ' ', min_size(have, METHOD_MAX + 1)) != NULL ? 414 : 400;
}

static int
head_judge_line(struct head *h, size_t target_max, size_t fields_max)
{
	size_t n = h->text.len - h->line;

	if (n < 2 || h->text.data[h->text.len - 2] != '\r')
		return 400;
	if (h->fields_start != 0 && n > 2 && h->text.len - h->fields_start > fields_max)
		return 431;
	return head_line(h, n - 2, target_max);
}

int
head_feed(struct head *h, const uint8_t *p, size_t n, size_t target_max, size_t fields_max,
    size_t *ret_used)
{
	size_t used = 0;
	int r = HEAD_MORE;

	must(!h->done && target_max < INT_MAX / 4 && fields_max < INT_MAX / 4);
	while (r == HEAD_MORE && used < n) {
		const uint8_t *lf = memchr(p + used, '\n', n - used);
		size_t take = lf == NULL ? n - used : (size_t)(lf - (p + used)) + 1;
		/* Never more than what shows that it is too much. */
		size_t most = target_max + fields_max + AUTHORITY_EXTRA + LINE_EXTRA + 4;

		if (take > most) {
			take = most;
			lf = NULL;
		}
		*ret_used = used;
		if (buf_add(&h->text, p + used, take) < 0)
			return 503;
		used += take;
		r = lf == NULL ? head_judge_partial(h, target_max, fields_max)
			       : head_judge_line(h, target_max, fields_max);
	}
	*ret_used = used;
	return r;
}

/* ---- looking up ---------------------------------------------------------------------- */

const char *
head_get(const struct head *h, const char *name, size_t nth)
{
	uint32_t i;

	for (i = 0; i < h->nfields; i++)
		if (strcasecmp(head_text(h, h->fields[i].name), name) == 0 && nth-- == 0)
			return head_text(h, h->fields[i].value);
	return NULL;
}

static int
list_has(const char *list, const char *token)
{
	size_t len = strlen(token), n;

	while (*list != '\0') {
		list += strspn(list, " \t,");
		n = strcspn(list, ",");
		while (n > 0 && is_blank((uint8_t)list[n - 1]))
			n--;
		if (n == len && len > 0 && strncasecmp(list, token, len) == 0)
			return 1;
		list += strcspn(list, ",");
	}
	return 0;
}

int
head_has_token(const struct head *h, const char *name, const char *token)
{
	uint32_t i;

	for (i = 0; i < h->nfields; i++)
		if (strcasecmp(head_text(h, h->fields[i].name), name) == 0 &&
		    list_has(head_text(h, h->fields[i].value), token))
			return 1;
	return 0;
}
