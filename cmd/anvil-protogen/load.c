#include <stdio.h>
#include <string.h>

#include "cmd/anvil-protogen/gen.h"

json_t *
load_file(const char *dir, const char *name)
{
	char *path = gen_format("%s/%s.json", dir, name);
	json_error_t error;
	json_t *j = json_load_file(path, JSON_REJECT_DUPLICATES, &error);

	if (!json_is_object(j)) {
		(void)fprintf(stderr, "anvil-protogen: %s:%d:%d: %s\n", path, error.line,
		    error.column, j == NULL ? error.text : "the file must hold an object");
		exit(1);
	}
	free(path);
	return j;
}

const char *
load_text(const struct gen *g, const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	if (text == NULL)
		gen_fail(g, "the text \"%s\" is missing", key);
	return text;
}

void
load_check_keys(const struct gen *g, const json_t *object, const char *const *known, size_t n)
{
	const char *key;
	json_t *value;

	if (!json_is_object(object))
		gen_fail(g, "must be an object");
	json_object_foreach ((json_t *)(uintptr_t)object, key, value) {
		size_t i = 0;

		while (i < n && strcmp(known[i], key) != 0)
			i++;
		if (i == n)
			gen_fail(g, "unknown member \"%s\"", key);
	}
}

static unsigned
read_from(struct gen *g, const json_t *method)
{
	static const char *const roles[] = { "supervisor", "ingress", "project", "run", "ctl" };
	const json_t *list = json_object_get(method, "x-from"), *j;
	unsigned from = 0;
	size_t i;

	json_array_foreach ((json_t *)(uintptr_t)list, i, j) {
		size_t role = 0;

		while (role < ARRAY_LEN(roles) &&
		    (!json_is_string(j) || strcmp(roles[role], json_string_value(j)) != 0))
			role++;
		if (role == ARRAY_LEN(roles))
			gen_fail(g, "x-from[%zu] is no role", i);
		from |= 1u << role;
	}
	if (from == 0)
		gen_fail(g, "x-from must name who may call");
	return from;
}

static const char *
read_turn(struct gen *g, const json_t *method)
{
	const char *turn = load_text(g, method, "x-turn");

	if (strcmp(turn, "none") != 0 && strcmp(turn, "read") != 0 &&
	    strcmp(turn, "write") != 0)
		gen_fail(g, "x-turn is none, read or write");
	return name_upper(turn);
}

static struct gtype *
read_params(struct gen *g, const json_t *method, const char *cname)
{
	static const char *const known[] = { "name", "required", "schema", "description",
		"summary" };
	const json_t *list = json_object_get(method, "params"), *j;
	struct gtype *t = schema_new_object(gen_format("%s_params", cname));
	size_t i;

	if (!json_is_array(list))
		gen_fail(g, "params must be a list");
	json_array_foreach ((json_t *)(uintptr_t)list, i, j) {
		size_t up = gen_down(g, ".params[%zu]", i);

		load_check_keys(g, j, known, ARRAY_LEN(known));
		schema_add_field(g, t, load_text(g, j, "name"), json_object_get(j, "schema"),
		    json_is_true(json_object_get(j, "required")));
		gen_up(g, up);
	}
	t->is_public = 1;
	schema_done(g, t);
	return t;
}

static int
read_flag(const struct gen *g, const json_t *method, const char *key)
{
	const json_t *j = json_object_get(method, key);

	if (j != NULL && !json_is_true(j))
		gen_fail(g, "%s can only be true", key);
	return j != NULL;
}

static void
read_method(struct gen *g, const json_t *j)
{
	static const char *const known[] = { "name", "summary", "description", "params",
		"result", "paramStructure", "x-from", "x-turn", "x-notification", "x-outgoing",
		"x-builtin", "errors" };
	struct gmethod m = { .name = load_text(g, j, "name") };
	size_t up = gen_down(g, "<%s>", m.name);

	load_check_keys(g, j, known, ARRAY_LEN(known));
	if (strchr(m.name, '.') == NULL && !read_flag(g, j, "x-builtin"))
		gen_fail(g, "a method's name is area.verb");
	if (strcmp(load_text(g, j, "paramStructure"), "by-name") != 0)
		gen_fail(g, "paramStructure must be by-name");
	for (size_t i = 0; i < g->nmethods; i++)
		if (strcmp(g->methods[i].name, m.name) == 0)
			gen_fail(g, "the method stands twice");
	m.cname = name_snake(m.name);
	m.summary = load_text(g, j, "summary");
	m.from = read_from(g, j);
	m.turn = read_turn(g, j);
	m.notification = read_flag(g, j, "x-notification");
	m.outgoing = read_flag(g, j, "x-outgoing");
	if (m.notification == (json_object_get(j, "result") != NULL))
		gen_fail(g, "a method has a result, a notification has none");
	if (!read_flag(g, j, "x-builtin")) {
		m.params = read_params(g, j, m.cname);
		if (!m.notification)
			m.result = schema_own_type(g,
			    json_object_get(json_object_get(j, "result"), "schema"),
			    gen_format("%s_result", m.cname));
		g->methods = gen_grow(g->methods, g->nmethods, sizeof(m));
		g->methods[g->nmethods++] = m;
	}
	gen_up(g, up);
}

static void
load_definitions(struct gen *g, const json_t *defs, const char *ref)
{
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)(uintptr_t)defs, key, value)
		(void)schema_named(g, gen_format("%s%s", ref, key));
}

/* One name for two types would give two structs one name, and documents a wrong reference. */
static void
check_shadows(struct gen *g)
{
	json_t *mine = json_object_get(json_object_get(g->doc, "components"), "schemas");
	json_t *shared = json_object_get(g->types, "$defs"), *value;
	const char *key;

	json_object_foreach (mine, key, value)
		if (json_object_get(shared, key) != NULL)
			gen_fail(g, "the type %s stands in types.json, too", key);
}

void
load_all(struct gen *g)
{
	const json_t *methods = json_object_get(g->doc, "methods"), *j;
	size_t i;

	if (g->doc == g->types) {
		load_definitions(g, json_object_get(g->types, "$defs"), "types.json#/$defs/");
		return;
	}
	if (json_object_get(g->doc, "paths") != NULL)
		g->prefix = gen_format("%s_", g->name);
	check_shadows(g);
	load_definitions(g, json_object_get(json_object_get(g->doc, "components"), "schemas"),
	    "#/components/schemas/");
	if (json_object_get(g->doc, "paths") != NULL) {
		load_operations(g);
		return;
	}
	g->context = load_text(g, g->doc, "x-context");
	if (strcmp(g->name, "actor") != 0)
		g->base = load_file(g->dir, "actor");
	json_array_foreach ((json_t *)(uintptr_t)methods, i, j) {
		size_t up = gen_down(g, "methods[%zu]", i);

		read_method(g, j);
		gen_up(g, up);
	}
}
