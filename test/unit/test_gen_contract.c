/*
 * test/unit/test_gen_contract.c -- every method of every actor: samples made from its tables go
 * out as they came in, and each spoiled one is refused by name.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gen/actor.h"
#include "gen/ingress.h"
#include "gen/project.h"
#include "gen/run.h"
#include "gen/supervisor.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "test/support/codec_sample.h"

struct contract {
	const char *name;
	const struct rpc_contract *rows;
	const size_t *nrows;
	const char *(*document)(void);
};

static const struct contract contracts[] = {
	{ "actor", actor_contract, &actor_contract_count, actor_document },
	{ "ingress", ingress_contract, &ingress_contract_count, ingress_document },
	{ "project", project_contract, &project_contract_count, project_document },
	{ "run", run_contract, &run_contract_count, run_document },
	{ "supervisor", supervisor_contract, &supervisor_contract_count, supervisor_document },
};

/* Runs ${fn} over the types of all parameters and results. */
static void
for_each_type(void (*fn)(const char *method, const struct codec_type *t))
{
	for (size_t i = 0; i < ARRAY_LEN(contracts); i++)
		for (size_t k = 0; k < *contracts[i].nrows; k++) {
			const struct rpc_contract *row = &contracts[i].rows[k];

			fn(row->name, row->params);
			if (row->result != NULL)
				fn(row->name, row->result);
		}
}

static void
print_issues(const char *method, const struct codec *c)
{
	for (size_t i = 0; i < c->nissues; i++)
		print_message("%s: %s: expected %s: %s\n", method, c->issues[i].path,
		    c->issues[i].expected, c->issues[i].message);
}

static json_t *
encoded(const struct codec_type *t, const void *v)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	json_t *j = NULL;

	assert_int_equal(codec_encode(&out, t, v), 0);
	assert_int_equal(json_text_parse((const char *)out.data, out.len, 64, &j), 0);
	return j;
}

static void
check_round_trip(const char *method, const struct codec_type *t, json_t *sample, int full)
{
	CLEANUP(arena_freep) struct arena *arena = arena_new();
	CLEANUP(json_unrefp) json_t *once = NULL, *twice = NULL;
	CLEANUP_FREE void *v = mem_calloc(1, t->size);
	struct codec c;
	int r;

	codec_init(&c, arena, NULL);
	r = codec_decode(&c, t, sample, v);
	print_issues(method, &c);
	assert_int_equal(r, 0);
	once = encoded(t, v);
	if (full && !json_equal(once, sample))
		print_message("%s: %s\n", method, json_dumps(once, JSON_COMPACT));
	assert_true(!full || json_equal(once, sample));
	/* Members that were absent may have got their default, but no more changes. */
	assert_int_equal(codec_decode(&c, t, once, v), 0);
	twice = encoded(t, v);
	assert_true(json_equal(once, twice));
}

static void
round_trip(const char *method, const struct codec_type *t)
{
	unsigned picks = codec_sample_picks(t);

	for (unsigned pick = 0; pick < 2 * picks; pick++) {
		CLEANUP(json_unrefp) json_t *sample = codec_sample(t, pick & 1, pick / 2);

		check_round_trip(method, t, sample, pick & 1);
	}
}

static void
all_values_go_out_as_they_came_in(void **state)
{
	(void)state;
	for_each_type(round_trip);
}

/* Decodes and expects one issue at ${path}, or none when ${expected} is NULL. */
static void
expect(const char *method, const struct codec_type *t, const json_t *j, int lenient,
    const char *path, const char *expected)
{
	CLEANUP(arena_freep) struct arena *arena = arena_new();
	CLEANUP_FREE void *v = mem_calloc(1, t->size);
	struct codec c;
	int r;

	codec_init(&c, arena, NULL);
	c.lenient = lenient;
	r = codec_decode(&c, t, j, v);
	if (r != (expected == NULL ? 0 : E_PARAMS) || c.nissues != (expected != NULL))
		print_message("%s: %s as %s\n", method, path, err_symbol(r));
	print_issues(method, expected == NULL || c.nissues > 1 ? &c : &(struct codec) { 0 });
	assert_int_equal(c.nissues, expected != NULL);
	if (expected == NULL) {
		assert_int_equal(r, 0);
		return;
	}
	assert_int_equal(r, E_PARAMS);
	assert_string_equal(c.issues[0].path, path);
	assert_string_equal(c.issues[0].expected, expected);
}

