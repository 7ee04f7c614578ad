/*
 * test/actor/test_run_subscribe.c -- who watches a real anvil-run sees all of it, once, in
 * order: whenever they come, however slowly they take it, and however often they go.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "test/support/run_rig.h"
#include "test/support/run_viewer.h"
#include "test/support/unit.h"

#define VIEWERS_MAX 8
/* A step that goes on when the test says so. */
#define MIB           ((size_t)1 << 20)
#define SUBSCRIPTIONS 256

/* cmocka hands a rig to each test; the viewers of the one that runs are here. */
static struct run_viewer *viewers[VIEWERS_MAX];
static size_t nviewers;

static struct run_viewer *
viewer(struct run_rig *g)
{
	assert_true(nviewers < VIEWERS_MAX);
	viewers[nviewers] = run_viewer_new(g);
	return viewers[nviewers++];
}

static int
teardown(void **state)
{
	while (nviewers > 0)
		run_viewer_free(viewers[--nviewers]);
	return run_rig_teardown(state);
}

static void
step_all(void)
{
	for (size_t i = 0; i < nviewers; i++)
		run_viewer_step(viewers[i]);
}

/* ---- conditions ---- */

static int
has_ended(struct run_rig *g)
{
	step_all();
	if (waitpid(g->pid, &g->status, WNOHANG) != g->pid)
		return 0;
	g->pid = -1;
	io_close(&g->pidfd);
	return 1;
}

static void
wait_for_exit(struct run_rig *g)
{
	run_rig_until(g, has_ended);
	assert_true(WIFEXITED(g->status));
	assert_int_equal(WEXITSTATUS(g->status), 0);
}

static int
all_have_ended(struct run_rig *g)
{
	(void)g;
	step_all();
	for (size_t i = 0; i < nviewers; i++)
		if (!viewers[i]->ended)
			return 0;
	return 1;
}

/* What is waited for, of one viewer. */
static struct {
	const struct run_viewer *v;
	int nstates, nsubscriptions, nrefused, nunsubscribed;
	int64_t step;
	size_t bytes;
	const char *ends; /* What its text ends with. */
} want;

static int
ends_with(const struct buf *text, const char *end)
{
	size_t n = strlen(end);

	return text->len >= n && memcmp(text->data + text->len - n, end, n) == 0;
}

static int
is_so(struct run_rig *g)
{
	const struct run_viewer *v = want.v;

	(void)g;
	step_all();
	return v->nstates >= want.nstates && v->nsubscriptions >= want.nsubscriptions &&
	    v->nrefused >= want.nrefused && v->nunsubscribed >= want.nunsubscribed &&
	    v->current_step >= want.step && v->text.len >= want.bytes &&
	    (want.ends == NULL || ends_with(&v->text, want.ends));
}

/* WAIT_FOR(g, v, .nstates = 2): until the viewer has had so much. */
#define WAIT_FOR(g, viewer, ...)                                      \
	do {                                                          \
		want = (typeof(want)) { .v = (viewer), __VA_ARGS__ }; \
		run_rig_until((g), is_so);                            \
	} while (0)

static int
has_printed(struct run_rig *g)
{
	CLEANUP_FREE char *path = mem_format("%s/runs/%s/home/printed", g->data, g->run_id);

	step_all();
	return access(path, F_OK) == 0;
}

/* The run has exited, which it does after 2 s at most: who had no time until then goes on
 * with the store. */
static void
wait_for_ends(struct run_rig *g)
{
	if (!all_have_ended(g))
		run_rig_serve(g);
	run_rig_until(g, all_have_ended);
}

static void
assert_text(struct run_rig *g, const struct run_viewer *v, int whole)
{
	CLEANUP(buf_done) struct buf all = BUF_INIT;

	run_rig_text(g, &all);
	assert_true(run_viewer_has(v, &all, whole));
}

static void
assert_trail(struct run_viewer *v, const char *begin, const char *end)
{
	const char *trail = buf_cstr(&v->trail);

	if (strncmp(trail, begin, strlen(begin)) != 0 || v->trail.len < strlen(end) ||
	    strcmp(trail + v->trail.len - strlen(end), end) != 0)
		fail_msg("%s, not %s..%s", trail, begin, end);
}

/* ---- when they come ---- */

