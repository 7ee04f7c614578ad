#include "lib/wire/codec_text.h"

#include <inttypes.h>
#include <string.h>

#include "lib/base/enc.h"
#include "lib/base/err.h"
#include "lib/base/id.h"
#include "lib/base/rules.h"
#include "lib/base/utf8.h"

static int
all_of(const struct str_view *text, int (*is)(unsigned char c))
{
	for (size_t i = 0; i < text->n; i++)
		if (!is((unsigned char)text->p[i]))
			return 0;
	return 1;
}

static int
is_word(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	    c == '_' || c == '-';
}

static int
is_hex(const struct str_view *text, size_t min, size_t max)
{
	return text->n >= min && text->n <= max && hex_is_lower(text->p, text->n);
}

/* What a text of that shape should be, or NULL when it is. */
static const char *
shape_check(const struct codec_type *t, const struct str_view *text)
{
	switch ((enum codec_shape)t->shape) {
	case CODEC_SHAPE_NONE: return NULL;
	case CODEC_SHAPE_ID:
		return id_check(t->tag, text->p) && text->n == ID_SIZE - 1
		    ? NULL
		    : "Is not an id of this kind.";
	case CODEC_SHAPE_SLUG:
		return text->n >= 1 && text->n <= 64 && all_of(text, is_word)
		    ? NULL
		    : "Must be 1 to 64 of A-Z, a-z, 0-9, _ and -.";
	case CODEC_SHAPE_HEX32:
		return is_hex(text, 32, 32) ? NULL
					    : "Must be 32 lower-case hexadecimal digits.";
	case CODEC_SHAPE_SHA256:
		return is_hex(text, 64, 64) ? NULL
					    : "Must be 64 lower-case hexadecimal digits.";
	case CODEC_SHAPE_COMMIT:
		return is_hex(text, 7, 64) ? NULL
					   : "Must be 7 to 64 lower-case hexadecimal digits.";
	case CODEC_SHAPE_BASE64URL:
		return all_of(text, is_word) ? NULL : "Must be base64url without padding.";
	}
	return NULL;
}

static const char *
length_message(struct codec *c, const struct codec_type *t, const struct str_view *text)
{
	const char *message = NULL;
	size_t n;

	/* Characters are at most bytes, so that most texts need no counting. */
	if (t->min > 0 || (uint64_t)t->max < text->n) {
		n = utf8_count(text->p, text->n);
		if (n < (uint64_t)t->min || n > (uint64_t)t->max)
			message = codec_range_message(c, t, " characters");
		if (message == NULL && (n < (uint64_t)t->min || n > (uint64_t)t->max))
			c->err = E_NOMEM;
	}
	if (message == NULL && t->max_bytes != 0 && text->n > t->max_bytes) {
		message = arena_format(
		    c->arena, "Must be at most %" PRIu32 " bytes.", t->max_bytes);
		if (message == NULL)
			c->err = E_NOMEM;
	}
	return message;
}

int
codec_text_check(struct codec *c, const struct codec_type *t, struct str_view *text,
    const char **ret_message)
{
	const char *out = NULL, *message = NULL;
	int r;

	if (t->shape == CODEC_SHAPE_SLUG || (t->shape != 0 && c->passes & CODEC_RULES)) {
		message = shape_check(t, text);
		if (message != NULL) {
			*ret_message = message;
			return 0;
		}
	}
	if (!(c->passes & CODEC_RULES))
		return 0;
	if (t->rule != NULL) {
		r = rule_apply(t->rule, c->rules, c->arena, text->p, text->n, &out, &message);
		if (r == E_NOMEM)
			return r;
		if (r < 0) {
			*ret_message = message == NULL ? "Is not allowed here." : message;
			return 0;
		}
		*text = (struct str_view) { out, strlen(out) };
	}
	message = length_message(c, t, text);
	if (message != NULL)
		*ret_message = message;
	return c->err;
}

int
codec_word_find(const struct codec_words *words, const char *text)
{
	for (size_t i = 0; i < words->n; i++)
		if (strcmp(words->names[i], text) == 0)
			return (int)i;
	return E_INVAL;
}

const char *
codec_words_message(struct codec *c, const struct codec_words *words)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	const char *text;

	buf_add_str(&b, "Must be one of: ");
	for (size_t i = 0; i < words->n; i++) {
		buf_add_str(&b, i == 0 ? "" : ", ");
		buf_add_str(&b, words->names[i]);
	}
	buf_add_byte(&b, '.');
	text = buf_cstr(&b);
	return text == NULL ? NULL : arena_strndup(c->arena, text, b.len);
}

const char *
codec_range_message(struct codec *c, const struct codec_type *t, const char *unit)
{
	if (t->min == t->max)
		return arena_format(c->arena, "Must be %" PRId64 "%s.", t->min, unit);
	if (t->max == INT64_MAX)
		return arena_format(c->arena, "Must be at least %" PRId64 "%s.", t->min, unit);
	if (t->min == INT64_MIN)
		return arena_format(c->arena, "Must be at most %" PRId64 "%s.", t->max, unit);
	return arena_format(
	    c->arena, "Must be %" PRId64 " to %" PRId64 "%s.", t->min, t->max, unit);
}
