/*
 * lib/base/clock.h -- two clocks that cannot be mixed up.
 *
 * Wall time is an int64_t in milliseconds since the epoch, named `..._ms`: stores and
 * messages carry it.  Durations, leases and deadlines run on struct mono_time.
 */
#ifndef LIB_BASE_CLOCK_H
#define LIB_BASE_CLOCK_H

#include <stdint.h>

#include "lib/base/base.h"

/* CLOCK_MONOTONIC, in microseconds. */
struct mono_time {
	int64_t us;
};

#define CLOCK_TEXT_SIZE 25 /* "2026-01-31T09:05:07.042Z" and its NUL */

int64_t clock_wall_ms(void);
struct mono_time clock_mono(void);

static inline struct mono_time
mono_add_ms(struct mono_time t, int64_t ms)
{
	return (struct mono_time) { t.us + ms * 1000 };
}

/* Milliseconds from ${a} to ${b}; negative when ${b} is earlier. */
static inline int64_t
mono_diff_ms(struct mono_time a, struct mono_time b)
{
	return (b.us - a.us) / 1000;
}

static inline int64_t
mono_diff_us(struct mono_time a, struct mono_time b)
{
	return b.us - a.us;
}

/* UTC with three fractional digits (spec http-api 1.1); years 0000..9999, clamped. */
void clock_format(int64_t wall_ms, char out[CLOCK_TEXT_SIZE]);
/* Reads exactly that form.  0 or E_INVAL. */
int clock_parse(const char *text, int64_t *ret_wall_ms);

/* Tests: both clocks add ${ms} from now on (0 = real time again). */
/* With ANVIL_FAULTS, the environment variable ANVIL_CLOCK_FILE names a file whose first 8 bytes
 * are an int64_t of this machine, and the wall clock adds so many milliseconds: whoever writes
 * there steps the clock of all processes at once. */
void clock_shift_for_test(int64_t wall_shift_ms, int64_t mono_shift_ms);

#endif
