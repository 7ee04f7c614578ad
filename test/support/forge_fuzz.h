/*
 * test/support/forge_fuzz.h -- what holds for any delivery of a forge, for the fuzz targets.
 */
#ifndef TEST_SUPPORT_FORGE_FUZZ_H
#define TEST_SUPPORT_FORGE_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#include "lib/webhook/webhook.h"

/*
 * Input: a seed of the splits, then the body.  Whatever the splits, the verdict and what is kept
 * are the same; what lib/wire reads as an object is read alike here; a payload that is made is one
 * by the contract, and what it comes to as well.
 */
void forge_fuzz(enum provider provider, const uint8_t *data, size_t size);

#endif
