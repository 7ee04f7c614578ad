/* What a move does at each stage, step by step (spec project 17). */
#include "cmd/anvil-project/move_steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/anvil-project/dispatcher.h"
#include "cmd/anvil-project/leases.h"
#include "cmd/anvil-project/notice.h"
#include "cmd/anvil-project/syncer.h"
#include "cmd/anvil-project/takeover.h"
#include "gen/ingress.h"
#include "gen/project.h"
#include "lib/base/crash.h"
#include "lib/base/log.h"

#define REACH_MS      5000  /* for a connection to the other shard, before anything is frozen */
#define SETTLE_MS     10000 /* for calls in flight                                            */
#define LOOK_MS       50
#define STALLED_MS    60000 /* without progress: it is given up                               */
#define CALL_MS       60000 /* the import of a big project takes a while                      */
#define OTHER_CALL_MS 10000

/* Tests make many parts of little, and lose patience early. */
static int64_t
tuned(const char *variable, int64_t otherwise)
{
#ifdef ANVIL_FAULTS
	const char *text = getenv(variable);

	if (text != NULL)
		return strtol(text, NULL, 10);
#else
	(void)variable;
#endif
	return otherwise;
}

/* ---- giving it up ---- */

static void
is_missing(struct move *mv)
{
	struct project_move_result res = { .kind = PROJECT_MOVE_ABORTED };

	res.u.aborted.reason = "it is being removed, or is on its way already";
	move_finish(mv, &res);
}

static void
give_up(struct move *mv, const char *fmt, const char *what)
{
	char text[MOVE_REASON_SIZE / 2];

	(void)snprintf(text, sizeof(text), "%s", what);
	(void)snprintf(mv->reason, sizeof(mv->reason), "project/%lld %s: %.90s",
	    (long long)mv->row.to, fmt, text);
	move_turn_to(mv, MOVE_ABORT);
}

static int
thaw(struct move *mv, struct turn *t)
{
	return ledger_thaw(t->store, &mv->row, t->now_ms);
}

static void
is_thawed(struct move *mv)
{
	struct project_move_result res = { .kind = PROJECT_MOVE_ABORTED };

	CRASH_POINT("move_aborted");
	log_event(LOG_LEVEL_WARN, "project_move_aborted",
	    LOG_STR("projectId", mv->row.project_id), LOG_INT("shard", mv->row.to),
	    LOG_STR("reason", mv->reason));
	res.u.aborted.reason = mv->reason;
	move_answer(mv, &res);
	move_turn_to(mv, MOVE_DISCARD);
	shard_recheck(mv->owner->shard);
}

static int
note_discarded(struct move *mv, struct turn *t)
{
	return ledger_discarded(t->store, mv->row.move_id);
}

static void
end_quietly(struct move *mv)
{
	move_finish(mv, NULL);
}

static void
on_discarded(void *arg, int err, const struct project_discard_import_result *res)
{
	struct move *mv = arg;

	(void)res;
	if (move_came_back(mv))
		return;
	CRASH_POINT("move_discarded");
	if (err < 0)
		move_again(mv);
	else
		move_write(mv, note_discarded, end_quietly, end_quietly);
}

static void
discard(struct move *mv)
{
	static const struct rpc_call_opts opts = { .deadline_ms = OTHER_CALL_MS };
	struct project_discard_import_params p = { mv->row.project_id, mv->row.move_id };
	struct rpc_peer *peer = link_peer(mv->link);

	if (peer == NULL || project_discard_import_call(peer, &opts, &p, on_discarded, mv) < 0)
		move_again(mv);
	else
		mv->pending = 1;
}

/* ---- 1: freeze ---- */

static int
freeze(struct move *mv, struct turn *t)
{
	return ledger_freeze(
	    t->store, mv->row.project_id, mv->row.move_id, mv->row.to, t->now_ms);
}

static void
is_frozen(struct move *mv)
{
	CRASH_POINT("move_freezing");
	move_turn_to(mv, MOVE_SETTLE);
}

static void
reach(struct move *mv)
{
	struct project_move_result res = { .kind = PROJECT_MOVE_ABORTED };

	if (link_peer(mv->link) != NULL) {
		move_write(mv, freeze, is_frozen, is_missing);
		return;
	}
	if (mono_diff_ms(mv->begun, clock_mono()) < REACH_MS) {
		move_look_after(mv, LOOK_MS);
		return;
	}
	(void)snprintf(mv->reason, sizeof(mv->reason), "project/%lld cannot be reached",
	    (long long)mv->row.to);
	res.u.aborted.reason = mv->reason;
	move_finish(mv, &res);
}

