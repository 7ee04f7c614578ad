#include "cmd/anvil-ingress/rebuild.h"

#include <stdio.h>
#include <string.h>

#include "cmd/anvil-ingress/links.h"
#include "cmd/anvil-ingress/rebuild_page.h"
#include "lib/base/crash.h"
#include "lib/base/err.h"
#include "lib/base/id.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

#define CURSOR_SIZE  129 /* Of the contract, and a NUL. */
#define REMOVED_ROWS 100 /* of one turn                 */
#define WAIT_LOOK_MS 100

/* What a call to a shard is for. */
enum purpose {
	PURPOSE_STAMP, /* How many moves there were before anything was read. */
	PURPOSE_READ,
	PURPOSE_VERIFY, /* How many there are when all has been read. */
};

/* One shard, in the present pass. */
struct reading {
	int stamped, read, verified;
	int64_t moves, moves_after;
	char cursor[CURSOR_SIZE];
	struct mono_time not_before; /* It was not able. */
};

struct rebuild {
	struct ingress *in;
	struct actor_timer *timer;      /* The next step. */
	struct actor_timer *wait_timer; /* Those who wait too long. */
	LIST_HEAD(, rebuild_wait) waits;
	int opened;  /* It is known what there is to do. */
	int lacking; /* See rebuild_may_lack(). */
	int active;
	int busy; /* A shard owes an answer, or a commit is awaited. */
	/* Of the job. */
	char job_id[ID_HEX32_SIZE];
	struct mono_time began; /* in this process */
	int64_t removed, ownerless;
	int refused_again; /* It was read once more for the sake of refused slugs. */
	/* Of the pass. */
	int stamps_done;
	struct reading shards[SHARDS_MAX]; /* By number. */
	struct rebuild_counts counts;
	/* Of the call, or of the turn that it led to. */
	enum purpose purpose;
	int64_t shard;
	struct rebuild_counts next_counts;
	char next_cursor[CURSOR_SIZE];
	int64_t next_removed;
};

static void step(struct rebuild *r);

static void
step_in(struct rebuild *r, int64_t ms)
{
	(void)actor_timer_set(r->timer, ms);
}

/* ---- those who wait ---- */

static void
on_wait_timer(void *arg)
{
	struct rebuild *r = arg;
	struct rebuild_wait *w, *next;

	for (w = LIST_FIRST(&r->waits); w != NULL; w = next) {
		next = LIST_NEXT(w, entry);
		if (mono_diff_ms(clock_mono(), w->until) > 0)
			continue;
		LIST_REMOVE(w, entry);
		w->done(w, E_DEADLINE);
	}
	if (!LIST_EMPTY(&r->waits))
		(void)actor_timer_set(r->wait_timer, WAIT_LOOK_MS);
}

static void
let_go(struct rebuild *r, int err)
{
	while (!LIST_EMPTY(&r->waits)) {
		struct rebuild_wait *w = LIST_FIRST(&r->waits);

		LIST_REMOVE(w, entry);
		w->done(w, err);
	}
}

void
rebuild_wait(struct rebuild *r, struct rebuild_wait *w)
{
	w->until = mono_add_ms(clock_mono(), REBUILD_WAIT_MS);
	LIST_INSERT_HEAD(&r->waits, w, entry);
	if (!actor_timer_is_set(r->wait_timer))
		(void)actor_timer_set(r->wait_timer, WAIT_LOOK_MS);
}

int
rebuild_may_lack(const struct rebuild *r)
{
	return r->lacking;
}

static void
lacks_nothing(struct rebuild *r)
{
	r->lacking = 0;
	let_go(r, 0);
}

/* ---- turns, each with what follows when its writes are on disk ---- */

struct work {
	struct rebuild *r;
	int (*fn)(struct rebuild *r, struct turn *t, const void *arg);
	const void *arg;
	void (*then)(void *rebuild);
	int ordered; /* `then` or lost() comes. */
};

/* Nothing has happened; the same again, later. */
static void
lost(void *arg)
{
	struct rebuild *r = arg;

	r->busy = 0;
	step_in(r, REBUILD_RETRY_MS);
}