static void
who_comes_before_the_claim_sees_the_run_from_queued_to_its_end(void **state)
{
	struct run_rig *g = *state;
	struct run_viewer *v = viewer(g);

	run_rig_commit(
	    g, RIG_CONFIG(RIG_STEP("one", "echo a; echo b >&2") RIG_STEP("two", "echo c")));
	g->fail_claims = 3;
	run_viewer_join(v);
	run_rig_start(g);
	WAIT_FOR(g, v, .nstates = 2);
	assert_int_equal(v->status, RUN_STATUS_QUEUED);
	assert_int_equal(v->answer.first_seq, 1);
	assert_int_equal(v->answer.next_seq, 1);
	assert_int_equal(v->answer.dropped_bytes, 0);
	wait_for_exit(g);
	run_rig_until(g, all_have_ended);
	assert_int_equal(v->status, RUN_STATUS_PASSED);
	assert_int_equal(v->nsubscriptions, 1);
	assert_trail(v, "ss", "se");
	assert_text(g, v, 1);
}

static void
who_comes_later_sees_what_was_and_what_comes(void **state)
{
	struct run_rig *g = *state;
	struct run_viewer *first = viewer(g), *second;

	run_rig_commit(g, RIG_CONFIG(RIG_STEP("one", "echo early; " RIG_WAITS "; echo late")));
	run_viewer_join(first);
	run_rig_start(g);
	WAIT_FOR(g, first, .step = 1, .ends = "early\n");
	second = viewer(g);
	run_viewer_join(second);
	WAIT_FOR(g, second, .nstates = 2);
	assert_int_equal(second->status, RUN_STATUS_RUNNING);
	assert_trail(second, "sls", "");
	run_rig_let_go(g);
	wait_for_exit(g);
	wait_for_ends(g);
	assert_trail(second, "sls", "se");
	assert_text(g, first, 1);
	assert_text(g, second, 1);
}

static void
who_comes_after_the_end_is_served_from_the_store(void **state)
{
	struct run_rig *g = *state;
	struct run_viewer *whole = viewer(g), *part = viewer(g), *behind = viewer(g);

	run_rig_commit(g, RIG_CONFIG(RIG_STEP("one", "echo a; exit 4")));
	run_rig_expect(g, 0);
	run_rig_serve(g);
	part->from = 3;
	behind->from = 1000;
	run_viewer_join(whole);
	run_viewer_join(part);
	run_viewer_join(behind);
	run_rig_until(g, all_have_ended);
	assert_trail(whole, "slse", "slse");
	assert_int_equal(whole->status, RUN_STATUS_FAILED);
	assert_text(g, whole, 1);
	assert_trail(part, "slse", "slse");
	assert_int_equal(part->first, 3);
	assert_text(g, part, 0);
	assert_trail(behind, "sse", "sse");
	assert_int_equal(behind->text.len, 0);
}

static void
a_run_that_died_goes_on_to_its_conclusion(void **state)
{
	struct run_rig *g = *state;
	struct run_viewer *v = viewer(g);

	run_rig_commit(g, RIG_CONFIG(RIG_STEP("one", "echo a; " RIG_WAITS)));
	run_viewer_join(v);
	run_rig_start(g);
	WAIT_FOR(g, v, .step = 1, .ends = "a\n");
	(void)kill(g->pid, SIGKILL);
	(void)waitpid(g->pid, &g->status, 0);
	io_close(&g->pidfd);
	run_rig_serve(g);
	WAIT_FOR(g, v, .nsubscriptions = 2);
	assert_false(v->ended);
	run_rig_conclude(g);
	run_rig_until(g, all_have_ended);
	assert_int_equal(v->status, RUN_STATUS_FAILED);
	assert_text(g, v, 1);
	assert_trail(v, "s", "lse");
}

/* ---- order ---- */

static void
all_lines_of_a_step_come_before_its_end(void **state)
{
	struct run_rig *g = *state;
	struct run_viewer *v = viewer(g);
	size_t at;

	run_rig_commit(g,
	    RIG_CONFIG(
		RIG_STEP("one", "head -c 400000 /dev/zero | tr '\\0' x; echo; echo last of one")
		    RIG_STEP("two", "echo two")));
	run_viewer_join(v);
	run_rig_start(g);
	wait_for_exit(g);
	wait_for_ends(g);
	at = v->at_step[2];
	assert_true(at > 12);
	assert_memory_equal(v->text.data + at - 12, "last of one\n", 12);
	assert_text(g, v, 1);
}

/* ---- how they take it ---- */

/* Prints more than a window and the hot tail, waits, and prints a last line. */
#define MUCH                                                                                   \
	"head -c 8000000 /dev/zero | tr '\\0' x; echo; echo whole > $HOME/printed; " RIG_WAITS \
	"; echo last"

static void
who_never_acknowledges_gets_a_mebibyte_and_holds_up_nobody(void **state)
{
	struct run_rig *g = *state;
	struct run_viewer *silent = viewer(g), *good = viewer(g);

	run_rig_commit(g, RIG_CONFIG(RIG_STEP("one", MUCH)));
	silent->silent = 1;
	run_viewer_join(silent);
	run_viewer_join(good);
	run_rig_start(g);
	WAIT_FOR(g, silent, .bytes = MIB / 2);
	run_rig_let_go(g);
	wait_for_exit(g);
	assert_true(silent->text.len <= MIB);
	assert_int_equal(silent->ngaps, 0);
	assert_false(silent->ended);
	silent->silent = 0;
	wait_for_ends(g);
	assert_int_equal(good->status, RUN_STATUS_PASSED);
	assert_int_equal(g->end.status, RUN_STATUS_PASSED);
}