/* Calls whose answers may still change it. */
static int
is_busy(const struct move *mv)
{
	const struct shard *s = mv->owner->shard;
	const char *id = mv->row.project_id;

	return dispatcher_busy(s->dispatcher, id) || syncer_busy(s->syncer, id) ||
	    takeovers_busy(s->takeovers, id) || leases_busy(s->leases, id);
}

static int
note_settled(struct move *mv, struct turn *t)
{
	return ledger_freeze_done(t->store, mv->row.project_id, mv->row.move_id);
}

void
move_from_the_first(struct move *mv)
{
	mv->pages = (struct ledger_pages) { .project_id = mv->row.project_id };
	mv->part = 1;
}

static void
is_settled(struct move *mv)
{
	CRASH_POINT("move_frozen");
	move_from_the_first(mv);
	move_turn_to(mv, MOVE_EXPORT);
}

static void
settle(struct move *mv)
{
	if (is_busy(mv) && mono_diff_ms(mv->since, clock_mono()) < SETTLE_MS)
		move_look_after(mv, LOOK_MS);
	else
		move_write(mv, note_settled, is_settled, is_missing);
}

/* ---- 2, 3: its rows ---- */

static int
part_turn(void *arg, struct turn *t)
{
	struct move *mv = arg;

	buf_reset(&mv->text);
	mv->next = mv->pages;
	return ledger_move_part(t->store, &mv->next,
	    (size_t)tuned("ANVIL_MOVE_PART_BYTES", LEDGER_PART_AIM), &mv->text, &mv->last);
}

/* The other shard, or this one, is not able now: it may be in a moment. */
static void
stalled(struct move *mv, int err)
{
	move_from_the_first(mv);
	if (mono_diff_ms(mv->since, clock_mono()) >= tuned("ANVIL_MOVE_STALLED_MS", STALLED_MS))
		give_up(mv, "has made no progress", err_text(err));
	else
		move_again(mv);
}

static void
on_part(void *arg, int err, const struct project_import_part_result *res)
{
	struct move *mv = arg;

	if (move_came_back(mv))
		return;
	CRASH_POINT("move_part_answered");
	if (err < 0 && !err_retryable(err)) {
		give_up(mv, "did not take it", err_text(err));
		return;
	}
	if (err < 0) {
		stalled(mv, err);
		return;
	}
	switch (res->kind) {
	case PROJECT_IMPORT_PART_REFUSED:
		give_up(mv, "did not take it", res->u.refused.reason);
		return;
	case PROJECT_IMPORT_PART_IMPORTED: move_turn_to(mv, MOVE_GIVE); return;
	case PROJECT_IMPORT_PART_STORED: break;
	}
	/* Beginning anew over and over is no progress. */
	if (mv->part > mv->best) {
		mv->best = mv->part;
		mv->since = clock_mono();
		mv->wait_ms = MOVE_AGAIN_MS;
	}
	mv->part++;
	mv->pages = mv->next;
	move_look_after(mv, 0);
}

static void export(struct move *mv)
{
	static const struct rpc_call_opts opts = { .deadline_ms = CALL_MS };
	struct project_import_part_params p = {
		.project_id = mv->row.project_id, .move_id = mv->row.move_id, .part = mv->part
	};
	struct rpc_peer *peer = link_peer(mv->link);
	int r = peer != NULL ? 0 : E_LINK;

	if (r == 0)
		r = actor_turn(mv->owner->shard->actor, 0, part_turn, mv);
	p.last = mv->last;
	p.rows_text = r == 0 ? buf_cstr(&mv->text) : NULL;
	if (r == 0)
		r = p.rows_text != NULL ? project_import_part_call(peer, &opts, &p, on_part, mv)
					: E_NOMEM;
	if (r < 0)
		stalled(mv, r);
	else
		mv->pending = 1;
}

/* ---- 4: the point of no return ---- */

static int
give(struct move *mv, struct turn *t)
{
	struct shard *s = mv->owner->shard;
	int r = ledger_give(t->store, mv->row.project_id, mv->row.move_id, t->now_ms);

	if (r == 0)
		r = notice_webhook_after(s, t, mv->row.project_id, NULL);
	return r < 0 ? r : shard_clean_after(s, t);
}

static void
is_given(struct move *mv)
{
	CRASH_POINT("move_given");
	leases_drop_project(mv->owner->shard->leases, mv->row.project_id);
	move_turn_to(mv, MOVE_ACTIVATE);
}

/* ---- 5: activate ---- */

static int
note_active(struct move *mv, struct turn *t)
{
	return ledger_given(t->store, mv->row.project_id, mv->row.move_id, LEDGER_STEP_ACTIVE);
}

static int
note_done(struct move *mv, struct turn *t)
{
	return ledger_given(t->store, mv->row.project_id, mv->row.move_id, LEDGER_STEP_DONE);
}

