/* anvilctl health: what keeps runs from starting, or actors from living. */
#include <stdio.h>

#include "cmd/anvilctl/commands.h"
#include "cmd/anvilctl/ctl.h"
#include "gen/supervisor.h"

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
	for (size_t i = 0; i < h->nnotes; i++) {
		(void)printf("note: ");
		ctl_print_tone(ctl, TONE_PLAIN, h->notes[i]);
		(void)printf("\n");
	}
}

static int
health_run(struct ctl *ctl, const struct args *args)
{
	struct supervisor_health_params params = { 0 };
	struct supervisor_health_result health = { .nnotes = 0 };
	int r = ctl_open(ctl);

	(void)args;
	if (r == 0)
		r = CTL_CALL(ctl, "supervisor", supervisor_health, &params, &health);
	if (r != 0)
		return r;
	if (ctl->json)
		r = ctl_print_json(ctl, NULL);
	else
		print_health(ctl, &health);
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
