/* anvilctl health: what keeps runs from starting, or actors from living. */
#include <stdio.h>

#include "cmd/anvilctl/commands.h"
#include "cmd/anvilctl/ctl.h"
#include "cmd/anvilctl/keys_text.h"
#include "gen/ingress.h"
#include "gen/project.h"
#include "gen/supervisor.h"
#include "lib/base/err.h"
#include "lib/wire/wire.h"

#define NOTE_SIZE    512
#define PROJECTS_MAX 500 /* of a shard; who moves those is told of more */

static void
print_note(const struct ctl *ctl, const char *note)
{
	(void)printf("note: ");
	ctl_print_tone(ctl, TONE_PLAIN, note);
	(void)printf("\n");
}

static void
print_health(const struct ctl *ctl, const struct supervisor_health_result *h)
{
	const char *status = health_status_name(h->status);
	char space[TEXT_SIZE], least[TEXT_SIZE];

	text_bytes(h->free_bytes, space);
	text_bytes(h->min_free_bytes, least);
	ctl_print_tone(ctl, text_tone(status), status);
	(void)printf("\nslots: %lld of %lld used, %lld waiting%s\n", (long long)h->slots_used,
	    (long long)h->slots_max, (long long)h->slots_waiting,
	    h->draining ? "; draining, `anvilctl resume` ends that" : "");
	(void)printf("disk: %s free, runs need %s\n", space, least);
	if (h->pool_failures > 0)
		(void)printf(
		    "starts that failed in a row: %lld\n", (long long)h->pool_failures);
	for (size_t i = 0; i < h->nreasons; i++) {
		(void)printf("reason: ");
		ctl_print_tone(ctl, TONE_BAD, health_reason_name(h->reasons[i]));
		(void)printf("\n");
	}
}

/* ---- what others know ---- */

static int
add_note(json_t *notes, const char *text)
{
	return json_array_append_new(notes, json_string(text)) < 0 ? ctl_fail_nomem() : 0;
}

/* What the edge alone knows; nothing when it does not answer, which is told of the actor. */
static int
add_owners(struct ctl *ctl, json_t *notes)
{
	struct index_status_params params = { 0 };
	struct index_status_result res = { .kind = 0 };
	char note[NOTE_SIZE];

	if (CTL_TRY(ctl, "ingress", index_status, &params, &res) < 0 ||
	    res.u.state.owners_missing == 0)
		return 0;
	(void)snprintf(note, sizeof(note),
	    "projects that belong to no account: %lld; `anvilctl check` names them, and "
	    "what helps",
	    (long long)res.u.state.owners_missing);
	return add_note(notes, note);
}

/* Secrets that the keys file does not open; what cannot be asked is told of the actor. */
static int
add_keys(struct ctl *ctl, json_t *notes)
{
	struct ingress_keys_status_params params = { 0 };
	struct ingress_keys_status_result res = { .kind = 0 };
	const struct ingress_keys_status_status *s = &res.u.status;
	int r = 0;

	if (CTL_TRY(ctl, "ingress", ingress_keys_status, &params, &res) < 0)
		return 0;
	for (size_t i = 0; r == 0 && i < s->nversions; i++) {
		CLEANUP(buf_done) struct buf text = BUF_INIT;

		if (s->versions[i].present)
			continue;
		keys_missing(&s->versions[i], &text);
		r = buf_cstr(&text) != NULL ? add_note(notes, buf_cstr(&text))
					    : ctl_fail_nomem();
	}
	if (r == 0 && keys_nother(s) > 0) {
		CLEANUP(buf_done) struct buf text = BUF_INIT;

		keys_other(keys_nother(s), &text);
		r = buf_cstr(&text) != NULL ? add_note(notes, buf_cstr(&text))
					    : ctl_fail_nomem();
	}
	return r;
}

