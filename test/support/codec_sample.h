/*
 * test/support/codec_sample.h -- values that a type of the contract accepts, made from its table.
 */
#ifndef TEST_SUPPORT_CODEC_SAMPLE_H
#define TEST_SUPPORT_CODEC_SAMPLE_H

#include <jansson.h>

#include "lib/wire/wire.h"

/* A value of ${t}.  ${full}: with every member that may be there, none null; else the least.
 * ${pick}: which variant of its unions, modulo their number.  The caller owns it. */
json_t *codec_sample(const struct codec_type *t, int full, unsigned pick);

/* A value whose JSON type ${t} does not accept, or NULL when it accepts all. */
json_t *codec_sample_wrong(const struct codec_type *t);

/* How many different ${pick} there are. */
unsigned codec_sample_picks(const struct codec_type *t);

#endif
