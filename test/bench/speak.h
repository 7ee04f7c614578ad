/*
 * test/bench/speak.h -- what a step runs to be measured: lines that tell when they were written.
 *
 * A line is SPEAK_LINE bytes, from SPEAK_MARK and SPEAK_DIGITS digits on, the microseconds of
 * CLOCK_MONOTONIC at its write; that clock is the same for all processes of the machine.
 */
#ifndef TEST_BENCH_SPEAK_H
#define TEST_BENCH_SPEAK_H

#include <stddef.h>

#define SPEAK_LINE   100
#define SPEAK_MARK   '@'
#define SPEAK_DIGITS 16

struct system;

/* Copies the program that calls it to where steps find it; ${ret} is that path. */
void speak_install(const struct system *s, char ret[96]);
/* The whole program, when its first argument is one of these; -1: it is not, and nothing is done.
 *   pour BYTES SECONDS    so many bytes a second, in pieces of 10 ms
 *   drip LINES            one line each 60 to 140 ms
 * What is late is made up for: the time that it takes tells who was kept waiting. */
int speak_main(int argc, char **argv);
/* The first time in ${n} bytes of text; 0: none. */
double speak_find_us(const char *text, size_t n);

#endif