/* A shard that the next start is to do without. */
static int
add_surplus_shard(struct ctl *ctl, json_t *notes, long long shard, long long wanted)
{
	struct project_list_ledger_params params = { .limit = PROJECTS_MAX };
	struct project_list_ledger_result res = { .nprojects = 0 };
	char address[RPC_ADDRESS_SIZE], note[NOTE_SIZE], wants[TEXT_SIZE];
	int r, holds = 0;

	(void)snprintf(wants, sizeof(wants), "%lld shard%s", wanted, wanted == 1 ? "" : "s");
	(void)snprintf(address, sizeof(address), "project/%lld", shard);
	r = CTL_TRY(ctl, address, project_list_ledger, &params, &res);
	if (r < 0) {
		(void)snprintf(note, sizeof(note),
		    "the configuration wants %s, and %s does not tell whether it holds "
		    "projects: %s",
		    wants, address, err_text(r));
		return add_note(notes, note);
	}
	for (size_t i = 0; r == 0 && i < res.nprojects; i++) {
		const struct project_config *c = res.projects[i].config;

		if (c == NULL)
			continue; /* has moved away */
		if (!holds)
			(void)snprintf(note, sizeof(note),
			    "the configuration wants %s, and %s holds projects: anvild "
			    "will not start again before they are moved",
			    wants, address);
		if (!holds)
			r = add_note(notes, note);
		holds = 1;
		(void)snprintf(note, sizeof(note), "anvilctl project move %s/%s %lld",
		    c->owner_slug, c->project_slug, (long long)i % wanted);
		if (r == 0)
			r = add_note(notes, note);
	}
	return r;
}

static int
add_surplus(struct ctl *ctl, json_t *notes, long long wanted)
{
	struct supervisor_list_params params = { 0 };
	struct supervisor_list_result actors = { .nactors = 0 };
	int r = CTL_CALL(ctl, "supervisor", supervisor_list, &params, &actors);

	for (size_t i = 0; r == 0 && i < actors.nactors; i++) {
		long long shard;

		if (sscanf(actors.actors[i].address, "project/%lld", &shard) == 1 &&
		    shard >= wanted)
			r = add_surplus_shard(ctl, notes, shard, wanted);
	}
	return r;
}

static int
tell(struct ctl *ctl, const struct supervisor_health_result *health, json_t *all)
{
	json_t *notes = json_object_get(all, "notes"), *note;
	size_t i;
	int r;

	ctl->deadline_ms = CTL_QUICK_DEADLINE_MS;
	r = add_owners(ctl, notes);
	if (r == 0)
		r = add_keys(ctl, notes);
	if (r == 0 && health->has_shards_wanted)
		r = add_surplus(ctl, notes, health->shards_wanted);
	if (r != 0)
		return r;
	if (ctl->json)
		return ctl_print_json(ctl, all);
	print_health(ctl, health);
	json_array_foreach (notes, i, note)
		print_note(ctl, json_string_value(note));
	return 0;
}

static int
health_run(struct ctl *ctl, const struct args *args)
{
	struct supervisor_health_params params = { 0 };
	struct supervisor_health_result health = { .nnotes = 0 };
	CLEANUP(json_unrefp) json_t *all = NULL;
	int r = ctl_open(ctl);

	(void)args;
	if (r == 0)
		r = CTL_CALL(ctl, "supervisor", supervisor_health, &params, &health);
	if (r != 0)
		return r;
	all = json_deep_copy(ctl->reply.result);
	r = all != NULL ? tell(ctl, &health, all) : ctl_fail_nomem();
	if (r != 0)
		return r;
	return health.status == HEALTH_STATUS_OK ? CTL_OK : CTL_REFUSED;
}

const struct command command_health = {
	.name = "health",
	.words = "",
	.summary = "tells whether all is well, and what is not",
	.more =
	    "With the cause and what helps.  After a SIGHUP with fewer shards than there are it lists\n"
	    "the projects that have to move before anvild is restarted, each with its command.\n"
	    "Exits with 1 when something is not well.",
	.run = health_run,
};
