/*
 * test/bench/probe.h -- a process that keeps the rights that the bench gives up, and reads the
 * memory of processes that show themselves to nobody else.
 *
 * Without root only processes that may be looked at have numbers.
 */
#ifndef TEST_BENCH_PROBE_H
#define TEST_BENCH_PROBE_H

#include <sys/types.h>

struct probe_answer {
	long pss_kb;  /* Pss of smaps_rollup.            */
	long peak_kb; /* VmHWM of status.                */
	long own_kb;  /* Private pages of smaps_rollup.  */
};

/* The socket to it; it ends when that is closed. */
int probe_start(void);
/* 0, or -1: there is no such process, or it may not be looked at. */
int probe_ask(int prober, pid_t pid, struct probe_answer *ret);

#endif
