/*
 * lib/actor/crash.h -- the last turns of this process, and its last words.
 *
 * A fatal signal or a broken promise writes them to a file of its own, with nothing but
 * async-signal-safe calls.  State is static: a signal handler has no argument.
 */
#ifndef LIB_ACTOR_CRASH_H
#define LIB_ACTOR_CRASH_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

#define CRASH_TURNS 64

/* Remembers a turn; ${method} must live as long as the process. */
void crash_note_turn(const char *method, const char *request_id, int verdict, uint32_t us);
/* The turn that runs now; NULL when it is over. */
void crash_note_now(const char *method);

/* Catches fatal signals and must().  ${dir}: of the notes, made when absent; the file is
 * `<address with - for />.txt`.  0 or E_SYS. */
int crash_catch(const char *dir, const char *address);

/* Adds the last turns, oldest first, as a JSON array of {method, requestId, verdict, us}. */
int crash_turns_json(struct buf *out);

#endif
