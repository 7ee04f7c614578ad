/*
 * test/fuzz/fuzz_rpc_params.c -- any JSON as the params or the result of any method of any actor.
 *
 * The first byte picks the method, the second params (even) or result (odd, read leniently);
 * the rest is the JSON text.  What is accepted must be accepted again after it was written, and
 * then come out the same; what is refused must say why.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gen/actor.h"
#include "gen/http.h"
#include "gen/ingress.h"
#include "gen/project.h"
#include "gen/run.h"
#include "gen/supervisor.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct codec_type *
pick(uint8_t method, int result)
{
	static const struct {
		const struct rpc_contract *rows;
		const size_t *n;
	} contracts[] = {
		{ actor_contract, &actor_contract_count },
		{ supervisor_contract, &supervisor_contract_count },
		{ ingress_contract, &ingress_contract_count },
		{ project_contract, &project_contract_count },
		{ run_contract, &run_contract_count },
	};
	static const struct codec_type *const bodies[] = {
		&http_login_body_codec,
		&http_accept_invite_body_codec,
		&http_create_invite_body_codec,
		&http_create_project_body_codec,
		&http_update_project_body_codec,
		&http_trigger_run_body_codec,
	};
	size_t at = method;

	for (size_t i = 0; i < ARRAY_LEN(contracts); i++) {
		if (at < *contracts[i].n)
			return result ? contracts[i].rows[at].result
				      : contracts[i].rows[at].params;
		at -= *contracts[i].n;
	}
	return at < ARRAY_LEN(bodies) && !result ? bodies[at] : NULL;
}

static void
check_issues(const struct codec *c)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	CLEANUP(json_unrefp) json_t *j = NULL;

	must(c->nissues > 0 && c->nbad >= c->nissues);
	must(codec_issues_text(c, &text) == 0);
	must(json_text_parse((const char *)text.data, text.len, 8, &j) == 0);
	for (size_t i = 0; i < c->nissues; i++)
		must(c->issues[i].expected[0] != '\0' && c->issues[i].message[0] != '\0');
}

/* Writes ${v} and reads it back; the text. */
static char *
through(struct codec *c, const struct codec_type *t, void *v, json_t **ret_json)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;

	must(codec_encode(&text, t, v) == 0);
	must(json_text_parse((const char *)text.data, text.len, 64, ret_json) == 0);
	must(codec_decode(c, t, *ret_json, v) == 0);
	return buf_take_cstr(&text);
}

/* A repository's URL is normalised once: "b.git.git" would lose more each time. */
static int
normalises(const struct codec_type *t)
{
	for (size_t i = 0; i < t->nfields; i++) {
		const char *rule = t->fields[i].type->rule;

		if (rule != NULL && strcmp(rule, "RepositoryUrl") == 0)
			return 1;
	}
	return 0;
}

static void
run(const struct codec_type *t, const json_t *j, int lenient)
{
	CLEANUP(arena_freep) struct arena *arena = arena_new();
	CLEANUP(json_unrefp) json_t *once = NULL, *twice = NULL;
	CLEANUP_FREE char *first = NULL, *second = NULL;
	CLEANUP_FREE void *v = mem_calloc(1, t->size);
	struct codec c;
	int r;

	codec_init(&c, arena, NULL);
	c.lenient = lenient;
	r = codec_decode(&c, t, j, v);
	must(r == 0 || r == E_PARAMS || (r == E_UNSUPPORTED && lenient));
	if (r == E_PARAMS)
		check_issues(&c);
	if (r != 0 || normalises(t))
		return;
	/* What is written must pass the strict reader. */
	c.lenient = 0;
	first = through(&c, t, v, &once);
	second = through(&c, t, v, &twice);
	must(strcmp(first, second) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(json_unrefp) json_t *j = NULL;
	const struct codec_type *t;

	if (size < 2)
		return 0;
	t = pick(data[0], data[1] & 1);
	if (t == NULL || json_text_parse((const char *)data + 2, size - 2, 64, &j) < 0)
		return 0;
	run(t, j, data[1] & 1);
	return 0;
}
