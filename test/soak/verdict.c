#include "test/soak/verdict.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/wire/json.h"
#include "test/soak/chaos.h"
#include "test/soak/load.h"
#include "test/soak/view.h"

#define REST_S       300
#define STOP_S       60
#define LEFTOVERS_S  20
#define SHARDS_MAX   8
#define DETAIL_TRIES 10
#define LOUD_LINES   40 /* as the repository has them */

/* One run, as all that know it have it. */
struct end {
	char id[ID_SIZE], status[16], code[32];
	int project;
	int manual;
	int64_t seq; /* Of its acceptance. */
	int64_t started_ms, finished_ms;
};

static json_t *
parse(const struct buf *body)
{
	json_t *j = NULL;

	if (body->len == 0 || json_text_parse((const char *)body->data, body->len, 64, &j) < 0)
		return NULL;
	return j;
}

static const char *
text_of(const json_t *j, const char *name)
{
	const char *text = json_string_value(json_object_get(j, name));

	return text != NULL ? text : "";
}

int
verdict_await_health(struct soak *s, int seconds)
{
	double until = book_now_us() + seconds * 1e6;
	struct http h = { .port = s->port };
	int well = 0;

	while (!well && book_now_us() < until) {
		well = http_json(&h, "GET", "/healthz", NULL) == 200 &&
		    strstr((const char *)h.body.data, "\"status\":\"ok\"") != NULL;
		if (!well)
			(void)usleep(100000);
	}
	if (!well)
		book_say(
		    "health: %d %s", h.status, h.body.len > 0 ? (const char *)h.body.data : "");
	http_done(&h);
	return well ? 0 : -1;
}

/* GET that has to succeed; the caller's. */
static json_t *
get(struct soak *s, const char *path)
{
	struct http h = { .port = s->port, .session = s->session };
	json_t *j = NULL;

	for (int i = 0; i < 5 && j == NULL; i++) {
		if (http_json(&h, "GET", path, NULL) == 401)
			load_log_in(s);
		else if (h.status == 200)
			j = parse(&h.body);
	}
	if (j == NULL)
		book_loss(&s->book, "GET %s: %d %s", path, h.status,
		    h.body.len > 0 ? (const char *)h.body.data : "");
	http_done(&h);
	return j;
}

/* ---- rest ---- */

/* A delivery without an answer is sent again, as a forge does it: then it is known. */
static void
settle_deliveries(struct soak *s)
{
	struct http h = { .port = s->port };
	double until = book_now_us() + REST_S * 1e6;

	for (size_t i = 0; i < s->book.ndeliveries; i++) {
		const struct book_delivery *d = &s->book.deliveries[i];

		while (!d->settled && d->doubtful && book_now_us() < until) {
			if (load_send(s, &h, i) != 200 && h.status != 202)
				(void)usleep(200000);
			else
				BOOK_COUNT(&s->book, redelivered);
		}
		if (!d->settled && d->doubtful)
			book_loss(
			    &s->book, "delivery %s is never answered: %d", d->id, h.status);
	}
	http_done(&h);
}

static size_t
nwaiting(struct soak *s)
{
	size_t n = 0;
	char path[128];

	for (int i = 0; i < s->book.nprojects; i++) {
		CLEANUP(json_unrefp) json_t *j = NULL;

		(void)snprintf(
		    path, sizeof(path), "/api/private/projects/%s", s->book.projects[i].id);
		j = get(s, path);
		n += json_array_size(json_object_get(j, "pendingRuns"));
		n += j == NULL || json_is_object(json_object_get(j, "activeRun"));
	}
	return n;
}

static void
await_rest(struct soak *s)
{
	double until = book_now_us() + REST_S * 1e6;
	size_t n;

	while ((n = nwaiting(s)) > 0 && book_now_us() < until)
		(void)usleep(200000);
	if (n > 0)
		book_loss(
		    &s->book, "%zu runs have not ended %d s after the last fault", n, REST_S);
}

/* ---- what there is ---- */

