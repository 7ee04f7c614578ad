/*
 * test/unit/test_anvil-ingress_rebuild.c -- filling the index from two shards that the test plays:
 * who is read when, projects that move meanwhile, commits that are lost, jobs that go on.  It
 * stands in for links.c, for the stubs of the shards, for turns and for timers.
 */
#include <stdio.h>
#include <string.h>

#include "cmd/anvil-ingress/hub_row.h"
#include "cmd/anvil-ingress/links.h"
#include "cmd/anvil-ingress/rebuild.h"
#include "gen/project.h"
#include "lib/base/err.h"
#include "lib/base/id.h"
#include "lib/base/mem.h"
#include "test/support/index_rig.h"
#include "test/support/unit.h"

#define SHARDS    2
#define ROWS_MAX  400
#define STEPS_MAX 2000

static struct index_rig *rig;
static struct ingress in;

/* ---- time: the two timers that a rebuild has ---- */

struct actor_timer {
	void (*fn)(void *arg);
	void *arg;
	int is_set;
};

static struct actor_timer *first_timer; /* of the next step; the other is for who waits */

struct actor_timer *
actor_timer_new(struct actor *a, void (*fn)(void *arg), void *arg)
{
	struct actor_timer *t = mem_calloc(1, sizeof(*t));

	(void)a;
	*t = (struct actor_timer) { fn, arg, 0 };
	if (first_timer == NULL)
		first_timer = t;
	return t;
}

struct actor_timer *
actor_timer_free(struct actor_timer *t)
{
	if (t == first_timer)
		first_timer = NULL;
	return mem_free(t);
}

int
actor_timer_set(struct actor_timer *t, int64_t ms)
{
	(void)ms;
	t->is_set = 1;
	return 0;
}

int
actor_timer_is_set(const struct actor_timer *t)
{
	return t->is_set;
}

/* ---- turns: what follows a commit waits until the test lets it ---- */

static struct effect {
	void (*fn)(void *arg);
	void (*drop)(void *arg);
	void *arg;
} effect;
static int lose_commits; /* so many from now */

int
actor_turn(struct actor *a, int write, int (*fn)(void *arg, struct turn *t), void *arg)
{
	struct turn t = { .store = rig->s, .arena = rig->a, .now_ms = INDEX_RIG_NOW };
	int r;

	(void)a;
	assert_null(effect.fn);
	if (write)
		assert_int_equal(store_exec(rig->s, "SAVEPOINT turn"), 0);
	r = fn(arg, &t);
	if (write && r < 0)
		assert_int_equal(store_exec(rig->s, "ROLLBACK TO turn"), 0);
	if (write && effect.fn == NULL)
		assert_int_equal(store_exec(rig->s, "RELEASE turn"), 0);
	return r;
}

int
turn_after_commit(struct turn *t, void (*fn)(void *arg), void *arg, void (*drop)(void *arg))
{
	(void)t;
	effect = (struct effect) { fn, drop, arg };
	return 0;
}

static void
commit(void)
{
	struct effect e = effect;
	int lost = lose_commits > 0;

	effect.fn = NULL;
	if (lost) {
		lose_commits--;
		assert_int_equal(store_exec(rig->s, "ROLLBACK TO turn"), 0);
	}
	assert_int_equal(store_exec(rig->s, "RELEASE turn"), 0);
	(lost ? e.drop : e.fn)(e.arg);
}

void
hub_row_changes(struct ingress *i, struct turn *t, const char *run_id)
{
	(void)i;
	(void)t;
	(void)run_id;
}

/* ---- the shards ---- */

/* Projects and runs by number; run n is of project n. */
static struct shard {
	int is_down;
	int64_t moves;
	enum project_phase phase[ROWS_MAX];
	int has[ROWS_MAX];
	int nread; /* pages */
} shards[SHARDS];

static struct {
	project_export_index_fn *cb;
	void *arg;
	int64_t shard, limit;
	char cursor[130];
} asked;
static void (*before_answer)(int64_t shard, int64_t limit);

struct rpc_peer *
links_shard(const struct ingress *i, int64_t number)
{
	(void)i;
	return shards[number].is_down ? NULL : (struct rpc_peer *)(void *)&shards[number];
}

