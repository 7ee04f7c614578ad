#include "cmd/anvil-ingress/hub_row.h"

#include "cmd/anvil-ingress/after.h"
#include "cmd/anvil-ingress/merge.h"
#include "cmd/anvil-ingress/rows.h"
#include "lib/base/err.h"
#include "lib/base/map.h"

/* ---- the row ---- */

static int
read_turn(void *arg, struct turn *t)
{
	struct hub *h = arg;
	struct index_run row;
	struct run_row known;
	int r = index_run_get(t->store, t->arena, h->run_id, &row);

	if (r < 0)
		return r;
	known = rows_run_row(&row);
	/* What came from the ledger may be newer. */
	if (merge_newer(&known, &h->row) != &known)
		return 0;
	arena_reset(h->arena);
	return rows_copy_run(h->arena, &known, &h->row);
}

static int
read_row(struct hub *h)
{
	return actor_turn(h->in->actor, 0, read_turn, h);
}

static void
tell_row(struct hub *h)
{
	const struct run_row *r = &h->row;
	int begun = r->status != RUN_STATUS_QUEUED;
	const struct run_live live = { .status = r->status,
		.has_started_at = begun && r->has_started_at,
		.started_at = r->started_at,
		.has_finished_at = r->has_finished_at,
		.finished_at = r->finished_at,
		.has_exit_code = r->has_exit_code,
		.exit_code = r->exit_code,
		.error_message = r->error_message,
		.has_failure_code = r->has_failure_code,
		.failure_code = r->failure_code };
	struct buf json = BUF_INIT;

	message_state(&json, &live, NULL, 0);
	hub_set_state_take(h, &json);
}

int
hub_keep_row(struct hub *h, const struct run_known *k)
{
	if (rows_copy_run(h->arena, &k->row, &h->row) < 0)
		return E_NOMEM;
	h->of_ledger = k->of_ledger;
	if (h->row.status == RUN_STATUS_QUEUED)
		tell_row(h);
	if (merge_is_terminal(h->row.status))
		(void)actor_timer_set(h->settle, HUB_SETTLE_MS);
	return 0;
}

int
hub_is_queued(struct hub *h)
{
	(void)read_row(h);
	return h->row.status == RUN_STATUS_QUEUED;
}

/* ---- without a store ---- */

static void
end_by_row(struct hub *h)
{
	tell_row(h);
	h->ended = 1;
	sub_close(&h->live, 1);
}

int
hub_on_absent(struct hub *h)
{
	int r;

	OBJ_CHECK(h, HUB_MAGIC);
	r = read_row(h);
	/* It was in the index, and has gone from there with its project. */
	if (r == E_NOENT && !h->of_ledger) {
		hub_end_all(h, VIEWER_INTERNAL_ERROR);
		return 0;
	}
	if (r < 0 && r != E_NOENT)
		return 1;
	if (!merge_is_terminal(h->row.status)) {
		if (!h->anchored)
			tell_row(h);
		hub_fill_all(h);
		return 1;
	}
	end_by_row(h);
	h->gone = 1;
	hub_fill_all(h);
	return 0;
}

void
hub_on_settle(void *hub)
{
	struct hub *h = hub;

	OBJ_CHECK(h, HUB_MAGIC);
	if (h->ended)
		return;
	/* While lines come, or nobody is there to send them, there may be a word yet. */
	if (h->live.id == 0 || mono_diff_ms(h->heard, clock_mono()) < HUB_SETTLE_MS ||
	    read_row(h) < 0 || !merge_is_terminal(h->row.status)) {
		(void)actor_timer_set(h->settle, HUB_SETTLE_MS);
		return;
	}
	end_by_row(h);
	hub_fill_all(h);
}

/* ---- news ---- */

static void
tell_news(struct ingress *in, const char *run_id)
{
	struct hub *h = map_get(in->hubs, run_id);

	if (h == NULL || h->ended)
		return;
	(void)read_row(h);
	if (merge_is_terminal(h->row.status) && !actor_timer_is_set(h->settle))
		(void)actor_timer_set(h->settle, HUB_SETTLE_MS);
	source_kick(h->source);
}

void
hub_row_changes(struct ingress *in, struct turn *t, const char *run_id)
{
	/* Without memory for it, its link tries by itself. */
	if (map_get(in->hubs, run_id) != NULL)
		(void)after_commit(in, t, tell_news, run_id);
}
