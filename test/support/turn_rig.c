#include "test/support/turn_rig.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/event.h>

#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

/* ---- a small program ---- */

enum { STMT_PUT, STMT_COUNT_ROWS, STMT_COUNT };

static const struct store_stmt_row stmts[] = {
	{ "PUT", 1, "INSERT INTO t(n) VALUES(?1)" },
	{ "COUNT_ROWS", 0, "SELECT count(*) FROM t" },
};
static const struct store_migration migrations[] = {
	{ "0001_t", "CREATE TABLE t(n INTEGER PRIMARY KEY) STRICT;" },
};
static const size_t nmigrations = 1;
static const struct store_desc store_desc = { "test", migrations, &nmigrations, stmts,
	STMT_COUNT, STORE_SYNC_FULL };

struct params {
	int64_t n;
};

struct effect {
	struct test_program *prog;
	int64_t n;
};

static int
decode(struct codec *c, const json_t *params, void *ret)
{
	struct params *p = ret;
	const json_t *n = json_object_get(params, "n");

	(void)c;
	if (!json_is_integer(n))
		return E_PARAMS;
	p->n = json_integer_value(n);
	return 0;
}

static int
encode(struct buf *out, const void *result)
{
	const struct result *r = result;

	return buf_printf(out, "{\"n\":%lld}", (long long)r->n);
}

static void
effect_on_disk(void *arg)
{
	struct effect *e = arg;

	buf_printf(&e->prog->trail, "e%lld ", (long long)e->n);
	free(e);
}

static void
effect_dropped(void *arg)
{
	struct effect *e = arg;

	buf_printf(&e->prog->trail, "d%lld ", (long long)e->n);
	free(e);
}

int
turn_rig_put_row(struct turn *t, int64_t n)
{
	struct stmt *s = store_stmt(t->store, STMT_PUT);
	int r = stmt_bind(s, "i", n);

	return r < 0 ? r : stmt_run(s);
}

int
turn_rig_add_effect(struct test_program *prog, struct turn *t, int64_t n)
{
	struct effect *e = mem_calloc(1, sizeof(*e));
	int r;

	if (e == NULL)
		return E_NOMEM;
	e->prog = prog;
	e->n = n;
	r = turn_after_commit(t, effect_on_disk, e, effect_dropped);
	if (r < 0)
		free(e);
	return r;
}

static int
run_put(void *ctx, struct turn *t, const void *params, void *ret)
{
	const struct params *p = params;
	struct result *result = ret;
	int r = turn_rig_add_effect(ctx, t, p->n);

	if (r == 0)
		r = turn_rig_put_row(t, p->n);
	result->n = p->n;
	return r;
}

static int
run_put_and_fail(void *ctx, struct turn *t, const void *params, void *ret)
{
	int r = run_put(ctx, t, params, ret);

	return r < 0 ? r : turn_fail(t, E_ILLEGAL, "not this one");
}

static int
run_count(void *ctx, struct turn *t, const void *params, void *ret)
{
	CLEANUP(stmt_resetp) struct stmt *s = store_stmt(t->store, STMT_COUNT_ROWS);
	struct result *result = ret;

	(void)ctx;
	(void)params;
	if (stmt_step(s) != 1)
		return E_STORAGE;
	result->n = stmt_int(s, 0);
	return 0;
}

/* SQLite may undo the whole transaction in the middle of a handler. */
static int
run_lose(void *ctx, struct turn *t, const void *params, void *ret)
{
	int r = run_put(ctx, t, params, ret);

	store_rollback(t->store);
	return r;
}

static int
run_park(void *ctx, struct turn *t, const void *params, void *ret)
{
	struct test_program *prog = ctx;
	const struct params *p = params;
	struct parked *parked;

	(void)ret;
	if (p->n > 0) {
		int r = turn_rig_put_row(t, p->n);

		if (r < 0)
			return r;
	}
	parked = turn_park(t);
	if (parked == NULL)
		return E_NOMEM;
	prog->parked[prog->nparked++] = parked;
	return TURN_PARKED;
}

static int
run_tick(void *ctx, struct turn *t, const void *params, void *ret)
{
	const struct params *p = params;

	(void)ret;
	return turn_rig_add_effect(ctx, t, p->n);
}

#define ROW(nm, who, mode, fn)                                                               \
	{                                                                                    \
		.name = nm, .from = who, .turn = mode, .params_size = sizeof(struct params), \
		.result_size = sizeof(struct result), .decode = decode, .run = fn,           \
		.encode = encode                                                             \
	}

static const struct rpc_method methods[] = {
	ROW("t.put", ROLE_CTL, RPC_TURN_WRITE, run_put),
	ROW("t.putAndFail", ROLE_CTL, RPC_TURN_WRITE, run_put_and_fail),
	ROW("t.lose", ROLE_CTL, RPC_TURN_WRITE, run_lose),
	ROW("t.count", ROLE_CTL, RPC_TURN_READ, run_count),
	ROW("t.park", ROLE_CTL, RPC_TURN_WRITE, run_park),
	ROW("t.parkRead", ROLE_CTL, RPC_TURN_READ, run_park),
	ROW("t.forRuns", ROLE_RUN, RPC_TURN_READ, run_count),
	{ .name = "t.tick",
	    .from = ROLE_CTL,
	    .turn = RPC_TURN_WRITE,
	    .notification = 1,
	    .params_size = sizeof(struct params),
	    .decode = decode,
	    .run = run_tick },
};
static const size_t nmethods = ARRAY_LEN(methods);

