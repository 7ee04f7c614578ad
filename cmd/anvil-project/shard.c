#include "cmd/anvil-project/shard.h"

#include "cmd/anvil-project/broken.h"
#include "cmd/anvil-project/dispatcher.h"
#include "cmd/anvil-project/intake.h"
#include "cmd/anvil-project/leases.h"
#include "cmd/anvil-project/move.h"
#include "cmd/anvil-project/removal.h"
#include "cmd/anvil-project/syncer.h"
#include "cmd/anvil-project/takeover.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

#define REPAIRS        100 /* of one re-check                     */
#define ACTIVE_ROWS    100 /* of one page                         */
#define PRUNE_EVERY_MS 3600000
#define TIMER_LEAST_MS 10
#define OVERDUE_MS     1000

static void on_pump(void *arg);
static void on_timer(void *arg);

struct rpc_peer *
shard_supervisor(const struct shard *s)
{
	return s->supervisor != NULL ? link_peer(s->supervisor) : NULL;
}

/* ---- links ---- */

static void
on_ingress_up(void *arg, struct link *l, struct rpc_peer *p)
{
	struct shard *s = arg;

	(void)l;
	(void)p;
	moves_wake(s->moves);
	shard_wake(s);
}

static const struct link_ops ingress_ops = { .on_up = on_ingress_up };

struct shard *
shard_new(struct actor *a, int64_t number)
{
	struct shard *s = mem_calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->actor = a;
	s->number = number;
	s->leases = leases_new(s);
	s->dispatcher = dispatcher_new(s);
	s->syncer = syncer_new(s);
	s->takeovers = takeovers_new(s);
	s->removals = removals_new(s);
	s->moves = moves_new(s);
	s->intakes = intakes_new(s);
	s->broken = broken_new();
	s->pump = actor_timer_new(a, on_pump, s);
	s->timer = actor_timer_new(a, on_timer, s);
	s->ingress = actor_link(a, "ingress", &ingress_ops, s);
	if (s->leases == NULL || s->dispatcher == NULL || s->syncer == NULL ||
	    s->takeovers == NULL || s->removals == NULL || s->moves == NULL ||
	    s->intakes == NULL || s->broken == NULL || s->pump == NULL || s->timer == NULL ||
	    s->ingress == NULL)
		return shard_free(s);
	return s;
}

struct shard *
shard_free(struct shard *s)
{
	if (s == NULL)
		return NULL;
	moves_free(s->moves);
	intakes_free(s->intakes);
	takeovers_free(s->takeovers);
	removals_free(s->removals);
	dispatcher_free(s->dispatcher);
	syncer_free(s->syncer);
	leases_free(s->leases);
	broken_free(s->broken);
	actor_timer_free(s->pump);
	actor_timer_free(s->timer);
	free(s);
	return NULL;
}

/* ---- looking what is due ---- */

void
shard_wake(struct shard *s)
{
	(void)actor_timer_set(s->pump, 0);
}

static void
wake(void *arg)
{
	shard_wake(arg);
}

int
shard_wake_after(struct shard *s, struct turn *t)
{
	return turn_after_commit(t, wake, s, NULL);
}

static void
truncate_log(void *arg)
{
	actor_truncate_log(arg);
}

int
shard_clean_after(struct shard *s, struct turn *t)
{
	return turn_after_commit(t, truncate_log, s->actor, NULL);
}

static int
pump_turn(void *arg, struct turn *t)
{
	struct shard *s = arg;
	/* What one of them cannot read is no reason for the others to wait. */
	int r = dispatcher_pump(s->dispatcher, t);
	int sync = syncer_pump(s->syncer, t);
	int removal = removals_pump(s->removals, t);

	if (r == 0)
		r = sync;
	return r < 0 ? r : removal;
}

static int
deadline_turn(void *arg, struct turn *t)
{
	return ledger_next_deadline(t->store, arg);
}

/* What is overdue and still there waits for a connection, which wakes us when it comes. */
static int64_t
until(int64_t ms)
{
	return ms > 0 ? ms : OVERDUE_MS;
}

/* Sets the one timer to whatever comes first. */
static void
arm(struct shard *s)
{
	struct mono_time now = clock_mono(), first;
	int64_t stored = INT64_MAX, wait = SHARD_RECHECK_MS - mono_diff_ms(s->rechecked, now);

	if (actor_turn(s->actor, 0, deadline_turn, &stored) == 0 && stored != INT64_MAX)
		wait = min_i64(wait, until(stored - clock_wall_ms()));
	if (leases_next(s->leases, &first))
		wait = min_i64(wait, until(mono_diff_ms(now, first)));
	if (s->prune_soon)
		wait = min_i64(wait, OVERDUE_MS);
	wait = max_i64(wait, TIMER_LEAST_MS);
	s->planned = mono_add_ms(now, wait);
	(void)actor_timer_set(s->timer, wait);
}

static void
on_pump(void *arg)
{
	struct shard *s = arg;

	/* What an open batch has written is not on disk yet, and nobody may hear of it. */
	if (actor_in_batch(s->actor)) {
		shard_wake(s);
		return;
	}
	(void)actor_turn(s->actor, 0, pump_turn, s);
	arm(s);
}

/* ---- the re-check ---- */

