#include "cmd/anvil-project/intake.h"

#include <stdio.h>
#include <string.h>
#include <sys/queue.h>

#include "cmd/anvil-project/shard.h"
#include "gen/project.h"
#include "lib/base/crash.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

enum intake_work { INTAKE_IMPORT, INTAKE_DISCARD };

struct intake_waiter {
	STAILQ_ENTRY(intake_waiter) entry;
	struct parked *parked;
	enum intake_work work; /* That it has asked for. */
};

struct intake {
	LIST_ENTRY(intake) entry;
	uint32_t magic;
#define INTAKE_MAGIC 0x6b1f02d8
	struct intakes *owner;
	struct actor_timer *timer;
	char project_id[ID_SIZE], move_id[ID_HEX32_SIZE];
	enum intake_work work;
	int64_t nparts;
	int left;    /* More is to be done than the turn has that is on its way to disk. */
	int pending; /* A commit will come back to us ... */
	int ended;   /* ... and finds that it is over.    */
	STAILQ_HEAD(, intake_waiter) waiters;
};

struct intakes {
	struct shard *shard;
	LIST_HEAD(, intake) list;
};

/* ---- life ---- */

struct intakes *
intakes_new(struct shard *s)
{
	struct intakes *m = mem_calloc(1, sizeof(*m));

	if (m == NULL)
		return NULL;
	m->shard = s;
	LIST_INIT(&m->list);
	return m;
}

static void
tell_done(const struct intake_waiter *w)
{
	const struct project_import_part_result imported = { .kind =
								 PROJECT_IMPORT_PART_IMPORTED };
	const struct project_discard_import_result discarded = {
		.kind = PROJECT_DISCARD_IMPORT_DISCARDED
	};

	if (w->work == INTAKE_IMPORT)
		parked_reply(w->parked, &imported);
	else
		parked_reply(w->parked, &discarded);
}

/* ${err} 0: it is done. */
static void
answer(struct intake *in, int err, const char *why)
{
	struct intake_waiter *w;

	while ((w = STAILQ_FIRST(&in->waiters)) != NULL) {
		STAILQ_REMOVE_HEAD(&in->waiters, entry);
		if (err < 0)
			parked_error(w->parked, err, why);
		else
			tell_done(w);
		free(w);
	}
}

static void
intake_destroy(struct intake *in)
{
	in->magic = 0;
	free(in);
}

static void
intake_end(struct intake *in, int err, const char *why)
{
	answer(in, err, why);
	LIST_REMOVE(in, entry);
	in->timer = actor_timer_free(in->timer);
	if (in->pending)
		in->ended = 1; /* its commit frees it */
	else
		intake_destroy(in);
}

struct intakes *
intakes_free(struct intakes *m)
{
	struct intake *in;

	if (m == NULL)
		return NULL;
	while ((in = LIST_FIRST(&m->list)) != NULL)
		intake_end(in, E_DRAINING, NULL);
	free(m);
	return NULL;
}

void
intakes_leave(struct intakes *m)
{
	struct intake *in;

	LIST_FOREACH (in, &m->list, entry)
		answer(in, E_DRAINING, NULL);
}

/* ---- a piece ---- */

/* 1 when it has ended meanwhile and is freed now. */
static int
came_back(struct intake *in)
{
	OBJ_CHECK(in, INTAKE_MAGIC);
	in->pending = 0;
	if (!in->ended)
		return 0;
	intake_destroy(in);
	return 1;
}

static void
on_kept(void *arg)
{
	struct intake *in = arg;
	struct shard *s;

	if (came_back(in))
		return;
	if (in->left) {
		CRASH_POINT("import_part_made");
		(void)actor_timer_set(in->timer, 0);
		return;
	}
	s = in->owner->shard;
	if (in->work == INTAKE_IMPORT)
		CRASH_POINT("import_copy_made");
	else
		CRASH_POINT("import_dropped");
	intake_end(in, 0, NULL);
	actor_truncate_log(s->actor); /* There were secrets in the parts, if sealed ones. */
}

/* It may be asked again for. */
static void
on_lost(void *arg)
{
	struct intake *in = arg;

	if (!came_back(in))
		intake_end(in, E_STORAGE, NULL);
}

static void
on_asked(void *arg)
{
	struct intake *in = arg;

	if (!came_back(in))
		(void)actor_timer_set(in->timer, 0);
}

struct piece {
	struct intake *intake;
	int registered; /* The commit tells what has become of it, maybe before we hear of it. */
};

