#include <string.h>

#include "cmd/anvil-protogen/gen.h"
#include "lib/base/rules.h"

#define TYPES_REF "types.json#/$defs/"
#define LOCAL_REF "#/components/schemas/"

/* Words that a schema may have.  What is not here would be promised and not kept. */
static void
check_words(const struct gen *g, const json_t *schema)
{
	static const char *const known[] = { "type", "$ref", "enum", "const", "properties",
		"required", "additionalProperties", "items", "minItems", "maxItems",
		"minLength", "maxLength", "minimum", "maximum", "pattern", "description",
		"title", "default", "oneOf", "anyOf", "examples", "format", "x-id", "x-rule",
		"x-code", "x-blankCode", "x-any", "x-nul", "x-maxBytes", "x-shape", "x-time" };
	const char *key;
	json_t *value;

	if (!json_is_object(schema))
		gen_fail(g, "a schema must be an object");
	json_object_foreach ((json_t *)(uintptr_t)schema, key, value) {
		size_t i = 0;

		while (i < ARRAY_LEN(known) && strcmp(known[i], key) != 0)
			i++;
		if (i == ARRAY_LEN(known))
			gen_fail(g, "unsupported word \"%s\" in a schema", key);
	}
	/* A pattern is for readers; what is checked has a name. */
	if (json_object_get(schema, "pattern") != NULL &&
	    json_object_get(schema, "x-id") == NULL &&
	    json_object_get(schema, "x-shape") == NULL &&
	    json_object_get(schema, "x-time") == NULL)
		gen_fail(g, "a pattern needs x-shape, x-id or x-time to be checked by");
}

static int64_t
number(const struct gen *g, const json_t *schema, const char *key, int64_t absent)
{
	const json_t *j = json_object_get(schema, key);

	if (j == NULL)
		return absent;
	if (!json_is_integer(j))
		gen_fail(g, "%s must be an integer", key);
	return json_integer_value(j);
}

static int
flag(const struct gen *g, const json_t *schema, const char *key)
{
	const json_t *j = json_object_get(schema, key);

	if (j != NULL && !json_is_true(j))
		gen_fail(g, "%s can only be true", key);
	return j != NULL;
}

static const char *
text(const struct gen *g, const json_t *schema, const char *key)
{
	const json_t *j = json_object_get(schema, key);

	if (j != NULL && !json_is_string(j))
		gen_fail(g, "%s must be a string", key);
	return json_string_value(j);
}

/* ---- scalars ---- */

static void
read_string(const struct gen *g, const json_t *schema, struct gtype *t)
{
	static const char *const shapes[] = { "slug", "hex32", "sha256", "commit",
		"base64url" };
	const char *shape = text(g, schema, "x-shape");

	t->kind = flag(g, schema, "x-time") ? G_TIME
	    : flag(g, schema, "x-nul")      ? G_VIEW
					    : G_STRING;
	t->name = "String";
	t->min = number(g, schema, "minLength", 0);
	t->max = number(g, schema, "maxLength", INT64_MAX);
	t->max_bytes = number(g, schema, "x-maxBytes", 0);
	t->rule = text(g, schema, "x-rule");
	t->prefix = text(g, schema, "x-id");
	if (t->rule != NULL && !rule_known(t->rule))
		gen_fail(g, "x-rule \"%s\" is not known to lib/base/rules.h", t->rule);
	if (t->prefix != NULL && shape != NULL)
		gen_fail(g, "x-id and x-shape exclude one another");
	if (t->prefix != NULL)
		t->shape = "ID";
	if (shape == NULL)
		return;
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
		if (strcmp(shapes[i], shape) == 0)
			t->shape = name_upper(shape);
	if (t->shape == NULL)
		gen_fail(g, "x-shape \"%s\" is unknown", shape);
}

static void
read_enum(const struct gen *g, const json_t *schema, struct gtype *t)
{
	const json_t *list = json_object_get(schema, "enum");

	t->kind = G_ENUM;
	t->nwords = json_array_size(list);
	t->words = gen_alloc(t->nwords + 1, sizeof(*t->words));
	if (t->nwords == 0)
		gen_fail(g, "an enum needs words");
	for (size_t i = 0; i < t->nwords; i++) {
		t->words[i] = json_string_value(json_array_get(list, i));
		if (t->words[i] == NULL)
			gen_fail(g, "words of an enum are strings");
		for (size_t k = 0; k < i; k++)
			if (strcmp(t->words[k], t->words[i]) == 0)
				gen_fail(g, "the word \"%s\" stands twice", t->words[i]);
	}
}

/* ---- objects ---- */

struct gtype *
schema_new_object(const char *cname)
{
	struct gtype *t = gen_alloc(1, sizeof(*t));

	t->kind = G_OBJECT;
	t->name = "Object";
	t->cname = cname;
	t->max = INT64_MAX;
	return t;
}

