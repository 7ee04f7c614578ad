#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/rules.h"
#include "lib/wire/codec.h"
#include "lib/wire/codec_issue.h"
#include "lib/wire/codec_text.h"

static int decode_value(struct codec *c, const struct codec_type *t,
    const struct codec_field *f, const json_t *j, uint8_t *out);

/* ---- scalars ---- */

static const char *
code_of(const struct codec_type *t, const struct codec_field *f)
{
	return f != NULL && f->extra != NULL && f->extra->code != NULL ? f->extra->code
								       : t->code;
}

static int
wrong(struct codec *c, const struct codec_type *t, const struct codec_field *f,
    const char *message)
{
	return codec_issue_add(c, t->name, message, code_of(t, f));
}

/* Only types are judged in the pass of shapes, whose code is the same for all fields. */
static int
wrong_type(struct codec *c, const struct codec_type *t)
{
	static const char *const must_be[] = {
		[CODEC_STRING] = "Must be a string.",
		[CODEC_VIEW] = "Must be a string.",
		[CODEC_TIME] = "Must be a string.",
		[CODEC_ENUM] = "Must be a string.",
		[CODEC_INTEGER] = "Must be an integer.",
		[CODEC_NUMBER] = "Must be a number.",
		[CODEC_BOOLEAN] = "Must be true or false.",
		[CODEC_ANY] = "",
		[CODEC_ARRAY] = "Must be a list.",
		[CODEC_OBJECT] = "Must be an object.",
		[CODEC_UNION] = "Must be an object.",
	};

	return codec_issue_add(c, t->name, must_be[t->kind], NULL);
}

static int
decode_text(struct codec *c, const struct codec_type *t, const struct codec_field *f,
    const json_t *j, uint8_t *out)
{
	struct str_view text;
	const char *message = NULL;
	int r;

	if (!json_is_string(j))
		return wrong_type(c, t);
	text = (struct str_view) { json_string_value(j), json_string_length(j) };
	if (t->kind == CODEC_STRING && memchr(text.p, '\0', text.n) != NULL)
		return codec_issue_add(c, t->name, "Must not contain U+0000.", NULL);
	r = codec_text_check(c, t, &text, &message);
	if (r < 0)
		return r;
	if (message != NULL) {
		if (f != NULL && f->extra != NULL && f->extra->blank_code != NULL &&
		    rule_is_blank(text.p, text.n))
			return codec_issue_add(c, t->name, message, f->extra->blank_code);
		return wrong(c, t, f, message);
	}
	if (t->kind == CODEC_STRING)
		memcpy(out, &text.p, sizeof(text.p));
	else
		memcpy(out, &text, sizeof(text));
	return 0;
}

static int
decode_time(struct codec *c, const struct codec_type *t, const struct codec_field *f,
    const json_t *j, uint8_t *out)
{
	int64_t ms;

	if (!json_is_string(j))
		return wrong_type(c, t);
	if (clock_parse(json_string_value(j), &ms) < 0 ||
	    json_string_length(j) != CLOCK_TEXT_SIZE - 1)
		return c->passes & CODEC_RULES
		    ? wrong(c, t, f, "Must be a time such as 2026-01-31T09:05:07.042Z.")
		    : 0;
	memcpy(out, &ms, sizeof(ms));
	return 0;
}

static int
decode_enum(struct codec *c, const struct codec_type *t, const struct codec_field *f,
    const json_t *j, uint8_t *out)
{
	const char *message;
	size_t n;

	if (!json_is_string(j))
		return wrong_type(c, t);
	n = json_string_length(j);
	for (unsigned i = 0; i < t->words->n; i++)
		if (strlen(t->words->names[i]) == n &&
		    memcmp(t->words->names[i], json_string_value(j), n) == 0) {
			memcpy(out, &i, sizeof(i));
			return 0;
		}
	if (!(c->passes & CODEC_RULES))
		return 0;
	message = codec_words_message(c, t->words);
	return message == NULL ? E_NOMEM : wrong(c, t, f, message);
}

static int
decode_integer(struct codec *c, const struct codec_type *t, const struct codec_field *f,
    const json_t *j, uint8_t *out)
{
	int64_t v;

	if (!json_is_integer(j))
		return wrong_type(c, t);
	v = json_integer_value(j);
	if ((v < t->min || v > t->max) && c->passes & CODEC_RULES) {
		const char *message = codec_range_message(c, t, "");

		return message == NULL ? E_NOMEM : wrong(c, t, f, message);
	}
	memcpy(out, &v, sizeof(v));
	return 0;
}

