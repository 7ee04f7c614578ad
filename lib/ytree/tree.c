#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/utf8.h"
#include "lib/ytree/ytree.h"

#define BOM "\xef\xbb\xbf"

/* So deep that nothing useful follows; libyaml's own cost grows with the depth. */
#define HOPELESS_DEPTH 64

#define CORE_TAGS "tag:yaml.org,2002:"

/* A map whose next key has been read, or a list, that is still open. */
struct level {
	struct ytree_node *node;
	struct ytree_node *last;      /* Its latest child.                   */
	const struct ytree_node *key; /* Map: read, and waiting for a value. */
	int key_refused;              /* Map: the value's key was no scalar. */
};

struct builder {
	struct arena *arena;
	struct ytree_issues *issues;
	yaml_parser_t parser;
	const char *text; /* Behind a byte order mark. */
	size_t len;
	size_t seen_index; /* Characters and bytes up to a mark looked at before: */
	size_t seen_byte;  /* marks only move forward.                            */
	struct ytree_node *root;
	size_t ndocuments;
	struct level stack[YTREE_DEPTH_MAX];
	size_t depth;   /* Levels of the stack in use.                 */
	size_t skipped; /* Collections open inside one that was refused. */
};

/* ---- positions ------------------------------------------------------------------------ */

/* The byte at a mark, or NUL behind the end. */
static char
byte_at(struct builder *b, const yaml_mark_t *mark)
{
	if (mark->index < b->seen_index)
		b->seen_index = b->seen_byte = 0;
	while (b->seen_index < mark->index && b->seen_byte < b->len) {
		size_t n = utf8_len(b->text + b->seen_byte, b->len - b->seen_byte);

		b->seen_byte += n != 0 ? n : 1;
		b->seen_index++;
	}
	return b->seen_byte < b->len ? b->text[b->seen_byte] : '\0';
}

/* A node that stands for the ${at}-th byte of the text. */
static struct ytree_node
node_at_byte(const struct builder *b, size_t at)
{
	struct ytree_node where = { .kind = YTREE_SCALAR, .line = 1, .column = 1 };

	for (size_t i = 0; i < at && i < b->len; i++) {
		int crlf = b->text[i] == '\r' && i + 1 < b->len && b->text[i + 1] == '\n';

		if (b->text[i] == '\n' || (b->text[i] == '\r' && !crlf)) {
			where.line++;
			where.column = 1;
		} else if (((uint8_t)b->text[i] & 0xc0) != 0x80) {
			where.column++;
		}
	}
	return where;
}

static struct ytree_node
node_at_mark(const yaml_mark_t *mark, const struct ytree_node *parent)
{
	return (struct ytree_node) { .kind = YTREE_REFUSED,
		.line = mark->line + 1,
		.column = mark->column + 1,
		.parent = parent };
}

/* ---- what libyaml could not read --------------------------------------------------------- */

static int
is_tab_fault(struct builder *b)
{
	static const char no_token[] = "found character that cannot start any token";
	const char *problem = b->parser.problem;

	if (strstr(problem, "tab character") != NULL)
		return 1;
	return strcmp(problem, no_token) == 0 && byte_at(b, &b->parser.problem_mark) == '\t';
}

static int
report_failure(struct builder *b)
{
	const yaml_parser_t *p = &b->parser;
	struct ytree_node where;

	if (p->error == YAML_MEMORY_ERROR)
		return E_NOMEM;
	if (p->error == YAML_READER_ERROR)
		where = node_at_byte(b, p->problem_offset);
	else
		where = node_at_mark(&p->problem_mark, NULL);
	if (p->error == YAML_SCANNER_ERROR && is_tab_fault(b))
		ytree_report(b->issues, YTREE_YAML, &where, "tab in indentation");
	else if (p->context != NULL)
		ytree_report(b->issues, YTREE_YAML, &where, "%s %s", p->problem, p->context);
	else
		ytree_report(b->issues, YTREE_YAML, &where, "%s", p->problem);
	return E_INVAL;
}

/* ---- duplicate keys -------------------------------------------------------------------- */

