/*
 * test/actor/test_ingress_watch.c -- watching a run: what viewers see, whatever the run, their
 * connections and ingress do.  The real anvild and ingress; the run is the test's.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/actor/actor.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "test/support/edge_rig.h"
#include "test/support/fake_run.h"
#include "test/support/unit.h"
#include "test/support/watcher.h"

#define PATIENCE_MS 30000
#define CROWD       200
#define QUEUED                                                                            \
	"{\"type\":\"state\",\"run\":{\"status\":\"queued\",\"currentStep\":null,"        \
	"\"startedAt\":null,\"finishedAt\":null,\"exitCode\":null,\"errorMessage\":null," \
	"\"failureCode\":null},\"steps\":[]}"

static struct edge_rig rig;
static struct edge_rig *const g = &rig;
static struct fake_run *run;
static struct watcher *crowd[CROWD]; /* NULL: not there. */
static char path[96], project[96];

/* ---- the scene ---- */

static struct watcher *
add(int ws, const char *query)
{
	for (size_t i = 0; i < CROWD; i++) {
		if (crowd[i] != NULL)
			continue;
		crowd[i] = mem_calloc(1, sizeof(*crowd[i]));
		assert_non_null(crowd[i]);
		watcher_join(crowd[i], g, path, ws, query);
		return crowd[i];
	}
	fail_msg("too many viewers");
	return NULL;
}

static void
round_once(void)
{
	fake_run_step(run);
	for (size_t i = 0; i < CROWD; i++)
		if (crowd[i] != NULL)
			watcher_read(crowd[i]);
	fake_run_step(run);
}

