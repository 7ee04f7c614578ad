#include "cmd/anvild/drain.h"

#include "cmd/anvild/runners.h"
#include "cmd/anvild/supervisor.h"
#include "lib/base/log.h"

#define NAME "draining"

static void
change(struct supervisor *s, int draining)
{
	if (s->slots.draining == draining)
		return;
	s->slots.draining = draining;
	log_plain(LOG_LEVEL_INFO, draining ? "drain_began" : "drain_ended");
	runners_wake(s->runners);
}

static void
is_on_disk(void *arg)
{
	change(arg, 1);
}

static void
is_off_disk(void *arg)
{
	change(arg, 0);
}

int
drain_set(struct supervisor *s, struct turn *t, int draining)
{
	CLEANUP(stmt_resetp)
	struct stmt *st = sup_stmt(t, draining ? SUP_SWITCH_ON : SUP_SWITCH_OFF);
	int r = stmt_bind(st, "s", NAME);

	if (r == 0)
		r = stmt_run(st);
	return r < 0 ? r : turn_after_commit(t, draining ? is_on_disk : is_off_disk, s, NULL);
}

static int
recall_turn(void *arg, struct turn *t)
{
	int *draining = arg;
	CLEANUP(stmt_resetp) struct stmt *st = sup_stmt(t, SUP_SWITCH_IS_ON);
	int r = stmt_bind(st, "s", NAME);

	if (r == 0)
		r = stmt_step(st);
	*draining = r == 1;
	return r < 0 ? r : 0;
}

void
drain_recall(struct supervisor *s)
{
	int draining = 0;

	/* A store that cannot be read starts no run either. */
	if (actor_turn(s->actor, 0, recall_turn, &draining) == 0)
		change(s, draining);
}