int
project_export_index_call(struct rpc_peer *p, const struct rpc_call_opts *opts,
    const struct project_export_index_params *params, project_export_index_fn *cb, void *arg)
{
	assert_null(asked.cb);
	assert_int_equal(opts->deadline_ms, REBUILD_CALL_MS);
	asked.cb = cb;
	asked.arg = arg;
	asked.shard = (struct shard *)(void *)p - shards;
	asked.limit = params->limit;
	(void)snprintf(asked.cursor, sizeof(asked.cursor), "%s",
	    params->cursor != NULL ? params->cursor : "");
	return 0;
}

static void
add_project(struct project_export_index_page *page, struct exported_project *row, int n,
    const struct shard *s)
{
	struct index_project p = index_rig_project(rig, n, 1);

	*row = (struct exported_project) { .rev = 2, .phase = s->phase[n] };
	row->project = (struct project_config) { .project_id = p.id,
		.owner_user_id = p.owner_user_id,
		.owner_slug = p.owner_slug,
		.project_slug = p.slug,
		.name = p.name,
		.repo_url = p.repo_url,
		.default_branch = p.default_branch,
		.config_path = p.config_path,
		.created_at = p.created_at,
		.updated_at = p.updated_at };
	page->nprojects++;
}

static void
add_run(struct project_export_index_page *page, struct run_row *row, int n)
{
	struct index_run r = index_rig_run(rig, n, n);

	*row = (struct run_row) { .run_id = r.id,
		.project_id = r.project_id,
		.rev = 3,
		.trigger_type = TRIGGER_TYPE_MANUAL,
		.triggered_by_user_id = r.triggered_by_user_id,
		.branch = r.branch,
		.status = RUN_STATUS_QUEUED,
		.queued_at = r.queued_at };
	page->nruns++;
}

static void
answer(void)
{
	struct project_export_index_result res = { .kind = PROJECT_EXPORT_INDEX_PAGE };
	struct project_export_index_page *page = &res.u.page;
	struct exported_project *projects = mem_calloc(REBUILD_PAGE, sizeof(*projects));
	struct run_row *runs = mem_calloc(REBUILD_PAGE, sizeof(*runs));
	project_export_index_fn *cb = asked.cb;
	struct shard *s = &shards[asked.shard];

	asked.cb = NULL;
	if (before_answer != NULL)
		before_answer(asked.shard, asked.limit);
	s->nread += asked.limit > 1;
	page->projects = projects;
	page->runs = runs;
	page->moves = s->moves;
	for (int kind = 0; kind < 2; kind++)
		for (int n = 0; n < ROWS_MAX; n++) {
			const char *id = index_rig_id(rig, kind == 0 ? "prj_" : "run_", n);

			if (!s->has[n] || strcmp(id, asked.cursor) <= 0 ||
			    (int64_t)(page->nprojects + page->nruns) == asked.limit)
				continue;
			if (kind == 0)
				add_project(page, &projects[page->nprojects], n, s);
			else
				add_run(page, &runs[page->nruns], n);
			if ((int64_t)(page->nprojects + page->nruns) == asked.limit)
				page->next = id;
		}
	cb(asked.arg, 0, &res);
	mem_free(projects);
	mem_free(runs);
}

/* Until nothing is under way but waiting for a shard. */
static void
go_on(struct rebuild *r)
{
	struct rebuild_view v;
	int steps = 0, idle = 0;

	do {
		assert_true(++steps < STEPS_MAX);
		if (effect.fn != NULL) {
			commit();
		} else if (asked.cb != NULL) {
			answer();
		} else {
			idle = !first_timer->is_set;
			first_timer->is_set = 0;
			if (!idle)
				first_timer->fn(first_timer->arg);
			rebuild_look(r, &v);
			/* Only a timer remains, and it waits for who is away. */
			idle |= effect.fn == NULL && asked.cb == NULL && v.running &&
			    v.nwaiting > 0;
		}
	} while (!idle);
}

static void
own(int shard, int from, int to)
{
	for (int n = from; n <= to; n++) {
		shards[shard].has[n] = 1;
		shards[shard].phase[n] = PROJECT_PHASE_LIVE;
	}
}

static void
move(int from, int to, int n)
{
	shards[from].has[n] = 0;
	shards[from].moves += 1000 + n;
	own(to, n, n);
}

/* ---- what is in the index ---- */