static int
is_null_schema(const json_t *schema)
{
	const char *type = json_string_value(json_object_get(schema, "type"));

	return type != NULL && strcmp(type, "null") == 0;
}

/* What is left of a schema when null is taken out; ${ret_null}: it was there. */
static const json_t *
without_null(const struct gen *g, const json_t *schema, int *ret_null)
{
	const json_t *type = json_object_get(schema, "type"), *any;
	json_t *copy;

	*ret_null = 0;
	if (json_is_array(type)) {
		if (json_array_size(type) != 2 ||
		    strcmp(json_string_value(json_array_get(type, 1)), "null") != 0)
			gen_fail(g, "a list of types is a type and \"null\"");
		*ret_null = 1;
		copy = json_copy((json_t *)(uintptr_t)schema);
		json_object_set(copy, "type", json_array_get(type, 0));
		return copy;
	}
	any = json_object_get(schema, "anyOf");
	if (any == NULL)
		return schema;
	if (json_array_size(any) != 2 || !is_null_schema(json_array_get(any, 1)))
		gen_fail(g, "anyOf is for a schema and null");
	*ret_null = 1;
	return json_array_get(any, 0);
}

static void
check_default(const struct gen *g, const struct gfield *f)
{
	int ok = 0;

	switch (f->type->kind) {
	case G_STRING: ok = json_is_string(f->def); break;
	case G_INTEGER:
	case G_NUMBER: ok = json_is_integer(f->def); break;
	case G_BOOLEAN: ok = json_is_boolean(f->def); break;
	case G_ENUM:
		for (size_t i = 0; i < f->type->nwords && json_is_string(f->def); i++)
			ok |= strcmp(f->type->words[i], json_string_value(f->def)) == 0;
		break;
	default: break;
	}
	if (!ok)
		gen_fail(g, "a default that does not fit its type");
	if (f->required || f->nullable)
		gen_fail(g, "a default is for members that may be absent, and not null");
}

void
schema_add_field(
    struct gen *g, struct gtype *owner, const char *name, const json_t *schema, int required)
{
	size_t up = gen_down(g, ".%s", name);
	struct gfield *f;
	const json_t *inner;

	check_words(g, schema);
	owner->fields = gen_grow(owner->fields, owner->nfields, sizeof(*f));
	for (size_t i = 0; i < owner->nfields; i++)
		if (strcmp(owner->fields[i].name, name) == 0)
			gen_fail(g, "the name stands twice");
	f = &owner->fields[owner->nfields++];
	*f = (struct gfield) { .name = name, .cname = name_member(name), .required = required };
	inner = without_null(g, schema, &f->nullable);
	f->type = schema_type(g, inner, gen_format("%s_%s", owner->cname, f->cname));
	f->def = json_object_get(schema, "default");
	f->code = text(g, schema, "x-code");
	f->blank_code = text(g, schema, "x-blankCode");
	if (f->def != NULL)
		check_default(g, f);
	if (f->nullable && f->type->kind == G_ANY)
		gen_fail(g, "x-any includes null");
	if (!f->required && f->nullable && f->type->kind != G_STRING &&
	    f->type->kind != G_OBJECT && f->type->kind != G_UNION)
		gen_fail(g, "only strings and objects can be absent or null");
	if (owner->nfields > 40)
		gen_fail(g, "more members than lib/wire's CODEC_FIELDS_MAX");
	gen_up(g, up);
}

static int
is_required(const json_t *schema, const char *name)
{
	const json_t *list = json_object_get(schema, "required"), *j;
	size_t i;

	json_array_foreach ((json_t *)(uintptr_t)list, i, j)
		if (json_is_string(j) && strcmp(json_string_value(j), name) == 0)
			return 1;
	return 0;
}

static void
check_required(const struct gen *g, const json_t *schema)
{
	const json_t *list = json_object_get(schema, "required"), *j;
	size_t i;

	json_array_foreach ((json_t *)(uintptr_t)list, i, j)
		if (!json_is_string(j) ||
		    json_object_get(
			json_object_get(schema, "properties"), json_string_value(j)) == NULL)
			gen_fail(g, "required[%zu] names no property", i);
}

/* Adds the properties, but ${skip} (a union's tag). */
static void
read_object(struct gen *g, const json_t *schema, struct gtype *t, const char *skip)
{
	const json_t *more = json_object_get(schema, "additionalProperties");
	const char *key;
	json_t *value;

	t->kind = G_OBJECT;
	check_required(g, schema);
	if (more != NULL && !json_is_false(more))
		gen_fail(g, "additionalProperties can only be false");
	json_object_foreach (json_object_get(schema, "properties"), key, value) {
		if (skip != NULL && strcmp(key, skip) == 0)
			continue;
		if (skip == NULL && json_object_get(value, "const") != NULL)
			t->is_variant = 1;
		else
			schema_add_field(g, t, key, value, is_required(schema, key));
	}
}

