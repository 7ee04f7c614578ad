/*
 * test/unit/test_gen_previous.c -- a run that has started under the previous release settles with
 * this one (design 2): its messages, recorded then, are understood now, and ours would be then.
 *
 * The file has a line for each message: who it is of, the method, the JSON.  With ANVIL_RECORD
 * in the environment this program writes such a file instead of reading one: that is done by
 * the program of a release, for the next one.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/actor.h"
#include "gen/ingress.h"
#include "gen/project.h"
#include "gen/run.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/wire/wire.h"
#include "test/support/codec_sample.h"
#include "test/support/unit.h"

#define RECORDED "test/wire/0.1.0.txt"
#define FILE_MAX (4 << 20)

/* What a run says to others, and what others say to a run. */
static const char *const said_by_runs[] = { "project.claimRun", "project.heartbeat",
	"project.recordCommit", "project.releaseRun", "project.finalizeRun", "run.events" };
static const char *const said_to_runs[] = { "run.getDetail", "run.readLog", "run.cancel",
	"run.release", "run.conclude", "run.subscribe", "run.ack", "run.unsubscribe",
	"actor.info", "actor.stats", "actor.peers", "actor.setLogLevel" };

static const struct rpc_contract *
find_in(const struct rpc_contract *rows, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(rows[i].name, name) == 0)
			return &rows[i];
	return NULL;
}

static const struct rpc_contract *
find(const char *name)
{
	const struct rpc_contract *row = find_in(
	    project_contract, project_contract_count, name);

	if (row == NULL)
		row = find_in(run_contract, run_contract_count, name);
	if (row == NULL)
		row = find_in(actor_contract, actor_contract_count, name);
	if (row == NULL)
		row = find_in(ingress_contract, ingress_contract_count, name);
	if (row == NULL)
		fail_msg("%s is not in the contract any more", name);
	return row;
}

/* ---- recording ---- */

static void
record_type(FILE *f, const char *what, const char *method, const struct codec_type *t)
{
	unsigned picks = codec_sample_picks(t);

	for (unsigned pick = 0; pick < 2 * picks; pick++) {
		CLEANUP(json_unrefp) json_t *sample = codec_sample(t, pick & 1, pick / 2);
		char *text = json_dumps(sample, JSON_COMPACT | JSON_SORT_KEYS);

		(void)fprintf(
		    f, "%s-%s %s %s\n", what, pick & 1 ? "full" : "least", method, text);
		free(text);
	}
}

static int
record(const char *path)
{
	FILE *f = fopen(path, "w");

	if (f == NULL)
		return 1;
	for (size_t i = 0; i < ARRAY_LEN(said_by_runs); i++) {
		const struct rpc_contract *row = find(said_by_runs[i]);

		record_type(f, "asked", row->name, row->params);
		if (row->result != NULL)
			record_type(f, "given", row->name, row->result);
	}
	for (size_t i = 0; i < ARRAY_LEN(said_to_runs); i++) {
		const struct rpc_contract *row = find(said_to_runs[i]);

		record_type(f, "taken", row->name, row->params);
		if (row->result != NULL)
			record_type(f, "told", row->name, row->result);
	}
	return fclose(f) != 0;
}

/* ---- reading ---- */

struct message {
	char what[16], method[64];
	json_t *json;
};

struct recorded {
	struct buf text;
	char *at;
};

static int
setup(void **state)
{
	struct recorded *all = mem_calloc(1, sizeof(*all));

	assert_non_null(all);
	if (io_read_file(AT_FDCWD, RECORDED, FILE_MAX, &all->text) < 0)
		fail_msg("%s cannot be read; tests run in the root of the source", RECORDED);
	assert_non_null(buf_cstr(&all->text));
	all->at = (char *)all->text.data;
	*state = all;
	return 0;
}

static int
teardown(void **state)
{
	struct recorded *all = *state;

	buf_done(&all->text);
	free(all);
	return 0;
}

