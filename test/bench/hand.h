/*
 * test/bench/hand.h -- what a run comes down to, done by hand: the floor of runs.
 */
#ifndef TEST_BENCH_HAND_H
#define TEST_BENCH_HAND_H

/* `git clone` of ${url} to ${dir}/ws, then `sh -c true` in it, under bwrap with the mounts and
 * namespaces of a step when ${boxed}; microseconds.  What was cloned is removed afterwards, out
 * of the time. */
double hand_run(const char *url, const char *dir, int boxed);

/* ${n} of them, shared by ${width} threads; runs a second. */
double hand_rate(const char *url, const char *dir, int boxed, int n, int width);

#endif
