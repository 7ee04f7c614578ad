#include "cmd/anvilctl/params.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/wire/wire.h"

#define REF_DEPTH_MAX 8

static int PRINTF_LIKE(2, 3) complain(char why[PARAMS_WHY_SIZE], const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(why, PARAMS_WHY_SIZE, fmt, ap);
	va_end(ap);
	return E_INVAL;
}

const char *
params_text(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text != NULL ? text : "";
}

static const json_t *
find_named(const json_t *list, const char *name)
{
	const json_t *item;
	size_t i;

	json_array_foreach (list, i, item)
		if (strcmp(params_text(item, "name"), name) == 0)
			return item;
	return NULL;
}

const json_t *
params_method(const json_t *document, const char *name)
{
	return find_named(json_object_get(document, "methods"), name);
}

int
params_may_call(const json_t *method)
{
	const json_t *from = json_object_get(method, "x-from"), *role;
	size_t i;

	if (json_is_true(json_object_get(method, "x-notification")) ||
	    strcmp(params_text(method, "name"), "hello") == 0)
		return 0;
	json_array_foreach (from, i, role)
		if (json_is_string(role) && strcmp(json_string_value(role), "ctl") == 0)
			return 1;
	return 0;
}

/* Name of the type: of a reference its last part, of `X or null` that X. */
static const char *
type_name(const json_t *schema)
{
	const char *ref = params_text(schema, "$ref");
	const json_t *either = json_array_get(json_object_get(schema, "anyOf"), 0);
	const json_t *type = json_object_get(schema, "type");
	const char *slash = strrchr(ref, '/');

	if (slash != NULL)
		return slash + 1;
	if (either != NULL)
		return type_name(either);
	if (json_is_array(type))
		type = json_array_get(type, 0);
	return json_is_string(type) ? json_string_value(type) : "any";
}

int
params_describe(const json_t *method, struct buf *out)
{
	const json_t *params = json_object_get(method, "params"), *p;
	size_t i;

	json_array_foreach (params, i, p) {
		buf_add_str(out, i > 0 ? " " : "");
		buf_add_str(out, params_text(p, "name"));
		buf_add_byte(out, ':');
		buf_add_str(out, type_name(json_object_get(p, "schema")));
		if (json_object_get(json_object_get(p, "schema"), "anyOf") != NULL)
			buf_add_str(out, "|null");
		if (!json_is_true(json_object_get(p, "required")))
			buf_add_byte(out, '?');
	}
	return out->failed ? E_NOMEM : 0;
}

/* ---- reading ---- */

/* 1 when ${schema} is of texts, behind references and `or null`. */
static int
wants_text(const json_t *document, const json_t *schema)
{
	const json_t *schemas = json_object_get(
	    json_object_get(document, "components"), "schemas");

	for (int depth = 0; depth < REF_DEPTH_MAX; depth++) {
		const json_t *either = json_object_get(schema, "anyOf");

		if (json_array_size(either) > 0)
			schema = json_array_get(either, 0);
		else if (json_object_get(schema, "$ref") != NULL)
			schema = json_object_get(schemas, type_name(schema));
		else
			break;
	}
	return strcmp(type_name(schema), "string") == 0;
}

/* `slug=42` is a text for a Slug, `limit=42` a number, `cursor=null` nothing. */
static json_t *
read_value(const json_t *document, const json_t *schema, const char *text)
{
	json_t *j = NULL;

	if (strcmp(text, "null") == 0)
		return json_null();
	if (wants_text(document, schema) ||
	    json_text_parse(text, strlen(text), RPC_DEPTH_MAX, &j) < 0)
		return json_string(text);
	return j;
}

static int
read_words(const struct params_of *of, const char *const *words, size_t nwords, json_t *ret,
    char why[PARAMS_WHY_SIZE])
{
	const json_t *params = json_object_get(of->method, "params");

	for (size_t i = 0; i < nwords; i++) {
		const char *equals = strchr(words[i], '=');
		char name[64];
		const json_t *p;

		if (equals == NULL || equals == words[i] ||
		    (size_t)(equals - words[i]) >= sizeof(name))
			return complain(
			    why, "\"%s\" is neither a JSON object nor NAME=VALUE", words[i]);
		(void)snprintf(name, sizeof(name), "%.*s", (int)(equals - words[i]), words[i]);
		p = find_named(params, name);
		if (json_object_set_new(ret, name,
			read_value(of->document, json_object_get(p, "schema"), equals + 1)) < 0)
			return complain(
			    why, "%s: no valid UTF-8, or %s", name, err_text(E_NOMEM));
	}
	return 0;
}

static int
check_names(const json_t *method, const json_t *given, char why[PARAMS_WHY_SIZE])
{
	const json_t *params = json_object_get(method, "params"), *p;
	CLEANUP(buf_done) struct buf takes = BUF_INIT;
	const char *all = "none", *name;
	json_t *value;
	size_t i;

	(void)params_describe(method, &takes);
	if (takes.len > 0 && buf_cstr(&takes) != NULL)
		all = (const char *)takes.data;
	json_object_foreach ((json_t *)(uintptr_t)given, name, value)
		if (find_named(params, name) == NULL)
			return complain(
			    why, "there is no parameter \"%s\"; there are: %s", name, all);
	json_array_foreach (params, i, p)
		if (json_is_true(json_object_get(p, "required")) &&
		    json_object_get(given, params_text(p, "name")) == NULL)
			return complain(why, "parameter \"%s\" is missing; there are: %s",
			    params_text(p, "name"), all);
	return 0;
}

int
params_read(const struct params_of *of, const char *const *words, size_t nwords, json_t **ret,
    char why[PARAMS_WHY_SIZE])
{
	CLEANUP(json_unrefp) json_t *given = NULL;
	int r = 0;

	if (nwords == 1 && words[0][0] == '{') {
		r = json_text_parse(words[0], strlen(words[0]), RPC_DEPTH_MAX, &given);
		if (r < 0 && r != E_NOMEM) {
			json_text_why(
			    words[0], strlen(words[0]), RPC_DEPTH_MAX, why, PARAMS_WHY_SIZE);
			r = E_INVAL;
		}
	} else {
		given = json_object();
		r = given != NULL ? read_words(of, words, nwords, given, why) : E_NOMEM;
	}
	if (r == E_NOMEM)
		(void)complain(why, "%s", err_text(E_NOMEM));
	if (r == 0)
		r = check_names(of->method, given, why);
	if (r == 0)
		*ret = TAKE_PTR(given);
	return r;
}
