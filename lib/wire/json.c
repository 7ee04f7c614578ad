#include "lib/wire/json.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/base/json_text.h"
#include "lib/base/mem.h"

#define PARSE_FLAGS (JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY)

/* Set when an allocation of jansson failed: it then reports whatever it was about to read as
 * invalid, and its allocator has no argument that could tell. */
static _Thread_local int starved;

/* Deepest nesting of brackets outside strings.  Text that is not JSON gives some number. */
static unsigned
nesting(const char *p, size_t n, unsigned stop_over)
{
	unsigned depth = 0, most = 0;

	for (size_t at = 0; at < n; at++) {
		switch (p[at]) {
		case '"':
			for (at++; at < n && p[at] != '"'; at++)
				at += p[at] == '\\';
			break;
		case '[':
		case '{':
			if (++depth > most && (most = depth) > stop_over)
				return most;
			break;
		case ']':
		case '}': depth -= depth != 0; break;
		default: break;
		}
	}
	return most;
}

static int
parse(const char *p, size_t n, unsigned max_depth, json_t **ret, json_error_t *error)
{
	error->position = 0;
	if (n == 0)
		return E_PARSE;
	if (nesting(p, n, max_depth) > max_depth)
		return E_DEEP;
	starved = 0;
	*ret = json_loadb(p, n, PARSE_FLAGS, error);
	if (*ret != NULL)
		return 0;
	return starved || json_error_code(error) == json_error_out_of_memory ? E_NOMEM : E_PARSE;
}

int
json_text_parse(const char *p, size_t n, unsigned max_depth, json_t **ret)
{
	json_error_t error;
	json_t *j = NULL;
	int r = parse(p, n, max_depth, &j, &error);

	if (r == 0)
		*ret = j;
	return r;
}

void
json_text_why(const char *p, size_t n, unsigned max_depth, char *out, size_t size)
{
	CLEANUP(json_unrefp) json_t *j = NULL;
	json_error_t error;
	int r = parse(p, n, max_depth, &j, &error);

	if (r == 0)
		out[0] = '\0';
	else if (n == 0)
		(void)snprintf(out, size, "The text is empty.");
	else if (r == E_PARSE)
		(void)snprintf(out, size, "Not valid JSON at byte %d.", error.position);
	else
		(void)snprintf(out, size, "%s", err_text(r));
}

static int
add_piece(const char *p, size_t n, void *arg)
{
	return buf_add(arg, p, n) < 0 ? -1 : 0;
}

int
json_text_dump(struct buf *out, const json_t *j)
{
	switch (j == NULL ? JSON_NULL : json_typeof(j)) {
	case JSON_NULL: return buf_add(out, "null", 4);
	case JSON_TRUE: return buf_add(out, "true", 4);
	case JSON_FALSE: return buf_add(out, "false", 5);
	case JSON_INTEGER: return buf_add_int(out, json_integer_value(j));
	case JSON_STRING:
		return json_text_string(out, json_string_value(j), json_string_length(j));
	default: break;
	}
	/* jansson's own failure can only be memory: every value that it parsed can be printed. */
	if (json_dump_callback(j, add_piece, out, JSON_COMPACT | JSON_ENCODE_ANY) != 0)
		out->failed = 1;
	return out->failed ? E_NOMEM : 0;
}

static void *
take(size_t size)
{
	void *p = mem_alloc(size);

	starved |= p == NULL;
	return p;
}

void
json_text_use_mem(void)
{
	json_set_alloc_funcs(take, free);
}
