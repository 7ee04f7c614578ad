#include "cmd/anvil-ingress/accepted.h"

#include "cmd/anvil-ingress/rows.h"
#include "lib/base/crash.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

#define APART_MS 50  /* between two of our own commits for such rows */
#define ROWS_MAX 256 /* so many do not wait any longer               */

struct accepted {
	struct ingress *in;
	struct actor_timer *timer;
	struct mono_time last; /* When rows went in.          */
	struct arena *arena;   /* Owned: texts of the rows.   */
	size_t n;
	struct run_row rows[ROWS_MAX];
};

static void
on_timer(void *arg)
{
	accepted_flush(arg);
}

struct accepted *
accepted_new(struct ingress *in)
{
	struct accepted *a = mem_calloc(1, sizeof(*a));

	if (a == NULL)
		return NULL;
	a->in = in;
	a->arena = arena_new();
	a->timer = actor_timer_new(in->actor, on_timer, a);
	return a->arena != NULL && a->timer != NULL ? a : accepted_free(a);
}

struct accepted *
accepted_free(struct accepted *a)
{
	if (a == NULL)
		return NULL;
	a->timer = actor_timer_free(a->timer);
	a->arena = arena_free(a->arena);
	free(a);
	return NULL;
}

static int
add_turn(void *arg, struct turn *t)
{
	const struct accepted *a = arg;
	int r = 0;

	for (size_t i = 0; i < a->n && r == 0; i++) {
		struct index_run row = rows_index_run(&a->rows[i]);

		r = index_run_add_if_absent(t->store, &row);
	}
	return r;
}

void
accepted_flush(struct accepted *a)
{
	int r;

	if (a->n == 0)
		return;
	CRASH_POINT("accepted_flushing");
	r = actor_turn(a->in->actor, 1, add_turn, a);
	if (r < 0)
		log_event(LOG_LEVEL_WARN, "accepted_rows_lost", LOG_INT("rows", a->n),
		    LOG_STR("errorCode", err_symbol(r)));
	a->n = 0;
	a->last = clock_mono();
	arena_reset(a->arena);
	actor_timer_stop(a->timer);
}

void
accepted_add(struct accepted *a, const struct run_row *row)
{
	int64_t since_ms = mono_diff_ms(a->last, clock_mono());

	if (rows_copy_run(a->arena, row, &a->rows[a->n]) == 0)
		a->n++;
	if (since_ms >= APART_MS || a->n == ROWS_MAX)
		accepted_flush(a);
	else if (!actor_timer_is_set(a->timer) &&
	    actor_timer_set(a->timer, APART_MS - since_ms) < 0)
		accepted_flush(a);
}
