/*
 * test/bench/bench_output.c -- 200 MB of output from a step to the stored log, next to the same
 * command into a file; memory of the run meanwhile, and how long others wait for an answer.
 *
 * Twice: a program that prints lines as it goes, and `cat` of text that is in memory already,
 * which is hardly more than a copy.  Both look like the output of a build.  The step's time is
 * from its start to its end in the detail of the run, when all of its output is stored.
 * BENCH_SANDBOX=none|bwrap, default none;
 * BENCH_ONLY=awk|cat.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/base.h"
#include "lib/base/clock.h"
#include "lib/wire/wire.h"
#include "test/bench/report.h"
#include "test/bench/system.h"

#define ROUNDS   5
#define PATIENCE 120
#define PAUSE_US 4000

/* About 84 bytes a line: LINES of them are 200 MB, a twentieth is what cat repeats. */
#define LINES "2400000"
#define PART  "120000"
#define PRINT(n)                                                                              \
	"awk 'BEGIN { srand(1); for (i = 0; i < " n "; i++) printf \"[%3d%%] gcc -std=gnu17 " \
	"-O2 -Wall -c -o build/%x/%x.o src/%x.c # %d ms\\n\", rand() * 100, rand() * 4096, "  \
	"rand() * 2147483647, rand() * 2147483647, rand() * 10000 }'"
#define POUR "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do cat text; done"

static const char printing[] =
    "version: 1\nrun:\n  steps:\n    - name: none\n      run: 'true'\n"
    "    - name: output\n      run: |\n        " PRINT(LINES) "\n";
static const char pouring[] = "version: 1\nrun:\n  steps:\n    - name: text\n      run: |\n"
			      "        " PRINT(PART) " > text\n"
						     "    - name: output\n      run: " POUR
						     "\n";

struct watched {
	struct series us_run, us_health;
	long peak_kb;
	double mb, ms;
};

/* Milliseconds of ${command} into a file. */
static double
by_hand(const struct system *s, const char *command)
{
	char script[1024];
	const char *const argv[] = { "sh", "-c", script, NULL };
	double begin;

	(void)snprintf(script, sizeof(script), "%s > output", command);
	begin = bench_now_us();
	if (system_run(argv, s->dir) != 0)
		bench_die("the command failed by hand");
	return (bench_now_us() - begin) / 1e3;
}

static int64_t
time_of(const json_t *step, const char *name)
{
	const char *text = json_string_value(json_object_get(step, name));
	int64_t ms;

	return text != NULL && clock_parse(text, &ms) == 0 ? ms : 0;
}

static void
read_detail(struct system *s, const char *run, struct watched *w)
{
	char path[128];
	json_t *detail = NULL, *step;

	(void)snprintf(path, sizeof(path), "/api/private/runs/%s?logBytes=0", run);
	if (web_call(&s->web, "GET", path, s->session, NULL) != 200 ||
	    json_text_parse((const char *)s->web.body.data, s->web.body.len, 64, &detail) < 0)
		bench_die("no detail of %s", run);
	step = json_array_get(json_object_get(detail, "steps"), 1);
	w->ms = (double)(time_of(step, "finishedAt") - time_of(step, "startedAt"));
	w->mb = json_number_value(json_object_get(detail, "logBytes")) / 1e6;
	json_decref(detail);
}

/* Asks run and ingress again and again until the run has ended. */
static void
watch(struct system *s, const char *project, const char *run, struct watched *w)
{
	double until = bench_now_us() + PATIENCE * 1e6, t;
	char address[64];
	struct memory m;
	json_t *info;
	pid_t pid = 0;

	(void)snprintf(address, sizeof(address), "run/%s", run);
	while (pid == 0 && bench_now_us() < until)
		pid = system_run_pid(s, run);
	while (system_memory(s, pid, &m) == 0 && bench_now_us() < until) {
		w->peak_kb = m.peak_kb > w->peak_kb ? m.peak_kb : w->peak_kb;
		t = bench_now_us();
		info = system_rpc_try(s, address, "actor.info", NULL);
		/* Its socket comes a moment after the process and goes a moment before it. */
		if (info != NULL)
			series_add(&w->us_run, bench_now_us() - t);
		json_decref(info);
		t = bench_now_us();
		if (web_call(&s->web, "GET", "/healthz", NULL, NULL) == 200)
			series_add(&w->us_health, bench_now_us() - t);
		(void)usleep(PAUSE_US);
	}
	if (system_await(s, project, run, 20000, PATIENCE) < 0)
		bench_die("run %s did not pass", run);
	read_detail(s, run, w);
}

static void
compare(
    struct system *s, const char *name, const char *yml, const char *command, const char *what)
{
	static struct series floor, value, peak, slowest;
	static struct watched w;
	long rounds = bench_env("BENCH_ROUNDS", ROUNDS);
	char url[160], project[32], run[32], title[128];

	floor.n = value.n = peak.n = slowest.n = 0;
	system_repository(s, name, 2, yml, url);
	system_project(s, name, url, project);
	for (long i = 0; i < rounds; i++) {
		w = (struct watched) { 0 };
		series_add(&floor, by_hand(s, command));
		system_trigger(s, project, run);
		watch(s, project, run, &w);
		series_add(&value, w.ms);
		series_add(&peak, (double)w.peak_kb / 1024);
		series_add(&slowest, series_at(&w.us_run, 1) / 1e3);
		series_add(&slowest, series_at(&w.us_health, 1) / 1e3);
	}
	(void)snprintf(title, sizeof(title), "200 MB of output, %s / into a file", what);
	report_row(&(struct report) {
	    .what = title, .unit = "ms", .floor = &floor, .value = &value, .limit = 2 });
	(void)snprintf(title, sizeof(title), "peak memory of that run, %s", what);
	report_row(
	    &(struct report) { .what = title, .unit = "MiB", .value = &peak, .limit = 24 });
	(void)snprintf(title, sizeof(title), "slowest answer of a round meanwhile, %s", what);
	report_row(
	    &(struct report) { .what = title, .unit = "ms", .value = &slowest, .limit = 20 });
	report_note("%.0f MB of log; last round: actor.info of the run median %.2f ms, healthz "
		    "%.2f ms, %zu each",
	    w.mb, series_median(&w.us_run) / 1e3, series_median(&w.us_health) / 1e3,
	    w.us_run.n);
}

int
main(void)
{
	const char *sandbox = getenv("BENCH_SANDBOX"), *only = getenv("BENCH_ONLY");
	const char *const make_text[] = { "sh", "-c", PRINT(PART) " > text", NULL };
	struct system s;

	report_open();
	system_prepare(&s);
	if (system_run(make_text, s.dir) != 0)
		bench_die("awk does not work here");
	system_start(&s, sandbox != NULL ? sandbox : "none", 2);
	if (only == NULL || strcmp(only, "awk") == 0)
		compare(&s, "print", printing, PRINT(LINES), "awk");
	if (only == NULL || strcmp(only, "cat") == 0)
		compare(&s, "pour", pouring, POUR, "cat");
	system_done(&s);
	return 0;
}
