/* Random operations on several projects, beside a model that is nothing but a list: each answer
 * and each queue must be the model's, whatever the order. */
#include <string.h>

#include "test/support/ledger_rig.h"
#include "test/support/unit.h"

#define NPROJECTS 3
#define NRUNS     220
#define NSTEPS    1200
#define NSEEDS    12
#define NAGES     3 /* leases of a run that are remembered: the newest and two before it */

struct model_run {
	int project; /* 0: not accepted */
	int at;      /* in the order of acceptance, over all projects */
	enum ledger_state state;
	int attempts;
	int queued_there;      /* the supervisor has it       */
	int spawn;             /* that claimed last, 0: none  */
	int running;           /* a step has begun            */
	int leases;            /* claims so far               */
	char lease[NAGES][33]; /* newest first                */
};

struct model {
	struct ledger_rig *rig;
	struct model_run runs[NRUNS + 1];
	int naccepted;
	uint64_t random;
	long nops[16];
};

static int
pick(struct model *m, int n)
{
	m->random ^= m->random << 13;
	m->random ^= m->random >> 7;
	m->random ^= m->random << 17;
	return (int)(m->random % (uint64_t)n);
}

static int
is_queued(const struct model_run *r)
{
	return r->project != 0 && (r->state == LEDGER_PENDING || r->state == LEDGER_EXECUTABLE);
}

static int
is_head(const struct model_run *r)
{
	return r->project != 0 &&
	    (r->state == LEDGER_EXECUTABLE || ledger_is_claimed(r->state));
}

static int
head_of(const struct model *m, int project)
{
	for (int n = 1; n <= m->naccepted; n++)
		if (m->runs[n].project == project && is_head(&m->runs[n]))
			return n;
	return 0;
}

static int
count_queued(const struct model *m, int project)
{
	int count = 0;

	for (int n = 1; n <= m->naccepted; n++)
		count += m->runs[n].project == project && is_queued(&m->runs[n]);
	return count;
}

/* First in, first out.  Returns the run that is the head now and was not before. */
static int
promote(struct model *m, int project)
{
	if (head_of(m, project) != 0)
		return 0;
	for (int n = 1; n <= m->naccepted; n++) {
		if (m->runs[n].project == project && m->runs[n].state == LEDGER_PENDING) {
			m->runs[n].state = LEDGER_EXECUTABLE;
			return n;
		}
	}
	return 0;
}

static void
is_promoted(const struct model *m, const struct ledger_promoted *p, int n)
{
	assert_string_equal(p->run_id, n != 0 ? rig_run(m->rig, n) : "");
}

/* The lease that a process would name: the newest, an older one, or none that ever was. */
static const char *
some_lease(struct model *m, const struct model_run *r, int *ret_current)
{
	int age = pick(m, 4) == 0 ? pick(m, NAGES) : 0;

	*ret_current = age == 0 && ledger_is_claimed(r->state);
	if (age >= r->leases || r->lease[age][0] == '\0') {
		*ret_current = 0;
		return "ffffffffffffffffffffffffffffffff";
	}
	return r->lease[age];
}

/* ---- operations ---- */

static void
op_accept(struct model *m)
{
	int project = 1 + pick(m, NPROJECTS), n = m->naccepted + 1;
	struct ledger_accept q = { .project_id = rig_prj(m->rig, project),
		.run_id = rig_run(m->rig, n),
		.user_id = rig_usr(m->rig, 1) };
	enum ledger_accepted kind;
	struct ledger_run run;

	if (n > NRUNS)
		return;
	assert_int_equal(
	    ledger_accept_run(m->rig->s, m->rig->a, &q, m->rig->now, &kind, &run), 0);
	if (count_queued(m, project) >= LEDGER_QUEUE_MAX) {
		assert_int_equal(kind, LEDGER_QUEUE_FULL);
		return;
	}
	assert_int_equal(kind, LEDGER_ACCEPTED);
	m->runs[n] = (struct model_run) { .project = project,
		.state = head_of(m, project) != 0 ? LEDGER_PENDING : LEDGER_EXECUTABLE };
	m->naccepted = n;
}

