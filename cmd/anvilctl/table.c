#include "cmd/anvilctl/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/utf8.h"

#define GAP 2 /* Blanks between two columns. */

struct cell {
	char *text; /* Owned. */
	enum tone tone;
};

struct shape {
	size_t width;
	int right;
};

struct table {
	const char *const *heads;
	size_t ncolumns;
	struct cell *cells; /* Row by row. */
	size_t ncells, cap;
	int failed;
};

struct table *
table_new(const char *const *heads, size_t ncolumns)
{
	struct table *t = mem_calloc(1, sizeof(*t));

	if (t != NULL) {
		t->heads = heads;
		t->ncolumns = ncolumns;
	}
	return t;
}

struct table *
table_free(struct table *t)
{
	if (t == NULL)
		return NULL;
	for (size_t i = 0; i < t->ncells; i++)
		free(t->cells[i].text);
	free(t->cells);
	free(t);
	return NULL;
}

/* Takes ${text}; NULL: it could not be made. */
static void
add_take(struct table *t, enum tone tone, char *text)
{
	if (text != NULL && t->ncells == t->cap) {
		size_t cap = t->cap == 0 ? 64 : t->cap * 2;
		struct cell *cells = mem_realloc(t->cells, cap * sizeof(*cells));

		if (cells != NULL) {
			t->cells = cells;
			t->cap = cap;
		}
	}
	if (text == NULL || t->ncells == t->cap) {
		free(text);
		t->failed = 1;
		return;
	}
	t->cells[t->ncells++] = (struct cell) { text, tone };
}

void
table_add(struct table *t, enum tone tone, const char *fmt, ...)
{
	CLEANUP(buf_done) struct buf clean = BUF_INIT;
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	(void)text_add_clean(&clean, text);
	add_take(t, tone, buf_take_cstr(&clean));
}

void
table_add_word(struct table *t, const char *word)
{
	table_add(t, text_tone(word), "%s", word);
}

void
table_add_duration(struct table *t, int64_t ms)
{
	char text[TEXT_SIZE] = "-";

	if (ms >= 0)
		text_duration(ms, text);
	table_add(t, TONE_PLAIN, "%s", text);
}

void
table_add_bytes(struct table *t, int64_t n)
{
	char text[TEXT_SIZE] = "-";

	if (n >= 0)
		text_bytes(n, text);
	table_add(t, TONE_PLAIN, "%s", text);
}

void
table_add_time(struct table *t, int64_t wall_ms)
{
	char text[TEXT_SIZE] = "-";

	if (wall_ms >= 0)
		text_time(wall_ms, text);
	table_add(t, TONE_PLAIN, "%s", text);
}

size_t
table_nrows(const struct table *t)
{
	must(t->ncolumns > 0);
	return t->ncells / t->ncolumns;
}

static size_t
width_of(const char *text)
{
	return utf8_count(text, strlen(text));
}

static const char *
title_of(const struct table *t, size_t column)
{
	return t->heads[column] + (t->heads[column][0] == '>');
}

static struct shape
shape_of(const struct table *t, size_t column)
{
	struct shape s = { width_of(title_of(t, column)), t->heads[column][0] == '>' };

	for (size_t i = column; i < t->ncells; i += t->ncolumns) {
		size_t w = width_of(t->cells[i].text);

		s.width = w > s.width ? w : s.width;
	}
	return s;
}

static void
add_blanks(struct buf *out, size_t n)
{
	while (n-- > 0)
		buf_add_byte(out, ' ');
}

static void
render_cell(struct shape s, const char *text, enum tone tone, int color, struct buf *out)
{
	size_t blanks = s.width - width_of(text);

	if (s.right)
		add_blanks(out, blanks);
	buf_add_str(out, text_tone_begin(tone, color));
	buf_add_str(out, text);
	buf_add_str(out, text_tone_end(tone, color));
	if (!s.right)
		add_blanks(out, blanks);
	add_blanks(out, GAP);
}

static void
end_line(struct buf *out)
{
	while (out->len > 0 && out->data[out->len - 1] == ' ')
		out->len--;
	buf_add_byte(out, '\n');
}

static void
render_rows(const struct table *t, const struct shape *shapes, int color, struct buf *out)
{
	for (size_t i = 0; i < t->ncolumns; i++)
		render_cell(shapes[i], title_of(t, i), TONE_DIM, color, out);
	end_line(out);
	for (size_t row = 0; row < table_nrows(t); row++) {
		const struct cell *cells = t->cells + row * t->ncolumns;

		for (size_t i = 0; i < t->ncolumns; i++)
			render_cell(shapes[i], cells[i].text, cells[i].tone, color, out);
		end_line(out);
	}
}

int
table_render(const struct table *t, int color, struct buf *out)
{
	CLEANUP_FREE struct shape *shapes = mem_calloc(t->ncolumns, sizeof(*shapes));

	if (t->failed || shapes == NULL)
		return E_NOMEM;
	for (size_t i = 0; i < t->ncolumns; i++)
		shapes[i] = shape_of(t, i);
	if (table_nrows(t) > 0)
		render_rows(t, shapes, color, out);
	return out->failed ? E_NOMEM : 0;
}
