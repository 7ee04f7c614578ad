/*
 * test/bench/bench_run.c -- how long a run takes that has next to nothing to do, from its trigger
 * over HTTP to its end in the list of runs, next to a clone and a step by hand.
 *
 * A repository of 50 files, mirrored by an earlier run; one step, `true`.  Run and hand take
 * turns.  The list is asked every millisecond, which costs the system something and is part of
 * what is measured.
 */
#include <stdio.h>

#include "test/bench/hand.h"
#include "test/bench/report.h"
#include "test/bench/system.h"

#define ROUNDS   40
#define POLL_US  1000
#define PATIENCE 20

static const char one_step[] =
    "version: 1\nrun:\n  steps:\n    - name: nothing\n      run: 'true'\n";

static double
triggered_run(struct system *s, const char *project)
{
	char run[32];
	double begin = bench_now_us();

	system_trigger(s, project, run);
	if (system_await(s, project, run, POLL_US, PATIENCE) < 0)
		bench_die("run %s did not pass; BENCH_KEEP=1 keeps its scratch directory", run);
	return (bench_now_us() - begin) / 1e3;
}

static void
compare(struct system *s, const char *url, const char *sandbox, const char *what)
{
	static struct series floor, value;
	long rounds = bench_env("BENCH_ROUNDS", ROUNDS);
	int boxed = sandbox[0] == 'b';
	char project[32];

	floor.n = value.n = 0;
	system_start(s, sandbox, 2);
	system_project(s, "once", url, project);
	(void)triggered_run(s, project);
	for (long i = 0; i < rounds; i++) {
		series_add(&floor, hand_run(url, s->dir, boxed) / 1e3);
		series_add(&value, triggered_run(s, project));
	}
	report_row(&(struct report) {
	    .what = what, .unit = "ms", .floor = &floor, .value = &value, .limit = 1.3 });
	system_stop(s);
}

int
main(void)
{
	struct system s;
	char url[160];

	report_open();
	system_prepare(&s);
	system_repository(&s, "repo", 50, one_step, url);
	compare(&s, url, "bwrap", "run of one step, bwrap / git clone + bwrap by hand");
	compare(&s, url, "none", "run of one step, no sandbox / git clone + sh by hand");
	system_done(&s);
	return 0;
}
