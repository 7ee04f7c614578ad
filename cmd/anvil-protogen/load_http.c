#include "cmd/anvil-protogen/gen.h"

#include <string.h>

static const json_t *
json_content(const json_t *message)
{
	return json_object_get(
	    json_object_get(json_object_get(message, "content"), "application/json"), "schema");
}

/* Types of bodies and answers; those that are references have a name already. */
static struct gtype *
message_type(struct gen *g, const json_t *message, const char *cname)
{
	const json_t *schema = json_content(message);

	if (schema == NULL)
		return NULL;
	if (json_object_get(schema, "$ref") != NULL)
		return schema_type(g, schema, NULL);
	return schema_own_type(g, schema, cname);
}

static void
read_answers(struct gen *g, const json_t *op, struct goperation *o)
{
	const char *status;
	json_t *answer;

	json_object_foreach (json_object_get(op, "responses"), status, answer) {
		size_t up = gen_down(g, ".responses.%s", status);
		struct gtype *t = NULL;

		if (status[0] == '2')
			t = message_type(g, answer, gen_format("http_%s_answer", o->cname));
		if (t != NULL && o->answer != NULL && o->answer != t)
			gen_fail(g, "an operation has one shape of answer");
		if (t != NULL)
			o->answer = t;
		gen_up(g, up);
	}
}

static void
read_operation(struct gen *g, const char *path, const char *method, const json_t *op)
{
	struct goperation o = { .path = path, .method = method };

	o.id = load_text(g, op, "operationId");
	o.cname = name_snake(o.id);
	o.access = name_upper(load_text(g, op, "x-access"));
	o.stream = json_is_true(json_object_get(op, "x-stream"));
	for (size_t i = 0; i < g->noperations; i++)
		if (strcmp(g->operations[i].id, o.id) == 0)
			gen_fail(g, "operationId %s stands twice", o.id);
	o.body = message_type(
	    g, json_object_get(op, "requestBody"), gen_format("http_%s_body", o.cname));
	read_answers(g, op, &o);
	g->operations = gen_grow(g->operations, g->noperations, sizeof(o));
	g->operations[g->noperations++] = o;
}

void
load_operations(struct gen *g)
{
	const char *path, *method;
	json_t *item, *op;

	json_object_foreach (json_object_get(g->doc, "paths"), path, item)
		json_object_foreach (item, method, op) {
			size_t up = gen_down(g, "%s.%s", path, method);

			if (strcmp(method, "parameters") != 0)
				read_operation(g, path, method, op);
			gen_up(g, up);
		}
}