static int
repair_turn(void *arg, struct turn *t)
{
	struct shard *s = arg;
	struct ledger_promoted promoted;
	const char **ids;
	size_t n;
	int r = ledger_clamp_deadlines(t->store, t->now_ms);

	if (r == 0)
		r = ledger_headless(t->store, t->arena, REPAIRS, &ids, &n);
	for (size_t i = 0; r == 0 && i < n; i++) {
		r = ledger_promote(t->store, t->arena, ids[i], t->now_ms, &promoted);
		if (r == E_CORRUPT || r == E_CONSTRAINT || r == E_ILLEGAL) {
			broken_tell(s->broken, ids[i], ids[i]);
			r = 0;
		} else if (r == 0 && promoted.run_id[0] != '\0')
			log_event(LOG_LEVEL_ERROR, "promotion_repaired",
			    LOG_STR("projectId", ids[i]), LOG_STR("runId", promoted.run_id));
	}
	return r < 0 ? r : shard_wake_after(s, t);
}

/* Leases that a lost turn left out, and rows whose lease is not known here. */
static int
active_turn(void *arg, struct turn *t)
{
	struct shard *s = arg;
	const char *after = "";
	size_t n = ACTIVE_ROWS;
	int r = 0;

	while (r == 0 && n == ACTIVE_ROWS) {
		struct ledger_run *runs;

		r = ledger_dispatched(
		    t->store, t->arena, LEDGER_DISPATCH_STARTED, after, ACTIVE_ROWS, &runs, &n);
		for (size_t i = 0; r == 0 && i < n; i++) {
			after = runs[i].run_id;
			if (runs[i].broken)
				broken_tell(s->broken, after, runs[i].project_id);
			else if (leases_find(s->leases, after) == NULL)
				r = leases_grant(s->leases, &runs[i], NULL);
		}
	}
	return r;
}

static int
resume_turn(void *arg, struct turn *t)
{
	const struct shard *s = arg;

	return moves_resume(s->moves, t);
}

void
shard_recheck(struct shard *s)
{
	s->rechecked = clock_mono();
	(void)actor_turn(s->actor, 0, resume_turn, s);
	(void)actor_turn(s->actor, 1, repair_turn, s);
	(void)actor_turn(s->actor, 0, active_turn, s);
	dispatcher_ask_again(s->dispatcher);
	leases_ask_all(s->leases);
	shard_wake(s);
}

/* *arg: there may be more.  A run outlives the delivery that it came of. */
static int
prune_turn(void *arg, struct turn *t)
{
	int *more = arg;
	int64_t n;
	int r = ledger_prune_deliveries(t->store, t->now_ms, &n);

	*more = n == LEDGER_DELIVERY_PRUNE_ROWS;
	if (r < 0 || *more)
		return r;
	r = ledger_prune(t->store, t->now_ms, &n);
	*more = n == LEDGER_PRUNE_ROWS;
	return r;
}

static void
on_timer(void *arg)
{
	struct shard *s = arg;
	struct mono_time now = clock_mono();

	if (mono_diff_ms(s->planned, now) > SHARD_LATE_MS)
		leases_excuse_all(s->leases);
	leases_expire(s->leases, now);
	if (s->prune_soon || mono_diff_ms(s->pruned, now) > PRUNE_EVERY_MS) {
		int more = 0;

		s->pruned = now;
		/* One turn is not long: what is left is for the next time that we are here. */
		s->prune_soon = actor_turn(s->actor, 1, prune_turn, &more) == 0 && more;
	}
	if (mono_diff_ms(s->rechecked, now) >= SHARD_RECHECK_MS)
		shard_recheck(s);
	shard_wake(s);
}

/* What is deleted is overwritten, whatever SQLite was built with: there are secrets in it. */
static int
overwrite_turn(void *arg, struct turn *t)
{
	(void)arg;
	return store_exec(t->store, "PRAGMA secure_delete=ON");
}

/* A ledger that came from a backup asks for nothing but what every start does: no process of its
 * active runs is found, so they are taken over, and ingress fetches what the index lacks. */
static int
restored_turn(void *arg, struct turn *t)
{
	int restored = 0, r = store_is_restored(t->store, &restored);

	(void)arg;
	if (r < 0 || !restored)
		return r;
	log_plain(LOG_LEVEL_WARN, "restored_store_opened");
	return store_clear_restored(t->store);
}

int
shard_begin(struct shard *s)
{
	int r = actor_turn(s->actor, 0, overwrite_turn, NULL);

	if (r == 0)
		r = actor_turn(s->actor, 0, resume_turn, s);
	if (r == 0)
		r = actor_turn(s->actor, 0, active_turn, s);
	if (r < 0)
		return r;
	s->rechecked = s->pruned = clock_mono();
	s->prune_soon = 1;
	(void)actor_turn(s->actor, 1, restored_turn, s);
	(void)actor_turn(s->actor, 1, repair_turn, s);
	shard_wake(s);
	return 0;
}

void
shard_note_promoted(const struct ledger_promoted *p)
{
	if (p->run_id[0] != '\0')
		log_event(LOG_LEVEL_INFO, "run_promoted", LOG_STR("runId", p->run_id));
}

void
shard_inspect(void *ctx, struct buf *out)
{
	const struct shard *s = ctx;

	buf_printf(out,
	    "{\"shard\":%lld,\"leases\":%zu,\"dispatchesInFlight\":%zu,\"takeovers\":%zu,"
	    "\"supervisor\":\"%s\",\"ingress\":\"%s\",\"moves\":",
	    (long long)s->number, leases_count(s->leases), dispatcher_in_flight(s->dispatcher),
	    takeovers_count(s->takeovers), shard_supervisor(s) != NULL ? "up" : "down",
	    link_peer(s->ingress) != NULL ? "up" : "down");
	moves_inspect(s->moves, out);
	(void)buf_add_byte(out, '}');
}
