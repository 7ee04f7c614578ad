#include "cmd/anvilctl/show.h"

#include <string.h>

#include "cmd/anvilctl/text.h"
#include "lib/base/err.h"
#include "lib/base/json_text.h"
#include "lib/wire/wire.h"

#define TIME_MIN_MS 1000000000000 /* A smaller number named ...At is none (2001). */

static void
indent(struct buf *out, unsigned depth)
{
	while (depth-- > 0)
		(void)buf_add_str(out, "  ");
}

static int
is_empty(const json_t *j)
{
	return json_array_size(j) == 0 && json_object_size(j) == 0;
}

static void
pretty(const json_t *j, unsigned depth, struct buf *out)
{
	int is_list = json_is_array(j);
	const char *key;
	json_t *value;
	size_t i = 0;

	if ((!is_list && !json_is_object(j)) || is_empty(j)) {
		(void)json_text_dump(out, j);
		return;
	}
	buf_add_byte(out, is_list ? '[' : '{');
	json_object_foreach ((json_t *)(uintptr_t)j, key, value) {
		buf_add_str(out, i++ > 0 ? ",\n" : "\n");
		indent(out, depth + 1);
		json_text_string(out, key, strlen(key));
		buf_add_str(out, ": ");
		pretty(value, depth + 1, out);
	}
	for (i = 0; i < json_array_size(j); i++) {
		buf_add_str(out, i > 0 ? ",\n" : "\n");
		indent(out, depth + 1);
		pretty(json_array_get(j, i), depth + 1, out);
	}
	buf_add_byte(out, '\n');
	indent(out, depth);
	buf_add_byte(out, is_list ? ']' : '}');
}

int
show_json(const json_t *j, struct buf *out)
{
	pretty(j, 0, out);
	return out->failed ? E_NOMEM : 0;
}

static int
ends_in(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n >= m && strcmp(name + n - m, end) == 0;
}

static void
add_integer(const char *name, int64_t n, struct buf *out)
{
	char text[TEXT_SIZE];

	if (ends_in(name, "At") && n >= TIME_MIN_MS)
		text_time(n, text);
	else if (ends_in(name, "Ms"))
		text_duration(n, text);
	else if (ends_in(name, "Bytes"))
		text_bytes(n, text);
	else {
		buf_add_int(out, n);
		buf_add_str(out, ends_in(name, "Us") ? "us" : "");
		return;
	}
	buf_add_str(out, text);
}

static void
add_leaf(const char *name, const json_t *j, struct buf *out)
{
	if (json_is_integer(j))
		add_integer(name, json_integer_value(j), out);
	else if (json_is_string(j))
		(void)text_add_clean(out, json_string_value(j));
	else if (is_empty(j) && (json_is_object(j) || json_is_array(j) || json_is_null(j)))
		buf_add_byte(out, '-');
	else
		(void)json_text_dump(out, j);
}

static int
is_leaf(const json_t *j)
{
	return (!json_is_object(j) && !json_is_array(j)) || is_empty(j);
}

static void
tree(const json_t *j, unsigned depth, int dash, struct buf *out)
{
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)(uintptr_t)j, key, value) {
		indent(out, dash ? depth - 1 : depth);
		buf_add_str(out, dash ? "- " : "");
		dash = 0;
		(void)text_add_clean(out, key);
		buf_add_str(out, is_leaf(value) ? ": " : ":\n");
		if (is_leaf(value)) {
			add_leaf(key, value, out);
			buf_add_byte(out, '\n');
		} else {
			tree(value, depth + 1, 0, out);
		}
	}
	for (size_t i = 0; i < json_array_size(j); i++) {
		const json_t *item = json_array_get(j, i);

		if (!is_leaf(item)) {
			tree(item, depth + 1, json_is_object(item), out);
			continue;
		}
		indent(out, depth);
		buf_add_str(out, "- ");
		add_leaf("", item, out);
		buf_add_byte(out, '\n');
	}
}

int
show_tree(const json_t *j, unsigned depth, struct buf *out)
{
	if (is_leaf(j)) {
		indent(out, depth);
		add_leaf("", j, out);
		buf_add_byte(out, '\n');
	} else {
		tree(j, depth, 0, out);
	}
	return out->failed ? E_NOMEM : 0;
}