static void
spoil_members(const char *method, const struct codec_type *whole, const struct codec_type *t,
    const json_t *sample)
{
	for (size_t i = 0; i < t->nfields; i++) {
		const struct codec_field *f = &t->fields[i];
		CLEANUP_FREE char *name = mem_strndup(f->key + 1, f->key_len - 3u);
		CLEANUP(json_unrefp) json_t *wrong = codec_sample_wrong(f->type);
		CLEANUP(json_unrefp) json_t *bad = json_deep_copy(sample);
		int may_be_null = (f->flags & CODEC_NULLABLE) != 0 ||
		    f->type->kind == CODEC_ANY;

		json_object_del(bad, name);
		expect(method, whole, bad, 0, name,
		    f->flags & CODEC_REQUIRED ? f->type->name : NULL);
		json_object_set_new(bad, name, json_null());
		expect(method, whole, bad, 0, name, may_be_null ? NULL : f->type->name);
		if (wrong == NULL)
			continue;
		json_object_set(bad, name, wrong);
		expect(method, whole, bad, 0, name, f->type->name);
	}
}

static void
spoil(const char *method, const struct codec_type *t)
{
	for (unsigned pick = 0; pick < (t->nvariants == 0 ? 1u : t->nvariants); pick++) {
		CLEANUP(json_unrefp) json_t *sample = codec_sample(t, 1, pick);

		if (t->kind == CODEC_ANY)
			continue;
		spoil_members(
		    method, t, t->nvariants == 0 ? t : t->variants[pick].type, sample);
		json_object_set_new(sample, "unheardOf", json_true());
		expect(method, t, sample, 0, "unheardOf", "absent");
		/* As results and notifications are read. */
		expect(method, t, sample, 1, "", NULL);
	}
}

static void
each_missing_wrong_and_unknown_member_is_named(void **state)
{
	(void)state;
	for_each_type(spoil);
}

static void
check_refs(const json_t *doc, const json_t *j)
{
	const char *key, *ref = json_string_value(json_object_get(j, "$ref"));
	json_t *value;
	size_t i;

	if (ref != NULL) {
		static const char prefix[] = "#/components/schemas/";

		assert_int_equal(strncmp(ref, prefix, strlen(prefix)), 0);
		assert_true(json_is_object(json_object_get(
		    json_object_get(json_object_get(doc, "components"), "schemas"),
		    ref + strlen(prefix))));
	}
	json_object_foreach ((json_t *)(uintptr_t)j, key, value)
		check_refs(doc, value);
	json_array_foreach ((json_t *)(uintptr_t)j, i, value)
		check_refs(doc, value);
}

static const json_t *
method_of(const json_t *doc, const char *name)
{
	json_t *method;
	size_t i;

	json_array_foreach (json_object_get(doc, "methods"), i, method)
		if (strcmp(json_string_value(json_object_get(method, "name")), name) == 0)
			return method;
	return NULL;
}

static void
documents_describe_their_methods_and_those_of_every_actor(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(contracts); i++) {
		CLEANUP(json_unrefp) json_t *doc = NULL;
		const char *text = contracts[i].document();

		assert_int_equal(json_text_parse(text, strlen(text), 64, &doc), 0);
		assert_string_equal(
		    json_string_value(json_object_get(doc, "openrpc")), "1.2.6");
		check_refs(doc, doc);
		for (size_t k = 0; k < *contracts[i].nrows; k++)
			assert_non_null(method_of(doc, contracts[i].rows[k].name));
		assert_non_null(method_of(doc, "rpc.discover"));
		assert_non_null(method_of(doc, "hello"));
		assert_non_null(method_of(doc, "actor.info"));
	}
}

static void
every_failed_allocation_is_told(void **state)
{
	const struct codec_type *t = &project_claim_run_result_codec;
	CLEANUP(json_unrefp) json_t *sample = codec_sample(t, 1, 0);
	long n;

	(void)state;
	for (n = 0;; n++) {
		CLEANUP(arena_freep) struct arena *arena = NULL;
		CLEANUP(buf_done) struct buf out = BUF_INIT;
		struct project_claim_run_result result;
		struct codec c;
		int r = E_NOMEM;

		mem_fault_arm(n);
		arena = arena_new();
		if (arena != NULL) {
			codec_init(&c, arena, NULL);
			r = codec_decode(&c, t, sample, &result);
			if (r == 0)
				r = codec_encode(&out, t, &result);
		}
		if (!mem_fault_hit())
			break;
		assert_int_equal(r, E_NOMEM);
	}
	mem_fault_arm(-1);
	assert_true(n > 3);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_values_go_out_as_they_came_in),
		cmocka_unit_test(each_missing_wrong_and_unknown_member_is_named),
		cmocka_unit_test(documents_describe_their_methods_and_those_of_every_actor),
		cmocka_unit_test(every_failed_allocation_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
