/*
 * test/bench/report.h -- series of measurements, and the line that a bench prints of them.
 *
 * Each line goes to standard output and, with BENCH_ROWS=FILE, to that file as well, separated
 * by tabs, so that scripts/bench.sh can print one table at its end.  Nothing is ever asserted.
 */
#ifndef TEST_BENCH_REPORT_H
#define TEST_BENCH_REPORT_H

#include <stddef.h>

#define SERIES_MAX 4096

struct series {
	size_t n;
	double v[SERIES_MAX];
};

/* Beyond SERIES_MAX values are left out. */
void series_add(struct series *s, double v);
/* Value at ${share} (0 lowest .. 1 highest) of the sorted values; 0 for none. */
double series_at(const struct series *s, double share);
static inline double
series_median(const struct series *s)
{
	return series_at(s, 0.5);
}
/* Median of values ${from} .. ${to} - 1, in the order in which they came. */
double series_part(const struct series *s, size_t from, size_t to);
/* ${out}[i] = ${a}[i] / ${b}[i]. */
void series_ratio(const struct series *a, const struct series *b, struct series *out);

struct report {
	const char *what;
	const char *unit;           /* Of floor and measured value.                 */
	const struct series *floor; /* NULL: the target is of the value itself.     */
	const struct series *value; /* Round i was measured next to floor's i.      */
	double limit;               /* Of the median ratio, or of the median value. */
	int at_least;               /* The limit is the lowest that is good.        */
};

/* Opens the file of BENCH_ROWS; before rights are given up. */
void report_open(void);
void report_row(const struct report *r);
/* A line under the rows that says how they were had. */
void report_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* A positive number from the environment, else ${otherwise}. */
long bench_env(const char *name, long otherwise);
/* Ends the bench: something that it needs does not work. */
void bench_die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
/* Microseconds of CLOCK_MONOTONIC. */
double bench_now_us(void);

#endif
