#include "test/bench/report.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static FILE *rows; /* Static: a bench is one program with one report. */

void
series_add(struct series *s, double v)
{
	if (s->n < SERIES_MAX)
		s->v[s->n++] = v;
}

static int
by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double
series_at(const struct series *s, double share)
{
	static double sorted[SERIES_MAX];

	if (s->n == 0)
		return 0;
	memcpy(sorted, s->v, s->n * sizeof(*sorted));
	qsort(sorted, s->n, sizeof(*sorted), by_value);
	return sorted[(size_t)((double)(s->n - 1) * share + 0.5)];
}

double
series_part(const struct series *s, size_t from, size_t to)
{
	static struct series part;

	part.n = 0;
	for (size_t i = from; i < to && i < s->n; i++)
		series_add(&part, s->v[i]);
	return series_median(&part);
}

void
series_ratio(const struct series *a, const struct series *b, struct series *out)
{
	out->n = 0;
	for (size_t i = 0; i < a->n && i < b->n; i++)
		series_add(out, b->v[i] > 0 ? a->v[i] / b->v[i] : 0);
}

void
report_open(void)
{
	const char *path = getenv("BENCH_ROWS");

	/* Line by line, for the children that inherit it have nothing to write then. */
	rows = path == NULL ? NULL : fopen(path, "ae");
	if (rows != NULL)
		(void)setvbuf(rows, NULL, _IOLBF, 0);
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
}

static const char *
number(double v, char out[32])
{
	double size = v < 0 ? -v : v;

	(void)snprintf(out, 32, size >= 1000 ? "%.0f" : size >= 100 ? "%.1f" : "%.2f", v);
	return out;
}

static void
spread(const struct series *s, char out[80])
{
	char low[32];

	(void)snprintf(out, 40, "%s..", number(series_at(s, 0), low));
	(void)number(series_at(s, 1), out + strlen(out));
}

void
report_row(const struct report *r)
{
	static struct series ratio;
	char floor[32] = "-", value[32], mid[32] = "-", limit[32];
	char around[80], ratio_around[80] = "";
	double judged = series_median(r->value);
	int good;

	(void)number(series_median(r->value), value);
	spread(r->value, around);
	if (r->floor != NULL) {
		(void)number(series_median(r->floor), floor);
		series_ratio(r->value, r->floor, &ratio);
		judged = series_median(&ratio);
		(void)number(judged, mid);
		spread(&ratio, ratio_around);
	}
	(void)snprintf(limit, sizeof(limit), "%s %g%s", r->at_least ? ">=" : "<=", r->limit,
	    r->floor != NULL ? " x" : "");
	good = r->at_least ? judged >= r->limit : judged <= r->limit;
	printf("%s: floor %s, measured %s %s (%s), ratio %s (%s), target %s: %s\n", r->what,
	    floor, value, r->unit, around, mid, ratio_around, limit, good ? "pass" : "miss");
	if (rows != NULL)
		(void)fprintf(rows, "row\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r->what,
		    r->unit, floor, value, around, mid, ratio_around, limit,
		    good ? "pass" : "miss");
}

void
report_note(const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	printf("  %s\n", text);
	if (rows != NULL)
		(void)fprintf(rows, "note\t%s\n", text);
}

long
bench_env(const char *name, long otherwise)
{
	const char *text = getenv(name);
	long v = text == NULL ? 0 : strtol(text, NULL, 10);

	return v > 0 ? v : otherwise;
}

void
bench_die(const char *fmt, ...)
{
	va_list ap;

	(void)fprintf(stderr, "bench: ");
	va_start(ap, fmt);
	(void)vfprintf(stderr, fmt, ap);
	va_end(ap);
	(void)fprintf(stderr, "\n");
	exit(1);
}

double
bench_now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}
