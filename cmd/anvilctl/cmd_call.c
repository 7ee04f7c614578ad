/* anvilctl call ACTOR [METHOD [JSON]]: any RPC, typed by what the actor says of itself. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/anvilctl/commands.h"
#include "cmd/anvilctl/params.h"
#include "cmd/anvilctl/resolve.h"
#include "cmd/anvilctl/show.h"
#include "lib/base/err.h"

static int
discover(struct ctl *ctl, const char *address, const json_t **ret_document)
{
	int r = ctl_explain(ctl, address,
	    client_call(
		ctl->client, address, "rpc.discover", NULL, ctl->deadline_ms, &ctl->reply));

	*ret_document = ctl->reply.result;
	return r;
}

static int
list_methods(const struct ctl *ctl, const json_t *document)
{
	static const char *const heads[] = { "METHOD", "PARAMETERS", "DOES" };
	CLEANUP(table_freep) struct table *t = table_new(heads, ARRAY_LEN(heads));
	const json_t *methods = json_object_get(document, "methods"), *m;
	size_t i;

	if (ctl->json)
		return ctl_print_json(ctl, methods);
	if (t == NULL)
		return ctl_fail_nomem();
	json_array_foreach (methods, i, m) {
		CLEANUP(buf_done) struct buf params = BUF_INIT;

		if (!params_may_call(m) || params_method(document, params_text(m, "name")) != m)
			continue;
		(void)params_describe(m, &params);
		table_add(t, TONE_STRONG, "%s", params_text(m, "name"));
		table_add(
		    t, TONE_PLAIN, "%s", buf_cstr(&params) != NULL ? (char *)params.data : "");
		table_add(t, TONE_PLAIN, "%s", params_text(m, "summary"));
	}
	return ctl_print_table(ctl, t, "no methods");
}

static int
call_method(struct ctl *ctl, const char *address, const json_t *method, const json_t *params)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	int r;

	if (json_text_dump(&text, params) < 0)
		return ctl_fail_nomem();
	r = ctl_explain(ctl, address,
	    client_call(ctl->client, address, params_text(method, "name"), &text,
		ctl->deadline_ms, &ctl->reply));
	if (r != 0 || ctl->json)
		return r != 0 ? r : ctl_print_json(ctl, NULL);
	if (show_json(ctl->reply.result, &out) < 0)
		return ctl_fail_nomem();
	(void)printf("%.*s\n", (int)out.len, (const char *)out.data);
	return CTL_OK;
}

static int
call_run(struct ctl *ctl, const struct args *args)
{
	CLEANUP(json_unrefp) json_t *params = NULL;
	char address[RPC_ADDRESS_SIZE], why[PARAMS_WHY_SIZE];
	struct params_of of;
	int r = resolve_actor(ctl, args->words[0], address);

	if (r == 0)
		r = discover(ctl, address, &of.document);
	if (r != 0)
		return r;
	if (args->nwords == 1)
		return list_methods(ctl, of.document);
	of.method = params_method(of.document, args->words[1]);
	if (of.method == NULL)
		return ctl_fail("%s has no method \"%s\"; `anvilctl call %s` lists them",
		    address, args->words[1], args->words[0]);
	if (params_read(&of, args->words + 2, args->nwords - 2, &params, why) < 0)
		return ctl_fail("%s: %s", args->words[1], why);
	return call_method(ctl, address, of.method, params);
}

const struct command command_call = {
	.name = "call",
	.words = "ACTOR [METHOD [JSON]]",
	.summary = "makes one call; without a method, lists what can be called",
	.more =
	    "Parameters are one JSON object, or NAME=VALUE words that are typed by the actor's\n"
	    "own description: `anvilctl call supervisor supervisor.history limit=5`.",
	.min_words = 1,
	.max_words = ARGS_WORDS_MAX,
	.run = call_run,
};