static void
op_claim(struct model *m, int n)
{
	struct model_run *r = &m->runs[n];
	int spawn = pick(m, 3) == 0 && r->spawn != 0 ? r->spawn : 1000 + pick(m, 100000);
	struct ledger_claim c;

	assert_int_equal(ledger_claim_run(m->rig->s, m->rig->a, rig_run(m->rig, n),
			     rig_hex(m->rig, spawn), m->rig->now, &c),
	    0);
	if (r->state == LEDGER_EXECUTABLE) {
		assert_true(c.claimed && !c.again);
		memmove(r->lease[1], r->lease[0], sizeof(r->lease[0]) * (NAGES - 1));
		memcpy(r->lease[0], c.run.lease_id, sizeof(r->lease[0]));
		r->leases++;
		r->state = LEDGER_ACTIVE;
		r->spawn = spawn;
		r->running = 0;
		r->queued_there = 0;
		assert_int_equal(c.run.lease_epoch, r->leases);
	} else if (ledger_is_claimed(r->state) && r->spawn == spawn) {
		assert_true(c.claimed && c.again);
		assert_string_equal(c.run.lease_id, r->lease[0]);
	} else {
		assert_false(c.claimed);
	}
}

static void
op_report(struct model *m, int n)
{
	static const enum ledger_public words[] = { LEDGER_PUBLIC_QUEUED,
		LEDGER_PUBLIC_STARTING, LEDGER_PUBLIC_RUNNING, LEDGER_PUBLIC_CANCELING };
	struct model_run *r = &m->runs[n];
	enum ledger_public word = words[pick(m, ARRAY_LEN(words))];
	struct ledger_at at = rig_at(m->rig);
	struct ledger_held held;
	int current;
	const char *lease = some_lease(m, r, &current);

	assert_int_equal(
	    ledger_heartbeat(&at, rig_run(m->rig, n), lease, word, m->rig->now, &held), 0);
	assert_int_equal(held.lost, !current);
	if (current && r->state == LEDGER_ACTIVE && word == LEDGER_PUBLIC_RUNNING)
		r->running = 1;
}

static void
op_release(struct model *m, int n)
{
	struct model_run *r = &m->runs[n];
	struct ledger_at at = rig_at(m->rig);
	enum ledger_released kind;
	enum ledger_lost lost;
	int current;
	const char *lease = some_lease(m, r, &current);

	assert_int_equal(
	    ledger_release_run(&at, rig_run(m->rig, n), lease, "shutdown", &kind, &lost), 0);
	if (!current) {
		assert_int_equal(kind, LEDGER_RELEASE_LOST);
	} else if (r->state == LEDGER_CANCEL_REQUESTED) {
		assert_int_equal(kind, LEDGER_REFUSED_CANCEL_REQUESTED);
	} else if (r->running) {
		assert_int_equal(kind, LEDGER_REFUSED_STARTED);
	} else {
		assert_int_equal(kind, LEDGER_RELEASED);
		r->state = LEDGER_EXECUTABLE;
	}
}

static void
op_cancel(struct model *m, int n)
{
	struct model_run *r = &m->runs[n];
	struct ledger_at at = rig_at(m->rig);
	struct ledger_promoted promoted;
	struct ledger_run run;
	int push, next = 0, claimed = ledger_is_claimed(r->state);

	assert_int_equal(
	    ledger_cancel_run(&at, rig_run(m->rig, n), "operator", &run, &push, &promoted), 0);
	if (is_queued(r)) {
		r->state = LEDGER_CANCELED;
		next = promote(m, r->project);
	} else if (r->state == LEDGER_ACTIVE) {
		r->state = LEDGER_CANCEL_REQUESTED;
	}
	assert_int_equal(push, claimed);
	is_promoted(m, &promoted, next);
}

static void
op_settle(struct model *m, int n)
{
	struct model_run *r = &m->runs[n];
	enum ledger_state to = (enum ledger_state)(LEDGER_PASSED + pick(m, 3));
	struct ledger_end e = rig_end(m->rig, to);
	struct ledger_settlement s;
	int current, next = 0;
	const char *lease = some_lease(m, r, &current);

	assert_int_equal(ledger_finalize_run(m->rig->s, m->rig->a, rig_run(m->rig, n), lease,
			     &e, m->rig->now, &s),
	    0);
	if (!current) {
		assert_true(s.kind == LEDGER_SETTLE_LOST || ledger_is_terminal(r->state));
		assert_true(s.kind != LEDGER_SETTLED || (s.again && r->state == to));
	} else if (to == LEDGER_CANCELED && r->state == LEDGER_ACTIVE) {
		assert_int_equal(s.kind, LEDGER_SETTLE_CONFLICT);
	} else {
		assert_int_equal(s.kind, LEDGER_SETTLED);
		assert_false(s.again);
		r->state = to;
		next = promote(m, r->project);
	}
	is_promoted(m, &s.promoted, next);
}