static int
by_key(const void *va, const void *vb)
{
	const struct ytree_node *a = (*(struct ytree_node *const *)va)->key;
	const struct ytree_node *b = (*(struct ytree_node *const *)vb)->key;
	int order = a->len != b->len ? (a->len < b->len ? -1 : 1)
				     : memcmp(a->text, b->text, a->len);

	if (order == 0)
		order = a->line != b->line ? (a->line < b->line ? -1 : 1)
					   : (a->column < b->column ? -1 : 1);
	return order;
}

static int
same_key(const struct ytree_node *a, const struct ytree_node *b)
{
	return a->key->len == b->key->len &&
	    memcmp(a->key->text, b->key->text, a->key->len) == 0;
}

static void
report_duplicate(struct builder *b, const struct ytree_node *value)
{
	CLEANUP(buf_done) struct buf key = BUF_INIT;
	struct ytree_node where = *value;

	(void)ytree_put_cut(
	    &key, &b->issues->cleaner, value->key->text, value->key->len, YTREE_VALUE_MAX);
	if (buf_cstr(&key) == NULL) {
		b->issues->failed = 1;
		return;
	}
	where.line = value->key->line;
	where.column = value->key->column;
	ytree_report(
	    b->issues, YTREE_YAML, &where, "duplicate key \"%s\"", (const char *)key.data);
}

/* Takes the nodes out whose index is marked; an index in a map has no other use. */
static void
unlink_marked(struct ytree_node *map)
{
	struct ytree_node **link = &map->first;

	while (*link != NULL) {
		if ((*link)->index != 0) {
			*link = (*link)->next;
			map->nchildren--;
		} else {
			link = &(*link)->next;
		}
	}
}

/* By sorting, so that a map of very many keys costs no square. */
static int
find_duplicates(struct builder *b, struct ytree_node *map)
{
	CLEANUP_FREE struct ytree_node **order = NULL;
	size_t n = 0, first = 0;

	if (map->nchildren < 2)
		return 0;
	order = mem_calloc(map->nchildren, sizeof(struct ytree_node *));
	if (order == NULL)
		return E_NOMEM;
	for (struct ytree_node *at = map->first; at != NULL; at = at->next)
		order[n++] = at;
	qsort(order, n, sizeof(struct ytree_node *), by_key);
	for (size_t i = 1; i < n; i++) {
		if (!same_key(order[first], order[i])) {
			first = i;
			continue;
		}
		order[i]->index = 1;
		report_duplicate(b, order[i]);
	}
	unlink_marked(map);
	return 0;
}

/* ---- growing the tree ------------------------------------------------------------------- */

static struct level *
top(struct builder *b)
{
	return b->depth > 0 ? &b->stack[b->depth - 1] : NULL;
}

/* Places a node of which kind and position are known.  A key of a map waits for its value. */
static void
attach(struct builder *b, struct ytree_node *node)
{
	struct level *in = top(b);

	if (in == NULL) {
		b->root = node;
		return;
	}
	node->parent = in->node;
	if (in->node->kind == YTREE_MAP && in->key == NULL && !in->key_refused) {
		in->key = node->kind == YTREE_SCALAR ? node : NULL;
		in->key_refused = in->key == NULL;
		if (node->kind == YTREE_LIST || node->kind == YTREE_MAP)
			ytree_report(b->issues, YTREE_RULE, in->node,
			    "expected a text as key, got a %s",
			    node->kind == YTREE_LIST ? "list" : "map");
		return;
	}
	node->key = in->key;
	if (!in->key_refused) {
		if (in->last == NULL)
			in->node->first = node;
		else
			in->last->next = node;
		in->last = node;
		node->index = in->node->kind == YTREE_LIST ? in->node->nchildren : 0;
		in->node->nchildren++;
	}
	in->key = NULL;
	in->key_refused = 0;
}

static struct ytree_node *
new_node(struct builder *b, enum ytree_kind kind, const yaml_mark_t *mark)
{
	struct ytree_node *node = arena_alloc(b->arena, sizeof(*node));

	if (node == NULL)
		return NULL;
	node->kind = kind;
	node->line = mark->line + 1;
	node->column = mark->column + 1;
	node->text = "";
	return node;
}

