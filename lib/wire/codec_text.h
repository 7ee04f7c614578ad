/*
 * lib/wire/codec_text.h -- what texts have to look like.  Private.
 */
#ifndef LIB_WIRE_CODEC_TEXT_H
#define LIB_WIRE_CODEC_TEXT_H

#include "lib/wire/codec.h"

/* Judges ${text} by shape, rule and length, as the present passes allow; a rule may replace
 * it.  ${ret_message}: what is wrong with it, untouched when nothing is.  0 or E_NOMEM. */
int codec_text_check(struct codec *c, const struct codec_type *t, struct str_view *text,
    const char **ret_message);

/* "Must be one of: a, b." and "Must be 1 to 64<unit>."; NULL: out of memory. */
const char *codec_words_message(struct codec *c, const struct codec_words *words);
const char *codec_range_message(struct codec *c, const struct codec_type *t, const char *unit);

#endif