static int
work_turn(void *arg, struct turn *t)
{
	struct work *w = arg;
	int err = w->fn(w->r, t, w->arg);

	if (err == 0)
		err = turn_after_commit(t, w->then, w->r, lost);
	w->ordered = err == 0;
	return err;
}

static void
work(struct rebuild *r, int (*fn)(struct rebuild *r, struct turn *t, const void *arg),
    const void *arg, void (*then)(void *rebuild))
{
	struct work w = { r, fn, arg, then, 0 };
	int err;

	r->busy = 1;
	err = actor_turn(r->in->actor, 1, work_turn, &w);
	if (w.ordered)
		return;
	log_event(LOG_LEVEL_WARN, "index_rebuild_waits", LOG_STR("jobId", r->job_id),
	    LOG_STR("errorCode", err_symbol(err)));
	lost(r);
}

/* ---- the end of a pass ---- */

static size_t
nshards(const struct rebuild *r)
{
	return r->in->nshards;
}

static int
end_turn(struct rebuild *r, struct turn *t, const void *arg)
{
	int err = index_count_ownerless(t->store, &r->ownerless);

	(void)arg;
	return err < 0 ? err : index_job_end(t->store, t->now_ms);
}

static void
on_ended(void *arg)
{
	struct rebuild *r = arg;

	r->busy = r->active = 0;
	log_event(LOG_LEVEL_INFO, "index_rebuild_finished", LOG_STR("jobId", r->job_id),
	    LOG_INT("projects", r->counts.projects), LOG_INT("runs", r->counts.runs),
	    LOG_INT("removed", r->removed), LOG_INT("refused", r->counts.refused),
	    LOG_INT("ownersMissing", r->ownerless),
	    LOG_INT("durationMs", mono_diff_ms(r->began, clock_mono())));
	if (r->ownerless > 0)
		log_event(LOG_LEVEL_WARN, "project_owners_missing",
		    LOG_INT("projects", r->ownerless));
	CRASH_POINT("index_rebuild_ended");
}

static void
begin_pass(struct rebuild *r)
{
	r->counts = (struct rebuild_counts) { 0 };
	for (size_t i = 0; i < ARRAY_LEN(r->shards); i++) {
		struct reading *s = &r->shards[i];

		*s = (struct reading) { .stamped = s->verified, .moves = s->moves_after };
	}
}

static int
pass_turn(struct rebuild *r, struct turn *t, const void *arg)
{
	(void)r;
	(void)arg;
	return index_job_pass(t->store);
}

static void
on_pass(void *arg)
{
	struct rebuild *r = arg;

	r->busy = 0;
	begin_pass(r);
	step_in(r, REBUILD_AGAIN_MS);
}

static int
prune_turn(struct rebuild *r, struct turn *t, const void *arg)
{
	int err = index_remove_unseen(t->store, t->arena, REMOVED_ROWS, &r->next_removed);

	(void)arg;
	return err < 0
	    ? err
	    : index_job_count(t->store, r->counts.projects, r->counts.runs, r->next_removed);
}

static void
on_pruned(void *arg)
{
	struct rebuild *r = arg;

	r->busy = 0;
	r->removed += r->next_removed;
	CRASH_POINT("index_rebuild_pruned");
	if (r->next_removed == REMOVED_ROWS) {
		step_in(r, REBUILD_PAUSE_MS);
	} else if (r->counts.refused > 0 && r->removed > 0 && !r->refused_again) {
		/* What was removed may have had the slugs. */
		r->refused_again = 1;
		work(r, pass_turn, NULL, on_pass);
	} else {
		work(r, end_turn, NULL, on_ended);
	}
}

/* All was read: does it belong together? */
static void
judge(struct rebuild *r)
{
	int settled = 1;

	for (size_t i = 0; i < nshards(r); i++)
		if (!r->shards[i].stamped || r->shards[i].moves != r->shards[i].moves_after)
			settled = 0;
	if (settled)
		work(r, prune_turn, NULL, on_pruned);
	else
		work(r, pass_turn, NULL, on_pass);
}

/* ---- a page ---- */

static int
page_turn(struct rebuild *r, struct turn *t, const void *arg)
{
	const struct project_export_index_page *page = arg;
	int err;

	r->next_counts = r->counts;
	err = rebuild_page(r->in, t, r->shard, page, &r->next_counts);
	return err < 0
	    ? err
	    : index_job_count(t->store, r->next_counts.projects, r->next_counts.runs, 0);
}