struct ends {
	struct end *v;
	size_t n, cap;
	size_t open; /* Rows that are not terminal. */
};

static int64_t
time_of(const json_t *row, const char *name)
{
	int64_t ms;

	return clock_parse(text_of(row, name), &ms) == 0 ? ms : 0;
}

static void
add_end(struct ends *e, const json_t *row, int project)
{
	struct end *at;

	if (e->n == e->cap) {
		e->cap = e->cap * 2 + 256;
		e->v = mem_realloc(e->v, e->cap * sizeof(*e->v));
		must(e->v != NULL);
	}
	at = &e->v[e->n++];
	*at = (struct end) { .project = project,
		.manual = strcmp(text_of(row, "triggerType"), "manual") == 0 };
	(void)snprintf(at->id, sizeof(at->id), "%s", text_of(row, "id"));
	(void)snprintf(at->status, sizeof(at->status), "%s", text_of(row, "status"));
	(void)snprintf(at->code, sizeof(at->code), "%s", text_of(row, "failureCode"));
	at->finished_ms = time_of(row, "finishedAt");
	at->started_ms = time_of(row, "startedAt");
	if (at->started_ms == 0 || at->started_ms > at->finished_ms)
		at->started_ms = at->finished_ms;
	e->open += json_is_null(json_object_get(row, "finishedAt"));
}

/* The runs of a project, as the index lists them. */
static void
list_runs(struct soak *s, int project, struct ends *e)
{
	char path[320], cursor[160] = "";

	do {
		CLEANUP(json_unrefp) json_t *j = NULL;
		json_t *row;
		size_t i;

		(void)snprintf(path, sizeof(path),
		    "/api/private/projects/%s/runs?limit=100&cursor=%s",
		    s->book.projects[project].id, cursor);
		j = get(s, path);
		json_array_foreach (json_object_get(j, "runs"), i, row)
			add_end(e, row, project);
		(void)snprintf(cursor, sizeof(cursor), "%s", text_of(j, "nextCursor"));
	} while (cursor[0] != '\0');
}

/* Until the index has the end of all of them: its rows follow the ledger's. */
static void
list_all(struct soak *s, struct ends *e)
{
	double until = book_now_us() + REST_S * 1e6;

	do {
		e->n = e->open = 0;
		for (int i = 0; i < s->book.nprojects; i++)
			list_runs(s, i, e);
		if (e->open > 0)
			(void)usleep(500000);
	} while (e->open > 0 && book_now_us() < until);
	if (e->open > 0)
		book_loss(&s->book, "the index has %zu runs that have not ended", e->open);
}

static const struct end *
find_end(const struct ends *e, const char *id)
{
	for (size_t i = 0; i < e->n; i++)
		if (strcmp(e->v[i].id, id) == 0)
			return &e->v[i];
	return NULL;
}

/* ---- one run ---- */

/* The row of the ledger that has it: of one shard, and the same. */
static void
compare_ledger(struct soak *s, struct end *e)
{
	char params[160], address[24];
	int found = 0;

	(void)snprintf(params, sizeof(params), "{\"projectId\":\"%s\",\"runId\":\"%s\"}",
	    s->book.projects[e->project].id, e->id);
	for (int i = 0; i < SHARDS_MAX; i++) {
		CLEANUP(json_unrefp) json_t *j = NULL;
		const json_t *row, *first;

		(void)snprintf(address, sizeof(address), "project/%d", i);
		j = chaos_call(s, address, "project.why", params, 5000);
		row = json_object_get(j, "run");
		if (row == NULL)
			continue;
		found++;
		if (strcmp(text_of(row, "status"), e->status) != 0 ||
		    strcmp(text_of(row, "failureCode"), e->code) != 0)
			book_loss(&s->book, "%s is %s %s in the ledger and %s %s in the index",
			    e->id, text_of(row, "status"), text_of(row, "failureCode"),
			    e->status, e->code);
		first = json_array_get(json_object_get(j, "events"), 0);
		e->seq = json_integer_value(
		    json_object_get(json_object_get(first, "detail"), "position"));
	}
	if (found != 1)
		book_loss(&s->book, "%s is in %d ledgers", e->id, found);
}

