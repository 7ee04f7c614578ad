/*
 * test/support/record_claim.h -- the claim of a run, for tests of its record.
 */
#ifndef TEST_SUPPORT_RECORD_CLAIM_H
#define TEST_SUPPORT_RECORD_CLAIM_H

#include "lib/record/record.h"

#define RECORD_NOW 1700000000000

/* Of a run that a webhook started, one second before RECORD_NOW; epoch 3, no sandbox. */
extern const struct record_claim record_claim_of_a_push;

#endif
