/*
 * cmd/anvilctl/text.h -- how times, sizes and states look on a terminal.
 */
#ifndef CMD_ANVILCTL_TEXT_H
#define CMD_ANVILCTL_TEXT_H

#include <stdint.h>

#include "lib/base/buf.h"

#define TEXT_SIZE 32

/* What a word means to the reader; shown as a colour on a terminal. */
enum tone { TONE_PLAIN, TONE_GOOD, TONE_BAD, TONE_WAITS, TONE_DIM, TONE_STRONG, TONE_COUNT };

/* "850ms", "12.3s", "4m05s", "3h07m", "12d4h"; a negative time counts as none. */
void text_duration(int64_t ms, char out[TEXT_SIZE]);
/* "512 B", "1.4 MiB". */
void text_bytes(int64_t n, char out[TEXT_SIZE]);
/* "2026-01-31 09:05:07", UTC. */
void text_time(int64_t wall_ms, char out[TEXT_SIZE]);

/* Of a word of the contract: status of a run or step, state of an actor, health. */
enum tone text_tone(const char *word);

/* Escape sequences around ${tone}; "" without colour. */
const char *text_tone_begin(enum tone tone, int color);
const char *text_tone_end(enum tone tone, int color);

/* Adds ${s} with control characters replaced, so that what others named cannot steer a
 * terminal.  0 or E_NOMEM. */
int text_add_clean(struct buf *out, const char *s);

#endif