static int64_t
shard_of(int n)
{
	struct index_project p;
	int r = index_project_get(rig->s, rig->a, index_rig_id(rig, "prj_", n), &p);

	return r < 0 ? -1 : p.shard;
}

static int
has_run(int n)
{
	struct index_run run;

	return index_run_get(rig->s, rig->a, index_rig_id(rig, "run_", n), &run) == 0;
}

static struct index_job
job(void)
{
	struct index_job j;

	assert_int_equal(index_job_get(rig->s, rig->a, &j), 0);
	return j;
}

static void
expect_all(int shard, int from, int to)
{
	for (int n = from; n <= to; n++) {
		assert_int_equal(shard_of(n), shard);
		assert_true(has_run(n));
	}
}

static int
begin(void **state)
{
	int r = index_rig_setup(state);

	rig = *state;
	memset(shards, 0, sizeof(shards));
	memset(&asked, 0, sizeof(asked));
	effect.fn = NULL;
	before_answer = NULL;
	lose_commits = 0;
	in = (struct ingress) { .magic = INGRESS_MAGIC, .nshards = SHARDS };
	return r;
}

/* ---- tests ---- */

static void
a_new_store_is_filled_from_all_shards(void **state)
{
	struct rebuild *r = rebuild_new(&in);

	(void)state;
	own(0, 1, 150);
	own(1, 151, 153);
	assert_true(rebuild_may_lack(r));
	go_on(r);
	assert_false(rebuild_may_lack(r));
	expect_all(0, 1, 150);
	expect_all(1, 151, 153);
	assert_true(job().complete);
	assert_string_equal(job().reason, "new_store");
	assert_int_equal(job().projects, 153);
	assert_int_equal(job().runs, 153);
	assert_int_equal(job().pass, 1);
	(void)rebuild_free(r);
}

static int woken, woken_err;

static void
on_woken(struct rebuild_wait *w, int err)
{
	(void)w;
	woken++;
	woken_err = err;
}

static void
a_shard_that_is_away_keeps_it_from_ending_and_nothing_else(void **state)
{
	struct rebuild *r = rebuild_new(&in);
	struct rebuild_wait w = { .done = on_woken }, left = { .done = on_woken };
	struct rebuild_view v;

	(void)state;
	woken = 0;
	own(0, 1, 3);
	own(1, 4, 5);
	shards[0].is_down = 1;
	rebuild_wait(r, &w);
	go_on(r);
	expect_all(1, 4, 5);
	assert_false(job().complete);
	assert_true(rebuild_may_lack(r));
	rebuild_look(r, &v);
	assert_int_equal(v.nread, 1);
	assert_int_equal(v.nwaiting, 1);
	assert_int_equal(v.waiting[0], 0);
	assert_int_equal(woken, 0);
	shards[0].is_down = 0;
	rebuild_kick(r);
	go_on(r);
	expect_all(0, 1, 3);
	assert_true(job().complete);
	assert_int_equal(job().pass, 2); /* nobody knew what moved while it was away */
	assert_int_equal(woken, 1);
	assert_int_equal(woken_err, 0);
	rebuild_wait(r, &left);
	(void)rebuild_free(r);
	assert_int_equal(woken, 2);
	assert_int_equal(woken_err, E_DEADLINE);
}

/* From the shard that is read last to the one that is read first, when that has been read. */
static void
move_behind(int64_t shard, int64_t limit)
{
	if (shard == 1 && limit > 1 && shards[1].has[7])
		move(1, 0, 7);
}

static void
a_project_that_moves_behind_the_reader_is_not_missed(void **state)
{
	struct rebuild *r = rebuild_new(&in);

	(void)state;
	own(0, 1, 3);
	own(1, 7, 9);
	before_answer = move_behind;
	go_on(r);
	expect_all(0, 1, 3);
	expect_all(0, 7, 7);
	expect_all(1, 8, 9);
	assert_true(job().complete);
	assert_int_equal(job().pass, 2);
	assert_int_equal(job().removed, 0);
	assert_int_equal(job().projects, 6);
	(void)rebuild_free(r);
}