static void
who_acknowledges_late_goes_on_behind_a_gap(void **state)
{
	struct run_rig *g = *state;
	struct run_viewer *v = viewer(g);
	CLEANUP(buf_done) struct buf all = BUF_INIT;
	size_t n;

	run_rig_commit(g, RIG_CONFIG(RIG_STEP("one", MUCH)));
	v->silent = 1;
	run_viewer_join(v);
	run_rig_start(g);
	WAIT_FOR(g, v, .bytes = MIB / 2);
	run_rig_until(g, has_printed);
	v->silent = 0;
	run_viewer_ack(v);
	run_rig_let_go(g);
	wait_for_exit(g);
	wait_for_ends(g);
	/* The step may have been ahead of the store by then, and so is the store of a viewer. */
	assert_true(v->ngaps >= 1);
	assert_trail(v, "s", "se");
	run_rig_text(g, &all);
	n = v->text.len - v->at_gap;
	assert_true(n > MIB && n < all.len);
	assert_memory_equal(v->text.data, all.data, v->at_first_gap);
	assert_memory_equal(v->text.data + v->at_gap, all.data + all.len - n, n);
}

static void
lines_that_are_no_longer_hot_are_a_gap_at_the_start(void **state)
{
	struct run_rig *g = *state;
	struct run_viewer *one = viewer(g), *hot = viewer(g);

	run_rig_commit(
	    g, RIG_CONFIG(RIG_STEP("one", "head -c 4000000 /dev/zero | tr '\\0' x")));
	run_rig_expect(g, 0);
	run_rig_serve(g);
	one->from = 1;
	run_viewer_join(one);
	run_viewer_join(hot);
	run_rig_until(g, all_have_ended);
	assert_trail(one, "sglse", "sglse");
	assert_int_equal(one->gap_from, 1);
	assert_int_equal(one->gap_to, hot->answer.first_seq - 1);
	assert_true(hot->answer.dropped_bytes > 0);
	assert_trail(hot, "slse", "slse");
	assert_int_equal(hot->text.len, one->text.len);
	assert_text(g, hot, 0);
}

static void
a_viewer_that_is_killed_disturbs_nobody(void **state)
{
	struct run_rig *g = *state;
	struct run_viewer *v = viewer(g);
	int fds[2];
	pid_t pid;
	char c;

	run_rig_commit(g, RIG_CONFIG(RIG_STEP("one", "echo a; " RIG_WAITS "; echo b")));
	run_viewer_join(v);
	run_rig_start(g);
	WAIT_FOR(g, v, .step = 1, .ends = "a\n");
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		struct run_viewer *other = run_viewer_new(g);

		run_viewer_join(other);
		while (other->text.len == 0)
			run_viewer_step(other);
		(void)!write(fds[1], "", 1);
		(void)pause();
		_exit(0);
	}
	assert_true(pid > 0);
	io_close(&fds[1]);
	assert_int_equal(read(fds[0], &c, 1), 1);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	io_close(&fds[0]);
	run_rig_let_go(g);
	wait_for_exit(g);
	wait_for_ends(g);
	assert_text(g, v, 1);
}

static void
an_unsubscribed_viewer_hears_no_more(void **state)
{
	struct run_rig *g = *state;
	struct run_viewer *gone = viewer(g), *v = viewer(g);
	int nmessages;

	run_rig_commit(g, RIG_CONFIG(RIG_STEP("one", "echo a; " RIG_WAITS "; echo b")));
	run_viewer_join(gone);
	run_viewer_join(v);
	run_rig_start(g);
	WAIT_FOR(g, v, .step = 1, .ends = "a\n");
	WAIT_FOR(g, gone, .ends = "a\n");
	run_viewer_unsubscribe(gone);
	run_viewer_unsubscribe(gone);
	/* The answers come behind what was on its way. */
	WAIT_FOR(g, gone, .nunsubscribed = 2);
	nmessages = gone->nmessages;
	run_rig_let_go(g);
	wait_for_exit(g);
	assert_true(v->nmessages > 0);
	assert_int_equal(gone->nmessages, nmessages);
}

