#include "cmd/anvild/exits.h"

#include <string.h>
#include <sys/queue.h>

#include "cmd/anvild/methods.h"
#include "cmd/anvild/supervisor.h"
#include "gen/project.h"
#include "lib/base/crash.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

#define AGAIN_MS    1000
#define DEADLINE_MS 5000

struct exit_entry {
	TAILQ_ENTRY(exit_entry) link;
	uint32_t magic;
#define ENTRY_MAGIC 0x0d73e4b9
	struct exits *owner;
	struct run_exit e;
	int in_flight; /* nothing frees it meanwhile, ...                   */
	int writing;   /* ... nor until its rows are on disk, or lost       */
	int last;      /* what is being written are its last words          */
	int unwritten; /* its rows still say that it lives                  */
	int told;      /* the shard has answered: only rows are missing     */
	int complained;
};

struct exits {
	struct supervisor *sup;
	TAILQ_HEAD(, exit_entry) list;
	struct actor_timer *again;
};

static void send_one(struct exit_entry *en);
static void settle(struct exit_entry *en);

static void
on_again(void *arg)
{
	struct exits *x = arg;
	struct exit_entry *en, *next;

	for (en = TAILQ_FIRST(&x->list); en != NULL; en = next) {
		next = TAILQ_NEXT(en, link);
		if (!en->told)
			send_one(en);
		settle(en);
	}
}

struct exits *
exits_new(struct supervisor *s)
{
	struct exits *x = mem_calloc(1, sizeof(*x));

	if (x == NULL)
		return NULL;
	x->sup = s;
	TAILQ_INIT(&x->list);
	x->again = actor_timer_new(s->actor, on_again, x);
	return x->again != NULL ? x : exits_free(x);
}

struct exits *
exits_free(struct exits *x)
{
	struct exit_entry *en;

	if (x == NULL)
		return NULL;
	while ((en = TAILQ_FIRST(&x->list)) != NULL) {
		TAILQ_REMOVE(&x->list, en, link);
		en->owner = NULL;
		if (!en->in_flight && !en->writing) /* else its callback frees it */
			free(en);
	}
	actor_timer_free(x->again);
	free(x);
	return NULL;
}

/* ---- telling the shard ---- */

static int
answered_turn(void *arg, struct turn *t)
{
	CLEANUP(stmt_resetp) struct stmt *st = sup_stmt(t, SUP_EXIT_REMOVE);
	int r = stmt_bind(st, "s", (const char *)arg);

	return r < 0 ? r : stmt_run(st);
}

static int add_turn(void *arg, struct turn *t);

/* 1: nobody has it any more, and it is gone. */
static int
is_orphan(struct exit_entry *en)
{
	if (en->owner != NULL)
		return 0;
	if (!en->in_flight && !en->writing)
		free(en);
	return 1;
}

static void
rows_on_disk(void *arg)
{
	struct exit_entry *en = arg;

	OBJ_CHECK(en, ENTRY_MAGIC);
	en->writing = 0;
	if (is_orphan(en))
		return;
	en->unwritten = 0;
	if (en->last) {
		TAILQ_REMOVE(&en->owner->list, en, link);
		en->magic = 0;
		free(en);
	} else if (en->told) {
		settle(en);
	}
}

static void
rows_lost(void *arg)
{
	struct exit_entry *en = arg;

	OBJ_CHECK(en, ENTRY_MAGIC);
	en->writing = 0;
	if (is_orphan(en))
		return;
	if (en->unwritten && !en->complained)
		log_event(
		    LOG_LEVEL_WARN, "runner_end_not_recorded", LOG_STR("runId", en->e.run_id));
	en->complained = 1;
	(void)actor_timer_set(en->owner->again, AGAIN_MS);
}

static int
settle_turn(void *arg, struct turn *t)
{
	struct exit_entry *en = arg;
	int r = en->unwritten ? add_turn(&en->e, t) : 0;

	if (r == 0 && en->last)
		r = answered_turn(en->e.spawn_id, t);
	return r < 0 ? r : turn_after_commit(t, rows_on_disk, en, rows_lost);
}

/* Brings its rows up to what is known of it, again later when they cannot be written, and has
 * it freed when nothing is left to do. */
static void
settle(struct exit_entry *en)
{
	if (en->writing || (!en->unwritten && !en->told))
		return;
	en->writing = 1;
	en->last = en->told;
	if (sup_write(en->owner->sup, settle_turn, en) < 0 && en->writing)
		rows_lost(en);
}

static int
moved_turn(void *arg, struct turn *t)
{
	CLEANUP(stmt_resetp) struct stmt *st = sup_stmt(t, SUP_EXIT_MOVED);
	const struct run_exit *e = arg;
	int r = stmt_bind(st, "si", e->spawn_id, e->shard);

	return r < 0 ? r : stmt_run(st);
}

/* Without the row it is told the old shard again after a restart, and follows again. */
static void
follow(struct exit_entry *en, int64_t shard)
{
	en->e.shard = shard;
	(void)sup_write(en->owner->sup, moved_turn, &en->e);
	CRASH_POINT("supervisor_exit_moved");
	send_one(en);
}

/* A project that its shard does not know has no run that waits for this. */
static void
was_told(struct exit_entry *en)
{
	en->told = 1;
	settle(en);
}