static void
on_page_kept(void *arg)
{
	struct rebuild *r = arg;
	struct reading *s = &r->shards[r->shard];

	r->busy = 0;
	r->counts = r->next_counts;
	memcpy(s->cursor, r->next_cursor, sizeof(s->cursor));
	s->read = s->cursor[0] == '\0';
	CRASH_POINT("index_rebuild_page");
	step_in(r, REBUILD_PAUSE_MS);
}

static void
on_answer(void *arg, int err, const struct project_export_index_result *res)
{
	struct rebuild *r = arg;
	struct reading *s = &r->shards[r->shard];
	const char *next;

	r->busy = 0;
	if (err < 0) {
		s->not_before = mono_add_ms(clock_mono(), REBUILD_RETRY_MS);
		step(r);
		return;
	}
	switch (r->purpose) {
	case PURPOSE_STAMP:
		s->moves = res->u.page.moves;
		s->stamped = 1;
		break;
	case PURPOSE_VERIFY:
		s->moves_after = res->u.page.moves;
		s->verified = 1;
		break;
	case PURPOSE_READ:
		next = res->u.page.next != NULL ? res->u.page.next : "";
		(void)snprintf(r->next_cursor, sizeof(r->next_cursor), "%s", next);
		work(r, page_turn, &res->u.page, on_page_kept);
		return;
	}
	step(r);
}

/* 1: it was sent. */
static int
call(struct rebuild *r, size_t shard, enum purpose purpose)
{
	struct rpc_call_opts opts = { .deadline_ms = REBUILD_CALL_MS };
	struct reading *s = &r->shards[shard];
	struct rpc_peer *peer = links_shard(r->in, (int64_t)shard);
	struct project_export_index_params p = { .limit = 1 };

	if (peer == NULL || mono_diff_ms(clock_mono(), s->not_before) > 0)
		return 0;
	if (purpose == PURPOSE_READ) {
		p.limit = REBUILD_PAGE;
		p.cursor = s->cursor[0] != '\0' ? s->cursor : NULL;
	}
	r->purpose = purpose;
	r->shard = (int64_t)shard;
	r->busy = project_export_index_call(peer, &opts, &p, on_answer, r) == 0;
	return r->busy;
}

/* ---- what comes next ---- */

static int
is_done(const struct reading *s, enum purpose purpose)
{
	switch (purpose) {
	case PURPOSE_STAMP: return s->stamped;
	case PURPOSE_READ: return s->read;
	case PURPOSE_VERIFY: return s->verified;
	}
	return 1;
}

/* A call to one of the shards that lack it.  1: it is under way; 0: no shard lacks it; -1: those
 * that do are not able now. */
static int
next_call(struct rebuild *r, enum purpose purpose)
{
	int left = 0;

	for (size_t i = 0; i < nshards(r); i++) {
		if (is_done(&r->shards[i], purpose))
			continue;
		left = 1;
		if (call(r, i, purpose))
			return 1;
	}
	return left ? -1 : 0;
}

static void
step(struct rebuild *r)
{
	int now;

	if (!r->active || r->busy)
		return;
	/* A shard that is away has no stamp in this pass, which cannot be the last then. */
	if (!r->stamps_done && next_call(r, PURPOSE_STAMP) == 1)
		return;
	r->stamps_done = 1;
	now = next_call(r, PURPOSE_READ);
	if (now == 0) {
		lacks_nothing(r);
		now = next_call(r, PURPOSE_VERIFY);
		if (now == 0)
			judge(r);
	}
	if (now < 0)
		step_in(r, REBUILD_RETRY_MS);
}

/* ---- the beginning ---- */

/* With the job of r->job_id. */
static void
start(struct rebuild *r, int resumed)
{
	r->active = 1;
	r->began = clock_mono();
	r->removed = r->ownerless = 0;
	r->refused_again = r->stamps_done = 0;
	memset(r->shards, 0, sizeof(r->shards));
	r->counts = (struct rebuild_counts) { 0 };
	CRASH_POINT("index_rebuild_began");
	log_event(LOG_LEVEL_INFO, "index_rebuild_started", LOG_STR("jobId", r->job_id),
	    LOG_INT("resumed", resumed));
	step_in(r, 0);
}

