#include "cmd/anvil-project/move.h"

#include <stdio.h>
#include <string.h>

#include "cmd/anvil-project/move_steps.h"
#include "gen/project.h"
#include "lib/base/mem.h"

static const char *const stage_names[] = { "reach", "settle", "export", "give", "abort",
	"activate", "flip", "clear", "discard" };

static void on_timer(void *arg);
static void on_up(void *arg, struct link *l, struct rpc_peer *p);

/* ---- what a method answers ---- */

int
move_guard(struct turn *t, const char *project_id, enum move_use use,
    enum ledger_where *ret_where, int64_t *ret_shard, int64_t *ret_retry_ms)
{
	struct ledger_move here;
	int r = ledger_move_get(t->store, project_id, &here);

	if (r < 0)
		return r;
	*ret_where = LEDGER_HERE;
	if (here.where == LEDGER_MOVED) {
		*ret_where = LEDGER_MOVED;
		*ret_shard = here.to;
	} else if (here.where == LEDGER_INCOMING ||
	    (here.where == LEDGER_FROZEN && use == MOVE_CHANGES)) {
		*ret_where = LEDGER_INCOMING;
		*ret_retry_ms = MOVE_RETRY_MS;
	}
	return 0;
}

/* ---- life ---- */

struct moves *
moves_new(struct shard *s)
{
	struct moves *m = mem_calloc(1, sizeof(*m));

	if (m == NULL)
		return NULL;
	m->shard = s;
	LIST_INIT(&m->list);
	return m;
}

void
move_answer(struct move *mv, const struct project_move_result *res)
{
	struct move_waiter *w;

	while ((w = STAILQ_FIRST(&mv->waiters)) != NULL) {
		STAILQ_REMOVE_HEAD(&mv->waiters, entry);
		if (res != NULL)
			parked_reply(w->parked, res);
		else
			parked_error(w->parked, E_DRAINING, NULL); /* it may ask again */
		free(w);
	}
}

static void
move_destroy(struct move *mv)
{
	buf_wipe(&mv->text);
	mv->magic = 0;
	free(mv);
}

static void
move_free(struct move *mv)
{
	move_answer(mv, NULL);
	LIST_REMOVE(mv, entry);
	mv->timer = actor_timer_free(mv->timer);
	mv->link = actor_unlink(mv->owner->shard->actor, mv->link);
	if (mv->pending)
		mv->ended = 1; /* its callback frees it */
	else
		move_destroy(mv);
}

void
move_finish(struct move *mv, const struct project_move_result *res)
{
	move_answer(mv, res);
	move_free(mv);
}

struct moves *
moves_free(struct moves *m)
{
	struct move *mv;

	if (m == NULL)
		return NULL;
	while ((mv = LIST_FIRST(&m->list)) != NULL)
		move_free(mv);
	free(m);
	return NULL;
}

static struct move *
move_new(struct moves *m, const struct ledger_move *row, enum move_stage stage)
{
	static const struct link_ops ops = { .on_up = on_up };
	struct move *mv = mem_calloc(1, sizeof(*mv));
	char address[32];

	if (mv == NULL)
		return NULL;
	mv->magic = MOVE_MAGIC;
	mv->owner = m;
	mv->row = *row;
	mv->stage = stage;
	mv->begun = mv->since = clock_mono();
	mv->wait_ms = MOVE_AGAIN_MS;
	STAILQ_INIT(&mv->waiters);
	LIST_INSERT_HEAD(&m->list, mv, entry);
	(void)snprintf(address, sizeof(address), "project/%lld", (long long)row->to);
	mv->timer = actor_timer_new(m->shard->actor, on_timer, mv);
	mv->link = actor_link(m->shard->actor, address, &ops, mv);
	if (mv->timer == NULL || mv->link == NULL || actor_timer_set(mv->timer, 0) < 0) {
		move_free(mv);
		return NULL;
	}
	return mv;
}

int
move_came_back(struct move *mv)
{
	OBJ_CHECK(mv, MOVE_MAGIC);
	mv->pending = 0;
	if (!mv->ended)
		return 0;
	move_destroy(mv);
	return 1;
}

void
move_look_after(struct move *mv, int64_t ms)
{
	(void)actor_timer_set(mv->timer, ms);
}

void
move_turn_to(struct move *mv, enum move_stage stage)
{
	mv->stage = stage;
	mv->since = clock_mono();
	mv->wait_ms = MOVE_AGAIN_MS;
	move_look_after(mv, 0);
}

void
move_again(struct move *mv)
{
	move_look_after(mv, mv->wait_ms);
	mv->wait_ms = min_i64(mv->wait_ms * 2, MOVE_AGAIN_MAX_MS);
}

static void
on_up(void *arg, struct link *l, struct rpc_peer *p)
{
	struct move *mv = arg;

	(void)l;
	(void)p;
	OBJ_CHECK(mv, MOVE_MAGIC);
	mv->wait_ms = MOVE_AGAIN_MS;
	if (!mv->pending)
		move_look_after(mv, 0);
}

static void
on_timer(void *arg)
{
	struct move *mv = arg;

	OBJ_CHECK(mv, MOVE_MAGIC);
	if (!mv->pending)
		move_step(mv);
}

