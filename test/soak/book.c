#include "test/soak/book.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/mem.h"

#define MARGIN_MS 500 /* around a window, for who hears late */

double
book_now_us(void)
{
	struct timespec ts;

	must(clock_gettime(CLOCK_MONOTONIC, &ts) == 0);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static void __attribute__((format(printf, 3, 0)))
say(FILE *f, const char *what, const char *fmt, va_list ap)
{
	struct timespec ts;
	struct tm tm;
	char text[1024], at[16];

	must(clock_gettime(CLOCK_REALTIME, &ts) == 0);
	must(gmtime_r(&ts.tv_sec, &tm) != NULL);
	(void)strftime(at, sizeof(at), "%H:%M:%S", &tm);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	(void)fprintf(f, "%s.%03ld %s%s\n", at, ts.tv_nsec / 1000000, what, text);
	(void)fflush(f);
}

void
book_say(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(stdout, "", fmt, ap);
	va_end(ap);
}

void
book_loss(struct book *b, const char *fmt, ...)
{
	va_list ap;

	(void)__atomic_add_fetch(&b->losses, 1, __ATOMIC_RELAXED);
	va_start(ap, fmt);
	say(stdout, "LOSS ", fmt, ap);
	va_end(ap);
}

void
book_init(struct book *b)
{
	*b = (struct book) { .by_id = map_new() };
	must(b->by_id != NULL && pthread_mutex_init(&b->lock, NULL) == 0);
}

void
book_done(struct book *b)
{
	for (size_t i = 0; i < b->nruns; i++) {
		free(b->runs[i]->lines);
		free(b->runs[i]);
	}
	free(b->runs);
	free(b->deliveries);
	free(b->windows);
	b->by_id = map_free(b->by_id);
}

static void
lock(struct book *b)
{
	must(pthread_mutex_lock(&b->lock) == 0);
}

static void
unlock(struct book *b)
{
	must(pthread_mutex_unlock(&b->lock) == 0);
}

/* ---- runs ---- */

static struct book_run *
run_of(struct book *b, const char *id)
{
	struct book_run *r = map_get(b->by_id, id);

	if (r != NULL)
		return r;
	if (b->nruns == b->cap) {
		b->cap = b->cap * 2 + 64;
		b->runs = mem_realloc(b->runs, b->cap * sizeof(*b->runs));
		must(b->runs != NULL);
	}
	r = mem_calloc(1, sizeof(*r));
	must(r != NULL);
	*r = (struct book_run) { .project = -1, .at_us = book_now_us() };
	(void)snprintf(r->id, sizeof(r->id), "%s", id);
	must(map_set(b->by_id, r->id, r) == 0);
	return b->runs[b->nruns++] = r;
}

struct book_run *
book_run(struct book *b, const char *id)
{
	struct book_run *r;

	lock(b);
	r = run_of(b, id);
	unlock(b);
	return r;
}

static void
accept(struct book *b, const char *id, int project, enum nature nature)
{
	struct book_run *r = run_of(b, id);

	if (r->project >= 0 && r->project != project)
		book_loss(b, "%s is of two projects", id);
	r->project = project;
	r->answered = 1;
	r->nature = nature;
}

void
book_accepted(struct book *b, const char *id, int project, enum nature nature)
{
	lock(b);
	accept(b, id, project, nature);
	unlock(b);
}

void
book_excuse(struct book *b, const char *id, enum excuse why)
{
	lock(b);
	run_of(b, id)->excuse |= why;
	unlock(b);
}

void
book_excuse_all(struct book *b, enum excuse why)
{
	lock(b);
	for (size_t i = 0; i < b->nruns; i++)
		if (b->runs[i]->terminal[0] == '\0')
			b->runs[i]->excuse |= why;
	unlock(b);
}

void
book_window(struct book *b, int64_t from_ms, int64_t to_ms)
{
	lock(b);
	b->windows = mem_realloc(b->windows, (b->nwindows + 1) * sizeof(*b->windows));
	must(b->windows != NULL);
	b->windows[b->nwindows++] = (struct book_window) { from_ms, to_ms };
	unlock(b);
}

int
book_in_window(const struct book *b, int64_t from_ms, int64_t to_ms)
{
	for (size_t i = 0; i < b->nwindows; i++)
		if (from_ms <= b->windows[i].to_ms + MARGIN_MS &&
		    to_ms >= b->windows[i].from_ms - MARGIN_MS)
			return 1;
	return 0;
}

void
book_ended(struct book *b, const char *id, const char *status)
{
	struct book_run *r;

	lock(b);
	r = run_of(b, id);
	if (r->terminal[0] != '\0' && strcmp(r->terminal, status) != 0)
		book_loss(b, "%s was told to be %s, and then %s", id, r->terminal, status);
	(void)snprintf(r->terminal, sizeof(r->terminal), "%s", status);
	unlock(b);
}

void
book_line(struct book *b, const char *id, int64_t seq, uint64_t hash)
{
	struct book_run *r;
	size_t at = (size_t)seq;

	lock(b);
	r = run_of(b, id);
	if (at >= r->nlines) {
		size_t n = at + 64;

		r->lines = mem_realloc(r->lines, n * sizeof(*r->lines));
		must(r->lines != NULL);
		memset(r->lines + r->nlines, 0, (n - r->nlines) * sizeof(*r->lines));
		r->nlines = n;
	}
	hash |= 1;
	if (r->lines[at] != 0 && r->lines[at] != hash)
		book_loss(b, "line %zu of %s was shown in two forms", at, id);
	r->lines[at] = hash;
	unlock(b);
	BOOK_COUNT(b, lines);
}

int
book_some_run(struct book *b, size_t n, uint64_t pick, char ret[ID_SIZE])
{
	const struct book_run *found[64];
	size_t k = 0;

	lock(b);
	for (size_t i = b->nruns; i > 0 && k < n && k < ARRAY_LEN(found); i--)
		if (b->runs[i - 1]->terminal[0] == '\0' && b->runs[i - 1]->answered)
			found[k++] = b->runs[i - 1];
	if (k > 0)
		(void)snprintf(ret, ID_SIZE, "%s", found[pick % k]->id);
	unlock(b);
	return k > 0;
}

/* ---- beacons ---- */

static struct book_project *
project_of(struct book *b, const char *slug)
{
	for (int i = 0; i < b->nprojects; i++)
		if (strcmp(b->projects[i].slug, slug) == 0)
			return &b->projects[i];
	return NULL;
}

/* Beacons come in the order in which they were sent. */
static void
beacon(struct book *b, struct book_project *p, struct book_run *r, const char *word)
{
	int first = r->turn == 0;

	if (strcmp(word, "begin") == 0 && ++r->begun > 1)
		book_loss(b, "%s was executed twice", r->id);
	if (strcmp(word, "end") == 0)
		r->ended++;
	if (first)
		r->turn = ++p->turns;
	else if (strcmp(p->current, r->id) != 0)
		book_loss(b, "%s: %s goes on while %s is executed", p->slug, r->id, p->current);
	(void)snprintf(p->current, sizeof(p->current), "%s", r->id);
}

void
book_beacon(struct book *b, const char *slug, const char *id, const char *word)
{
	struct book_project *p;

	lock(b);
	p = project_of(b, slug);
	if (p == NULL)
		book_loss(b, "a step of project \"%s\", which does not exist", slug);
	else
		beacon(b, p, run_of(b, id), word);
	unlock(b);
	BOOK_COUNT(b, beacons);
}

/* ---- deliveries ---- */

size_t
book_new_delivery(struct book *b, const char *id, int project, const char *branch)
{
	size_t i;

	lock(b);
	if (b->ndeliveries == b->cap_deliveries) {
		b->cap_deliveries = b->cap_deliveries * 2 + 64;
		b->deliveries = mem_realloc(
		    b->deliveries, b->cap_deliveries * sizeof(*b->deliveries));
		must(b->deliveries != NULL);
	}
	i = b->ndeliveries++;
	b->deliveries[i] = (struct book_delivery) { .project = project, .branch = branch };
	(void)snprintf(b->deliveries[i].id, sizeof(b->deliveries[i].id), "%s", id);
	unlock(b);
	return i;
}

void
book_delivered(struct book *b, size_t i, const char *run, enum nature nature)
{
	struct book_delivery *d;

	lock(b);
	d = &b->deliveries[i];
	if (d->settled && strcmp(d->run, run != NULL ? run : "") != 0)
		book_loss(b, "delivery %s: \"%s\", and then \"%s\"", d->id, d->run,
		    run != NULL ? run : "");
	d->settled = 1;
	if (run != NULL) {
		(void)snprintf(d->run, sizeof(d->run), "%s", run);
		accept(b, run, d->project, nature);
	}
	unlock(b);
}

void
book_doubt(struct book *b, size_t i)
{
	lock(b);
	b->deliveries[i].doubtful = 1;
	unlock(b);
}