static void
op_take_over(struct model *m, int n)
{
	struct model_run *r = &m->runs[n];
	enum ledger_state to = (enum ledger_state)(LEDGER_PASSED + pick(m, 3));
	struct ledger_end e = rig_end(m->rig, to);
	struct ledger_at at = rig_at(m->rig);
	struct ledger_promoted promoted;
	int current, done, next = 0;
	const char *lease = some_lease(m, r, &current);

	assert_int_equal(
	    ledger_take_over(&at, rig_run(m->rig, n), lease, &e, "test", &done, &promoted), 0);
	assert_int_equal(done, current);
	if (current) {
		r->state = to;
		r->lease[0][0] = '\0'; /* nobody's any more */
		next = promote(m, r->project);
	}
	is_promoted(m, &promoted, next);
}

static void
op_dispatched(struct model *m, int n)
{
	struct model_run *r = &m->runs[n];
	int own = pick(m, 4) == 0 && r->spawn != 0;

	assert_int_equal(ledger_dispatch_queued(m->rig->s, m->rig->a, rig_run(m->rig, n),
			     own ? rig_hex(m->rig, r->spawn) : NULL, "spawned", m->rig->now),
	    0);
	if (r->state == LEDGER_EXECUTABLE && !own)
		r->queued_there = 1;
}

static void
count_failure(struct model *m, struct model_run *r, const struct ledger_failure *f)
{
	int next = 0;

	assert_true(f->counted);
	r->queued_there = 0;
	assert_int_equal(f->attempt, ++r->attempts);
	assert_int_equal(f->failed, r->attempts == 6);
	if (r->attempts == 6) {
		r->state = LEDGER_FAILED;
		next = promote(m, r->project);
	}
	is_promoted(m, &f->promoted, next);
}

static void
op_failed(struct model *m, int n)
{
	struct model_run *r = &m->runs[n];
	struct ledger_failure f;

	assert_int_equal(ledger_dispatch_failed(
			     m->rig->s, m->rig->a, rig_run(m->rig, n), "fork", m->rig->now, &f),
	    0);
	if (r->state == LEDGER_EXECUTABLE)
		count_failure(m, r, &f);
	else
		assert_false(f.counted);
}

static void
op_exited(struct model *m, int n)
{
	struct model_run *r = &m->runs[n];
	int own = pick(m, 3) == 0 && r->spawn != 0;
	struct ledger_exit e = { .run_id = rig_run(m->rig, n),
		.spawn_id = rig_hex(m->rig, own ? r->spawn : 7),
		.attempt = pick(m, 4) == 0 ? r->attempts + 1 : r->attempts,
		.rebooted = pick(m, 8) == 0,
		.how = "exit status 70" };
	struct ledger_failure f;

	assert_int_equal(ledger_runner_exited(m->rig->s, m->rig->a, &e, m->rig->now, &f), 0);
	if (r->state != LEDGER_EXECUTABLE) {
		assert_false(f.counted || f.dispatch);
	} else if (own || e.rebooted) {
		assert_true(f.dispatch && !f.counted);
		r->queued_there = 0;
	} else if (r->queued_there && e.attempt == r->attempts) {
		count_failure(m, r, &f);
	} else {
		assert_false(f.counted || f.dispatch);
	}
}

/* The index confirms or refuses whatever is due, or a number of long ago. */
static void
op_sync(struct model *m, int n)
{
	struct ledger_run run = rig_row(m->rig, n);
	int64_t rev = pick(m, 3) == 0 ? run.index_rev - 1 : run.index_rev, attempt;
	int done,
	    confirms = rev == run.index_rev && run.sync != LEDGER_SYNC_CURRENT &&
	    run.sync != LEDGER_SYNC_DONE;
	struct ledger_run after;

	if (pick(m, 3) == 0) {
		assert_int_equal(ledger_sync_failed(m->rig->s, m->rig->a, run.run_id,
				     pick(m, 2), m->rig->now, &attempt),
		    0);
		return;
	}
	assert_int_equal(
	    ledger_sync_applied(m->rig->s, m->rig->a, run.run_id, rev, m->rig->now, &done), 0);
	after = rig_row(m->rig, n);
	if (!confirms)
		assert_int_equal(after.sync, run.sync);
	else
		assert_int_equal(after.sync,
		    ledger_is_terminal(run.state) ? LEDGER_SYNC_DONE : LEDGER_SYNC_CURRENT);
}

