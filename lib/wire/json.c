#include "lib/wire/json.h"

#include "lib/base/err.h"
#include "lib/base/json_text.h"
#include "lib/base/mem.h"

static int
add_piece(const char *p, size_t n, void *arg)
{
	return buf_add(arg, p, n) < 0 ? -1 : 0;
}

static void
dump_object(struct buf *out, json_t *object)
{
	const char *name;
	json_t *value;
	size_t n;
	int first = 1;

	buf_add_byte(out, '{');
	json_object_keylen_foreach(object, name, n, value)
	{
		if (!first)
			buf_add_byte(out, ',');
		first = 0;
		json_text_string(out, name, n);
		buf_add_byte(out, ':');
		json_text_dump(out, value);
	}
	buf_add_byte(out, '}');
}

static void
dump_array(struct buf *out, const json_t *list)
{
	buf_add_byte(out, '[');
	for (size_t i = 0; i < json_array_size(list); i++) {
		if (i != 0)
			buf_add_byte(out, ',');
		json_text_dump(out, json_array_get(list, i));
	}
	buf_add_byte(out, ']');
}

int
json_text_dump(struct buf *out, const json_t *j)
{
	switch (j == NULL ? JSON_NULL : json_typeof(j)) {
	case JSON_NULL: buf_add(out, "null", 4); break;
	case JSON_TRUE: buf_add(out, "true", 4); break;
	case JSON_FALSE: buf_add(out, "false", 5); break;
	case JSON_INTEGER: buf_add_int(out, json_integer_value(j)); break;
	case JSON_STRING:
		json_text_string(out, json_string_value(j), json_string_length(j));
		break;
	case JSON_ARRAY: dump_array(out, j); break;
	case JSON_OBJECT: dump_object(out, (json_t *)(uintptr_t)j); break;
	case JSON_REAL:
		/* Its only failure is that of add_piece(). */
		if (json_dump_callback(j, add_piece, out, JSON_ENCODE_ANY) != 0)
			out->failed = 1;
		break;
	}
	return out->failed ? E_NOMEM : 0;
}

static void *
take(size_t size)
{
	return mem_alloc(size);
}

void
json_text_use_mem(void)
{
	json_set_alloc_funcs(take, free);
}
