/*
 * test/bench/bench_recover.c -- how long it takes until all is well again after a death: of
 * ingress or a shard until the next request is served, of a run until the next one of its
 * project is executed, of everything at once, with many stored and queued runs, until runs are
 * accepted again.
 *
 * The floor of a death is the start of the same program by hand, which only prints its help.  A
 * supervisor waits longer before each further start of one that dies often, so that every round
 * has a system of its own.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/base.h"
#include "test/bench/report.h"
#include "test/bench/system.h"

#define ROUNDS     10
#define CUTS       5
#define STORED     10000
#define QUEUED     1000
#define PROJECTS   50
#define A_QUEUE    20 /* runs that may wait in a project */
#define POLL_US    500
#define PATIENCE_S 20

static const char slow_step[] =
    "version: 1\nrun:\n  steps:\n    - name: wait\n      run: 'sleep 30'\n";

struct deaths {
	struct series floor_ingress, floor_shard, ingress, shard, run;
};

/* Milliseconds until ${path} is served; asked over new connections. */
static double
until_served(struct system *s, const char *path, double begin)
{
	while (web_call(&s->web, "GET", path, s->session, NULL) != 200) {
		if (bench_now_us() - begin > PATIENCE_S * 1e6)
			bench_die("%s is not served again", path);
		(void)usleep(POLL_US);
	}
	return (bench_now_us() - begin) / 1e3;
}

static double
start_by_hand(const struct system *s, const char *program)
{
	char path[128];
	const char *const argv[] = { path, "--help", NULL };
	double begin = bench_now_us();

	(void)snprintf(path, sizeof(path), "%s/bin/%s", s->dir, program);
	if (system_run(argv, NULL) != 0)
		bench_die("%s --help does not work", program);
	return (bench_now_us() - begin) / 1e3;
}

static double
kill_actor(struct system *s, const char *address, const char *path)
{
	pid_t pid = system_pid(s, address);
	double begin = bench_now_us();

	if (pid <= 0 || kill(pid, SIGKILL) < 0)
		bench_die("no %s to kill", address);
	return until_served(s, path, begin);
}

static int
has_begun(struct system *s, const char *run)
{
	char path[96], status[32];

	(void)snprintf(path, sizeof(path), "/api/private/runs/%s?logBytes=0", run);
	return web_call(&s->web, "GET", path, s->session, NULL) == 200 &&
	    web_member(&s->web, "status", status, sizeof(status)) == 0 &&
	    (strcmp(status, "starting") == 0 || strcmp(status, "running") == 0);
}

static double
until_begun(struct system *s, const char *run, double begin)
{
	while (!has_begun(s, run)) {
		if (bench_now_us() - begin > PATIENCE_S * 1e6)
			bench_die("run %s does not begin", run);
		(void)usleep(POLL_US);
	}
	return (bench_now_us() - begin) / 1e3;
}

/* Two runs of a project; the first is killed. */
static double
kill_run(struct system *s, const char *project)
{
	char first[32], second[32];
	double begin;
	pid_t pid;

	system_trigger(s, project, first);
	system_trigger(s, project, second);
	(void)until_begun(s, first, bench_now_us());
	pid = system_run_pid(s, first);
	begin = bench_now_us();
	if (pid <= 0 || kill(pid, SIGKILL) < 0)
		bench_die("no run to kill");
	return until_begun(s, second, begin);
}

static void
measure_deaths(struct system *s, const char *url, struct deaths *d)
{
	char projects[2][32], path[96];

	system_start(s, "none", 2);
	for (size_t i = 0; i < ARRAY_LEN(projects); i++)
		system_project(s, i == 0 ? "one" : "two", url, projects[i]);
	series_add(&d->run, kill_run(s, projects[0]));
	(void)snprintf(path, sizeof(path), "/api/private/projects/%s", projects[0]);
	series_add(&d->floor_ingress, start_by_hand(s, "anvil-ingress"));
	series_add(&d->ingress, kill_actor(s, "ingress", "/api/private/me"));
	(void)until_served(s, path, bench_now_us());
	series_add(&d->floor_shard, start_by_hand(s, "anvil-project"));
	series_add(&d->shard, kill_actor(s, "project/0", path));
	system_stop(s);
}

static void
report_deaths(const struct deaths *d)
{
	report_row(&(struct report) {
	    "SIGKILL of ingress, next request served", "ms", NULL, &d->ingress, 300, 0 });
	report_row(&(struct report) { "SIGKILL of ingress / start of the program", "ms",
	    &d->floor_ingress, &d->ingress, 20, 0 });
	report_row(&(struct report) {
	    "SIGKILL of a shard, next request served", "ms", NULL, &d->shard, 300, 0 });
	report_row(&(struct report) { "SIGKILL of a shard / start of the program", "ms",
	    &d->floor_shard, &d->shard, 20, 0 });
	report_row(&(struct report) {
	    "SIGKILL of a run, next run of its project begun", "ms", NULL, &d->run, 500, 0 });
}