#define UNTIL(cond)                                                             \
	do {                                                                    \
		struct mono_time end_ = mono_add_ms(clock_mono(), PATIENCE_MS); \
		for (round_once(); !(cond); round_once()) {                     \
			if (mono_diff_ms(clock_mono(), end_) < 0)               \
				fail_msg("not in time: %s", #cond);             \
			(void)poll(NULL, 0, 1);                                 \
		}                                                               \
	} while (0)

/* Everybody has had the end, and the same lines as the run. */
static void
all_end(const char *reason)
{
	for (size_t i = 0; i < CROWD; i++) {
		struct watcher *w = crowd[i];

		if (w == NULL)
			continue;
		UNTIL(w->fd < 0 || (!w->ws && w->whole));
		assert_string_equal(w->end, reason);
	}
}

static void
has_lines(const struct watcher *w, int64_t first)
{
	size_t at = run->at[first];

	assert_int_equal(w->next, run->next);
	assert_int_equal(w->first, first);
	assert_int_equal(w->text.len, run->text.len - at);
	assert_memory_equal(w->text.data, run->text.data + at, w->text.len);
}

/* Each test has a run of its own; the others stay queued. */
static int
begin(void **state)
{
	CLEANUP_FREE char *dir = mem_format("%s/run", g->dir);
	static int n;

	(void)state;
	edge_move(g);
	(void)edge_project(g, edge_fmt("p%d", n++), project);
	(void)edge_trigger(g, project, path);
	run = mem_calloc(1, sizeof(*run));
	assert_non_null(run);
	fake_run_init(run, strrchr(path, '/') + 1, dir, edge_pid(g, "ingress"));
	return 0;
}

static int
finish(void **state)
{
	(void)state;
	for (size_t i = 0; i < CROWD; i++) {
		if (crowd[i] != NULL)
			watcher_leave(crowd[i]);
		free(crowd[i]);
		crowd[i] = NULL;
	}
	fake_run_done(run);
	free(run);
	return 0;
}

static void
restart_ingress(int sig)
{
	pid_t old = edge_pid(g, "ingress");

	assert_int_equal(kill(old, sig), 0);
	while (edge_pid(g, "ingress") == old || edge_pid(g, "ingress") == 0)
		(void)poll(NULL, 0, 10);
	edge_await(g);
	run->ingress = edge_pid(g, "ingress");
	if (run->actor != NULL)
		assert_int_equal(actor_announce(run->actor, "ingress", run->ingress), 0);
}

/* ---- the way in ---- */

#define KEY     "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define UPGRADE "Upgrade: websocket\r\nConnection: Upgrade\r\n"
#define GOOD    UPGRADE "Sec-WebSocket-Version: 13\r\n" KEY

static void
refused(int status, const char *code, const char *request)
{
	CLEANUP_FREE char *copy = mem_strdup(request);

	assert_non_null(copy);
	/* The connection is kept alive: its answer ends where its body does. */
	edge_raw(g, edge_fmt("%.*sConnection: close\r\n\r\n", (int)strlen(copy) - 2, copy),
	    strlen(copy) + strlen("Connection: close\r\n"));
	if (g->status != status || strcmp(edge_text(g, "error.code"), code) != 0)
		fail_msg("%s: %d %s", copy, g->status, edge_text(g, "error.code"));
}

static void
the_upgrade_is_checked_in_order_and_the_last_check_takes_the_ticket(void **state)
{
	CLEANUP_FREE char *ticket = mem_strdup(edge_fmt("ticket=%s", watcher_ticket(g, path)));
	char other[96];
	struct watcher *w;

	(void)state;
	refused(
	    404, "run_not_found", watcher_request("/api/private/runs/run_short", ticket, GOOD));
	refused(426, "upgrade_required", watcher_request(path, "from=x", ""));
	assert_string_equal(edge_header(g, "Upgrade"), "websocket");
	refused(426, "upgrade_required",
	    watcher_request(path, "from=x", UPGRADE "Sec-WebSocket-Version: 12\r\n"));
	assert_string_equal(edge_header(g, "Sec-WebSocket-Version"), "13");
	refused(400, "bad_request",
	    watcher_request(path, "from=x",
		UPGRADE "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: short\r\n"
			"Origin: null\r\n"));
	refused(403, "origin_not_allowed",
	    watcher_request(path, "from=x", GOOD "Origin: null\r\n"));
	refused(403, "origin_not_allowed",
	    watcher_request(path, ticket, GOOD "Origin: http://anvil.example\r\n"));
	refused(400, "invalid_request", watcher_request(path, "from=0", GOOD));
	refused(400, "invalid_request", watcher_request(path, "from=x", GOOD));
	refused(403, "invalid_log_ticket", watcher_request(path, "", GOOD));
	refused(403, "invalid_log_ticket", watcher_request(path, "ticket=", GOOD));
	refused(403, "invalid_log_ticket",
	    watcher_request(path, "ticket=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", GOOD));
	/* None of these has used it up. */
	w = crowd[0] = mem_calloc(1, sizeof(*w));
	watcher_ask(w, g, 1,
	    watcher_request(path, ticket, GOOD "Origin: HTTP://anvil.example:8470\r\n"));
	UNTIL(w->nstates == 1);
	assert_int_equal(w->status, 101);
	assert_non_null(strstr(w->head, "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
	assert_non_null(strstr(w->head, "X-Request-Id: "));
	assert_null(strstr(w->head, "Content-Security-Policy"));
	refused(403, "invalid_log_ticket", watcher_request(path, ticket, GOOD));
	/* Tried on another run, one is used up. */
	free(ticket);
	ticket = mem_strdup(edge_fmt("ticket=%s", watcher_ticket(g, path)));
	(void)edge_trigger(g, project, other);
	refused(403, "invalid_log_ticket", watcher_request(other, ticket, GOOD));
	refused(403, "invalid_log_ticket", watcher_request(path, ticket, GOOD));
	(void)edge_ask(g, 405, "HEAD", edge_fmt("%s/logs", path), NULL);
	(void)edge_ask(g, 405, "HEAD", edge_fmt("%s/events", path), NULL);
}

static void
somebody_elses_run_has_no_ticket(void **state)
{
	char mine[64];

	(void)state;
	(void)snprintf(mine, sizeof(mine), "%s", g->session);
	edge_sign_in(g, "stranger");
	edge_refused(g, 404, "run_not_found", "POST", edge_fmt("%s/log-ticket", path), NULL);
	edge_refused(g, 404, "run_not_found", "POST", edge_fmt("%s/cancel", path), NULL);
	edge_refused(g, 404, "run_not_found", "GET", edge_fmt("%s/events", path), NULL);
	(void)snprintf(g->session, sizeof(g->session), "%s", mine);
}

/* ---- a run's life ---- */

static void
viewers_from_the_queue_on_see_all_of_a_run(void **state)
{
	struct watcher *ws = add(1, ""), *sse = add(0, "");

	(void)state;
	UNTIL(ws->nstates == 1 && sse->nstates == 1);
	assert_string_equal(ws->newest, QUEUED);
	assert_string_equal(sse->newest, QUEUED);
	watcher_say(ws, "ping");
	watcher_say(ws, "something else");
	UNTIL(ws->npongs == 1);
	fake_run_start(run);
	UNTIL(strcmp(ws->run, "starting") == 0 && strcmp(sse->run, "starting") == 0);
	fake_run_set(run, RUN_STATUS_RUNNING);
	UNTIL(strcmp(ws->run, "running") == 0 && strcmp(sse->run, "running") == 0);
	for (int i = 0; i < 100; i++) {
		fake_run_add(run, 100);
		round_once();
	}
	fake_run_set(run, RUN_STATUS_PASSED);
	all_end("run_finished");
	assert_int_equal(ws->code, 1000);
	assert_string_equal(ws->run, "passed");
	assert_string_equal(sse->run, "passed");
	has_lines(ws, 1);
	has_lines(sse, 1);
	assert_int_equal(run->nsubscribed, 1);
	assert_int_equal(ws->nbeats + sse->nbeats, 0);
}

static void
whenever_they_come_lines_are_whole_and_in_order(void **state)
{
	unsigned seed = 7;
	char query[32];

	(void)state;
	fake_run_start(run);
	fake_run_set(run, RUN_STATUS_RUNNING);
	for (int i = 0; i < 50; i++) {
		int n = rand_r(&seed) % 40;

		for (int k = 0; k < n; k++)
			fake_run_add(run, 16 + (size_t)rand_r(&seed) % 600);
		(void)snprintf(
		    query, sizeof(query), "from=%d", 1 + rand_r(&seed) % (int)(run->next + 3));
		(void)add(rand_r(&seed) % 2, rand_r(&seed) % 2 ? query : "");
		for (int k = rand_r(&seed) % 4; k > 0; k--)
			round_once();
	}
	fake_run_set(run, RUN_STATUS_FAILED);
	all_end("run_finished");
	for (size_t i = 0; i < 50; i++) {
		const struct watcher *w = crowd[i];

		assert_int_equal(w->ngaps, 0);
		assert_string_equal(w->run, "failed");
		/* Who asked for what lies beyond the end gets what comes. */
		if (w->next != 0)
			has_lines(w, w->first);
	}
}

static void
a_crowd_shares_one_subscription(void **state)
{
	(void)state;
	fake_run_start(run);
	fake_run_set(run, RUN_STATUS_RUNNING);
	for (int i = 0; i < CROWD; i++)
		(void)add(1, "");
	for (int i = 0; i < 300; i++) {
		fake_run_add(run, 1000);
		if (i % 10 == 0)
			round_once();
	}
	UNTIL(crowd[CROWD - 1]->next == run->next);
	assert_int_equal(fake_run_nsubs(run), 1);
	assert_int_equal(run->nsubscribed, 1);
	fake_run_set(run, RUN_STATUS_PASSED);
	all_end("run_finished");
	for (int i = 0; i < CROWD; i++)
		has_lines(crowd[i], 1);
}

static void
what_the_tail_does_not_hold_is_read_from_the_run(void **state)
{
	struct watcher *ws, *sse, *late;

	(void)state;
	fake_run_start(run);
	fake_run_set(run, RUN_STATUS_RUNNING);
	ws = add(1, "");
	for (int i = 0; i < 1500; i++) {
		fake_run_add(run, 4000);
		round_once();
	}
	UNTIL(ws->next == run->next);
	/* Nobody has watched by SSE before; of the socket's tail a part has gone. */
	sse = add(0, "");
	late = add(1, "from=17");
	fake_run_add(run, 4000);
	UNTIL(sse->next == run->next && late->next == run->next);
	has_lines(sse, 1);
	has_lines(late, 17);
	UNTIL(fake_run_nsubs(run) == 1);
	fake_run_set(run, RUN_STATUS_PASSED);
	all_end("run_finished");
	has_lines(ws, 1);
}

static void
lines_that_are_not_hot_are_a_gap(void **state)
{
	struct watcher *all, *some, *none;

	(void)state;
	fake_run_start(run);
	for (int i = 0; i < 50; i++)
		fake_run_add(run, 100);
	fake_run_forget(run, 31);
	some = add(1, "from=5");
	UNTIL(some->next == run->next);
	assert_int_equal(some->ngaps, 1);
	assert_int_equal(some->gap_from, 5);
	assert_int_equal(some->gap_to, 30);
	all = add(0, "");
	none = add(1, "from=1000");
	UNTIL(all->next == run->next && none->nstates == 2);
	assert_int_equal(all->ngaps, 0);
	assert_int_equal(all->first, 31);
	assert_int_equal(none->nlogs, 0);
	fake_run_add(run, 100);
	fake_run_set(run, RUN_STATUS_PASSED);
	all_end("run_finished");
	assert_int_equal(none->nlogs, 1);
}

/* ---- deaths ---- */

static void
a_run_actor_that_dies_and_comes_back_is_resumed(void **state)
{
	struct watcher *ws = add(1, ""), *sse = add(0, "");

	(void)state;
	fake_run_start(run);
	for (int death = 0; death < 5; death++) {
		for (int i = 0; i < 200; i++) {
			fake_run_add(run, 500);
			if (i % 3 == 0)
				round_once();
		}
		fake_run_die(run);
		round_once();
		fake_run_add(run, 500);
		fake_run_start(run);
	}
	UNTIL(ws->next == run->next && sse->next == run->next);
	fake_run_set(run, RUN_STATUS_PASSED);
	all_end("run_finished");
	has_lines(ws, 1);
	has_lines(sse, 1);
}

static void
after_the_death_of_ingress_clients_resume_where_they_were(void **state)
{
	struct watcher *ws = add(1, ""), *sse = add(0, "");
	char query[32];
	int64_t at;

	(void)state;
	fake_run_start(run);
	for (int i = 0; i < 300; i++)
		fake_run_add(run, 500);
	UNTIL(ws->next == run->next && sse->next == run->next);
	restart_ingress(SIGKILL);
	UNTIL(ws->fd < 0 && sse->fd < 0);
	assert_int_equal(ws->code, 0);
	at = ws->next;
	for (int i = 0; i < 300; i++)
		fake_run_add(run, 500);
	(void)snprintf(query, sizeof(query), "from=%lld", (long long)at);
	ws = add(1, query);
	sse = add(0, query);
	UNTIL(ws->next == run->next && sse->next == run->next);
	has_lines(ws, at);
	has_lines(sse, at);
	assert_int_equal(ws->ngaps + sse->ngaps, 0);
}

static void
an_orderly_stop_says_so(void **state)
{
	struct watcher *ws = add(1, ""), *sse = add(0, ""), *stuck = add(1, "");

	(void)state;
	fake_run_start(run);
	UNTIL(ws->nstates > 0 && sse->nstates > 0 && stuck->nstates > 0);
	stuck->silent = 1;
	for (int i = 0; i < 700; i++)
		fake_run_add(run, 1000);
	UNTIL(ws->next == run->next && sse->next == run->next);
	assert_int_equal(kill(edge_pid(g, "ingress"), SIGTERM), 0);
	UNTIL(ws->fd < 0 && sse->whole);
	assert_int_equal(ws->code, 1001);
	assert_string_equal(ws->end, "restarting");
	assert_string_equal(sse->end, "restarting");
	restart_ingress(0);
}

/* ---- the slow, and the expelled ---- */

static void
who_stops_reading_is_sent_away_and_nobody_else_waits(void **state)
{
	struct watcher *slow = add(1, ""), *stuck = add(0, ""), *ok = add(1, "");

	(void)state;
	fake_run_start(run);
	fake_run_set(run, RUN_STATUS_RUNNING);
	UNTIL(slow->nstates > 2 && stuck->nstates > 2 && ok->nstates > 2);
	slow->silent = stuck->silent = 1;
	for (int i = 0; i < 500; i++) {
		fake_run_add(run, 8000);
		UNTIL(ok->next == run->next);
	}
	/* It is told when it reads again; a stream can only be cut. */
	slow->silent = stuck->silent = 0;
	UNTIL(slow->fd < 0 && stuck->fd < 0);
	assert_int_equal(slow->code, 1013);
	assert_string_equal(slow->end, "slow_consumer");
	assert_false(stuck->whole);
	assert_string_equal(stuck->end, "");
	fake_run_set(run, RUN_STATUS_PASSED);
	UNTIL(ok->fd < 0);
	assert_int_equal(ok->code, 1000);
	has_lines(ok, 1);
}

static void
a_replay_waits_for_a_client_however_slow(void **state)
{
	struct watcher *w;

	(void)state;
	fake_run_start(run);
	for (int i = 0; i < 600; i++)
		fake_run_add(run, 5000);
	fake_run_set(run, RUN_STATUS_PASSED);
	w = add(1, "");
	UNTIL(w->nstates == 1);
	w->silent = 1;
	for (int i = 0; i < 300; i++) {
		round_once();
		(void)poll(NULL, 0, 2);
	}
	w->silent = 0;
	UNTIL(w->fd < 0);
	assert_int_equal(w->code, 1000);
	has_lines(w, 1);
}

static void
a_disabled_user_is_sent_away_at_once(void **state)
{
	struct watcher *ws = add(1, ""), *sse = add(0, ""), *text;
	int err;

	(void)state;
	fake_run_start(run);
	fake_run_add(run, 100);
	UNTIL(ws->next == 2 && sse->next == 2);
	text = mem_calloc(1, sizeof(*text));
	watcher_ask(text, g, 0,
	    edge_fmt(
		"GET %s/log?follow=1 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n\r\n",
		path, g->session));
	for (ssize_t n = 0; n <= 0; n = recv(text->fd, &err, 1, MSG_DONTWAIT))
		(void)poll(NULL, 0, 1);
	assert_non_null(edge_rpc(g, "ingress", "user.disable", "{\"user\":\"owner\"}", &err));
	UNTIL(ws->fd < 0 && sse->whole);
	assert_int_equal(ws->code, 1008);
	assert_string_equal(ws->end, "user_disabled");
	assert_string_equal(sse->end, "user_disabled");
	for (ssize_t n = 1; n != 0; n = recv(text->fd, &err, 1, MSG_DONTWAIT))
		(void)poll(NULL, 0, 1);
	watcher_leave(text);
	free(text);
	assert_non_null(edge_rpc(g, "ingress", "user.enable", "{\"user\":\"owner\"}", &err));
}

static void
a_run_canceled_in_the_queue_ends_with_one_more_state(void **state)
{
	struct watcher *ws = add(1, ""), *sse = add(0, ""), *late;

	(void)state;
	UNTIL(ws->nstates == 1 && sse->nstates == 1);
	(void)edge_ask(g, 200, "POST", edge_fmt("%s/cancel", path), NULL);
	assert_string_equal(edge_text(g, "run.status"), "canceled");
	all_end("run_finished");
	assert_int_equal(ws->nstates, 2);
	assert_string_equal(ws->run, "canceled");
	assert_string_equal(sse->run, "canceled");
	late = add(1, "");
	UNTIL(late->fd < 0);
	assert_int_equal(late->nstates, 1);
	assert_string_equal(late->end, "run_finished");
	(void)edge_ask(g, 200, "POST", edge_fmt("%s/cancel", path), NULL);
	assert_string_equal(edge_text(g, "run.status"), "canceled");
}

/* ---- all ---- */

static int
start_all(void **state)
{
	(void)state;
	edge_start(g);
	edge_sign_in(g, "owner");
	return 0;
}

static int
stop_all(void **state)
{
	(void)state;
	return edge_stop(g);
}

int
main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, begin, finish)
	const struct CMUnitTest tests[] = {
		TEST(the_upgrade_is_checked_in_order_and_the_last_check_takes_the_ticket),
		TEST(somebody_elses_run_has_no_ticket),
		TEST(viewers_from_the_queue_on_see_all_of_a_run),
		TEST(whenever_they_come_lines_are_whole_and_in_order),
		TEST(a_crowd_shares_one_subscription),
		TEST(what_the_tail_does_not_hold_is_read_from_the_run),
		TEST(lines_that_are_not_hot_are_a_gap),
		TEST(a_run_actor_that_dies_and_comes_back_is_resumed),
		TEST(after_the_death_of_ingress_clients_resume_where_they_were),
		TEST(who_stops_reading_is_sent_away_and_nobody_else_waits),
		TEST(a_replay_waits_for_a_client_however_slow),
		TEST(a_run_canceled_in_the_queue_ends_with_one_more_state),
		TEST(a_disabled_user_is_sent_away_at_once),
		TEST(an_orderly_stop_says_so),
	};

	return cmocka_run_group_tests(tests, start_all, stop_all);
}
