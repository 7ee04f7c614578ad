/* anvilctl version: of this program, and of what runs. */
#include <stdio.h>

#include "cmd/anvilctl/commands.h"
#include "cmd/anvilctl/ctl.h"
#include "gen/actor.h"

/* What the running supervisor says; NULL: none could be asked, which is not told. */
static const char *
ask_running(struct ctl *ctl)
{
	struct actor_info_params params = { 0 };
	struct actor_info_result info = { .pid = 0 };

	ctl->deadline_ms = CTL_QUICK_DEADLINE_MS;
	if (CTL_TRY(ctl, "supervisor", actor_info, &params, &info) != 0)
		return NULL;
	return info.version;
}

static int
version_run(struct ctl *ctl, const struct args *args)
{
	const char *running;
	int r = ctl_open(ctl);

	(void)args;
	running = r == 0 ? ask_running(ctl) : NULL;
	if (ctl->json) {
		CLEANUP(json_unrefp)
		json_t *j = json_pack(
		    "{s:s, s:s?}", "anvilctl", base_version(), "anvild", running);

		return j != NULL ? ctl_print_json(ctl, j) : ctl_fail_nomem();
	}
	(void)printf("anvilctl %s\nanvild %s\n", base_version(),
	    running != NULL ? running : "is not running here");
	return CTL_OK;
}

const struct command command_version = {
	.name = "version",
	.words = "",
	.summary = "tells the version of this program and of the running anvild",
	.run = version_run,
};
