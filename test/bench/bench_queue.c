/*
 * test/bench/bench_queue.c -- many projects with a queue each, as many slots as cores, next to
 * clones and steps by hand in as many threads.
 *
 * Every project has run once before, so that its mirror is there.  The queues are filled while
 * dispatch is drained; the time is from `resume` to the end of the last run.  BENCH_SCALE=full:
 * 500 projects with 20 runs, else 50 with 4.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/base.h"
#include "lib/base/clock.h"
#include "lib/wire/wire.h"
#include "test/bench/hand.h"
#include "test/bench/report.h"
#include "test/bench/system.h"

#define PATIENCE 3600
#define POLL_US  50000
#define HAND_MAX 400

static const char one_step[] =
    "version: 1\nrun:\n  steps:\n    - name: nothing\n      run: 'true'\n";

struct queues {
	struct system s;
	size_t nprojects, depth;
	char (*projects)[32];
	char (*last)[32]; /* The newest run of each. */
	/* What came. */
	int64_t *ended; /* Wall clock, of each run. */
	size_t nended;
	long lost, out_of_order;
};

static void
fill(struct queues *q, size_t depth)
{
	for (size_t d = 0; d < depth; d++)
		for (size_t i = 0; i < q->nprojects; i++)
			system_trigger(&q->s, q->projects[i], q->last[i]);
}

static void
drain(struct queues *q)
{
	for (size_t i = 0; i < q->nprojects; i++)
		if (system_await(&q->s, q->projects[i], q->last[i], POLL_US, PATIENCE) < 0)
			bench_die("run %s did not pass", q->last[i]);
}

static int64_t
time_of(const json_t *run, const char *name)
{
	const char *text = json_string_value(json_object_get(run, name));
	int64_t ms;

	return text != NULL && clock_parse(text, &ms) == 0 ? ms : 0;
}

/* The list has the newest first; a run begins when the one accepted before it has ended. */
static void
judge(struct queues *q, const char *project)
{
	char path[128];
	json_t *page = NULL, *runs;
	int64_t next_start = INT64_MAX;
	size_t i, passed = 0;

	(void)snprintf(path, sizeof(path), "/api/private/projects/%s/runs?limit=100", project);
	if (web_call(&q->s.web, "GET", path, q->s.session, NULL) != 200 ||
	    json_text_parse((const char *)q->s.web.body.data, q->s.web.body.len, 64, &page) < 0)
		bench_die("no list of runs");
	runs = json_object_get(page, "runs");
	for (i = 0; i < json_array_size(runs) && i < q->depth; i++) {
		const json_t *run = json_array_get(runs, i);
		const char *status = json_string_value(json_object_get(run, "status"));

		passed += status != NULL && strcmp(status, "passed") == 0;
		q->ended[q->nended++] = time_of(run, "finishedAt");
		q->out_of_order += time_of(run, "finishedAt") > next_start;
		next_start = time_of(run, "startedAt");
	}
	q->lost += (long)(q->depth - passed) + (json_array_size(runs) != q->depth + 1);
	json_decref(page);
}

static int
by_time(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void
prepare(struct queues *q, int slots, char url[160])
{
	const char *scale = getenv("BENCH_SCALE");
	int full = scale != NULL && strcmp(scale, "full") == 0;
	char slug[32];

	*q =
	    (struct queues) { .nprojects = (size_t)bench_env("BENCH_PROJECTS", full ? 500 : 50),
		    .depth = (size_t)bench_env("BENCH_DEPTH", full ? 20 : 4) };
	q->projects = calloc(q->nprojects, sizeof(*q->projects));
	q->last = calloc(q->nprojects, sizeof(*q->last));
	q->ended = calloc(q->nprojects * q->depth, sizeof(*q->ended));
	must(q->projects != NULL && q->last != NULL && q->ended != NULL);
	system_prepare(&q->s);
	system_repository(&q->s, "repo", 50, one_step, url);
	system_start(&q->s, "bwrap", slots);
	for (size_t i = 0; i < q->nprojects; i++) {
		(void)snprintf(slug, sizeof(slug), "p%zu", i);
		system_project(&q->s, slug, url, q->projects[i]);
	}
	fill(q, 1);
	drain(q);
}

int
main(void)
{
	static struct series floor, value;
	int slots = (int)sysconf(_SC_NPROCESSORS_ONLN);
	size_t n, tenth;
	struct queues q;
	char url[160];
	int64_t begin;
	int by_hand;

	report_open();
	prepare(&q, slots, url);
	n = q.nprojects * q.depth;
	tenth = n / 10;
	by_hand = n > HAND_MAX ? HAND_MAX : (int)n;
	series_add(&floor, hand_rate(url, q.s.dir, 1, by_hand, slots));
	json_decref(system_rpc(&q.s, "supervisor", "supervisor.drain", NULL));
	fill(&q, q.depth);
	begin = clock_wall_ms();
	json_decref(system_rpc(&q.s, "supervisor", "supervisor.resume", NULL));
	drain(&q);
	for (size_t i = 0; i < q.nprojects; i++)
		judge(&q, q.projects[i]);
	qsort(q.ended, q.nended, sizeof(*q.ended), by_time);
	series_add(&value, (double)n / ((double)(q.ended[n - 1] - begin) / 1e3));
	floor.v[0] = (floor.v[0] + hand_rate(url, q.s.dir, 1, by_hand, slots)) / 2;
	report_row(&(struct report) { .what = "queued runs / clones and steps by hand",
	    .unit = "per second",
	    .floor = &floor,
	    .value = &value,
	    .limit = 0.6,
	    .at_least = 1 });
	report_note("%zu projects x %zu runs, %d slots; by hand before and after; lost %ld, "
		    "out of order %ld; a run of the first tenth %.1f ms, of the last %.1f ms",
	    q.nprojects, q.depth, slots, q.lost, q.out_of_order,
	    (double)(q.ended[tenth] - begin) / (double)(tenth + 1),
	    (double)(q.ended[n - 1] - q.ended[n - 1 - tenth]) / (double)tenth);
	free(q.projects);
	free(q.last);
	free(q.ended);
	system_done(&q.s);
	return 0;
}