/* The process that answers for the run is waited for by ingress for a moment only, which a busy
 * machine exceeds. */
static json_t *
get_detail(struct soak *s, const char *id)
{
	char path[128];
	json_t *j = NULL;

	(void)snprintf(path, sizeof(path), "/api/private/runs/%s?logBytes=0", id);
	for (int i = 0; i < DETAIL_TRIES; i++) {
		json_decref(j);
		j = get(s, path);
		if (json_is_true(json_object_get(j, "detailAvailable")))
			return j;
		(void)usleep(200000);
	}
	book_loss(&s->book, "%s has no detail any more", id);
	return j;
}

static void
compare_detail(struct soak *s, const struct end *e)
{
	CLEANUP(json_unrefp) json_t *j = get_detail(s, e->id);
	const json_t *run = json_object_get(j, "run"), *step;
	size_t i;

	if (strcmp(text_of(run, "status"), e->status) != 0 ||
	    strcmp(text_of(run, "failureCode"), e->code) != 0)
		book_loss(&s->book, "%s is %s %s by itself and %s %s in the index", e->id,
		    text_of(run, "status"), text_of(run, "failureCode"), e->status, e->code);
	json_array_foreach (json_object_get(j, "steps"), i, step)
		if (strcmp(text_of(step, "status"), "running") == 0)
			book_loss(&s->book, "%s has ended and a step of it has not", e->id);
}

/* All that anybody has seen of its log is there, and in its place. */
static void
compare_lines(struct soak *s, const struct end *e)
{
	struct book_run *r = book_run(&s->book, e->id);
	struct view v = { .s = s, .next = 1 };
	size_t last = 0;

	(void)snprintf(v.run, sizeof(v.run), "%s", e->id);
	for (int i = 0; i < 3 && !v.ended; i++)
		view_events(&v, 20000);
	if (!v.ended)
		book_loss(&s->book, "%s has ended and its stream does not", e->id);
	for (size_t i = 1; i < r->nlines; i++)
		last = r->lines[i] != 0 ? i : last;
	if ((int64_t)last >= v.next)
		book_loss(&s->book, "line %zu of %s has gone, which somebody saw", last, e->id);
}

/* A passed run has said all that its steps say, once. */
static void
compare_text(struct soak *s, const struct end *e)
{
	struct http h = { .port = s->port, .session = s->session };
	char path[128], line[64];
	const char *at = "";

	(void)snprintf(path, sizeof(path), "/api/private/runs/%s/log", e->id);
	if (http_json(&h, "GET", path, NULL) != 200) {
		book_loss(&s->book, "log of %s: %d", e->id, h.status);
		http_done(&h);
		return;
	}
	at = (const char *)h.body.data;
	for (int i = 1; i <= LOUD_LINES && at != NULL; i++) {
		(void)snprintf(line, sizeof(line), "line %d of %s\n", i, e->id);
		at = strstr(at, line);
		if (at == NULL)
			book_loss(&s->book, "%s has passed, and line %d is missing", e->id, i);
		else if (strstr(at + 1, line) != NULL)
			book_loss(&s->book, "%s has line %d twice", e->id, i);
	}
	http_done(&h);
}

/* Whether it could end like this. */
static int
is_natural(const struct book_run *r, const struct end *e)
{
	switch (r->nature) {
	case NATURE_PASSES: return strcmp(e->status, "passed") == 0;
	case NATURE_FAILS: return strcmp(e->code, "step_failed") == 0;
	case NATURE_UNREACHABLE: return strcmp(e->code, "checkout_failed") == 0;
	default: return 1;
	}
}