static int
decode_number(struct codec *c, const struct codec_type *t, const struct codec_field *f,
    const json_t *j, uint8_t *out)
{
	double v;

	if (!json_is_number(j))
		return wrong_type(c, t);
	v = json_number_value(j);
	if (!(v >= (double)t->min && v <= (double)t->max) && c->passes & CODEC_RULES) {
		const char *message = codec_range_message(c, t, "");

		return message == NULL ? E_NOMEM : wrong(c, t, f, message);
	}
	memcpy(out, &v, sizeof(v));
	return 0;
}

static int
decode_boolean(struct codec *c, const struct codec_type *t, const json_t *j, uint8_t *out)
{
	int v = json_is_true(j);

	if (!json_is_boolean(j))
		return wrong_type(c, t);
	memcpy(out, &v, sizeof(v));
	return 0;
}

/* ---- lists ---- */

static int
decode_items(struct codec *c, const struct codec_type *item, const json_t *j, uint8_t *items)
{
	struct codec_at at = { .up = c->at };
	size_t n = json_array_size(j);
	int r = 0;

	c->at = &at;
	for (at.index = 0; at.index < n && r == 0; at.index++)
		r = decode_value(
		    c, item, NULL, json_array_get(j, at.index), items + at.index * item->size);
	c->at = at.up;
	return r;
}

static int
decode_array(struct codec *c, const struct codec_type *t, const struct codec_field *f,
    const json_t *j, uint8_t *out)
{
	size_t n = json_array_size(j);
	void *items;

	if (!json_is_array(j))
		return wrong_type(c, t);
	if ((n < (uint64_t)t->min || n > (uint64_t)t->max) && c->passes & CODEC_RULES) {
		const char *message = codec_range_message(c, t, " items");

		return message == NULL ? E_NOMEM : wrong(c, t, f, message);
	}
	if (n == 0)
		return 0;
	items = arena_calloc(c->arena, n, t->item->size);
	if (items == NULL)
		return E_NOMEM;
	memcpy(out, &items, sizeof(items));
	memcpy(out + sizeof(items), &n, sizeof(n));
	return decode_items(c, t->item, j, items);
}

/* ---- objects ---- */

/* The field of that name; ${guess} is the one that a peer who writes in our order sends. */
static size_t
field_find(const struct codec_type *t, const char *name, size_t n, size_t guess)
{
	for (size_t i = 0, at = guess; i < t->nfields; i++, at++) {
		const struct codec_field *f;

		if (at >= t->nfields)
			at = 0;
		f = &t->fields[at];
		if (f->key_len == n + 3 && memcmp(f->key + 1, name, n) == 0)
			return at;
	}
	return t->nfields;
}

static int
is_tag(const char *tag, const char *name, size_t n)
{
	return tag != NULL && strlen(tag) == n && memcmp(tag, name, n) == 0;
}

static void
use_default(const struct codec_field *f, uint8_t *out)
{
	const struct codec_extra *e = f->extra;
	int truth = e->def_int != 0;
	unsigned word = (unsigned)e->def_int;
	double number = (double)e->def_int;

	switch ((enum codec_kind)f->type->kind) {
	case CODEC_STRING: memcpy(out, &e->def_text, sizeof(e->def_text)); break;
	case CODEC_INTEGER: memcpy(out, &e->def_int, sizeof(e->def_int)); break;
	case CODEC_NUMBER: memcpy(out, &number, sizeof(number)); break;
	case CODEC_BOOLEAN: memcpy(out, &truth, sizeof(truth)); break;
	case CODEC_ENUM: memcpy(out, &word, sizeof(word)); break;
	default: base_bug(__FILE__, __LINE__, "default of a kind that has none");
	}
}

static int
decode_field(struct codec *c, const struct codec_field *f, const json_t *j, uint8_t *base)
{
	uint8_t *out = base + f->at;
	int has = 1;
	void *p;

	if (j == NULL) {
		if (f->flags & CODEC_REQUIRED)
			return codec_issue_add(c, f->type->name, "Is missing.", NULL);
		if (f->flags & CODEC_DEFAULT)
			use_default(f, out);
		return 0;
	}
	/* For what may be absent and null, `has` says that it is there. */
	if (f->flags & CODEC_HAS &&
	    (!json_is_null(j) || !(f->flags & (CODEC_REQUIRED | CODEC_DEFAULT))))
		memcpy(base + f->has, &has, sizeof(has));
	if (json_is_null(j) && f->flags & CODEC_NULLABLE)
		return 0;
	if (!(f->flags & CODEC_POINTER))
		return decode_value(c, f->type, f, j, out);
	p = arena_alloc(c->arena, f->type->size);
	if (p == NULL)
		return E_NOMEM;
	memcpy(out, &p, sizeof(p));
	return decode_value(c, f->type, f, j, p);
}

