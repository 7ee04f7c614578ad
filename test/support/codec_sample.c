#include "test/support/codec_sample.h"

#include <string.h>

#include "lib/base/mem.h"

static const char *
text_of_rule(const char *rule)
{
	static const char *const known[][2] = {
		{ "BranchName", "feature/one" },
		{ "ProjectName", "The demo" },
		{ "DisplayName", "Ada" },
		{ "Email", "ada@example.com" },
		{ "Password", "correct horse" },
		{ "RepositoryUrl", "https://example.com/a/b" },
		{ "ConfigPath", "ci/anvil.yml" },
		{ "RepoToken", "token" },
		{ "InstanceUrl", "https://git.example.com" },
		{ "WebhookSecret", "secret" },
	};

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (strcmp(known[i][0], rule) == 0)
			return known[i][1];
	base_bug(__FILE__, __LINE__, "a rule without a sample");
}

static json_t *
repeated(char c, size_t n)
{
	CLEANUP_FREE char *text = mem_alloc(n + 1);

	must(text != NULL);
	memset(text, c, n);
	return json_stringn(text, n);
}

static json_t *
sample_text(const struct codec_type *t)
{
	char id[64];

	if (t->rule != NULL)
		return json_string(text_of_rule(t->rule));
	switch ((enum codec_shape)t->shape) {
	case CODEC_SHAPE_ID:
		(void)snprintf(id, sizeof(id), "%s0123456789ABCDEFGHabcd", t->tag);
		return json_string(id);
	case CODEC_SHAPE_HEX32: return repeated('a', 32);
	case CODEC_SHAPE_SHA256: return repeated('b', 64);
	case CODEC_SHAPE_COMMIT: return repeated('c', 40);
	default: return repeated('x', t->min > 0 ? (size_t)t->min : t->max > 0);
	}
}

static json_t *
sample_members(json_t *object, const struct codec_type *t, int full, unsigned pick)
{
	for (size_t i = 0; i < t->nfields; i++) {
		const struct codec_field *f = &t->fields[i];
		json_t *v = NULL;

		if (full || (f->flags & CODEC_REQUIRED && !(f->flags & CODEC_NULLABLE)))
			v = codec_sample(f->type, full, pick);
		else if (f->flags & CODEC_REQUIRED)
			v = json_null();
		if (v != NULL)
			json_object_setn_new(object, f->key + 1, f->key_len - 3u, v);
	}
	return object;
}

static json_t *
sample_union(const struct codec_type *t, int full, unsigned pick)
{
	const struct codec_variant *v = &t->variants[pick % t->nvariants];
	json_t *object = json_object();

	json_object_set_new(object, t->tag, json_string(v->name));
	return sample_members(object, v->type, full, pick / t->nvariants);
}

static json_t *
sample_array(const struct codec_type *t, int full, unsigned pick)
{
	json_t *list = json_array();
	int64_t n = t->min > 0 ? t->min : full ? 2 : 0;

	for (int64_t i = 0; i < n && i < t->max; i++)
		json_array_append_new(list, codec_sample(t->item, full, pick));
	return list;
}

json_t *
codec_sample(const struct codec_type *t, int full, unsigned pick)
{
	switch ((enum codec_kind)t->kind) {
	case CODEC_VIEW: return json_stringn("a\0b", 3);
	case CODEC_STRING: return sample_text(t);
	case CODEC_TIME: return json_string("2026-01-31T09:05:07.042Z");
	case CODEC_ENUM: return json_string(t->words->names[pick % t->words->n]);
	case CODEC_INTEGER: return json_integer(t->min == INT64_MIN ? -7 : t->min);
	case CODEC_NUMBER: return json_real((double)t->min + 0.5);
	case CODEC_BOOLEAN: return json_true();
	case CODEC_ANY: return json_pack("{s:[i,n]}", "any", 1);
	case CODEC_ARRAY: return sample_array(t, full, pick);
	case CODEC_OBJECT: return sample_members(json_object(), t, full, pick);
	case CODEC_UNION: return sample_union(t, full, pick);
	}
	return NULL;
}

json_t *
codec_sample_wrong(const struct codec_type *t)
{
	switch ((enum codec_kind)t->kind) {
	case CODEC_ANY: return NULL;
	case CODEC_STRING:
	case CODEC_VIEW:
	case CODEC_TIME:
	case CODEC_ENUM: return json_integer(1);
	case CODEC_INTEGER:
	case CODEC_NUMBER: return json_string("1");
	case CODEC_BOOLEAN: return json_integer(0);
	case CODEC_ARRAY: return json_object();
	case CODEC_OBJECT:
	case CODEC_UNION: return json_array();
	}
	return NULL;
}

unsigned
codec_sample_picks(const struct codec_type *t)
{
	unsigned most = 1, inner;

	if (t->kind == CODEC_ENUM)
		return (unsigned)t->words->n;
	if (t->kind == CODEC_ARRAY)
		return codec_sample_picks(t->item);
	for (size_t i = 0; i < t->nfields; i++) {
		inner = codec_sample_picks(t->fields[i].type);
		most = inner > most ? inner : most;
	}
	for (size_t i = 0; i < t->nvariants; i++) {
		inner = codec_sample_picks(t->variants[i].type);
		most = inner > most ? inner : most;
	}
	return t->nvariants == 0 ? most : most * t->nvariants;
}