void
rebuild_start(struct rebuild *r, const char *job_id)
{
	(void)snprintf(r->job_id, sizeof(r->job_id), "%s", job_id);
	start(r, 0);
}

/* What the store asks for. */
struct opening {
	struct index_job job;
	int restored;
	enum index_gap gap;
};

static int
look_turn(void *arg, struct turn *t)
{
	struct opening *o = arg;
	int r = index_job_get(t->store, t->arena, &o->job);

	if (r == 0)
		r = store_is_restored(t->store, &o->restored);
	return r < 0 ? r : index_is_empty(t->store, &o->gap);
}

static int
is_interrupted(const struct index_job *j)
{
	return j->job_id != NULL && j->finished_at == 0;
}

static int
begin_turn(struct rebuild *r, struct turn *t, const void *arg)
{
	struct opening o;
	int err = look_turn(&o, t);

	(void)arg;
	if (err < 0)
		return err;
	if (o.restored) {
		/* Its copy and those of the shards are not of one moment. */
		err = index_empty(t->store);
		if (err == 0)
			err = store_clear_restored(t->store);
	} else if (is_interrupted(&o.job)) {
		(void)snprintf(r->job_id, sizeof(r->job_id), "%s", o.job.job_id);
		return index_job_pass(t->store);
	}
	id_hex32(r->job_id);
	return err < 0 ? err
		       : index_job_begin(t->store, r->job_id,
			     o.restored            ? "restored"
				 : !o.job.complete ? "new_store"
						   : "empty",
			     t->now_ms);
}

static void
opened(struct rebuild *r, int resumed)
{
	r->busy = 0;
	r->opened = 1;
	start(r, resumed);
}

static void
on_begun(void *arg)
{
	opened(arg, 0);
}

static void
on_resumed(void *arg)
{
	opened(arg, 1);
}

static void
open_job(struct rebuild *r)
{
	struct opening o = { .restored = 0 };
	int interrupted;

	if (r->busy)
		return;
	if (actor_turn(r->in->actor, 0, look_turn, &o) < 0) {
		step_in(r, REBUILD_RETRY_MS);
		return;
	}
	/* Whether there is a text; where it stood went with the turn. */
	interrupted = is_interrupted(&o.job);
	if (o.job.complete && !o.restored && o.gap != INDEX_GAP_PROJECTS)
		lacks_nothing(r);
	if (o.restored || interrupted || !o.job.complete || o.gap != INDEX_GAP_NONE)
		work(r, begin_turn, NULL, interrupted && !o.restored ? on_resumed : on_begun);
	else
		r->opened = 1;
}

static void
on_timer(void *arg)
{
	struct rebuild *r = arg;

	if (r->opened)
		step(r);
	else
		open_job(r);
}

struct rebuild *
rebuild_new(struct ingress *in)
{
	struct rebuild *r = mem_calloc(1, sizeof(*r));

	if (r == NULL)
		return NULL;
	r->in = in;
	r->lacking = 1; /* as long as nobody knows */
	LIST_INIT(&r->waits);
	r->timer = actor_timer_new(in->actor, on_timer, r);
	r->wait_timer = actor_timer_new(in->actor, on_wait_timer, r);
	if (r->timer == NULL || r->wait_timer == NULL || actor_timer_set(r->timer, 0) < 0)
		return rebuild_free(r);
	return r;
}

struct rebuild *
rebuild_free(struct rebuild *r)
{
	if (r == NULL)
		return NULL;
	r->timer = actor_timer_free(r->timer);
	r->wait_timer = actor_timer_free(r->wait_timer);
	let_go(r, E_DEADLINE);
	free(r);
	return NULL;
}

void
rebuild_kick(struct rebuild *r)
{
	if (r != NULL && r->active && !r->busy)
		step_in(r, 0);
}

void
rebuild_look(const struct rebuild *r, struct rebuild_view *ret)
{
	*ret = (struct rebuild_view) { .running = r->active };
	for (size_t i = 0; r->active && i < nshards(r); i++) {
		if (r->shards[i].read)
			ret->nread++;
		else if (links_shard(r->in, (int64_t)i) == NULL)
			ret->waiting[ret->nwaiting++] = (int64_t)i;
	}
}
