/* project.move, and what one shard asks of another for it: importPart, activate, discardImport
 * (spec project 17). */
#include <stdio.h>
#include <string.h>

#include "cmd/anvil-project/intake.h"
#include "cmd/anvil-project/move.h"
#include "cmd/anvil-project/notice.h"
#include "cmd/anvil-project/shard.h"
#include "gen/project.h"
#include "lib/base/crash.h"
#include "lib/base/log.h"

/* ---- from here ---- */

static int
aborted(struct project_move_result *ret, const char *reason)
{
	ret->kind = PROJECT_MOVE_ABORTED;
	ret->u.aborted.reason = reason;
	return 0;
}

static int
begin(struct shard *s, struct turn *t, const struct project_move_params *p,
    struct project_move_result *ret)
{
	int r = moves_begin(s->moves, t, p->project_id, p->to_shard);

	return r == E_BUSY ? aborted(ret, "it is on its way to another shard") : r;
}

int
project_move(struct shard *s, struct turn *t, const struct project_move_params *p,
    struct project_move_result *ret)
{
	struct ledger_move here;
	int r = ledger_move_get(t->store, p->project_id, &here);

	if (r < 0)
		return r;
	if (moves_has(s->moves, p->project_id))
		return begin(s, t, p, ret);
	switch (here.where) {
	case LEDGER_UNKNOWN: ret->kind = PROJECT_MOVE_NOT_FOUND; return 0;
	case LEDGER_MOVED:
		ret->kind = PROJECT_MOVE_MOVED;
		ret->u.moved.shard = here.to;
		return 0;
	case LEDGER_FROZEN:
	case LEDGER_INCOMING:
		ret->kind = PROJECT_MOVE_MOVING;
		ret->u.moving.retry_ms = MOVE_RETRY_MS;
		return 0;
	case LEDGER_HERE: break;
	}
	if (here.removing)
		return aborted(ret, "it is being removed");
	if (p->to_shard != s->number)
		return begin(s, t, p, ret);
	ret->kind = PROJECT_MOVE_SAME;
	return 0;
}

/* ---- to here ---- */

static void
part_is_kept(void *arg)
{
	(void)arg;
	CRASH_POINT("import_part_kept");
}

static int
refuse(struct turn *t, const struct project_import_part_params *p, int err)
{
	log_event(LOG_LEVEL_WARN, "import_refused", LOG_STR("projectId", p->project_id),
	    LOG_STR("moveId", p->move_id), LOG_INT("part", p->part),
	    LOG_STR("errorCode", err_symbol(err)));
	return turn_fail(t, E_PARAMS, "part %lld: not rows of this project (%s)",
	    (long long)p->part, err_text(err));
}

static int
take_part(struct shard *s, struct turn *t, const struct project_import_part_params *p,
    struct project_import_part_result *ret)
{
	const struct ledger_part part = { .project_id = p->project_id,
		.move_id = p->move_id,
		.part = p->part,
		.rows = p->rows };
	int r = ledger_part_add(t->store, &part);

	if (r == E_INVAL || r == E_TOO_BIG || r == E_CONSTRAINT)
		return refuse(t, p, r);
	if (r == 0)
		r = turn_after_commit(t, part_is_kept, NULL, NULL);
	if (r < 0)
		return r;
	if (p->last)
		return intakes_import(s->intakes, t, p->project_id, p->move_id, p->part);
	ret->kind = PROJECT_IMPORT_PART_STORED;
	return 0;
}

int
project_import_part(struct shard *s, struct turn *t, const struct project_import_part_params *p,
    struct project_import_part_result *ret)
{
	struct ledger_move here;
	int left, r = ledger_move_get(t->store, p->project_id, &here);

	if (r < 0)
		return r;
	if (here.where == LEDGER_HERE || here.where == LEDGER_FROZEN) {
		log_event(LOG_LEVEL_ERROR, "project_twice", LOG_STR("projectId", p->project_id),
		    LOG_STR("from", t->from));
		ret->kind = PROJECT_IMPORT_PART_REFUSED;
		ret->u.refused.reason = "the project is there already";
		return 0;
	}
	if (here.where != LEDGER_INCOMING || strcmp(here.move_id, p->move_id) != 0)
		return take_part(s, t, p, ret);
	r = ledger_import_look(t->store, p->project_id, p->move_id, &left);
	if (r == 0 && left)
		return intakes_import(s->intakes, t, p->project_id, p->move_id, 0);
	ret->kind = PROJECT_IMPORT_PART_IMPORTED;
	if (r == E_NOENT) {
		ret->kind = PROJECT_IMPORT_PART_REFUSED;
		ret->u.refused.reason = "the move was given up";
		return 0;
	}
	return r;
}

/* Its leases get 30 s as after a start, and all that should be going on begins. */
static void
is_served(void *arg)
{
	CRASH_POINT("import_activated");
	shard_recheck(arg);
}

int
project_activate(struct shard *s, struct turn *t, const struct project_activate_params *p,
    struct project_activate_result *ret)
{
	struct ledger_move here, before;
	int r = ledger_move_get(t->store, p->project_id, &before);

	if (r == 0)
		r = ledger_activate(t->store, p->project_id, p->move_id, t->now_ms, &here);
	if (r < 0)
		return r;
	switch (here.where) {
	case LEDGER_HERE:
	case LEDGER_FROZEN: ret->kind = PROJECT_ACTIVATE_LIVE; break;
	case LEDGER_MOVED:
		ret->kind = PROJECT_ACTIVATE_MOVED;
		ret->u.moved.shard = here.to;
		break;
	case LEDGER_UNKNOWN:  /* Removed since. */
	case LEDGER_INCOMING: /* It has gone on, and is on its way back. */
		ret->kind = PROJECT_ACTIVATE_NOT_FOUND;
		break;
	}
	if (before.where != LEDGER_INCOMING || here.where != LEDGER_HERE)
		return 0;
	r = notice_webhook_after(s, t, p->project_id, NULL);
	return r < 0 ? r : turn_after_commit(t, is_served, s, NULL);
}

int
project_discard_import(struct shard *s, struct turn *t,
    const struct project_discard_import_params *p, struct project_discard_import_result *ret)
{
	(void)ret;
	return intakes_discard(s->intakes, t, p->project_id, p->move_id);
}
