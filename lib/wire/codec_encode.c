#include <math.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/json_text.h"
#include "lib/wire/codec.h"
#include "lib/wire/json.h"

static void encode_value(struct buf *out, const struct codec_type *t, const uint8_t *in);

static void
encode_string(struct buf *out, const uint8_t *in)
{
	const char *text;

	memcpy(&text, in, sizeof(text));
	must(text != NULL);
	json_text_string(out, text, strlen(text));
}

static void
encode_view(struct buf *out, const uint8_t *in)
{
	struct str_view text;

	memcpy(&text, in, sizeof(text));
	must(text.p != NULL || text.n == 0);
	json_text_string(out, text.n == 0 ? "" : text.p, text.n);
}

static void
encode_time(struct buf *out, const uint8_t *in)
{
	char text[CLOCK_TEXT_SIZE];
	int64_t ms;

	memcpy(&ms, in, sizeof(ms));
	clock_format(ms, text);
	buf_add_byte(out, '"');
	buf_add_str(out, text);
	buf_add_byte(out, '"');
}

static void
encode_enum(struct buf *out, const struct codec_type *t, const uint8_t *in)
{
	unsigned word;

	memcpy(&word, in, sizeof(word));
	must(word < t->words->n);
	buf_add_byte(out, '"');
	buf_add_str(out, t->words->names[word]);
	buf_add_byte(out, '"');
}

static void
encode_number(struct buf *out, const uint8_t *in)
{
	double v;

	memcpy(&v, in, sizeof(v));
	must(isfinite(v));
	if (v == rint(v) && fabs(v) < 9e15)
		buf_add_int(out, (int64_t)v);
	else
		buf_printf(out, "%.17g", v);
}

static void
encode_any(struct buf *out, const uint8_t *in)
{
	const char *text;
	const json_t *j;

	memcpy(&j, in, sizeof(j));
	memcpy(&text, in + sizeof(j), sizeof(text));
	if (text != NULL)
		buf_add_str(out, text);
	else
		json_text_dump(out, j);
}

static void
encode_array(struct buf *out, const struct codec_type *t, const uint8_t *in)
{
	const uint8_t *items;
	size_t n;

	memcpy(&items, in, sizeof(items));
	memcpy(&n, in + sizeof(items), sizeof(n));
	buf_add_byte(out, '[');
	for (size_t i = 0; i < n; i++) {
		if (i != 0)
			buf_add_byte(out, ',');
		encode_value(out, t->item, items + i * t->item->size);
	}
	buf_add_byte(out, ']');
}

/* Where the value of ${f} is; NULL: there is none. */
static const uint8_t *
value_of(const struct codec_field *f, const uint8_t *base)
{
	const uint8_t *at = base + f->at;
	const void *p;
	int has;

	if (f->flags & CODEC_HAS) {
		memcpy(&has, base + f->has, sizeof(has));
		if (!has)
			return NULL;
	}
	if (f->flags & CODEC_POINTER) {
		memcpy(&p, at, sizeof(p));
		return p;
	}
	if (f->flags & CODEC_REQUIRED && !(f->flags & CODEC_NULLABLE))
		return at;
	if (f->type->kind == CODEC_STRING || f->type->kind == CODEC_VIEW) {
		memcpy(&p, at, sizeof(p));
		return p == NULL ? NULL : at;
	}
	return at;
}

/* 1 when a field without a value is written as null, 0 when it is left out. */
static int
writes_null(const struct codec_field *f, const uint8_t *base)
{
	int has = 0;

	if (!(f->flags & CODEC_NULLABLE))
		return 0;
	if (f->flags & CODEC_HAS)
		memcpy(&has, base + f->has, sizeof(has));
	return f->flags & CODEC_REQUIRED || has;
}

static void
encode_members(struct buf *out, const struct codec_type *t, const uint8_t *base, int first)
{
	for (size_t i = 0; i < t->nfields; i++) {
		const struct codec_field *f = &t->fields[i];
		const uint8_t *v = value_of(f, base);

		must(v != NULL || !(f->flags & CODEC_REQUIRED) || f->flags & CODEC_NULLABLE);
		if (v == NULL && !writes_null(f, base))
			continue;
		if (!first)
			buf_add_byte(out, ',');
		first = 0;
		buf_add(out, f->key, f->key_len);
		if (v == NULL)
			buf_add(out, "null", 4);
		else
			encode_value(out, f->type, v);
	}
	buf_add_byte(out, '}');
}

static void
encode_union(struct buf *out, const struct codec_type *t, const uint8_t *in)
{
	const struct codec_variant *v;
	unsigned kind;

	memcpy(&kind, in, sizeof(kind));
	must(kind >= 1 && kind <= t->nvariants);
	v = &t->variants[kind - 1];
	buf_add(out, "{\"", 2);
	buf_add_str(out, t->tag);
	buf_add(out, "\":\"", 3);
	buf_add_str(out, v->name);
	buf_add_byte(out, '"');
	encode_members(out, v->type, in + v->at, 0);
}

static void
encode_value(struct buf *out, const struct codec_type *t, const uint8_t *in)
{
	int64_t number;
	int truth;

	switch ((enum codec_kind)t->kind) {
	case CODEC_STRING: encode_string(out, in); break;
	case CODEC_VIEW: encode_view(out, in); break;
	case CODEC_TIME: encode_time(out, in); break;
	case CODEC_ENUM: encode_enum(out, t, in); break;
	case CODEC_INTEGER:
		memcpy(&number, in, sizeof(number));
		buf_add_int(out, number);
		break;
	case CODEC_NUMBER: encode_number(out, in); break;
	case CODEC_BOOLEAN:
		memcpy(&truth, in, sizeof(truth));
		buf_add_str(out, truth ? "true" : "false");
		break;
	case CODEC_ANY: encode_any(out, in); break;
	case CODEC_ARRAY: encode_array(out, t, in); break;
	case CODEC_OBJECT:
		buf_add_byte(out, '{');
		encode_members(out, t, in, 1);
		break;
	case CODEC_UNION: encode_union(out, t, in); break;
	}
}

int
codec_encode(struct buf *out, const struct codec_type *t, const void *v)
{
	encode_value(out, t, v);
	return out->failed ? E_NOMEM : 0;
}
