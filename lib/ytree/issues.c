#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/utf8.h"
#include "lib/ytree/ytree.h"

#define KEY_TEXT_MAX  64 /* Longer keys are compared with no known one.  */
#define NEAR_DISTANCE 2  /* Edits that still make a key look like another. */

/* ---- texts ----------------------------------------------------------------------------- */

static void
put_clear_cut(struct buf *out, const char *p, size_t n, size_t max)
{
	size_t keep = utf8_cut(p, n, max);

	for (size_t at = 0, len; at < keep; at += len) {
		uint32_t cp = 0;

		len = utf8_decode(p + at, keep - at, &cp);
		if (len == 0) {
			buf_add_str(out, UTF8_REPLACEMENT);
			len = 1;
		} else if (cp == '\n')
			buf_add_str(out, "\\n");
		else if (cp == '\t')
			buf_add_str(out, "\\t");
		else if (utf8_is_control(cp) || cp == 0x2028 || cp == 0x2029)
			buf_printf(out, "\\u%04x", (unsigned)cp);
		else
			buf_add(out, p + at, len);
	}
	if (keep < n)
		buf_add_str(out, "…");
}

int
ytree_put_cut(
    struct buf *out, const struct ytree_cleaner *c, const char *p, size_t n, size_t max)
{
	CLEANUP(buf_done) struct buf clear = BUF_INIT;

	if (c->fn == NULL)
		put_clear_cut(out, p, n, max);
	else if (c->fn(c->arg, p, n, &clear) < 0 || buf_cstr(&clear) == NULL)
		out->failed = 1;
	else
		put_clear_cut(out, (const char *)clear.data, clear.len, max);
	return out->failed ? E_NOMEM : 0;
}

int
ytree_put_path(struct buf *out, const struct ytree_cleaner *c, const struct ytree_node *node)
{
	const struct ytree_node *chain[YTREE_DEPTH_MAX + 1];
	size_t n = 0;

	for (; node != NULL && node->parent != NULL && n < ARRAY_LEN(chain);
	     node = node->parent)
		chain[n++] = node;
	while (n-- > 0) {
		const struct ytree_node *at = chain[n];

		if (at->parent->kind == YTREE_LIST) {
			buf_printf(out, "[%zu]", at->index);
		} else if (at->key != NULL) {
			if (at->parent->parent != NULL)
				buf_add_byte(out, '.');
			ytree_put_cut(out, c, at->key->text, at->key->len, YTREE_PATH_MAX);
		}
	}
	return out->failed ? E_NOMEM : 0;
}

static void
put_value(struct buf *out, const struct ytree_cleaner *c, const struct ytree_node *node)
{
	int64_t number;

	if (node->kind == YTREE_LIST) {
		buf_printf(out, "a list of %zu", node->nchildren);
	} else if (node->kind == YTREE_MAP) {
		buf_add_str(out, "a map");
	} else if (ytree_is_null(node)) {
		buf_add_str(out, "null");
	} else if (ytree_int(node, &number) == 0) {
		buf_add_int(out, number);
	} else {
		buf_add_byte(out, '"');
		ytree_put_cut(out, c, node->text, node->len, YTREE_VALUE_MAX);
		buf_add_byte(out, '"');
	}
}

/* ---- the list -------------------------------------------------------------------------- */

static int
is_before(const struct ytree_node *node, const struct ytree_issue *issue)
{
	return node->line != issue->line ? node->line < issue->line
					 : node->column < issue->column;
}

/* 1 when an issue at ${node} would be among those that are kept. */
static int
is_wanted(const struct ytree_issues *l, const struct ytree_node *node)
{
	return l->n < YTREE_ISSUES_MAX || is_before(node, &l->at[l->n - 1]);
}

/* Takes path and text from the buffers; equal positions stay in the order of coming. */
static void
insert(struct ytree_issues *l, enum ytree_class class, const struct ytree_node *where,
    struct buf *path, struct buf *text)
{
	const char *p = buf_cstr(path), *t = buf_cstr(text);
	size_t at;

	l->nyaml += class == YTREE_YAML;
	if (p != NULL && t != NULL) {
		p = arena_strdup(l->arena, p);
		t = arena_strdup(l->arena, t);
	}
	if (p == NULL || t == NULL) {
		l->failed = 1;
		return;
	}
	if (l->n == YTREE_ISSUES_MAX) {
		l->n--;
		l->nmore++;
	}
	for (at = l->n; at > 0 && is_before(where, &l->at[at - 1]); at--)
		l->at[at] = l->at[at - 1];
	l->at[at] = (struct ytree_issue) { class, where->line, where->column, p, t };
	l->n++;
}

