/*
 * lib/wire/json_parse.c -- JSON text to a jansson tree.
 *
 * jansson's own reader takes a character at a time through two buffers; most of the time of a
 * call between actors went there.  This one makes the same trees from the same texts, which the
 * fuzz target holds it to, at a quarter of the cost.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/enc.h"
#include "lib/base/err.h"
#include "lib/base/json_text.h"
#include "lib/base/mem.h"
#include "lib/base/utf8.h"
#include "lib/wire/json.h"

struct reader {
	const char *p; /* Next byte.                                */
	const char *end;
	unsigned room;   /* Brackets that may still be opened.      */
	struct buf text; /* Of strings with escapes, and of reals.  */
};

static int read_value(struct reader *r, json_t **ret);

static void
skip_white(struct reader *r)
{
	while (
	    r->p < r->end && (*r->p == ' ' || *r->p == '\n' || *r->p == '\r' || *r->p == '\t'))
		r->p++;
}

static int
at_byte(const struct reader *r, char c)
{
	return r->p < r->end && *r->p == c;
}

/* ---- strings ---- */

/* Goes on over what stands for itself.  0, or E_PARSE at a byte that may not stand there. */
static int
skip_plain(struct reader *r)
{
	for (;;) {
		size_t n = 1;
		uint8_t c;

		r->p += json_text_plain(r->p, (size_t)(r->end - r->p));
		if (r->p == r->end)
			return E_PARSE;
		c = (uint8_t)*r->p;

		if (c == '"' || c == '\\')
			return 0;
		if (c < 0x20 ||
		    (c >= 0x80 && (n = utf8_len(r->p, (size_t)(r->end - r->p))) == 0))
			return E_PARSE;
		r->p += n;
	}
}

/* Four digits at r->p; -1: there are none. */
static int32_t
read_hex4(struct reader *r)
{
	int32_t v = 0;

	if (r->end - r->p < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		int digit = hex_value(r->p[i]);

		if (digit < 0)
			return -1;
		v = v * 16 + digit;
	}
	r->p += 4;
	return v;
}

static int
add_utf8(struct buf *b, uint32_t cp)
{
	uint8_t out[4];

	return buf_add(b, out, utf8_encode(cp, out));
}

/* Behind "\u": a character, or both halves of a surrogate pair. */
static int
read_unicode(struct reader *r)
{
	int32_t high = read_hex4(r), low;

	if (high < 0 || (high >= 0xdc00 && high < 0xe000))
		return E_PARSE;
	if (high < 0xd800 || high >= 0xe000)
		return add_utf8(&r->text, (uint32_t)high);
	if (r->end - r->p < 2 || r->p[0] != '\\' || r->p[1] != 'u')
		return E_PARSE;
	r->p += 2;
	low = read_hex4(r);
	if (low < 0xdc00 || low >= 0xe000)
		return E_PARSE;
	return add_utf8(
	    &r->text, 0x10000 + ((uint32_t)(high - 0xd800) << 10) + (uint32_t)(low - 0xdc00));
}

static int
read_escape(struct reader *r)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *at;

	if (r->p == r->end)
		return E_PARSE;
	if (*r->p == 'u') {
		r->p++;
		return read_unicode(r);
	}
	at = memchr(from, *r->p, sizeof(from) - 1);
	if (at == NULL)
		return E_PARSE;
	r->p++;
	return buf_add_byte(&r->text, (uint8_t)to[at - from]);
}

/* Behind the quote: the text, in the input when it has no escapes, else in r->text. */
static int
read_string(struct reader *r, const char **ret_text, size_t *ret_n)
{
	const char *from = r->p;
	int err = skip_plain(r);

	if (err == 0 && *r->p == '"') {
		*ret_text = from;
		*ret_n = (size_t)(r->p++ - from);
		return 0;
	}
	buf_reset(&r->text);
	while (err == 0) {
		err = buf_add(&r->text, from, (size_t)(r->p - from));
		if (err < 0 || *r->p++ == '"')
			break;
		err = read_escape(r);
		from = r->p;
		if (err == 0)
			err = skip_plain(r);
	}
	*ret_text = r->text.data == NULL ? "" : (const char *)r->text.data;
	*ret_n = r->text.len;
	return err;
}

/* ---- numbers ---- */

/* Skips digits; 0: there are none. */
static int
skip_digits(struct reader *r)
{
	const char *from = r->p;

	while (r->p < r->end && *r->p >= '0' && *r->p <= '9')
		r->p++;
	return r->p != from;
}

static int
make_integer(const char *p, const char *end, json_t **ret)
{
	int negative = *p == '-';
	int64_t v = 0;

	for (p += negative; p < end; p++) {
		int digit = *p - '0';

		if (__builtin_mul_overflow(v, (int64_t)10, &v) ||
		    __builtin_add_overflow(v, (int64_t)(negative ? -digit : digit), &v))
			return E_PARSE;
	}
	*ret = json_integer(v);
	return *ret == NULL ? E_NOMEM : 0;
}

static int
make_real(struct reader *r, const char *from, json_t **ret)
{
	const char *text;
	double v;

	buf_reset(&r->text);
	buf_add(&r->text, from, (size_t)(r->p - from));
	text = buf_cstr(&r->text);
	if (text == NULL)
		return E_NOMEM;
	v = strtod(text, NULL);
	if (!isfinite(v))
		return E_PARSE;
	*ret = json_real(v);
	return *ret == NULL ? E_NOMEM : 0;
}