static int
piece_turn(void *arg, struct turn *t)
{
	struct piece *p = arg;
	struct intake *in = p->intake;
	const struct ledger_at at = { t->store, t->arena, t->now_ms };
	int r = in->work == INTAKE_IMPORT
	    ? ledger_import(&at, in->project_id, in->move_id, in->nparts, &in->left)
	    : ledger_discard(t->store, in->project_id, in->move_id, &in->left);

	if (r == 0)
		r = turn_after_commit(t, on_kept, in, on_lost);
	p->registered = r == 0;
	return r;
}

static void
refuse(struct intake *in, int err)
{
	char why[128];

	log_event(LOG_LEVEL_WARN, "import_refused", LOG_STR("projectId", in->project_id),
	    LOG_STR("moveId", in->move_id), LOG_STR("errorCode", err_symbol(err)));
	(void)snprintf(why, sizeof(why), "not rows of this project (%s)", err_text(err));
	intake_end(in, E_PARAMS, why);
}

static void
on_timer(void *arg)
{
	struct intake *in = arg;
	struct piece p = { .intake = in };
	int r;

	OBJ_CHECK(in, INTAKE_MAGIC);
	if (in->pending)
		return;
	in->pending = 1;
	r = actor_turn(in->owner->shard->actor, 1, piece_turn, &p);
	if (p.registered)
		return;
	in->pending = 0;
	switch (r) {
	case E_INVAL:
	case E_EXISTS:
	case E_CONSTRAINT:
	case E_ILLEGAL: refuse(in, r); break;
	default: intake_end(in, r, NULL);
	}
}

/* ---- the beginning ---- */

static struct intake *
find(const struct intakes *m, const char *move_id)
{
	struct intake *in;

	LIST_FOREACH (in, &m->list, entry)
		if (strcmp(in->move_id, move_id) == 0)
			return in;
	return NULL;
}

/* Its first piece waits until the turn that asks for it is on disk: without the part that came
 * along, it would refuse for good what may only be sent again. */
static struct intake *
intake_new(struct intakes *m, struct turn *t, const char *project_id, const char *move_id)
{
	struct intake *in = mem_calloc(1, sizeof(*in));

	if (in == NULL)
		return NULL;
	in->magic = INTAKE_MAGIC;
	in->owner = m;
	(void)snprintf(in->project_id, sizeof(in->project_id), "%s", project_id);
	(void)snprintf(in->move_id, sizeof(in->move_id), "%s", move_id);
	STAILQ_INIT(&in->waiters);
	LIST_INSERT_HEAD(&m->list, in, entry);
	in->timer = actor_timer_new(m->shard->actor, on_timer, in);
	if (in->timer == NULL || turn_after_commit(t, on_asked, in, on_lost) < 0) {
		intake_end(in, E_NOMEM, NULL);
		return NULL;
	}
	in->pending = 1;
	return in;
}

static int
join(struct intake *in, struct turn *t, enum intake_work work)
{
	struct intake_waiter *w = mem_calloc(1, sizeof(*w));

	if (w == NULL || (w->parked = turn_park(t)) == NULL) {
		free(w);
		return E_NOMEM;
	}
	w->work = work;
	STAILQ_INSERT_TAIL(&in->waiters, w, entry);
	return TURN_PARKED;
}

int
intakes_import(struct intakes *m, struct turn *t, const char *project_id, const char *move_id,
    int64_t nparts)
{
	struct intake *in = find(m, move_id);

	if (in != NULL && in->work == INTAKE_DISCARD)
		return turn_fail(t, E_PARAMS, "the move was given up");
	if (in == NULL) {
		in = intake_new(m, t, project_id, move_id);
		if (in == NULL)
			return E_NOMEM;
		in->nparts = nparts;
	}
	return join(in, t, INTAKE_IMPORT);
}

int
intakes_discard(struct intakes *m, struct turn *t, const char *project_id, const char *move_id)
{
	struct intake *in = find(m, move_id);

	if (in != NULL && in->work == INTAKE_IMPORT) {
		answer(in, E_PARAMS, "the move was given up");
		in->work = INTAKE_DISCARD;
		in->left = 1;
	}
	if (in == NULL) {
		in = intake_new(m, t, project_id, move_id);
		if (in == NULL)
			return E_NOMEM;
		in->work = INTAKE_DISCARD;
	}
	return join(in, t, INTAKE_DISCARD);
}
