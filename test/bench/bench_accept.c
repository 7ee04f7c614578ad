/*
 * test/bench/bench_accept.c -- runs that are accepted a second over HTTP, each durable before its
 * 202, next to single-row transactions into the same table on the same disk, each synced.
 *
 * 64 connections trigger runs of 500 projects while dispatch is drained.  With
 * ANVIL_FAULT_FSYNC_US, in a build with faults, every sync of both sides takes so long: then
 * the ratio tells how many acceptances share one.
 */
#include <stdio.h>
#include <stdlib.h>

#include "lib/wire/wire.h"
#include "test/bench/report.h"
#include "test/bench/single.h"
#include "test/bench/system.h"

#define ROUNDS   5
#define PROJECTS 500
#define CONNS    64

struct triggers {
	const struct system *s;
	char (*projects)[32];
	size_t nprojects, at, left;
	char text[512];
};

static const char *
next_trigger(void *arg, size_t *ret_n)
{
	struct triggers *t = arg;
	int n;

	if (t->left == 0)
		return NULL;
	t->left--;
	n = snprintf(t->text, sizeof(t->text),
	    "POST /api/private/projects/%s/runs HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
	    "Authorization: Bearer %s\r\nContent-Type: application/json\r\n"
	    "Content-Length: 2\r\n\r\n{}",
	    t->projects[t->at++ % t->nprojects], t->s->port, t->s->session);
	*ret_n = (size_t)n;
	return t->text;
}

static double
accept_round(struct triggers *t, size_t n)
{
	struct web_flood f = { .port = t->s->port,
		.nconns = CONNS,
		.next = next_trigger,
		.arg = t,
		.wanted = 202 };

	t->left = n;
	if (web_flood(&f) < 0 || f.refused != 0)
		bench_die(
		    "%ld accepted, %ld refused, the last with %d", f.done, f.refused, f.odd);
	return (double)f.done / (f.us / 1e6);
}

/* Commits of both shards so far. */
static int64_t
commits(struct system *s)
{
	static const char *const shards[] = { "project/0", "project/1" };
	int64_t sum = 0;

	for (size_t i = 0; i < ARRAY_LEN(shards); i++) {
		json_t *stats = system_rpc(s, shards[i], "actor.stats", NULL);

		sum += json_integer_value(json_object_get(stats, "commits"));
		json_decref(stats);
	}
	return sum;
}

static void
prepare(struct system *s, struct triggers *t)
{
	char url[160], slug[32];

	*t = (struct triggers) { .s = s,
		.nprojects = (size_t)bench_env("BENCH_PROJECTS", PROJECTS) };
	t->projects = calloc(t->nprojects, sizeof(*t->projects));
	must(t->projects != NULL);
	system_repository(s, "repo", 2, "version: 1\nrun: {steps: []}\n", url);
	system_start(s, "none", 2);
	json_decref(system_rpc(s, "supervisor", "supervisor.drain", NULL));
	for (size_t i = 0; i < t->nprojects; i++) {
		(void)snprintf(slug, sizeof(slug), "p%zu", i);
		system_project(s, slug, url, t->projects[i]);
	}
}

int
main(void)
{
	static struct series floor, value;
	const char *slow = getenv("ANVIL_FAULT_FSYNC_US");
	size_t rounds = (size_t)bench_env("BENCH_ROUNDS", ROUNDS), n;
	struct single single = { 0 };
	struct triggers t;
	struct system s;
	int64_t before;

	report_open();
	system_prepare(&s);
	prepare(&s, &t);
	single_open(&single, s.dir);
	/* A project takes 20 at most. */
	n = t.nprojects * 19 / rounds;
	before = commits(&s);
	for (size_t i = 0; i < rounds; i++) {
		series_add(&floor, single_round(&single, slow != NULL ? 200 : 2000));
		series_add(&value, accept_round(&t, n));
	}
	before = commits(&s) - before;
	report_row(&(struct report) { .what = slow != NULL
		? "accepted runs, each sync 5 ms / single-row transactions"
		: "accepted runs over HTTP / single-row transactions",
	    .unit = "per second",
	    .floor = &floor,
	    .value = &value,
	    .limit = slow != NULL ? 12 : 1,
	    .at_least = 1 });
	report_note(
	    "%zu projects, %d connections, %zu runs; %.1f runs for each commit of a shard",
	    t.nprojects, CONNS, n * rounds, (double)(n * rounds) / (double)before);
	single_close(&single);
	free(t.projects);
	system_done(&s);
	return 0;
}