/* ---- unions ---- */

static const json_t *
resolve(const struct gen *g, const char *ref)
{
	const json_t *j = NULL;

	if (strncmp(ref, TYPES_REF, strlen(TYPES_REF)) == 0)
		j = json_object_get(
		    json_object_get(g->types, "$defs"), ref + strlen(TYPES_REF));
	else if (strncmp(ref, LOCAL_REF, strlen(LOCAL_REF)) == 0)
		j = json_object_get(
		    json_object_get(json_object_get(g->doc, "components"), "schemas"),
		    ref + strlen(LOCAL_REF));
	if (j == NULL)
		gen_fail(g, "nothing is found at $ref \"%s\"", ref);
	return j;
}

/* Inside types.json references are "#/$defs/X"; here all have one form. */
static const char *
full_ref(const char *ref)
{
	return strncmp(ref, "#/$defs/", 8) == 0 ? gen_format("types.json%s", ref) : ref;
}

static const json_t *
follow(const struct gen *g, const json_t *schema)
{
	const char *ref = text(g, schema, "$ref");

	return ref == NULL ? schema : resolve(g, full_ref(ref));
}

/* Name of the property of a variant that is a constant. */
static const char *
tag_of(const struct gen *g, const json_t *variant, const char **ret_value)
{
	const char *key, *found = NULL;
	json_t *value;

	json_object_foreach (json_object_get(variant, "properties"), key, value) {
		const json_t *word = json_object_get(value, "const");

		if (word == NULL)
			continue;
		if (found != NULL || !json_is_string(word) || !is_required(variant, key))
			gen_fail(g, "a variant has one constant, a required string");
		found = key;
		*ret_value = json_string_value(word);
	}
	if (found == NULL)
		gen_fail(g, "a variant needs a constant member to be known by");
	return found;
}

static struct gtype *
variant_type(struct gen *g, const json_t *schema, const struct gtype *u, const char *cname)
{
	struct gtype *t;

	if (json_object_get(schema, "$ref") != NULL)
		return schema_named(g, full_ref(text(g, schema, "$ref")));
	t = schema_new_object(gen_format("%s_%s", u->kind_stem, cname));
	check_words(g, schema);
	read_object(g, schema, t, u->tag);
	schema_done(g, t);
	return t;
}

static void
read_union(struct gen *g, const json_t *schema, struct gtype *t)
{
	const json_t *list = json_object_get(schema, "oneOf"), *j;
	size_t i, len = strlen(t->cname);

	t->kind = G_UNION;
	t->name = "Object";
	t->kind_stem = t->cname;
	if (len > 7 && strcmp(t->cname + len - 7, "_result") == 0)
		t->kind_stem = gen_format("%.*s", (int)(len - 7), t->cname);
	json_array_foreach ((json_t *)(uintptr_t)list, i, j) {
		size_t up = gen_down(g, ".oneOf[%zu]", i);
		const char *value = NULL, *tag = tag_of(g, follow(g, j), &value);
		struct gvariant *v;

		if (t->tag != NULL && strcmp(t->tag, tag) != 0)
			gen_fail(g, "the other variants are known by \"%s\"", t->tag);
		t->tag = tag;
		for (size_t k = 0; k < i; k++)
			if (strcmp(t->variants[k].name, value) == 0)
				gen_fail(g, "the kind \"%s\" stands twice", value);
		t->variants = gen_grow(t->variants, t->nvariants, sizeof(*v));
		v = &t->variants[t->nvariants++];
		v->name = value;
		v->cname = name_member(value);
		v->type = variant_type(g, j, t, v->cname);
		gen_up(g, up);
	}
	if (t->nvariants == 0)
		gen_fail(g, "oneOf is empty");
}

/* ---- all kinds ---- */

static void
read_array(struct gen *g, const json_t *schema, struct gtype *t)
{
	const json_t *items = json_object_get(schema, "items");
	size_t up;

	t->kind = G_ARRAY;
	t->name = "Array";
	t->min = number(g, schema, "minItems", 0);
	t->max = number(g, schema, "maxItems", INT64_MAX);
	if (items == NULL)
		gen_fail(g, "an array needs items");
	up = gen_down(g, ".items");
	check_words(g, items);
	t->item = schema_type(g, items, gen_format("%s_item", t->cname));
	if (t->item->kind == G_ARRAY || t->item->kind == G_ANY)
		gen_fail(g, "lists of lists are not supported");
	gen_up(g, up);
}

