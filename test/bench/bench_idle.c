/*
 * test/bench/bench_idle.c -- memory of processes that wait: supervisor, ingress and two shards
 * together, and one run in a step that sleeps; proportional set sizes.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/base.h"
#include "test/bench/probe.h"
#include "test/bench/report.h"
#include "test/bench/system.h"

#define SAMPLES  5
#define PATIENCE 30

static const char *const actors[] = { "supervisor", "ingress", "project/0", "project/1" };

static const char quick[] = "version: 1\nrun: {steps: [{name: nothing, run: 'true'}]}\n";
static const char sleeper[] = "version: 1\nrun: {steps: [{name: wait, run: sleep 600}]}\n";

/* MiB of the four together. */
static double
together(struct system *s, const pid_t *pids, int tell)
{
	struct memory m;
	long sum = 0;

	for (size_t i = 0; i < ARRAY_LEN(actors); i++) {
		if (system_memory(s, pids[i], &m) < 0)
			bench_die("%s does not show its memory; be root", actors[i]);
		sum += m.pss_kb;
		if (tell)
			report_note("%s: %ld KiB", actors[i], m.pss_kb);
	}
	return (double)sum / 1024;
}

/* Pid of the run once its step runs. */
static pid_t
sleeping_run(struct system *s, const char *project)
{
	char run[32], path[80], status[32] = "";
	double until = bench_now_us() + PATIENCE * 1e6;
	json_t *list, *row;
	pid_t pid = 0;

	system_trigger(s, project, run);
	(void)snprintf(path, sizeof(path), "/api/private/runs/%s", run);
	while (strcmp(status, "running") != 0 && bench_now_us() < until) {
		if (web_call(&s->web, "GET", path, s->session, NULL) != 200 ||
		    web_member(&s->web, "status", status, sizeof(status)) < 0)
			bench_die("no detail of %s", run);
		(void)usleep(50000);
	}
	list = system_rpc(s, "supervisor", "supervisor.listRuns", NULL);
	row = json_array_get(json_object_get(list, "runs"), 0);
	pid = (pid_t)json_integer_value(json_object_get(row, "pid"));
	json_decref(list);
	return pid;
}

int
main(void)
{
	static struct series four, one;
	char url[160], project[32], run[32];
	pid_t pids[ARRAY_LEN(actors)], pid;
	struct memory m;
	struct system s;

	report_open();
	system_prepare(&s);
	system_start(&s, "bwrap", 2);
	system_repository(&s, "quick", 2, quick, url);
	system_project(&s, "quick", url, project);
	system_trigger(&s, project, run);
	if (system_await(&s, project, run, 20000, PATIENCE) < 0)
		bench_die("run %s did not pass", run);
	for (size_t i = 0; i < ARRAY_LEN(actors); i++)
		pids[i] = system_pid(&s, actors[i]);
	for (int i = 0; i < SAMPLES; i++) {
		(void)usleep(500000);
		series_add(&four, together(&s, pids, i == SAMPLES - 1));
	}
	report_row(&(struct report) { .what = "idle memory: supervisor, ingress, 2 shards",
	    .unit = "MiB",
	    .value = &four,
	    .limit = 12 });
	system_repository(&s, "sleeper", 2, sleeper, url);
	system_project(&s, "sleeper", url, project);
	pid = sleeping_run(&s, project);
	for (int i = 0; i < SAMPLES; i++) {
		(void)usleep(500000);
		if (system_memory(&s, pid, &m) < 0)
			bench_die("the run does not show its memory; be root");
		series_add(&one, (double)m.pss_kb / 1024);
	}
	report_row(&(struct report) {
	    .what = "idle memory: a run", .unit = "MiB", .value = &one, .limit = 5 });
	system_done(&s);
	return 0;
}
