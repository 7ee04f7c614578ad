/*
 * test/soak/verdict.h -- at the end: what was acknowledged is compared with what there is.
 */
#ifndef TEST_SOAK_VERDICT_H
#define TEST_SOAK_VERDICT_H

#include "test/soak/soak.h"

struct verdict {
	long runs, passed, failed, canceled, lost_runners; /* The last are among the failed. */
	long excused;                                      /* Ended otherwise than by nature. */
};

/* Waits until anvil is well; 0, or -1 after ${s}. */
int verdict_await_health(struct soak *s, int seconds);
/* No fault and no load any more: waits until every run has ended, and compares. */
void verdict_compare(struct soak *s, struct verdict *v);
/* Ends anvild in order, and looks for what it left behind. */
void verdict_end(struct soak *s);

#endif
