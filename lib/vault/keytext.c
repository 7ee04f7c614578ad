/* Reads and writes key sets as JSON text.  By hand rather than through a tree of values, so
 * that no copy of a key stays behind in freed memory. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/enc.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/vault/keys.h"

#define KEY_TEXT_LEN 43

int
vault_keys_format(const struct vault_keys *k, struct buf *out)
{
	char text[KEY_TEXT_LEN + 1];
	int r;

	OBJ_CHECK(k, VAULT_KEYS_MAGIC);
	/* All at once: a buffer that grows leaves its old bytes behind unwiped. */
	r = buf_reserve(out, 128 + k->nkeys * (KEY_TEXT_LEN + 24));
	if (r < 0)
		return r;
	(void)buf_printf(out, "{\"current\": %lld, ", (long long)k->current);
	if (k->project[0] != '\0')
		(void)buf_printf(out, "\"project\": \"%s\", ", k->project);
	(void)buf_add_str(out, "\"keys\": {");
	for (size_t i = 0; i < k->nkeys; i++) {
		base64url_encode(k->keys[i].bytes, VAULT_KEY_BYTES, text);
		(void)buf_printf(out, "%s\"%lld\": \"%s\"", i != 0 ? ", " : "",
		    (long long)k->keys[i].version, text);
	}
	mem_wipe(text, sizeof(text));
	return buf_add_str(out, "}}\n");
}

/* The text and what was found wrong with it. */
struct scan {
	const char *text;
	size_t n, at;
	char *why; /* VAULT_WHY_SIZE bytes or NULL. */
	struct vault_keys *keys;
	int have_current, have_keys;
};

static int scan_fail(struct scan *s, int err, const char *fmt, ...) PRINTF_LIKE(3, 4);

static int
scan_fail(struct scan *s, int err, const char *fmt, ...)
{
	va_list ap;

	if (s->why != NULL) {
		va_start(ap, fmt);
		(void)vsnprintf(s->why, VAULT_WHY_SIZE, fmt, ap);
		va_end(ap);
	}
	return err;
}

static int
scan_syntax(struct scan *s)
{
	return scan_fail(s, E_PARSE, "not JSON at byte %zu", s->at + 1);
}

/* Next character that is no white space, '\0' at the end. */
static char
scan_peek(struct scan *s)
{
	while (
	    s->at < s->n && s->text[s->at] != '\0' && strchr(" \t\r\n", s->text[s->at]) != NULL)
		s->at++;
	return s->at < s->n ? s->text[s->at] : '\0';
}

static int
scan_char(struct scan *s, char c)
{
	if (scan_peek(s) != c)
		return scan_syntax(s);
	s->at++;
	return 0;
}

/* A string without escapes, lent from the text. */
static int
scan_string(struct scan *s, const char **ret, size_t *ret_n)
{
	size_t from;
	int r = scan_char(s, '"');

	if (r < 0)
		return r;
	from = s->at;
	while (s->at < s->n && s->text[s->at] != '"' && s->text[s->at] != '\\' &&
	    (unsigned char)s->text[s->at] >= ' ')
		s->at++;
	if (s->at == s->n || s->text[s->at] != '"')
		return scan_syntax(s);
	*ret = s->text + from;
	*ret_n = s->at++ - from;
	return 0;
}

/* Decimal version 1..INT32_MAX without leading zeros; 0 when it is none. */
static int64_t
version_of(const char *p, size_t n)
{
	int64_t v = 0;

	if (n == 0 || n > 10 || p[0] == '0')
		return 0;
	for (size_t i = 0; i < n; i++) {
		if (p[i] < '0' || p[i] > '9')
			return 0;
		v = v * 10 + (p[i] - '0');
	}
	return v <= INT32_MAX ? v : 0;
}

static int
scan_current(struct scan *s)
{
	size_t from;

	(void)scan_peek(s);
	from = s->at;
	while (s->at < s->n && s->text[s->at] >= '0' && s->text[s->at] <= '9')
		s->at++;
	s->keys->current = version_of(s->text + from, s->at - from);
	if (s->keys->current == 0)
		return scan_fail(s, E_INVAL, "current: expected a key version (1 or more)");
	return 0;
}

