/*
 * test/soak/witness.h -- hears what steps say of themselves, whatever becomes of their logs: UDP
 * datagrams "OWNER/PROJECT RUN WORD", in the order in which they were sent.
 */
#ifndef TEST_SOAK_WITNESS_H
#define TEST_SOAK_WITNESS_H

#include "test/soak/soak.h"

/* Binds s->beacons and starts the thread. */
void witness_begin(struct soak *s);
void witness_end(struct soak *s);

#endif
