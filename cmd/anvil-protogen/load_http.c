#include <string.h>

#include "cmd/anvil-protogen/gen.h"

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

/* ---- error codes ---- */

int
load_status(const struct gen *g, const char *code)
{
	for (size_t i = 0; i < g->ncodes; i++)
		if (code != NULL && strcmp(g->codes[i].name, code) == 0)
			return g->codes[i].status;
	gen_fail(g, "the error code \"%s\" is not in x-codes", code == NULL ? "?" : code);
}

/* The codes as an enum of their own. */
static void
add_code_type(struct gen *g)
{
	struct gtype *t = schema_new_object(gen_format("%scode", g->prefix));

	t->kind = G_ENUM;
	t->name = "Code";
	t->is_public = 1;
	t->nwords = g->ncodes;
	t->words = gen_alloc(g->ncodes + 1, sizeof(*t->words));
	for (size_t i = 0; i < g->ncodes; i++)
		t->words[i] = g->codes[i].name;
	schema_done(g, t);
}

static void
add_code(struct gen *g, const char *name, int status)
{
	if (name == NULL)
		gen_fail(g, "x-codes.%d: a code must be a string", status);
	for (size_t i = 0; i < g->ncodes; i++)
		if (strcmp(g->codes[i].name, name) == 0)
			gen_fail(g, "the code %s stands twice", name);
	g->codes = gen_grow(g->codes, g->ncodes, sizeof(*g->codes));
	g->codes[g->ncodes++] = (struct gcode) { name, status };
}

static void
load_codes(struct gen *g)
{
	const char *status;
	json_t *list, *j;
	size_t i;

	json_object_foreach (json_object_get(g->doc, "x-codes"), status, list) {
		char *end;
		long number = strtol(status, &end, 10);

		if (*end != '\0' || number < 400 || number > 599)
			gen_fail(g, "x-codes.%s is no status of an error", status);
		json_array_foreach (list, i, j)
			add_code(g, json_string_value(j), (int)number);
	}
	add_code_type(g);
}

static void
check_codes(const struct gen *g)
{
	for (size_t i = 0; i < g->norder; i++) {
		const struct gtype *t = g->order[i];

		for (size_t k = 0; k < t->nfields; k++) {
			const struct gfield *f = &t->fields[k];

			if (f->code != NULL)
				(void)load_status(g, f->code);
			if (f->blank_code != NULL)
				(void)load_status(g, f->blank_code);
			if (f->type->code != NULL)
				(void)load_status(g, f->type->code);
		}
	}
}

/* ---- operations ---- */

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
	static const char *const known[] = { "operationId", "summary", "description",
		"parameters", "requestBody", "responses", "security", "x-access", "x-stream",
		"x-errors" };
	struct goperation o = { .path = path, .method = method };
	const json_t *code;
	size_t k;

	load_check_keys(g, op, known, ARRAY_LEN(known));
	json_array_foreach (json_object_get(op, "x-errors"), k, code)
		(void)load_status(g, json_string_value(code));
	o.id = load_text(g, op, "operationId");
	o.cname = name_snake(o.id);
	o.access = name_upper(load_text(g, op, "x-access"));
	o.stream = json_is_true(json_object_get(op, "x-stream"));
	for (size_t i = 0; i < g->noperations; i++)
		if (strcmp(g->operations[i].id, o.id) == 0)
			gen_fail(g, "operationId %s stands twice", o.id);
	o.body = message_type(
	    g, json_object_get(op, "requestBody"), gen_format("http_%s_body", o.cname));
	if (o.body != NULL && o.body->kind == G_ANY)
		o.body = NULL; /* the handler reads it in its own way */
	read_answers(g, op, &o);
	g->operations = gen_grow(g->operations, g->noperations, sizeof(o));
	g->operations[g->noperations++] = o;
}

void
load_operations(struct gen *g)
{
	const char *path, *method;
	json_t *item, *op;

	load_codes(g);
	check_codes(g);
	json_object_foreach (json_object_get(g->doc, "paths"), path, item)
		json_object_foreach (item, method, op) {
			size_t up = gen_down(g, "%s.%s", path, method);

			if (strcmp(method, "parameters") != 0)
				read_operation(g, path, method, op);
			gen_up(g, up);
		}
}