/* ---- what is written ---- */

struct attempt {
	struct move *move;
	int (*write)(struct move *mv, struct turn *t);
	int registered; /* The commit tells what has become of it, maybe before we hear of it. */
};

static void
on_committed(void *arg)
{
	struct move *mv = arg;
	void (*then)(struct move * mv) = mv->then;

	if (!move_came_back(mv))
		then(mv);
}

static void
on_lost(void *arg)
{
	struct move *mv = arg;

	if (!move_came_back(mv))
		move_again(mv);
}

static int
write_turn(void *arg, struct turn *t)
{
	struct attempt *a = arg;
	int r = a->write(a->move, t);

	if (r == 0)
		r = turn_after_commit(t, on_committed, a->move, on_lost);
	a->registered = r == 0;
	return r;
}

void
move_write(struct move *mv, int (*write)(struct move *, struct turn *),
    void (*then)(struct move *), void (*otherwise)(struct move *))
{
	struct attempt a = { .move = mv, .write = write };
	int r;

	mv->then = then;
	mv->pending = 1;
	r = actor_turn(mv->owner->shard->actor, 1, write_turn, &a);
	if (a.registered)
		return;
	mv->pending = 0;
	if (r == E_NOENT)
		otherwise(mv);
	else
		move_again(mv);
}

/* ---- beginning ---- */

static struct move *
find(const struct moves *m, const char *project_id)
{
	struct move *mv;

	LIST_FOREACH (mv, &m->list, entry)
		if (mv->stage < MOVE_CLEAR && strcmp(mv->row.project_id, project_id) == 0)
			return mv;
	return NULL;
}

int
moves_has(const struct moves *m, const char *project_id)
{
	return find(m, project_id) != NULL;
}

int
moves_begin(struct moves *m, struct turn *t, const char *project_id, int64_t to)
{
	struct ledger_move row = { .to = to };
	struct move *mv = find(m, project_id);
	struct move_waiter *w;

	if (mv != NULL && mv->row.to != to)
		return E_BUSY;
	if (mv == NULL) {
		(void)snprintf(row.project_id, sizeof(row.project_id), "%s", project_id);
		id_hex32(row.move_id);
		mv = move_new(m, &row, MOVE_REACH);
	}
	w = mv != NULL ? mem_calloc(1, sizeof(*w)) : NULL;
	if (w == NULL || (w->parked = turn_park(t)) == NULL) {
		free(w);
		return E_NOMEM; /* the move goes on, for others to ask about */
	}
	STAILQ_INSERT_TAIL(&mv->waiters, w, entry);
	return TURN_PARKED;
}

static int
is_driven(const struct moves *m, const char *move_id)
{
	const struct move *mv;

	LIST_FOREACH (mv, &m->list, entry)
		if (strcmp(mv->row.move_id, move_id) == 0)
			return 1;
	return 0;
}

static enum move_stage
stage_of(const struct ledger_move *row)
{
	if (row->where == LEDGER_HERE)
		return MOVE_DISCARD;
	if (row->where == LEDGER_MOVED)
		return MOVE_ACTIVATE;
	return row->step == LEDGER_STEP_FREEZING ? MOVE_SETTLE : MOVE_EXPORT;
}

static int
resume(struct moves *m, const struct ledger_move *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct move *mv;

		if (is_driven(m, rows[i].move_id))
			continue;
		mv = move_new(m, &rows[i], stage_of(&rows[i]));
		if (mv == NULL)
			return E_NOMEM;
		move_from_the_first(mv);
	}
	return 0;
}

int
moves_resume(struct moves *m, struct turn *t)
{
	struct ledger_move *rows;
	size_t n;
	int r = ledger_moves(t->store, t->arena, &rows, &n);

	if (r == 0)
		r = resume(m, rows, n);
	if (r == 0)
		r = ledger_discards(t->store, t->arena, &rows, &n);
	return r < 0 ? r : resume(m, rows, n);
}

int
moves_holds(const struct moves *m, const char *project_id)
{
	const struct move *mv = find(m, project_id);

	return mv != NULL && mv->stage != MOVE_REACH;
}

void
moves_wake(struct moves *m)
{
	struct move *mv;

	LIST_FOREACH (mv, &m->list, entry)
		if (mv->stage == MOVE_FLIP && !mv->pending)
			move_look_after(mv, 0);
}

void
moves_leave(struct moves *m)
{
	struct move *mv;

	LIST_FOREACH (mv, &m->list, entry)
		move_answer(mv, NULL);
}

void
moves_inspect(const struct moves *m, struct buf *out)
{
	const struct move *mv;
	const char *comma = "";

	(void)buf_add_byte(out, '[');
	LIST_FOREACH (mv, &m->list, entry) {
		(void)buf_printf(out,
		    "%s{\"projectId\":\"%s\",\"shard\":%lld,\"stage\":\"%s\",\"part\":%lld}",
		    comma, mv->row.project_id, (long long)mv->row.to, stage_names[mv->stage],
		    (long long)(mv->stage == MOVE_EXPORT ? mv->part : 0));
		comma = ",";
	}
	(void)buf_add_byte(out, ']');
}
