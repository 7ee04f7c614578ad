/*
 * test/bench/single.h -- single-row transactions into the ledger's table, each synced: the
 * floor of whatever has to be durable before it is answered.
 */
#ifndef TEST_BENCH_SINGLE_H
#define TEST_BENCH_SINGLE_H

#include <stdint.h>

#include "lib/base/id.h"

struct store;

struct single {
	struct store *store;
	char project[ID_SIZE];
	int64_t seq;
};

/* A store with the schema of the shards, below ${dir}. */
void single_open(struct single *f, const char *dir);
void single_close(struct single *f);
/* ${n} of them; transactions a second. */
double single_round(struct single *f, int64_t n);

#endif