static void
op_time(struct model *m, int n)
{
	(void)n;
	m->rig->now += pick(m, 200000);
}

static void (*const ops[])(struct model *m, int n) = { op_claim, op_report, op_release,
	op_cancel, op_settle, op_take_over, op_dispatched, op_failed, op_exited, op_sync,
	op_time };

/* A run of the last ones, where things happen; now and then any other. */
static int
some_run(struct model *m)
{
	int head = head_of(m, 1 + pick(m, NPROJECTS));

	if (head != 0 && pick(m, 4) != 0)
		return head;
	return 1 + pick(m, m->naccepted);
}

/* ---- what must hold ---- */

static void
compare_queue(const struct model *m, int project)
{
	struct ledger_run *runs;
	size_t n, i = 0;

	assert_int_equal(
	    ledger_queue_list(m->rig->s, m->rig->a, rig_prj(m->rig, project), &runs, &n), 0);
	for (int r = 1; r <= m->naccepted; r++) {
		if (m->runs[r].project != project || !is_queued(&m->runs[r]))
			continue;
		assert_true(i < n);
		assert_string_equal(runs[i].run_id, rig_run(m->rig, r));
		assert_int_equal(runs[i].state, m->runs[r].state);
		i++;
	}
	assert_int_equal(i, n);
}

static void
compare_head(const struct model *m, int project)
{
	struct ledger_run head;
	int n = head_of(m, project);
	int r = ledger_run_head(m->rig->s, m->rig->a, rig_prj(m->rig, project), &head);

	assert_int_equal(r, n != 0 ? 0 : E_NOENT);
	if (n == 0)
		return;
	assert_string_equal(head.run_id, rig_run(m->rig, n));
	assert_int_equal(head.state, m->runs[n].state);
	assert_int_equal(head.dispatch_attempts, m->runs[n].attempts);
	if (head.state == LEDGER_EXECUTABLE)
		assert_int_equal(
		    head.dispatch == LEDGER_DISPATCH_QUEUED, m->runs[n].queued_there);
	else
		assert_string_equal(head.lease_id, m->runs[n].lease[0]);
}

static void
compare_all(const struct model *m)
{
	for (int n = 1; n <= m->naccepted; n++)
		assert_int_equal(rig_row(m->rig, n).state, m->runs[n].state);
	rig_sound(m->rig);
}

static void
run_one(struct ledger_rig *rig, uint64_t seed)
{
	struct model m = { .rig = rig, .random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1 };
	int nended = 0;

	for (int p = 1; p <= NPROJECTS; p++)
		rig_project(rig, p);
	for (int step = 0; step < NSTEPS; step++) {
		if (m.naccepted == 0 || pick(&m, 5) == 0) {
			op_accept(&m);
		} else {
			int op = pick(&m, ARRAY_LEN(ops));

			ops[op](&m, some_run(&m));
			m.nops[op]++;
		}
		for (int p = 1; p <= NPROJECTS; p++) {
			compare_head(&m, p);
			if (step % 8 == 0)
				compare_queue(&m, p);
		}
		if (step % 50 == 0)
			compare_all(&m);
		arena_reset(rig->a);
	}
	compare_all(&m);
	for (int n = 1; n <= m.naccepted; n++)
		nended += ledger_is_terminal(m.runs[n].state);
	assert_true(nended > 20);
	for (size_t i = 0; i < ARRAY_LEN(ops); i++)
		assert_true(m.nops[i] > 0);
}

static void
the_ledger_is_first_in_first_out_whatever_happens(void **state)
{
	for (uint64_t seed = 1; seed <= NSEEDS; seed++) {
		if (seed != 1) {
			(void)rig_teardown(state);
			(void)rig_setup(state);
		}
		run_one(*state, seed);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    the_ledger_is_first_in_first_out_whatever_happens, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
