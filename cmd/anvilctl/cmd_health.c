/* anvilctl health: what keeps runs from starting, or actors from living. */
#include <stdio.h>

#include "cmd/anvilctl/commands.h"
#include "cmd/anvilctl/ctl.h"
#include "gen/ingress.h"
#include "gen/supervisor.h"
#include "lib/wire/wire.h"

#define NOTE_SIZE 160

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
	for (size_t i = 0; i < h->nnotes; i++)
		print_note(ctl, h->notes[i]);
}

/* What the edge alone knows; "" when it is well or does not answer, which is told of the actor. */
static void
note_of_owners(struct ctl *ctl, char note[NOTE_SIZE])
{
	struct index_status_params params = { 0 };
	struct index_status_result res = { .kind = 0 };

	note[0] = '\0';
	ctl->deadline_ms = CTL_QUICK_DEADLINE_MS;
	if (CTL_TRY(ctl, "ingress", index_status, &params, &res) == 0 &&
	    res.u.state.owners_missing > 0)
		(void)snprintf(note, NOTE_SIZE,
		    "projects that belong to no account: %lld; `anvilctl check` names them, and "
		    "what helps",
		    (long long)res.u.state.owners_missing);
}

static int
print_json(const struct ctl *ctl, const json_t *answer, const char *note)
{
	CLEANUP(json_unrefp) json_t *all = json_deep_copy(answer);

	if (all == NULL ||
	    (note[0] != '\0' &&
		json_array_append_new(json_object_get(all, "notes"), json_string(note)) < 0))
		return ctl_fail_nomem();
	return ctl_print_json(ctl, all);
}

static int
health_run(struct ctl *ctl, const struct args *args)
{
	struct supervisor_health_params params = { 0 };
	struct supervisor_health_result health = { .nnotes = 0 };
	const json_t *answer;
	char note[NOTE_SIZE];
	int r = ctl_open(ctl);

	(void)args;
	if (r == 0)
		r = CTL_CALL(ctl, "supervisor", supervisor_health, &params, &health);
	if (r != 0)
		return r;
	answer = ctl->reply.result;
	note_of_owners(ctl, note);
	if (ctl->json) {
		r = print_json(ctl, answer, note);
	} else {
		print_health(ctl, &health);
		if (note[0] != '\0')
			print_note(ctl, note);
	}
	if (r != 0)
		return r;
	return health.status == HEALTH_STATUS_OK ? CTL_OK : CTL_REFUSED;
}

const struct command command_health = {
	.name = "health",
	.words = "",
	.summary = "tells whether all is well, and what is not",
	.more = "Exits with 1 when something is not.",
	.run = health_run,
};