static void
read_plain(struct gen *g, const json_t *schema, struct gtype *t)
{
	const char *type = text(g, schema, "type");

	if (type == NULL)
		gen_fail(g, "a schema needs type, $ref, enum, oneOf or x-any");
	if (strcmp(type, "string") == 0) {
		read_string(g, schema, t);
	} else if (strcmp(type, "integer") == 0 || strcmp(type, "number") == 0) {
		t->kind = type[0] == 'i' ? G_INTEGER : G_NUMBER;
		t->name = type[0] == 'i' ? "Integer" : "Number";
		t->min = number(g, schema, "minimum", INT64_MIN);
		t->max = number(g, schema, "maximum", INT64_MAX);
	} else if (strcmp(type, "boolean") == 0) {
		t->kind = G_BOOLEAN;
		t->name = "Boolean";
	} else if (strcmp(type, "array") == 0) {
		read_array(g, schema, t);
	} else if (strcmp(type, "object") == 0) {
		t->name = "Object";
		read_object(g, schema, t, NULL);
	} else {
		gen_fail(g, "unsupported type \"%s\"", type);
	}
}

/* Reads ${schema} into ${t}, whose C name is set; ${name}: of a definition, or NULL. */
static void
make(struct gen *g, const json_t *schema, struct gtype *t, const char *name)
{
	check_words(g, schema);
	t->code = text(g, schema, "x-code");
	if (flag(g, schema, "x-any")) {
		t->kind = G_ANY;
		t->name = "Any";
	} else if (json_object_get(schema, "enum") != NULL) {
		if (name == NULL)
			gen_fail(g, "an enum needs a name: put it into the definitions");
		read_enum(g, schema, t);
	} else if (json_object_get(schema, "oneOf") != NULL) {
		read_union(g, schema, t);
	} else if (json_object_get(schema, "const") != NULL) {
		gen_fail(g, "a constant is for the kinds of oneOf");
	} else {
		read_plain(g, schema, t);
	}
	/* What has members is told by its JSON type: its name is of no use to a caller. */
	if (name != NULL && t->kind != G_OBJECT && t->kind != G_UNION && t->kind != G_ARRAY)
		t->name = name;
}

void
schema_done(struct gen *g, struct gtype *t)
{
	if (t->foreign || g->foreign != 0)
		return;
	g->order = gen_grow(g->order, g->norder, sizeof(struct gtype *));
	g->order[g->norder++] = t;
}

struct gtype *
schema_named(struct gen *g, const char *ref)
{
	struct gtype *t = map_get(g->named, ref);
	const char *name = strrchr(ref, '/') + 1;
	size_t up = gen_down(g, "<%s>", name);

	if (t != NULL && t->building)
		gen_fail(g, "the type contains itself");
	if (t == NULL) {
		t = schema_new_object(NULL);
		t->foreign = strncmp(ref, TYPES_REF, strlen(TYPES_REF)) == 0 &&
		    g->doc != g->types;
		t->cname = gen_format("%s%s", t->foreign ? "" : g->prefix, name_snake(name));
		t->is_public = t->building = 1;
		(void)map_set(g->named, ref, t);
		g->foreign += t->foreign;
		make(g, resolve(g, ref), t, name);
		g->foreign -= t->foreign;
		t->building = 0;
		schema_done(g, t);
	}
	gen_up(g, up);
	return t;
}

static int
same_text(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* A type without a name that was made before and is just the same. */
static struct gtype *
same_scalar(const struct gen *g, const struct gtype *t)
{
	if (t->kind == G_ARRAY || t->kind == G_OBJECT || t->kind == G_UNION)
		return NULL;
	for (size_t i = 0; i < g->norder; i++) {
		struct gtype *o = g->order[i];

		if (!o->is_public && o->kind == t->kind && o->min == t->min &&
		    o->max == t->max && o->max_bytes == t->max_bytes &&
		    same_text(o->rule, t->rule) && same_text(o->shape, t->shape) &&
		    same_text(o->prefix, t->prefix) && same_text(o->code, t->code))
			return o;
	}
	return NULL;
}

struct gtype *
schema_type(struct gen *g, const json_t *schema, const char *cname)
{
	const char *ref = text(g, schema, "$ref");
	struct gtype *t, *same;

	if (ref != NULL) {
		t = schema_named(g, full_ref(ref));
	} else {
		t = schema_new_object(cname);
		make(g, schema, t, NULL);
		same = same_scalar(g, t);
		if (same != NULL)
			return same;
		schema_done(g, t);
	}
	if (t->is_variant)
		gen_fail(g, "%s has a constant member: it can only stand in oneOf", t->name);
	return t;
}

struct gtype *
schema_own_type(struct gen *g, const json_t *schema, const char *cname)
{
	struct gtype *t = schema_new_object(cname);

	make(g, follow(g, schema), t, NULL);
	t->is_public = 1;
	schema_done(g, t);
	return t;
}