/* ---- everything at once ---- */

struct cut {
	struct system *s;
	long nstored, nqueued, nprojects;
	char (*projects)[32];
	char run[32]; /* The one whose store all others have, too. */
};

/* A run of the past: accepted and canceled while it waited, with the store of another. */
static void
store_run(struct cut *c, const char *project)
{
	char run[32], path[96], from[160], to[160];
	const char *const argv[] = { "cp", "-al", from, to, NULL };

	system_trigger(c->s, project, run);
	(void)snprintf(path, sizeof(path), "/api/private/runs/%s/cancel", run);
	if (web_call(&c->s->web, "POST", path, c->s->session, NULL) != 200)
		bench_die("run %s was not canceled", run);
	(void)snprintf(from, sizeof(from), "%s/data/runs/%s", c->s->dir, c->run);
	(void)snprintf(to, sizeof(to), "%s/data/runs/%s", c->s->dir, run);
	if (system_run(argv, NULL) != 0)
		bench_die("no store for %s", run);
}

static void
fill(struct cut *c, const char *url)
{
	char slug[32], run[32];

	for (long i = 0; i < c->nprojects; i++) {
		(void)snprintf(slug, sizeof(slug), "p%ld", i);
		system_project(c->s, slug, url, c->projects[i]);
	}
	system_trigger(c->s, c->projects[0], c->run);
	if (system_await(c->s, c->projects[0], c->run, 5000, 60) < 0)
		bench_die("run %s did not pass", c->run);
	while (system_run_pid(c->s, c->run) > 0)
		(void)usleep(POLL_US); /* it clears its store up */
	json_decref(system_rpc(c->s, "supervisor", "supervisor.drain", NULL));
	for (long i = 0; i < c->nstored; i++)
		store_run(c, c->projects[i % c->nprojects]);
	/* The last project has room for what the rounds accept. */
	for (long i = 0; i < c->nqueued; i++)
		system_trigger(c->s, c->projects[i % (c->nprojects - 1)], run);
}

static double
until_accepted(struct cut *c, double begin)
{
	const char *project = c->projects[c->nprojects - 1];
	char path[96];

	(void)snprintf(path, sizeof(path), "/api/private/projects/%s/runs", project);
	while (web_call(&c->s->web, "POST", path, c->s->session, "{}") != 202) {
		if (bench_now_us() - begin > PATIENCE_S * 1e6)
			bench_die("no run is accepted any more");
		(void)usleep(POLL_US);
	}
	return (bench_now_us() - begin) / 1e3;
}

static void
measure_cuts(struct system *s, const char *url)
{
	static struct series floor, value;
	struct cut c = { .s = s,
		.nstored = bench_env("BENCH_STORED", STORED),
		.nqueued = bench_env("BENCH_QUEUED", QUEUED) };
	double begin;

	/* One for what is accepted afterwards, and room for all that waits. */
	c.nprojects = 2 + c.nqueued / A_QUEUE;
	c.projects = calloc((size_t)c.nprojects, sizeof(*c.projects));
	must(c.projects != NULL);
	system_start(s, "none", 2);
	fill(&c, url);
	for (long i = 0; i < bench_env("BENCH_CUTS", CUTS); i++) {
		series_add(&floor, start_by_hand(s, "anvild"));
		system_cut(s);
		begin = bench_now_us();
		system_again(s);
		series_add(&value, until_accepted(&c, begin));
	}
	report_row(&(struct report) {
	    "SIGKILL of everything, next run accepted", "ms", NULL, &value, 2000, 0 });
	report_row(&(struct report) {
	    "SIGKILL of everything / start of anvild", "ms", &floor, &value, 100, 0 });
	report_note(
	    "%ld stored runs, %ld queued, in %ld projects", c.nstored, c.nqueued, c.nprojects);
	free(c.projects);
	system_stop(s);
}

int
main(void)
{
	static struct deaths d;
	struct system s;
	char slow[160], quick[160];

	report_open();
	system_prepare(&s);
	system_repository(&s, "slow", 5, slow_step, slow);
	system_repository(&s, "quick", 5,
	    "version: 1\nrun:\n  steps:\n    - name: nothing\n      run: 'true'\n", quick);
	for (long i = 0; i < bench_env("BENCH_ROUNDS", ROUNDS); i++)
		measure_deaths(&s, slow, &d);
	report_deaths(&d);
	measure_cuts(&s, quick);
	system_done(&s);
	return 0;
}
