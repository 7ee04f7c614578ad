/* What each actor says of its own store. */
#include <string.h>

#include "cmd/anvilctl/check.h"

/* A run may end at any moment. */
static int
is_resident(const char *address)
{
	return strncmp(address, "run_", 4) != 0 && strncmp(address, "run/", 4) != 0;
}

static void
ask(struct look *l, const struct actor_process *a)
{
	const char *address = a->address;
	struct actor_check_params params = { .fix = 0 };
	struct actor_check_result said = { .nproblems = 0 };
	int r;

	l->ctl->deadline_ms = CHECK_DEADLINE_MS;
	r = CTL_TRY(l->ctl, address, actor_check, &params, &said);
	l->ctl->deadline_ms = CTL_DEADLINE_MS;
	if (r < 0 && is_resident(address) && look_failed(l, a, r) < 0)
		l->found->failed = 1;
	for (size_t i = 0; r == 0 && i < said.nproblems; i++)
		finding_add_own(l->found, address, &said.problems[i]);
	l->found->left_out += (size_t)said.left_out;
}

void
look_actors(struct look *l)
{
	for (size_t i = 0; i < l->actors.nactors; i++)
		if (map_get(l->mute, l->actors.actors[i].address) == NULL)
			ask(l, &l->actors.actors[i]);
}