static void
judge(struct soak *s, struct verdict *v, const struct end *e)
{
	const struct book_run *r = book_run(&s->book, e->id);
	int passed = strcmp(e->status, "passed") == 0;
	int canceled = strcmp(e->status, "canceled") == 0;
	unsigned good = canceled ? EXCUSE_CANCEL | EXCUSE_SHUT : EXCUSE_HIT;

	v->runs++;
	v->passed += passed;
	v->canceled += canceled;
	v->failed += !passed && !canceled;
	v->lost_runners += strcmp(e->code, "runner_lost") == 0;
	if (r->terminal[0] != '\0' && strcmp(r->terminal, e->status) != 0)
		book_loss(
		    &s->book, "%s was told to be %s and is %s", e->id, r->terminal, e->status);
	if (passed && r->ended != 1)
		book_loss(&s->book, "%s has passed; its last step was seen %d times", e->id,
		    r->ended);
	if (is_natural(r, e))
		return;
	v->excused++;
	if (!canceled && book_in_window(&s->book, e->started_ms, e->finished_ms))
		return;
	if ((r->excuse & good) == 0 || passed)
		book_loss(&s->book, "%s of %s ended %s %s, and nobody touched it", e->id,
		    s->book.projects[e->project].slug, e->status, e->code);
}

/* ---- all of them ---- */

static int
by_turn(const void *a, const void *b)
{
	const struct book_run *const *x = a, *const *y = b;

	return (*x)->turn - (*y)->turn;
}

/* Steps began in the order in which runs were accepted. */
static void
compare_order(struct soak *s, const struct ends *e, int project)
{
	const struct book_run **of = mem_calloc(s->book.nruns + 1, sizeof(*of));
	int64_t last = 0;
	size_t n = 0;

	must(of != NULL);
	for (size_t i = 0; i < s->book.nruns; i++)
		if (s->book.runs[i]->turn > 0 && s->book.runs[i]->project == project)
			of[n++] = s->book.runs[i];
	qsort(of, n, sizeof(*of), by_turn);
	for (size_t i = 0; i < n; i++) {
		const struct end *at = find_end(e, of[i]->id);

		if (at == NULL || at->seq == 0)
			continue;
		if (at->seq < last)
			book_loss(&s->book,
			    "%s was accepted as number %lld and begun after %lld", at->id,
			    (long long)at->seq, (long long)last);
		last = at->seq;
	}
	free(of);
}

/* Every run that was promised is there, and none that nobody has asked for. */
static void
compare_promises(struct soak *s, const struct ends *e)
{
	long surplus = 0;

	for (size_t i = 0; i < s->book.nruns; i++) {
		const struct book_run *r = s->book.runs[i];

		if (find_end(e, r->id) == NULL)
			book_loss(&s->book, "%s was %s and does not exist", r->id,
			    r->answered ? "accepted" : "executed");
	}
	for (size_t i = 0; i < e->n; i++) {
		struct book_run *r = book_run(&s->book, e->v[i].id);

		r->project = e->v[i].project;
		if (r->answered)
			continue;
		if (!e->v[i].manual)
			book_loss(&s->book, "%s belongs to no delivery", r->id);
		surplus++;
	}
	if (surplus > s->book.n.manual_unanswered)
		book_loss(&s->book,
		    "%ld runs that nobody has started, %ld requests without answer", surplus,
		    s->book.n.manual_unanswered);
	for (size_t i = 0; i < e->n; i++)
		for (size_t k = 0; k < i; k++)
			if (strcmp(e->v[i].id, e->v[k].id) == 0)
				book_loss(&s->book, "%s is listed twice", e->v[i].id);
}

static void
compare_names(struct soak *s)
{
	for (int i = 0; i < s->book.nprojects; i++) {
		CLEANUP(json_unrefp) json_t *j = NULL;
		const struct book_project *p = &s->book.projects[i];
		const char *name;
		char path[128];
		int good;

		(void)snprintf(path, sizeof(path), "/api/private/projects/%s", p->id);
		j = get(s, path);
		name = text_of(json_object_get(j, "project"), "name");
		good = strcmp(name, p->name) == 0;
		for (unsigned k = 0; k < p->nmaybe; k++)
			good |= strcmp(name, p->maybe[k]) == 0;
		if (!good)
			book_loss(&s->book, "project %s was named \"%s\" and is \"%s\"",
			    p->slug, p->name, name);
	}
}