/* Messages whose first word begins with ${what}; 0: no more. */
static int
next(struct recorded *all, const char *what, struct message *ret)
{
	char *line, *json;

	while ((line = strsep(&all->at, "\n")) != NULL) {
		if (strncmp(line, what, strlen(what)) != 0)
			continue;
		assert_int_equal(sscanf(line, "%15s %63s", ret->what, ret->method), 2);
		json = strchr(strchr(line, ' ') + 1, ' ') + 1;
		assert_int_equal(json_text_parse(json, strlen(json), 64, &ret->json), 0);
		return 1;
	}
	return 0;
}

static void
is_understood(const struct message *m, const struct codec_type *t, int lenient)
{
	CLEANUP(arena_freep) struct arena *arena = arena_new();
	CLEANUP_FREE void *v = mem_calloc(1, t->size);
	struct codec c;

	codec_init(&c, arena, NULL);
	c.lenient = lenient;
	if (codec_decode(&c, t, m->json, v) < 0)
		fail_msg("%s of %s: %s: expected %s", m->what, m->method,
		    c.nissues != 0 ? c.issues[0].path : "?",
		    c.nissues != 0 ? c.issues[0].expected : "?");
}

static void
what_runs_ask_is_understood(void **state)
{
	struct message m;
	int n = 0;

	for (; next(*state, "asked", &m); n++) {
		/* Only run.events is a notification: unknown members are passed over in it. */
		is_understood(&m, find(m.method)->params, find(m.method)->result == NULL);
		json_decref(m.json);
	}
	assert_true(n > 10);
}

static void
what_runs_answer_is_understood(void **state)
{
	struct message m;
	int n = 0;

	for (; next(*state, "told", &m); n++) {
		is_understood(&m, find(m.method)->result, 1);
		json_decref(m.json);
	}
	assert_true(n > 10);
}

/* The kind of a result, or of one part of what is told; "" when it has none. */
static const char *
kind_of(const json_t *json)
{
	const json_t *kind = json_object_get(json, "kind");

	return json_is_string(kind) ? json_string_value(kind) : "";
}

/* The new message of that kind, with all that it may have or with the least. */
static json_t *
ours(const struct codec_type *t, int full, const char *kind)
{
	for (unsigned pick = 0; pick < codec_sample_picks(t); pick++) {
		json_t *sample = codec_sample(t, full, pick);

		if (strcmp(kind_of(sample), kind) == 0)
			return sample;
		json_decref(sample);
	}
	return NULL;
}

/* Requests are strict: a member that a run of then does not know would be refused. */
static void
what_runs_are_asked_has_nothing_that_they_do_not_know(void **state)
{
	struct message m;
	int n = 0;

	for (; next(*state, "taken-full", &m); n++) {
		CLEANUP(json_unrefp) json_t *sample = ours(find(m.method)->params, 1, "");
		const char *key;
		json_t *value;

		assert_non_null(sample);
		json_object_foreach (sample, key, value)
			if (json_object_get(m.json, key) == NULL)
				fail_msg("%s: runs do not know \"%s\"", m.method, key);
		json_decref(m.json);
	}
	assert_true(n > 5);
}

/* Of a result they need what there always was. */
static void
what_runs_are_answered_has_all_that_they_need(void **state)
{
	struct message m;
	int n = 0;

	for (; next(*state, "given-least", &m); n++) {
		CLEANUP(json_unrefp)
		json_t *sample = ours(find(m.method)->result, 0, kind_of(m.json));
		const char *key;
		json_t *value;

		if (sample == NULL)
			fail_msg("%s: there is no \"%s\" any more", m.method, kind_of(m.json));
		json_object_foreach (m.json, key, value)
			if (json_object_get(sample, key) == NULL)
				fail_msg("%s: runs need \"%s\"", m.method, key);
		json_decref(m.json);
	}
	assert_true(n > 5);
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(what_runs_ask_is_understood),
		TEST(what_runs_answer_is_understood),
		TEST(what_runs_are_asked_has_nothing_that_they_do_not_know),
		TEST(what_runs_are_answered_has_all_that_they_need),
	};

	if (getenv("ANVIL_RECORD") != NULL)
		return record(getenv("ANVIL_RECORD"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
