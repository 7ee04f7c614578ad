#include "test/soak/plan.h"

#include <stdlib.h>

#include "lib/base/mem.h"
#include "test/soak/dice.h"

#define FIRST_MS  1500
#define PAUSE_MS  1300 /* between two actions, on average            */
#define LAST_MS   1000 /* before the end nothing begins any more     */
#define CLOCK_MAX 5400000L

const char *const action_names[NACTIONS] = { "kill", "stop", "full", "io", "sync", "slow",
	"disk", "clock", "hup", "drain", "restart", "shut", "power", "move", "reindex",
	"backup", "mend" };

/* Shares of the actions and of their targets. */
static const struct {
	enum action action;
	enum proc_role target;
	unsigned share;
	long from, to; /* of its length */
} table[] = {
	{ ACT_KILL, PROC_SUPERVISOR, 5, 0, 0 },
	{ ACT_KILL, PROC_INGRESS, 8, 0, 0 },
	{ ACT_KILL, PROC_SHARD, 12, 0, 0 },
	{ ACT_KILL, PROC_RUN, 14, 0, 0 },
	{ ACT_KILL, PROC_SERVE, 5, 0, 0 },
	{ ACT_KILL, PROC_CHECKOUT, 4, 0, 0 },
	{ ACT_KILL, PROC_STEP, 6, 0, 0 },
	{ ACT_KILL, PROC_GATE, 3, 0, 0 },
	{ ACT_STOP, PROC_SUPERVISOR, 2, 100, 3000 },
	{ ACT_STOP, PROC_INGRESS, 3, 100, 3000 },
	{ ACT_STOP, PROC_SHARD, 4, 100, 4000 },
	{ ACT_STOP, PROC_RUN, 4, 100, 6000 },
	{ ACT_STOP, PROC_SUPERVISOR, 1, 5000, 40000 },
	{ ACT_STOP, PROC_INGRESS, 1, 5000, 15000 },
	{ ACT_STOP, PROC_SHARD, 1, 5000, 40000 },
	{ ACT_STOP, PROC_RUN, 2, 31000, 40000 },
	{ ACT_FULL, PROC_SUPERVISOR, 1, 200, 4000 },
	{ ACT_FULL, PROC_INGRESS, 1, 200, 4000 },
	{ ACT_FULL, PROC_SHARD, 2, 200, 4000 },
	{ ACT_FULL, PROC_RUN, 2, 200, 4000 },
	{ ACT_IO, PROC_SUPERVISOR, 1, 50, 1500 },
	{ ACT_IO, PROC_INGRESS, 1, 50, 1500 },
	{ ACT_IO, PROC_SHARD, 2, 50, 1500 },
	{ ACT_IO, PROC_RUN, 1, 50, 1500 },
	{ ACT_SYNC, PROC_INGRESS, 1, 50, 1500 },
	{ ACT_SYNC, PROC_SHARD, 2, 50, 1500 },
	{ ACT_SYNC, PROC_RUN, 1, 50, 1500 },
	{ ACT_SLOW, PROC_SUPERVISOR, 1, 1000, 8000 },
	{ ACT_SLOW, PROC_INGRESS, 1, 1000, 8000 },
	{ ACT_SLOW, PROC_SHARD, 2, 1000, 8000 },
	{ ACT_SLOW, PROC_RUN, 1, 1000, 8000 },
	{ ACT_DISK, PROC_SUPERVISOR, 3, 500, 8000 },
	{ ACT_CLOCK, PROC_SUPERVISOR, 3, -60000, 60000 },
	{ ACT_CLOCK, PROC_SUPERVISOR, 2, -1800000, 1800000 },
	{ ACT_HUP, PROC_SUPERVISOR, 2, 0, 0 },
	{ ACT_DRAIN, PROC_SUPERVISOR, 2, 300, 5000 },
	{ ACT_RESTART, PROC_SUPERVISOR, 4, 0, 0 },
	{ ACT_SHUT, PROC_SUPERVISOR, 1, 100, 800 },
	{ ACT_POWER, PROC_SUPERVISOR, 2, 0, 0 },
	{ ACT_KILL, PROC_CTL, 1, 0, 0 },
	{ ACT_KILL, PROC_ERRAND, 1, 0, 0 },
	{ ACT_MOVE, PROC_CTL, 5, 1000, 20000 },
	{ ACT_REINDEX, PROC_CTL, 2, 1000, 20000 },
	{ ACT_BACKUP, PROC_CTL, 1, 500, 10000 },
	{ ACT_MEND, PROC_CTL, 1, 2000, 20000 },
};

static struct act
draw(struct dice *d)
{
	unsigned all = 0, at;
	size_t i = 0;

	for (size_t k = 0; k < ARRAY_LEN(table); k++)
		all += table[k].share;
	at = dice_below(d, all);
	while (at >= table[i].share)
		at -= table[i++].share;
	return (struct act) { .action = table[i].action,
		.target = table[i].target,
		.length = dice_between(d, table[i].from, table[i].to),
		.pick = dice_next(d) >> 40 };
}

/* Sessions and what is kept for hours must not end by it. */
static void
bound_clock(struct act *a, long *shift)
{
	if (a->action != ACT_CLOCK)
		return;
	if (labs(*shift + a->length) > CLOCK_MAX)
		a->length = -*shift;
	*shift += a->length;
}

struct plan
plan_make(uint64_t seed, long seconds)
{
	struct dice d = dice_of(seed, 1);
	struct plan p = { .n = 0 };
	long at = FIRST_MS, shift = 0;
	size_t cap = 0;

	while (at < seconds * 1000 - LAST_MS) {
		if (p.n == cap) {
			cap = cap * 2 + 64;
			p.acts = mem_realloc(p.acts, cap * sizeof(*p.acts));
			must(p.acts != NULL);
		}
		p.acts[p.n] = draw(&d);
		p.acts[p.n].at_ms = at;
		bound_clock(&p.acts[p.n++], &shift);
		/* Half of them come close behind another, where two faults meet. */
		at += dice_below(&d, 2) ? dice_between(&d, 20, 400)
					: dice_between(&d, 400, 4 * PAUSE_MS - 800);
	}
	return p;
}

void
plan_print(const struct plan *p, FILE *f)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct act *a = &p->acts[i];

		(void)fprintf(f, "%ld %s %s %ld %llu\n", a->at_ms, action_names[a->action],
		    role_names[a->target], a->length, (unsigned long long)a->pick);
	}
}

void
plan_done(struct plan *p)
{
	free(p->acts);
	p->acts = NULL;
	p->n = 0;
}