static void
is_active(struct move *mv)
{
	CRASH_POINT("move_active");
	move_turn_to(mv, MOVE_FLIP);
}

/* The directory says so, or it has gone on since. */
static void
is_moved(struct move *mv)
{
	struct project_move_result res = { .kind = PROJECT_MOVE_MOVED };

	log_event(LOG_LEVEL_INFO, "project_moved", LOG_STR("projectId", mv->row.project_id),
	    LOG_INT("shard", mv->row.to),
	    LOG_INT("durationMs", mono_diff_ms(mv->begun, clock_mono())));
	res.u.moved.shard = mv->row.to;
	move_answer(mv, &res);
	move_turn_to(mv, MOVE_CLEAR);
}

static void
is_done(struct move *mv)
{
	CRASH_POINT("move_done");
	move_finish(mv, NULL);
}

static void
on_activated(void *arg, int err, const struct project_activate_result *res)
{
	struct move *mv = arg;

	if (move_came_back(mv))
		return;
	CRASH_POINT("move_activated");
	if (err < 0)
		move_again(mv);
	else if (res->kind == PROJECT_ACTIVATE_LIVE)
		move_write(mv, note_active, is_active, is_moved);
	else
		/* It has gone on since, or has been removed: the directory is for who came
		 * after us. */
		is_moved(mv);
}

static void
activate(struct move *mv)
{
	static const struct rpc_call_opts opts = { .deadline_ms = OTHER_CALL_MS };
	struct project_activate_params p = { mv->row.project_id, mv->row.move_id };
	struct rpc_peer *peer = link_peer(mv->link);

	if (peer == NULL || project_activate_call(peer, &opts, &p, on_activated, mv) < 0)
		move_again(mv);
	else
		mv->pending = 1;
}

/* ---- 6: the directory ---- */

static void
on_flipped(void *arg, int err, const struct index_set_shard_result *res)
{
	struct move *mv = arg;

	(void)res;
	if (move_came_back(mv))
		return;
	CRASH_POINT("move_flipped");
	if (err < 0)
		move_again(mv);
	else
		is_moved(mv);
}

/* Nobody has given it back meanwhile, and it is for us to say where it is. */
static int
still_given_turn(void *arg, struct turn *t)
{
	const struct move *mv = arg;
	struct ledger_move here;
	int r = ledger_move_get(t->store, mv->row.project_id, &here);

	if (r < 0)
		return r;
	return here.where == LEDGER_MOVED && strcmp(here.move_id, mv->row.move_id) == 0
	    ? 0
	    : E_NOENT;
}

static void
flip(struct move *mv)
{
	static const struct rpc_call_opts opts = { .deadline_ms = OTHER_CALL_MS };
	struct index_set_shard_params p = { .project_id = mv->row.project_id,
		.shard = mv->row.to,
		.move_id = mv->row.move_id };
	struct rpc_peer *peer = link_peer(mv->owner->shard->ingress);
	int r = actor_turn(mv->owner->shard->actor, 0, still_given_turn, mv);

	if (r == E_NOENT)
		is_moved(mv);
	else if (r < 0 || peer == NULL ||
	    index_set_shard_call(peer, &opts, &p, on_flipped, mv) < 0)
		move_again(mv);
	else
		mv->pending = 1;
}

/* ---- what is left here ---- */

/* Until all is gone; E_NOENT: somebody else has its place. */
static int
clear(struct move *mv, struct turn *t)
{
	int r = still_given_turn(mv, t);

	if (r == 0)
		r = ledger_empty_some(t->store, mv->row.project_id,
		    tuned("ANVIL_MOVE_CLEAR_ROWS", LEDGER_EMPTY_ROWS), &mv->left);
	return r < 0 || mv->left ? r : note_done(mv, t);
}

static void
is_cleared(struct move *mv)
{
	if (!mv->left) {
		is_done(mv);
		return;
	}
	CRASH_POINT("move_clearing");
	move_look_after(mv, 0);
}

/* ---- step by step ---- */

void
move_step(struct move *mv)
{
	switch (mv->stage) {
	case MOVE_REACH: reach(mv); break;
	case MOVE_SETTLE: settle(mv); break;
	case MOVE_EXPORT: export(mv); break;
	case MOVE_GIVE:
		CRASH_POINT("move_copied");
		move_write(mv, give, is_given, is_missing);
		break;
	case MOVE_ABORT: move_write(mv, thaw, is_thawed, is_missing); break;
	case MOVE_ACTIVATE: activate(mv); break;
	case MOVE_FLIP: flip(mv); break;
	case MOVE_CLEAR: move_write(mv, clear, is_cleared, is_done); break;
	case MOVE_DISCARD: discard(mv); break;
	}
}
