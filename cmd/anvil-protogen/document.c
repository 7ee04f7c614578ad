#include <string.h>

#include "cmd/anvil-protogen/gen.h"

#define LOCAL_REF "#/components/schemas/"

/* Reference into the served document; ${ret_name}: a definition of types.json that it needs. */
static json_t *
served_ref(const char *ref, const char **ret_name)
{
	static const char *const from[] = { "types.json#/$defs/", "#/$defs/" };

	for (size_t i = 0; i < ARRAY_LEN(from); i++)
		if (strncmp(ref, from[i], strlen(from[i])) == 0) {
			*ret_name = gen_format("%s", ref + strlen(from[i]));
			return json_string(gen_format(LOCAL_REF "%s", *ret_name));
		}
	return json_string(ref);
}

static void rewrite(const struct gen *g, json_t *j, json_t *schemas);

static void
add_definition(const struct gen *g, const char *name, json_t *schemas)
{
	json_t *def = json_object_get(json_object_get(g->types, "$defs"), name);

	if (json_object_get(schemas, name) != NULL)
		return;
	def = json_deep_copy(def);
	json_object_set_new(schemas, name, def);
	rewrite(g, def, schemas);
}

/* Replaces all references below ${j} and brings what they name into ${schemas}. */
static void
rewrite(const struct gen *g, json_t *j, json_t *schemas)
{
	const char *key, *name = NULL;
	json_t *value;
	size_t i;

	json_array_foreach (j, i, value)
		rewrite(g, value, schemas);
	/* What is added to ${schemas} while it is walked is rewritten where it is added. */
	json_object_foreach (j, key, value)
		if (strcmp(key, "$ref") != 0 || !json_is_string(value))
			rewrite(g, value, schemas);
	value = json_object_get(j, "$ref");
	if (!json_is_string(value))
		return;
	json_object_set_new(j, "$ref", served_ref(json_string_value(value), &name));
	if (name != NULL)
		add_definition(g, name, schemas);
}

static json_t *
member(json_t *object, const char *key)
{
	json_t *j = json_object_get(object, key);

	if (j == NULL) {
		j = json_object();
		json_object_set_new(object, key, j);
	}
	return j;
}

/* What every actor can do stands in its document, too. */
static void
add_base(const struct gen *g, json_t *doc, json_t *schemas)
{
	json_t *methods = json_object_get(doc, "methods");
	json_t *base = json_deep_copy(g->base), *value;
	const char *key;

	json_array_extend(methods, json_object_get(base, "methods"));
	json_object_foreach (
	    json_object_get(json_object_get(base, "components"), "schemas"), key, value) {
		if (json_object_get(schemas, key) != NULL)
			gen_fail(g, "the type %s stands in actor.json, too", key);
		json_object_set(schemas, key, value);
	}
}

/* One answer for each status, with the codes that it may carry. */
static void
add_error(const struct gen *g, json_t *responses, const char *code)
{
	char *status = gen_format("%d", load_status(g, code));
	json_t *answer = json_object_get(responses, status);

	if (answer != NULL) {
		json_object_set_new(answer, "description",
		    json_string(gen_format("%s, %s",
			json_string_value(json_object_get(answer, "description")), code)));
		return;
	}
	answer = json_pack("{s:s,s:{s:{s:{s:s}}}}", "description", code, "content",
	    "application/json", "schema", "$ref", LOCAL_REF "Error");
	json_object_set_new(responses, status, answer);
}

static void
add_errors(const struct gen *g, json_t *doc)
{
	json_t *item, *op, *code;
	const char *path, *method;
	size_t i;

	json_object_foreach (json_object_get(doc, "paths"), path, item)
		json_object_foreach (item, method, op) {
			json_array_foreach (json_object_get(op, "x-errors"), i, code)
				add_error(g, json_object_get(op, "responses"),
				    json_string_value(code));
			json_object_del(op, "x-errors");
		}
}

/* A string of C, in lines. */
static void
write_text(struct buf *out, const char *text)
{
	size_t column = 0;

	buf_printf(out, "\t    \"");
	for (; *text != '\0'; text++) {
		if (column >= 80) {
			buf_printf(out, "\"\n\t    \"");
			column = 0;
		}
		if (*text == '"' || *text == '\\')
			buf_add_byte(out, '\\');
		/* Two question marks could begin a trigraph. */
		if (*text == '?')
			buf_add_byte(out, '\\');
		buf_add_byte(out, (uint8_t)*text);
		column++;
	}
	buf_printf(out, "\"");
}

void
document_write(const struct gen *g, struct buf *out)
{
	json_t *doc, *schemas;
	char *text;

	if (g->doc == g->types)
		return;
	doc = json_deep_copy(g->doc);
	schemas = member(member(doc, "components"), "schemas");
	if (g->base != NULL)
		add_base(g, doc, schemas);
	add_errors(g, doc);
	rewrite(g, doc, schemas);
	text = json_dumps(doc, JSON_COMPACT | JSON_ENSURE_ASCII);
	if (text == NULL)
		gen_fail(g, "out of memory");
	buf_printf(out, "\nconst char *\n%s_document(void)\n{\n\treturn\n", g->name);
	write_text(out, text);
	buf_printf(out, ";\n}\n");
}