static int
read_number(struct reader *r, json_t **ret)
{
	const char *from = r->p;
	int real = 0;

	r->p += at_byte(r, '-');
	if (at_byte(r, '0'))
		r->p++;
	else if (!skip_digits(r))
		return E_PARSE;
	if (at_byte(r, '.')) {
		real = 1;
		r->p++;
		if (!skip_digits(r))
			return E_PARSE;
	}
	if (at_byte(r, 'e') || at_byte(r, 'E')) {
		real = 1;
		r->p++;
		r->p += at_byte(r, '+') || at_byte(r, '-');
		if (!skip_digits(r))
			return E_PARSE;
	}
	return real ? make_real(r, from, ret) : make_integer(from, r->p, ret);
}

/* ---- lists and objects ---- */

/* Behind a value: 1 goes on, 0 it was the last, E_PARSE. */
static int
read_separator(struct reader *r, char close)
{
	skip_white(r);
	if (!at_byte(r, ',') && !at_byte(r, close))
		return E_PARSE;
	return *r->p++ == ',';
}

static int
read_array(struct reader *r, json_t *list)
{
	int more = 1;

	skip_white(r);
	if (at_byte(r, ']')) {
		r->p++;
		return 0;
	}
	while (more == 1) {
		json_t *value = NULL;
		int err = read_value(r, &value);

		if (err < 0)
			return err;
		if (json_array_append_new(list, value) < 0)
			return E_NOMEM;
		more = read_separator(r, ']');
	}
	return more;
}

static int
read_member(struct reader *r, json_t *object)
{
	char kept[64], *copy = NULL;
	json_t *value = NULL;
	const char *name;
	size_t n, before = json_object_size(object);
	int err;

	skip_white(r);
	if (!at_byte(r, '"'))
		return E_PARSE;
	r->p++;
	err = read_string(r, &name, &n);
	if (err < 0)
		return err;
	if (memchr(name, '\0', n) != NULL)
		return E_PARSE;
	/* A name with escapes stands where those of its value will. */
	if (name == (const char *)r->text.data) {
		copy = n <= sizeof(kept) ? kept : mem_alloc(n);
		if (copy == NULL)
			return E_NOMEM;
		name = memcpy(copy, name, n);
	}
	skip_white(r);
	err = at_byte(r, ':') ? 0 : E_PARSE;
	r->p += err == 0;
	if (err == 0)
		err = read_value(r, &value);
	if (err == 0 && json_object_setn_new_nocheck(object, name, n, value) < 0)
		err = E_NOMEM;
	if (err == 0 && json_object_size(object) == before)
		err = E_PARSE; /* It was there. */
	if (copy != kept)
		free(copy);
	return err;
}

static int
read_object(struct reader *r, json_t *object)
{
	int more = 1;

	skip_white(r);
	if (at_byte(r, '}')) {
		r->p++;
		return 0;
	}
	while (more == 1) {
		int err = read_member(r, object);

		if (err < 0)
			return err;
		more = read_separator(r, '}');
	}
	return more;
}

static int
read_nested(struct reader *r, json_t **ret)
{
	int is_object = *r->p == '{', err;
	json_t *j;

	if (r->room == 0)
		return E_DEEP;
	j = is_object ? json_object() : json_array();
	if (j == NULL)
		return E_NOMEM;
	r->p++;
	r->room--;
	err = is_object ? read_object(r, j) : read_array(r, j);
	r->room++;
	if (err < 0)
		json_decref(j);
	else
		*ret = j;
	return err;
}

static int
read_word(struct reader *r, const char *word, json_t *value, json_t **ret)
{
	size_t n = strlen(word);

	if ((size_t)(r->end - r->p) < n || memcmp(r->p, word, n) != 0)
		return E_PARSE;
	r->p += n;
	*ret = value;
	return 0;
}

static int
read_value(struct reader *r, json_t **ret)
{
	const char *text;
	size_t n;
	int err;

	skip_white(r);
	if (r->p == r->end)
		return E_PARSE;
	switch (*r->p) {
	case '{':
	case '[': return read_nested(r, ret);
	case '"':
		r->p++;
		err = read_string(r, &text, &n);
		if (err < 0)
			return err;
		*ret = json_stringn_nocheck(text, n);
		return *ret == NULL ? E_NOMEM : 0;
	case 't': return read_word(r, "true", json_true(), ret);
	case 'f': return read_word(r, "false", json_false(), ret);
	case 'n': return read_word(r, "null", json_null(), ret);
	default: return read_number(r, ret);
	}
}

/* ---- the whole ---- */

static int
parse(const char *p, size_t n, unsigned max_depth, json_t **ret, size_t *ret_at)
{
	struct reader r = { .p = p, .end = p + n, .room = max_depth };
	json_t *j = NULL;
	int err = read_value(&r, &j);

	if (err == 0) {
		skip_white(&r);
		err = r.p == r.end ? 0 : E_PARSE;
	}
	*ret_at = (size_t)(r.p - p);
	buf_done(&r.text);
	if (err < 0)
		json_decref(j);
	else
		*ret = j;
	return err;
}

int
json_text_parse(const char *p, size_t n, unsigned max_depth, json_t **ret)
{
	size_t at;

	return parse(p, n, max_depth, ret, &at);
}

void
json_text_why(const char *p, size_t n, unsigned max_depth, char *out, size_t size)
{
	CLEANUP(json_unrefp) json_t *j = NULL;
	size_t at;
	int err = parse(p, n, max_depth, &j, &at);

	if (err == 0)
		out[0] = '\0';
	else if (n == 0)
		(void)snprintf(out, size, "The text is empty.");
	else if (err == E_NOMEM)
		(void)snprintf(out, size, "%s", err_text(err));
	else
		(void)snprintf(out, size,
		    err == E_DEEP ? "Nested too deeply at byte %zu."
				  : "Not valid JSON at byte %zu.",
		    at);
}