/* ${mark}: the signs before ${name}, which are part of what stands in the text. */
static void
report_property(struct builder *b, const struct ytree_node *node, const char *what,
    const char *mark, const char *name)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	const char *whole = arena_format(b->arena, "%s%s", mark, name);

	if (whole != NULL)
		(void)ytree_put_cut(&text, &b->issues->cleaner, whole, strlen(whole),
		    strlen(mark) + YTREE_VALUE_MAX);
	if (whole == NULL || buf_cstr(&text) == NULL) {
		b->issues->failed = 1;
		return;
	}
	ytree_report(
	    b->issues, YTREE_YAML, node, "%s %s is not allowed", what, (const char *)text.data);
}

/* Anchor and tag of a node that has been attached, so that its path is known. */
static void
check_properties(struct builder *b, const struct ytree_node *node, const yaml_char_t *anchor,
    const yaml_char_t *tag)
{
	const char *name = (const char *)tag;
	size_t core = strlen(CORE_TAGS);

	if (anchor != NULL)
		report_property(b, node, "anchor", "&", (const char *)anchor);
	if (name == NULL)
		return;
	if (strncmp(name, CORE_TAGS, core) == 0)
		report_property(b, node, "tag", "!!", name + core);
	else
		report_property(b, node, "tag", "", name);
}

