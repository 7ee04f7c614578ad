/* What each actor says of its own store. */
#include <string.h>

#include "cmd/anvilctl/check.h"
#include "lib/base/err.h"

/* A run may end at any moment. */
static int
is_resident(const char *address)
{
	return strncmp(address, "run_", 4) != 0 && strncmp(address, "run/", 4) != 0;
}

static void
ask(struct look *l, const char *address)
{
	struct actor_check_params params = { .fix = 0 };
	struct actor_check_result said = { .nproblems = 0 };
	int r;

	l->ctl->deadline_ms = CHECK_DEADLINE_MS;
	r = CTL_TRY(l->ctl, address, actor_check, &params, &said);
	l->ctl->deadline_ms = CTL_DEADLINE_MS;
	if (r < 0 && is_resident(address))
		finding_add(l->found, "actor_unreachable", address, address,
		    "cannot be looked at: %s; `anvilctl health` names the cause and the remedy",
		    err_text(r));
	for (size_t i = 0; r == 0 && i < said.nproblems; i++)
		finding_add_own(l->found, address, &said.problems[i]);
	l->found->left_out += (size_t)said.left_out;
}

void
look_actors(struct look *l)
{
	for (size_t i = 0; i < l->actors.nactors; i++)
		ask(l, l->actors.actors[i].address);
}