static int
unknown_members(struct codec *c, const struct codec_type *t, const char *tag, const json_t *j)
{
	struct codec_at *at = (struct codec_at *)(uintptr_t)c->at;
	json_t *object = (json_t *)(uintptr_t)j;
	int r = 0;

	for (void *it = json_object_iter(object); it != NULL && r == 0;
	     it = json_object_iter_next(object, it)) {
		at->name = json_object_iter_key(it);
		at->name_len = json_object_iter_key_len(it);
		if (field_find(t, at->name, at->name_len, 0) == t->nfields &&
		    !is_tag(tag, at->name, at->name_len))
			r = codec_issue_add(c, "absent", "There is no such member.", NULL);
	}
	return r;
}

/* Decodes the members of ${t}; ${tag}, when not NULL, is one that was read before. */
static int
decode_members(struct codec *c, const struct codec_type *t, const char *tag, const json_t *j,
    uint8_t *base)
{
	const json_t *values[CODEC_FIELDS_MAX];
	json_t *object = (json_t *)(uintptr_t)j;
	struct codec_at at = { .up = c->at };
	size_t next = 0, unknown = 0;
	int r = 0;

	memset(values, 0, t->nfields * sizeof(values[0]));
	for (void *it = object == NULL ? NULL : json_object_iter(object); it != NULL;
	     it = json_object_iter_next(object, it)) {
		const char *name = json_object_iter_key(it);
		size_t n = json_object_iter_key_len(it), i = field_find(t, name, n, next);

		if (i < t->nfields) {
			values[i] = json_object_iter_value(it);
			next = i + 1;
		} else {
			unknown += !is_tag(tag, name, n);
		}
	}
	c->at = &at;
	for (size_t i = 0; i < t->nfields && r == 0; i++) {
		at.name = t->fields[i].key + 1;
		at.name_len = t->fields[i].key_len - 3;
		r = decode_field(c, &t->fields[i], values[i], base);
	}
	if (r == 0 && unknown != 0 && !c->lenient)
		r = unknown_members(c, t, tag, j);
	c->at = at.up;
	return r;
}

static int
wrong_kind(struct codec *c, const struct codec_type *t, const json_t *kind)
{
	struct codec_at at = { .up = c->at, .name = t->tag, .name_len = strlen(t->tag) };
	int r;

	if (json_is_string(kind) && c->lenient)
		return E_UNSUPPORTED;
	c->at = &at;
	r = codec_issue_add(c, "String",
	    kind == NULL               ? "Is missing."
		: json_is_string(kind) ? "Is of no known kind."
				       : "Must be a string.",
	    NULL);
	c->at = at.up;
	return r;
}

static int
decode_union(struct codec *c, const struct codec_type *t, const json_t *j, uint8_t *base)
{
	const json_t *kind = json_object_get(j, t->tag);
	const struct codec_variant *v;
	size_t n = json_string_length(kind);

	for (unsigned i = 0; i < t->nvariants && json_is_string(kind); i++) {
		v = &t->variants[i];
		if (strlen(v->name) == n && memcmp(v->name, json_string_value(kind), n) == 0) {
			i++;
			memcpy(base, &i, sizeof(i));
			return decode_members(c, v->type, t->tag, j, base + v->at);
		}
	}
	return wrong_kind(c, t, kind);
}

static int
decode_value(struct codec *c, const struct codec_type *t, const struct codec_field *f,
    const json_t *j, uint8_t *out)
{
	switch ((enum codec_kind)t->kind) {
	case CODEC_STRING:
	case CODEC_VIEW: return decode_text(c, t, f, j, out);
	case CODEC_TIME: return decode_time(c, t, f, j, out);
	case CODEC_ENUM: return decode_enum(c, t, f, j, out);
	case CODEC_INTEGER: return decode_integer(c, t, f, j, out);
	case CODEC_NUMBER: return decode_number(c, t, f, j, out);
	case CODEC_BOOLEAN: return decode_boolean(c, t, j, out);
	case CODEC_ANY: memcpy(out, &j, sizeof(j)); return 0;
	case CODEC_ARRAY: return decode_array(c, t, f, j, out);
	case CODEC_OBJECT:
		return json_is_object(j) ? decode_members(c, t, NULL, j, out)
					 : wrong_type(c, t);
	case CODEC_UNION:
		return json_is_object(j) ? decode_union(c, t, j, out) : wrong_type(c, t);
	}
	base_bug(__FILE__, __LINE__, "codec kind");
}

int
codec_decode(struct codec *c, const struct codec_type *t, const json_t *j, void *ret)
{
	int r;

	memset(ret, 0, t->size);
	c->nissues = c->nbad = 0;
	c->err = 0;
	c->at = NULL;
	if (j == NULL && t->kind == CODEC_OBJECT)
		r = decode_members(c, t, NULL, NULL, ret);
	else if (j == NULL)
		r = wrong_type(c, t);
	else
		r = decode_value(c, t, NULL, j, ret);
	if (r < 0)
		return r;
	return c->nbad == 0 ? 0 : E_PARAMS;
}