static int
scan_project(struct scan *s)
{
	const char *p;
	size_t n;
	int r = scan_string(s, &p, &n);

	if (r < 0)
		return r;
	if (n == ID_SIZE - 1)
		memcpy(s->keys->project, p, n);
	if (!id_check(ID_PROJECT, s->keys->project))
		return scan_fail(s, E_INVAL, "project: expected the id of a project");
	return 0;
}

static int
scan_key(struct scan *s)
{
	uint8_t bytes[VAULT_KEY_BYTES];
	const char *name, *value;
	size_t nname, nvalue, n = 0;
	int64_t version;
	int r = scan_string(s, &name, &nname);

	if (r == 0)
		r = scan_char(s, ':');
	if (r == 0)
		r = scan_string(s, &value, &nvalue);
	if (r < 0)
		return r;
	version = version_of(name, nname);
	if (version == 0)
		return scan_fail(s, E_INVAL, "keys: \"%.*s\" is not a key version (1 or more)",
		    (int)min_size(nname, 32), name);
	if (base64url_decode(value, nvalue, bytes, sizeof(bytes), &n) < 0 || n != sizeof(bytes))
		r = scan_fail(s, E_INVAL,
		    "keys: version %lld has %zu characters, expected %d of base64url (32 bytes)",
		    (long long)version, nvalue, KEY_TEXT_LEN);
	else
		r = vault_keys_add(s->keys, version, bytes);
	mem_wipe(bytes, sizeof(bytes));
	if (r == E_EXISTS)
		return scan_fail(
		    s, E_INVAL, "keys: version %lld is given twice", (long long)version);
	if (r == E_RANGE)
		return scan_fail(s, E_INVAL, "keys: more than %d versions", VAULT_VERSIONS_MAX);
	return r;
}

/* The members of one object, each read by ${member}. */
static int
scan_object(struct scan *s, int (*member)(struct scan *))
{
	int r = scan_char(s, '{');

	if (r < 0)
		return r;
	if (scan_peek(s) == '}') {
		s->at++;
		return 0;
	}
	do {
		r = member(s);
		if (r < 0)
			return r;
	} while (scan_peek(s) == ',' && s->at++ < s->n);
	return scan_char(s, '}');
}

static int
scan_member(struct scan *s)
{
	const char *name;
	size_t n;
	int r = scan_string(s, &name, &n);

	if (r == 0)
		r = scan_char(s, ':');
	if (r < 0)
		return r;
	if (n == 7 && memcmp(name, "current", 7) == 0 && s->have_current++ == 0)
		return scan_current(s);
	if (n == 4 && memcmp(name, "keys", 4) == 0 && s->have_keys++ == 0)
		return scan_object(s, scan_key);
	if (n == 7 && memcmp(name, "project", 7) == 0 && s->keys->project[0] == '\0')
		return scan_project(s);
	return scan_fail(s, E_INVAL, "\"%.*s\" is unknown or given twice (current, keys)",
	    (int)min_size(n, 32), name);
}

int
vault_keys_parse(const char *text, size_t n, struct vault_keys **ret, char why[VAULT_WHY_SIZE])
{
	CLEANUP(vault_keys_freep) struct vault_keys *k = vault_keys_new();
	struct scan s = { .text = text, .n = n, .why = why, .keys = k };
	int r;

	if (k == NULL)
		return scan_fail(&s, E_NOMEM, "out of memory");
	r = scan_object(&s, scan_member);
	if (r < 0)
		return r;
	if (scan_peek(&s) != '\0' || s.at != n)
		return scan_syntax(&s);
	if (k->nkeys == 0)
		return scan_fail(&s, E_INVAL, "keys: expected at least one key");
	if (!s.have_current)
		return scan_fail(&s, E_INVAL, "current: missing");
	if (vault_keys_find(k, k->current) == NULL)
		return scan_fail(&s, E_INVAL,
		    "current: version %lld is not among the keys; put that key back, or name "
		    "one that is there",
		    (long long)k->current);
	*ret = TAKE_PTR(k);
	return 0;
}
