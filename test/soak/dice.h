/*
 * test/soak/dice.h -- numbers that look random and come again with the same seed.
 */
#ifndef TEST_SOAK_DICE_H
#define TEST_SOAK_DICE_H

#include <stdint.h>

struct dice {
	uint64_t state;
};

/* Each ${use} of one seed has its own series. */
static inline struct dice
dice_of(uint64_t seed, uint64_t use)
{
	return (struct dice) { seed * 0x9e3779b97f4a7c15U + use * 0xbf58476d1ce4e5b9U };
}

static inline uint64_t
dice_next(struct dice *d)
{
	uint64_t z = d->state += 0x9e3779b97f4a7c15U;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
	return z ^ (z >> 31);
}

/* 0 .. ${n} - 1. */
static inline unsigned
dice_below(struct dice *d, unsigned n)
{
	return (unsigned)(dice_next(d) >> 33) % n;
}

/* ${from} .. ${to}. */
static inline long
dice_between(struct dice *d, long from, long to)
{
	return from + (long)dice_below(d, (unsigned)(to - from + 1));
}

#endif