/* anvil's own idea of its invariants.  Whoever reaps first has the exit status, so that it
 * comes in a file. */
static void
compare_checks(struct soak *s)
{
	char text[768], status[8] = "";
	FILE *f;

	(void)snprintf(text, sizeof(text),
	    "'%s/anvilctl' -c '%s' check >'%s/check.out' 2>&1; echo $? >'%s/check.status'",
	    s->programs, s->conf, s->dir, s->dir);
	if (system(text) == 0)
		book_say("anvilctl check was called");
	(void)snprintf(text, sizeof(text), "%s/check.status", s->dir);
	f = fopen(text, "re");
	if (f == NULL || fgets(status, sizeof(status), f) == NULL ||
	    (atoi(status) != 0 && atoi(status) != 2))
		book_loss(
		    &s->book, "anvilctl check: status %s; see %s/check.out", status, s->dir);
	if (f != NULL)
		(void)fclose(f);
}

void
verdict_compare(struct soak *s, struct verdict *v)
{
	struct ends e = { .n = 0 };

	if (verdict_await_health(s, REST_S) < 0)
		book_loss(&s->book, "anvil is not well %d s after the last fault", REST_S);
	settle_deliveries(s);
	await_rest(s);
	list_all(s, &e);
	compare_promises(s, &e);
	for (size_t i = 0; i < e.n; i++) {
		compare_ledger(s, &e.v[i]);
		compare_detail(s, &e.v[i]);
		compare_lines(s, &e.v[i]);
		if (strcmp(e.v[i].status, "passed") == 0)
			compare_text(s, &e.v[i]);
		judge(s, v, &e.v[i]);
	}
	for (int i = 0; i < s->book.nprojects; i++)
		compare_order(s, &e, i);
	compare_names(s);
	compare_checks(s);
	free(e.v);
}

/* ---- what is left ---- */

static struct soak *walked; /* nftw() hands nothing on */

static int
on_file(const char *path, const struct stat *st, int type, struct FTW *at)
{
	const char *name = path + at->base;

	(void)st;
	if (type == FTW_D && at->level == 2 &&
	    (strcmp(name, "ws") == 0 || strcmp(name, "tmp") == 0 || strcmp(name, "home") == 0))
		book_loss(&walked->book, "left over: %s", path);
	return 0;
}

static void
find_files(struct soak *s)
{
	char path[256];
	const struct dirent *d;
	DIR *dir = opendir(s->run_dir);

	while (dir != NULL && (d = readdir(dir)) != NULL)
		if (strstr(d->d_name, ".sock") != NULL)
			book_loss(&s->book, "left over: socket %s", d->d_name);
	if (dir != NULL)
		(void)closedir(dir);
	(void)snprintf(path, sizeof(path), "%s/runs", s->data_dir);
	walked = s;
	(void)nftw(path, on_file, 32, FTW_PHYS);
}

void
verdict_end(struct soak *s)
{
	double until = book_now_us() + STOP_S * 1e6;
	struct proc left[PROCS_MAX];
	pid_t pid = atomic_load(&s->pid);
	size_t n;

	atomic_store(&s->keeping, 0);
	if (pid > 0)
		(void)kill(pid, SIGTERM);
	while (atomic_load(&s->pid) != 0 && book_now_us() < until)
		(void)usleep(20000);
	if (atomic_load(&s->pid) != 0)
		book_loss(&s->book, "anvild does not end");
	until = book_now_us() + LEFTOVERS_S * 1e6;
	while ((n = procs_list(s, left)) > 0 && book_now_us() < until)
		(void)usleep(20000);
	for (size_t i = 0; i < n; i++) {
		book_loss(&s->book, "left over: process %d, a %s %s", (int)left[i].pid,
		    role_names[left[i].role], left[i].run);
		(void)kill(left[i].pid, SIGKILL);
	}
	procs_end(s);
	find_files(s);
}