/* libyaml forgets the tag "!" of a scalar; its place in the text still shows it. */
static const yaml_char_t *
tag_of_scalar(struct builder *b, const yaml_event_t *ev)
{
	static const yaml_char_t bare[] = "!";

	if (ev->data.scalar.tag != NULL)
		return ev->data.scalar.tag;
	if (ev->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
		return ev->data.scalar.plain_implicit ? bare : NULL;
	return byte_at(b, &ev->start_mark) == '!' ? bare : NULL;
}

static int
on_scalar(struct builder *b, const yaml_event_t *ev)
{
	struct ytree_node *node = new_node(b, YTREE_SCALAR, &ev->start_mark);
	const yaml_char_t *tag = tag_of_scalar(b, ev);
	size_t len = ev->data.scalar.length;
	char *text = arena_alloc(b->arena, len + 1);

	if (node == NULL || text == NULL)
		return E_NOMEM;
	memcpy(text, ev->data.scalar.value, len);
	node->text = text;
	node->len = len;
	node->plain = ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	if (tag != NULL)
		node->kind = YTREE_REFUSED;
	attach(b, node);
	check_properties(b, node, ev->data.scalar.anchor, tag);
	return 0;
}

static int
on_alias(struct builder *b, const yaml_event_t *ev)
{
	struct ytree_node *node = new_node(b, YTREE_REFUSED, &ev->start_mark);

	if (node == NULL)
		return E_NOMEM;
	attach(b, node);
	report_property(b, node, "alias", "*", (const char *)ev->data.alias.anchor);
	return 0;
}

static int
on_begin(struct builder *b, const yaml_event_t *ev, enum ytree_kind kind)
{
	int is_map = kind == YTREE_MAP;
	struct ytree_node *node;

	if (b->depth == YTREE_DEPTH_MAX)
		kind = YTREE_REFUSED;
	node = new_node(b, kind, &ev->start_mark);
	if (node == NULL)
		return E_NOMEM;
	attach(b, node);
	if (kind == YTREE_REFUSED) {
		ytree_report(
		    b->issues, YTREE_YAML, node, "nested deeper than %d", YTREE_DEPTH_MAX);
		b->skipped = 1;
		return 0;
	}
	if (is_map)
		check_properties(
		    b, node, ev->data.mapping_start.anchor, ev->data.mapping_start.tag);
	else
		check_properties(
		    b, node, ev->data.sequence_start.anchor, ev->data.sequence_start.tag);
	b->stack[b->depth++] = (struct level) { .node = node };
	return 0;
}

static int
on_end(struct builder *b)
{
	struct ytree_node *node = top(b)->node;

	b->depth--;
	return node->kind == YTREE_MAP ? find_duplicates(b, node) : 0;
}

/* E_INVAL: nothing behind a second document is looked at. */
static int
on_document(struct builder *b, const yaml_event_t *ev)
{
	struct ytree_node where = node_at_mark(&ev->start_mark, NULL);

	if (b->ndocuments++ > 0) {
		ytree_report(b->issues, YTREE_YAML, &where, "second document is not allowed");
		return E_EOF;
	}
	if (ev->data.document_start.tag_directives.start !=
	    ev->data.document_start.tag_directives.end)
		ytree_report(b->issues, YTREE_YAML, &where, "%%TAG is not allowed");
	return 0;
}

/* Inside a collection that was refused only its end counts. */
static int
skip_event(struct builder *b, const yaml_event_t *ev)
{
	if (ev->type == YAML_SEQUENCE_START_EVENT || ev->type == YAML_MAPPING_START_EVENT)
		b->skipped++;
	else if (ev->type == YAML_SEQUENCE_END_EVENT || ev->type == YAML_MAPPING_END_EVENT)
		b->skipped--;
	return b->skipped > HOPELESS_DEPTH ? E_INVAL : 0;
}

static int
on_event(struct builder *b, const yaml_event_t *ev)
{
	if (b->skipped > 0)
		return skip_event(b, ev);
	switch (ev->type) {
	case YAML_DOCUMENT_START_EVENT: return on_document(b, ev);
	case YAML_SCALAR_EVENT: return on_scalar(b, ev);
	case YAML_ALIAS_EVENT: return on_alias(b, ev);
	case YAML_SEQUENCE_START_EVENT: return on_begin(b, ev, YTREE_LIST);
	case YAML_MAPPING_START_EVENT: return on_begin(b, ev, YTREE_MAP);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT: return on_end(b);
	case YAML_STREAM_END_EVENT: return E_EOF;
	default: return 0;
	}
}

/* ---- the whole ------------------------------------------------------------------------- */

static int
read_events(struct builder *b)
{
	int r = 0;

	while (r == 0) {
		yaml_event_t ev;

		if (!yaml_parser_parse(&b->parser, &ev))
			return report_failure(b);
		r = on_event(b, &ev);
		yaml_event_delete(&ev);
	}
	return r == E_EOF ? 0 : r;
}

/* libyaml would report the first bad byte as well, but not its line. */
static int
check_utf8(struct builder *b)
{
	size_t at = 0, n = 0;
	struct ytree_node where;

	while (at < b->len && (n = utf8_len(b->text + at, b->len - at)) != 0)
		at += n;
	if (at == b->len)
		return 0;
	where = node_at_byte(b, at);
	ytree_report(b->issues, YTREE_YAML, &where, "invalid UTF-8");
	return E_INVAL;
}

static int
empty_root(struct builder *b)
{
	static const yaml_mark_t start;

	b->root = new_node(b, YTREE_MAP, &start);
	return b->root == NULL ? E_NOMEM : 0;
}

int
ytree_parse(struct arena *arena, const char *text, size_t n, struct ytree_issues *issues,
    struct ytree_node **ret_root)
{
	struct builder b = { .arena = arena, .issues = issues, .text = text, .len = n };
	int r;

	if (n >= strlen(BOM) && memcmp(text, BOM, strlen(BOM)) == 0) {
		b.text += strlen(BOM);
		b.len -= strlen(BOM);
	}
	r = check_utf8(&b);
	if (r < 0)
		return issues->failed ? E_NOMEM : r;
	if (!yaml_parser_initialize(&b.parser))
		return E_NOMEM;
	yaml_parser_set_encoding(&b.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&b.parser, (const unsigned char *)b.text, b.len);
	r = read_events(&b);
	yaml_parser_delete(&b.parser);
	if (r == 0 && b.root == NULL)
		r = empty_root(&b);
	if (issues->failed)
		return E_NOMEM;
	if (r == 0)
		*ret_root = b.root;
	return r;
}