static void
there_is_a_last_subscription(void **state)
{
	struct run_rig *g = *state;
	struct run_viewer *v = viewer(g);

	run_rig_commit(g, RIG_CONFIG(RIG_STEP("one", RIG_WAITS)));
	run_viewer_join(v);
	run_rig_start(g);
	WAIT_FOR(g, v, .step = 1, .ends = "Step 1/1: one\n");
	for (int n = 2; n <= SUBSCRIPTIONS; n++) {
		run_viewer_subscribe(v);
		WAIT_FOR(g, v, .nsubscriptions = n);
	}
	run_viewer_subscribe(v);
	WAIT_FOR(g, v, .nrefused = 1);
	assert_int_equal(v->err, E_OVERLOADED);
	run_viewer_unsubscribe(v);
	WAIT_FOR(g, v, .nunsubscribed = 1);
	run_viewer_subscribe(v);
	WAIT_FOR(g, v, .nsubscriptions = SUBSCRIPTIONS + 1);
	run_rig_let_go(g);
	wait_for_exit(g);
	wait_for_ends(g);
}

/* ---- whatever happens ---- */

static unsigned seed;

/* 0 .. n - 1 */
static unsigned
any(unsigned n)
{
	seed = seed * 1103515245u + 12345u;
	return (seed >> 8) % n;
}

/* The first viewer stays; the others come at some line and go and come again. */
static void
disturb(struct run_rig *g)
{
	for (size_t i = 1; i < nviewers; i++) {
		struct run_viewer *v = viewers[i];

		if (v->link != NULL && any(200) == 0)
			run_viewer_leave(v);
		else if (v->link == NULL && viewers[0]->next >= (int64_t)i * 12 && any(20) == 0)
			run_viewer_join(v);
	}
	(void)g;
}

static int
has_ended_somehow(struct run_rig *g)
{
	disturb(g);
	return has_ended(g);
}

static int
all_are_served(struct run_rig *g)
{
	for (size_t i = 0; i < nviewers; i++)
		if (viewers[i]->link == NULL)
			run_viewer_join(viewers[i]);
	return all_have_ended(g);
}

#define LINES                                                                        \
	"i=0; while [ $i -lt 300 ]; do echo out $i; echo err $i >&2; i=$((i + 1)); " \
	"[ $((i % 10)) -ne 0 ] || sleep 0.01; done"
#define BULK "head -c 700000 /dev/zero | tr '\\0' x; echo; echo done"

static void
try_a_run(struct run_rig *g)
{
	static const size_t lags[] = { 0, 3000, 200000 };

	run_rig_commit(g,
	    RIG_CONFIG(RIG_STEP("one", LINES) RIG_STEP("two", BULK) RIG_STEP("three", LINES)));
	for (size_t i = 0; i < VIEWERS_MAX; i++) {
		struct run_viewer *v = viewer(g);

		v->ack_lag = lags[any(ARRAY_LEN(lags))];
		/* One that is always far behind. */
		v->silent = i == 1;
		v->from = i % 3 == 2 ? (int64_t)i * 5 : 0;
	}
	run_viewer_join(viewers[0]);
	run_rig_start(g);
	run_rig_until(g, has_ended_somehow);
	assert_int_equal(WEXITSTATUS(g->status), 0);
	viewers[1]->silent = 0;
	run_rig_serve(g);
	run_rig_until(g, all_are_served);
	for (size_t i = 0; i < nviewers; i++) {
		const struct run_viewer *v = viewers[i];

		assert_int_equal(v->ngaps, 0);
		assert_int_equal(v->status, RUN_STATUS_PASSED);
		assert_int_equal(v->first, v->from != 0 ? v->from : 1);
		assert_text(g, v, v->from == 0);
	}
}

static void
viewers_that_come_and_go_see_all_of_it_once(void **state)
{
	seed = 1;
	try_a_run(*state);
}

static void
other_viewers_do_so_too(void **state)
{
	seed = 77;
	try_a_run(*state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, run_rig_setup, teardown)

/* One test alone, by its name or a pattern. */
int
main(int argc, char *argv[])
{
	const struct CMUnitTest tests[] = {
		TEST(who_comes_before_the_claim_sees_the_run_from_queued_to_its_end),
		TEST(who_comes_later_sees_what_was_and_what_comes),
		TEST(who_comes_after_the_end_is_served_from_the_store),
		TEST(a_run_that_died_goes_on_to_its_conclusion),
		TEST(all_lines_of_a_step_come_before_its_end),
		TEST(who_never_acknowledges_gets_a_mebibyte_and_holds_up_nobody),
		TEST(who_acknowledges_late_goes_on_behind_a_gap),
		TEST(lines_that_are_no_longer_hot_are_a_gap_at_the_start),
		TEST(a_viewer_that_is_killed_disturbs_nobody),
		TEST(an_unsubscribed_viewer_hears_no_more),
		TEST(there_is_a_last_subscription),
		TEST(viewers_that_come_and_go_see_all_of_it_once),
		TEST(other_viewers_do_so_too),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