static void
what_two_shards_have_is_where_its_owner_is(void **state)
{
	struct rebuild *r = rebuild_new(&in);

	(void)state;
	own(0, 1, 2);
	own(1, 1, 2);
	shards[0].phase[1] = PROJECT_PHASE_FROZEN;
	shards[1].phase[1] = PROJECT_PHASE_INCOMING;
	shards[0].phase[2] = PROJECT_PHASE_INCOMING;
	shards[1].phase[2] = PROJECT_PHASE_FROZEN;
	go_on(r);
	expect_all(0, 1, 1);
	expect_all(1, 2, 2);
	(void)rebuild_free(r);
}

static void
what_a_lost_commit_held_is_read_again(void **state)
{
	struct rebuild *r = rebuild_new(&in);

	(void)state;
	own(0, 1, 120);
	own(1, 121, 125);
	lose_commits = 1; /* of the beginning */
	go_on(r);
	assert_true(job().complete);
	for (int i = 0; i < 8; i++) {
		(void)rebuild_free(r);
		assert_int_equal(index_empty(rig->s), 0);
		r = rebuild_new(&in);
		first_timer->is_set = 0;
		first_timer->fn(first_timer->arg);
		for (int skip = 0; skip <= i; skip++)
			if (effect.fn != NULL)
				commit();
			else if (asked.cb != NULL)
				answer();
		lose_commits = 1;
		go_on(r);
		assert_int_equal(lose_commits, 0);
		expect_all(0, 1, 120);
		expect_all(1, 121, 125);
		assert_true(job().complete);
		assert_string_equal(job().reason, "empty");
		assert_int_equal(job().runs, 125);
	}
	(void)rebuild_free(r);
}

static void
a_job_goes_on_in_the_next_process(void **state)
{
	struct rebuild *r = rebuild_new(&in);
	char id[ID_HEX32_SIZE];

	(void)state;
	own(0, 1, 250);
	first_timer->is_set = 0;
	first_timer->fn(first_timer->arg);
	commit();
	(void)snprintf(id, sizeof(id), "%s", job().job_id);
	(void)rebuild_free(r);
	r = rebuild_new(&in);
	assert_true(rebuild_may_lack(r));
	go_on(r);
	assert_string_equal(job().job_id, id);
	assert_true(job().complete);
	expect_all(0, 1, 250);
	(void)rebuild_free(r);
}

static void
a_project_that_nobody_knows_goes_and_gives_its_slug_back(void **state)
{
	struct index_project ghost = index_rig_project(rig, 90, 1);
	struct index_run run = index_rig_run(rig, 90, 90);
	struct rebuild *r;

	(void)state;
	own(1, 1, 2);
	ghost.slug = index_rig_project(rig, 2, 1).slug;
	assert_int_equal(index_project_upsert(rig->s, &ghost), 0);
	assert_int_equal(index_run_upsert(rig->s, &run), 0);
	r = rebuild_new(&in);
	go_on(r);
	assert_int_equal(shard_of(90), -1);
	assert_false(has_run(90));
	expect_all(1, 1, 2);
	assert_int_equal(job().removed, 1);
	assert_true(job().complete);
	(void)rebuild_free(r);
}

static void
an_index_that_is_whole_is_left_alone(void **state)
{
	struct index_run run = index_rig_run(rig, 1, 1);
	struct rebuild *r;

	(void)state;
	own(0, 1, 1);
	assert_int_equal(index_job_begin(rig->s, "0123456789abcdef0123456789abcdef",
			     "new_store", INDEX_RIG_NOW),
	    0);
	assert_int_equal(index_job_end(rig->s, INDEX_RIG_NOW), 0);
	index_rig_add_project(rig, 1, 1);
	assert_int_equal(index_run_upsert(rig->s, &run), 0);
	r = rebuild_new(&in);
	go_on(r);
	assert_false(rebuild_may_lack(r));
	assert_int_equal(shards[0].nread + shards[1].nread, 0);
	(void)rebuild_free(r);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, begin, index_rig_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_new_store_is_filled_from_all_shards),
		TEST(a_shard_that_is_away_keeps_it_from_ending_and_nothing_else),
		TEST(a_project_that_moves_behind_the_reader_is_not_missed),
		TEST(what_two_shards_have_is_where_its_owner_is),
		TEST(what_a_lost_commit_held_is_read_again),
		TEST(a_job_goes_on_in_the_next_process),
		TEST(a_project_that_nobody_knows_goes_and_gives_its_slug_back),
		TEST(an_index_that_is_whole_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
