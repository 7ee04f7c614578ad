#include <string.h>

#include "lib/base/err.h"
#include "lib/base/json_text.h"
#include "lib/base/utf8.h"
#include "lib/wire/codec.h"
#include "lib/wire/codec_issue.h"

#define NAME_SHOWN_MAX 128 /* Bytes of a member's name that a path repeats. */

void
codec_init(struct codec *c, struct arena *arena, const struct rule_ctx *rules)
{
	*c = (struct codec) { .arena = arena, .rules = rules, .passes = CODEC_ALL };
}

static size_t
index_digits(size_t index, char out[24])
{
	size_t n = 24;

	do {
		out[--n] = (char)('0' + index % 10);
		index /= 10;
	} while (index != 0);
	memmove(out, out + n, 24 - n);
	return 24 - n;
}

/* Writes the steps from the whole down to ${at}; ${out} NULL: only counts. */
static size_t
path_write(const struct codec_at *at, char *out)
{
	char digits[24];
	size_t n, shown;

	if (at == NULL)
		return 0;
	n = path_write(at->up, out);
	if (at->name == NULL) {
		shown = index_digits(at->index, digits);
		if (out != NULL) {
			out[n] = '[';
			memcpy(out + n + 1, digits, shown);
			out[n + 1 + shown] = ']';
		}
		return n + shown + 2;
	}
	shown = utf8_cut(at->name, at->name_len, NAME_SHOWN_MAX);
	if (n != 0) {
		if (out != NULL)
			out[n] = '.';
		n++;
	}
	if (out != NULL)
		memcpy(out + n, at->name, shown);
	return n + shown;
}

static int
room(struct codec *c)
{
	size_t cap = c->cap == 0 ? 8 : c->cap * 2;
	struct codec_issue *grown;

	if (c->nissues < c->cap)
		return 0;
	grown = arena_calloc(c->arena, cap, sizeof(*grown));
	if (grown == NULL)
		return E_NOMEM;
	if (c->nissues != 0)
		memcpy(grown, c->issues, c->nissues * sizeof(*grown));
	c->issues = grown;
	c->cap = cap;
	return 0;
}

int
codec_issue_add(struct codec *c, const char *expected, const char *message, const char *code)
{
	size_t n = path_write(c->at, NULL);
	char *path;

	c->nbad++;
	if (c->nissues == CODEC_ISSUES_MAX)
		return 0;
	path = arena_alloc(c->arena, n + 1);
	if (path == NULL || room(c) < 0)
		return E_NOMEM;
	(void)path_write(c->at, path);
	c->issues[c->nissues++] = (struct codec_issue) {
		.path = path,
		.expected = expected,
		.message = message,
		.code = code == NULL ? "invalid_request" : code,
	};
	return 0;
}

static void
add_member(struct buf *out, const char *key, const char *text)
{
	buf_add_str(out, key);
	json_text_string(out, text, strlen(text));
}

int
codec_issues_text(const struct codec *c, struct buf *out)
{
	buf_add_str(out, "{\"issues\":[");
	for (size_t i = 0; i < c->nissues; i++) {
		const struct codec_issue *is = &c->issues[i];

		add_member(out, i == 0 ? "{\"path\":" : ",{\"path\":", is->path);
		add_member(out, ",\"expected\":", is->expected);
		add_member(out, ",\"message\":", is->message);
		buf_add_byte(out, '}');
	}
	buf_add_str(out, "]}");
	return out->failed ? E_NOMEM : 0;
}
