/*
 * test/soak/operator.h -- what operators do at a terminal while all the rest goes on.
 */
#ifndef TEST_SOAK_OPERATOR_H
#define TEST_SOAK_OPERATOR_H

#include "test/soak/plan.h"

/* Types the command of ${a}; after a->length it is cut off.  What it prints is in
 * ${dir}/operator.log. */
void operator_acts(const struct soak *s, const struct act *a);
/* How many of his commands came to their end, and said that all is done. */
void operator_count(const struct soak *s, long *ret_ended, long *ret_done);

#endif