static void
on_answer(void *arg, int err, const struct project_runner_exited_result *res)
{
	struct exit_entry *en = arg;

	OBJ_CHECK(en, ENTRY_MAGIC);
	en->in_flight = 0;
	if (is_orphan(en))
		return;
	CRASH_POINT("supervisor_exit_answered");
	if (err < 0 || res->kind == PROJECT_RUNNER_EXITED_MOVING)
		(void)actor_timer_set(en->owner->again, AGAIN_MS);
	else if (res->kind == PROJECT_RUNNER_EXITED_MOVED)
		follow(en, res->u.moved.shard);
	else
		was_told(en);
}

static void
send_one(struct exit_entry *en)
{
	static const struct rpc_call_opts opts = { .deadline_ms = DEADLINE_MS };
	const struct process_end *end = &en->e.end;
	struct project_runner_exited_params p = { .project_id = en->e.project_id,
		.run_id = en->e.run_id,
		.spawn_id = en->e.spawn_id,
		.attempt = en->e.attempt };
	struct rpc_peer *peer;
	char address[32];

	(void)snprintf(address, sizeof(address), "project/%lld", (long long)en->e.shard);
	peer = actor_peer(en->owner->sup->actor, address);
	if (peer == NULL || en->in_flight || en->told)
		return; /* when it says hello, it is told */
	methods_set_how(&p.how, end);
	if (project_runner_exited_call(peer, &opts, &p, on_answer, en) == 0)
		en->in_flight = 1;
	else
		(void)actor_timer_set(en->owner->again, AGAIN_MS);
}

void
exits_deliver(struct exits *x, int64_t shard)
{
	struct exit_entry *en;

	TAILQ_FOREACH (en, &x->list, link)
		if (en->e.shard == shard)
			send_one(en);
}

/* ---- rows ---- */

static int
add_turn(void *arg, struct turn *t)
{
	const struct run_exit *e = arg;
	CLEANUP(buf_done) struct buf how = BUF_INIT;
	int r = process_end_json(&e->end, &how);

	if (r == 0)
		r = process_forget(t, e->spawn_id);
	if (r == 0) {
		CLEANUP(stmt_resetp) struct stmt *st = sup_stmt(t, SUP_EXIT_ADD);

		r = stmt_bind(st, "sssiisi", e->spawn_id, e->run_id, e->project_id, e->shard,
		    e->attempt, buf_cstr(&how), t->now_ms);
		if (r == 0)
			r = stmt_run(st);
	}
	if (r == 0) {
		CLEANUP(stmt_resetp) struct stmt *st = sup_stmt(t, SUP_ENDED_SET);

		r = stmt_bind(st, "ssi", e->run_id, e->project_id, t->now_ms);
		if (r == 0)
			r = stmt_run(st);
	}
	return r;
}

struct exit_entry *
exits_reserve(void)
{
	struct exit_entry *en = mem_calloc(1, sizeof(*en));

	if (en != NULL)
		en->magic = ENTRY_MAGIC;
	return en;
}

static void
remember_take(struct exits *x, struct exit_entry *en, const struct run_exit *e)
{
	OBJ_CHECK(en, ENTRY_MAGIC);
	en->owner = x;
	en->e = *e;
	TAILQ_INSERT_TAIL(&x->list, en, link);
}

void
exits_add_take(struct exits *x, struct exit_entry *en, const struct run_exit *e)
{
	remember_take(x, en, e);
	en->unwritten = 1;
	settle(en);
	send_one(en);
}

static int
copy_text(struct stmt *st, int col, char *out, size_t size)
{
	const char *text = stmt_text(st, col);

	if (text == NULL || strlen(text) >= size)
		return E_CORRUPT;
	memcpy(out, text, strlen(text) + 1);
	return 0;
}

static int
load_row(struct exits *x, struct stmt *st)
{
	struct run_exit e = { .shard = stmt_int(st, 3), .attempt = stmt_int(st, 4) };
	struct exit_entry *en;

	if (copy_text(st, 0, e.spawn_id, sizeof(e.spawn_id)) < 0 ||
	    copy_text(st, 1, e.run_id, sizeof(e.run_id)) < 0 ||
	    copy_text(st, 2, e.project_id, sizeof(e.project_id)) < 0 ||
	    process_end_parse(stmt_text(st, 5), &e.end) < 0)
		return 0; /* a row that nobody can use: the re-check of the shard heals */
	en = exits_reserve();
	if (en == NULL)
		return E_NOMEM;
	remember_take(x, en, &e);
	return 0;
}

int
exits_load(struct exits *x, struct turn *t)
{
	CLEANUP(stmt_resetp) struct stmt *st = sup_stmt(t, SUP_EXIT_LIST);
	int r;

	while ((r = stmt_step(st)) == 1)
		if ((r = load_row(x, st)) < 0)
			return r;
	return r;
}

int
exits_unwritten(const struct exits *x, const char *project_id)
{
	const struct exit_entry *en;

	TAILQ_FOREACH (en, &x->list, link)
		if (en->unwritten && strcmp(en->e.project_id, project_id) == 0)
			return 1;
	return 0;
}

const struct process_end *
exits_find(const struct exits *x, const char *spawn_id)
{
	const struct exit_entry *en;

	TAILQ_FOREACH (en, &x->list, link)
		if (strcmp(en->e.spawn_id, spawn_id) == 0)
			return &en->e.end;
	return NULL;
}