static void
leave_out(struct ytree_issues *l, enum ytree_class class)
{
	l->nyaml += class == YTREE_YAML;
	l->nmore++;
}

void
ytree_report(struct ytree_issues *l, enum ytree_class class, const struct ytree_node *node,
    const char *fmt, ...)
{
	CLEANUP(buf_done) struct buf path = BUF_INIT;
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	char line[512];
	va_list ap;

	if (!is_wanted(l, node)) {
		leave_out(l, class);
		return;
	}
	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	buf_add_str(&text, line);
	ytree_put_path(&path, &l->cleaner, node);
	insert(l, class, node, &path, &text);
}

void
ytree_expected(struct ytree_issues *l, const struct ytree_node *node, const char *type)
{
	CLEANUP(buf_done) struct buf path = BUF_INIT;
	CLEANUP(buf_done) struct buf text = BUF_INIT;

	if (node->kind == YTREE_REFUSED)
		return;
	if (!is_wanted(l, node)) {
		leave_out(l, YTREE_RULE);
		return;
	}
	buf_printf(&text, "expected %s, got ", type);
	put_value(&text, &l->cleaner, node);
	ytree_put_path(&path, &l->cleaner, node);
	insert(l, YTREE_RULE, node, &path, &text);
}

void
ytree_missing(struct ytree_issues *l, const struct ytree_node *map, const char *key)
{
	CLEANUP(buf_done) struct buf path = BUF_INIT;
	CLEANUP(buf_done) struct buf text = BUF_INIT;

	if (!is_wanted(l, map)) {
		leave_out(l, YTREE_RULE);
		return;
	}
	ytree_put_path(&path, &l->cleaner, map);
	if (path.len > 0)
		buf_add_byte(&path, '.');
	buf_add_str(&path, key);
	buf_add_str(&text, "missing");
	insert(l, YTREE_RULE, map, &path, &text);
}

/* ---- unknown keys ---------------------------------------------------------------------- */

/* Edits (insert, remove, change, swap of neighbours are 1, 1, 1, 2) between two short texts. */
static size_t
distance(const char *a, size_t na, const char *b, size_t nb)
{
	size_t row[KEY_TEXT_MAX + 1];

	for (size_t j = 0; j <= nb; j++)
		row[j] = j;
	for (size_t i = 1; i <= na; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= nb; j++) {
			size_t change = diagonal + (a[i - 1] != b[j - 1]);

			diagonal = row[j];
			row[j] = min_size(change, min_size(row[j], row[j - 1]) + 1);
		}
	}
	return row[nb];
}

/* The known key that ${key} was meant to be, or NULL when none is close. */
static const char *
nearest(const struct ytree_node *key, const char *const *known, size_t nknown)
{
	const char *best = NULL;
	size_t best_distance = NEAR_DISTANCE + 1;

	if (key->len > KEY_TEXT_MAX)
		return NULL;
	for (size_t i = 0; i < nknown; i++) {
		size_t n = strlen(known[i]);
		size_t d = n <= KEY_TEXT_MAX ? distance(key->text, key->len, known[i], n) : n;

		if (d < best_distance && d < n && d < key->len) {
			best = known[i];
			best_distance = d;
		}
	}
	return best;
}

static int
is_known(const struct ytree_node *key, const char *const *known, size_t nknown)
{
	for (size_t i = 0; i < nknown; i++)
		if (strlen(known[i]) == key->len && memcmp(known[i], key->text, key->len) == 0)
			return 1;
	return 0;
}

static void
report_unknown(struct ytree_issues *l, const struct ytree_node *value, const char *const *known,
    size_t nknown)
{
	CLEANUP(buf_done) struct buf path = BUF_INIT;
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	const char *meant;

	if (!is_wanted(l, value->key)) {
		leave_out(l, YTREE_RULE);
		return;
	}
	buf_add_str(&text, "unknown key \"");
	ytree_put_cut(&text, &l->cleaner, value->key->text, value->key->len, YTREE_VALUE_MAX);
	buf_add_byte(&text, '"');
	meant = nearest(value->key, known, nknown);
	if (meant != NULL)
		buf_printf(&text, " (did you mean \"%s\"?)", meant);
	ytree_put_path(&path, &l->cleaner, value);
	insert(l, YTREE_RULE, value->key, &path, &text);
}

void
ytree_check_keys(struct ytree_issues *l, const struct ytree_node *map, const char *const *known,
    size_t nknown)
{
	for (const struct ytree_node *at = map->first; at != NULL; at = at->next)
		if (!is_known(at->key, known, nknown))
			report_unknown(l, at, known, nknown);
}