static void
inspect(void *ctx, struct buf *out)
{
	(void)ctx;
	buf_add_str(out, "{\"mood\":\"fine\"}");
}

static void
on_drain(void *ctx)
{
	struct test_program *prog = ctx;

	if (!prog->hold_drain)
		actor_drained(prog->actor);
}

const struct actor_desc turn_rig_desc = { .role = ROLE_PROJECT,
	.methods = methods,
	.nmethods = &nmethods,
	.store = &store_desc,
	.inspect = inspect,
	.on_drain = on_drain };

/* ---- clients ---- */

static void
on_up(void *arg, struct link *l, struct rpc_peer *p)
{
	struct fix *f = arg;

	(void)l;
	(void)p;
	f->up = 1;
}

void
turn_rig_on_answer(void *arg, const struct rpc_answer *a)
{
	struct answers *got = arg;
	CLEANUP(buf_done) struct buf text = BUF_INIT;

	assert_true(got->n < ANSWERS_MAX);
	got->err[got->n] = a->err;
	got->value[got->n] = json_integer_value(json_object_get(a->result, "n"));
	if (a->message != NULL)
		strncpy(got->message, a->message, sizeof(got->message) - 1);
	if (a->result != NULL && json_text_dump(&text, a->result) == 0)
		(void)snprintf(got->text, sizeof(got->text), "%s", buf_cstr(&text));
	if (a->err == 0)
		buf_printf(&got->prog->trail, "r%lld ", got->value[got->n]);
	else
		buf_printf(&got->prog->trail, "x ");
	got->n++;
}

int
turn_rig_setup(void **state)
{
	static const struct link_ops ops = { .on_up = on_up };
	struct fix *f = calloc(1, sizeof(*f));
	struct actor_place place = { .address = "project/0" };
	char path[100], lock[100], *why = NULL;
	struct link_desc link = { .to = "project/0", .role = ROLE_CTL, .address = "ctl" };

	assert_non_null(f);
	log_set_level(LOG_LEVEL_ERROR);
	(void)snprintf(f->dir, sizeof(f->dir), "/tmp/anvil-turn-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	(void)snprintf(path, sizeof(path), "%s/t.db", f->dir);
	(void)snprintf(lock, sizeof(lock), "%s/t.lock", f->dir);
	place.runtime_dir = f->dir;
	place.store_path = path;
	place.lock_path = lock;
	assert_int_equal(actor_new(&turn_rig_desc, &place, &f->a, &why), 0);
	/* However slow the machine: only the number of turns bounds a batch. */
	f->a->batch_us = INT64_MAX;
	f->prog.actor = f->a;
	f->got.prog = &f->prog;
	actor_set_ctx(f->a, &f->prog);
	f->dirfd = io_open_dir(AT_FDCWD, f->dir);
	link.dirfd = f->dirfd;
	f->link = link_new(actor_loop(f->a), &link, &ops, f);
	assert_non_null(f->link);
	while (!f->up)
		actor_step(f->a);
	*state = f;
	return 0;
}

int
turn_rig_teardown(void **state)
{
	struct fix *f = *state;
	char command[200];

	store_fault_arm(STORE_FAULT_NONE, 0);
	f->link = link_free(f->link);
	while (f->prog.nparked > 0)
		parked_drop(f->prog.parked[--f->prog.nparked]);
	f->a = actor_free(f->a);
	buf_done(&f->prog.trail);
	io_close(&f->dirfd);
	(void)snprintf(command, sizeof(command), "rm -rf %s", f->dir);
	assert_int_equal(system(command), 0);
	free(f);
	return 0;
}

void
turn_rig_send_n(struct fix *f, const char *method, int n)
{
	CLEANUP(buf_done) struct buf params = BUF_INIT;

	buf_printf(&params, "{\"n\":%d}", n);
	assert_int_equal(
	    rpc_send(link_peer(f->link), method, &params, NULL, turn_rig_on_answer, &f->got),
	    0);
}

void
turn_rig_wait_answers(struct fix *f, size_t n)
{
	while (f->got.n < n)
		(void)event_base_loop(actor_loop(f->a), EVLOOP_ONCE);
}

long long
turn_rig_count_rows(struct fix *f)
{
	size_t at = f->got.n;

	turn_rig_send_n(f, "t.count", 0);
	turn_rig_wait_answers(f, at + 1);
	assert_int_equal(f->got.err[at], 0);
	return f->got.value[at];
}

const char *
turn_rig_trail(struct fix *f)
{
	return f->prog.trail.len == 0 ? "" : buf_cstr(&f->prog.trail);
}
