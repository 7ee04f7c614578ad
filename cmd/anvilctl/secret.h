/*
 * cmd/anvilctl/secret.h -- reading what must not stand on a command line.
 */
#ifndef CMD_ANVILCTL_SECRET_H
#define CMD_ANVILCTL_SECRET_H

#include "lib/base/buf.h"

#define SECRET_BYTES_MAX 4096

/* From a terminal: asks for ${what} without echo, and once more when ${twice}.  From anything
 * else: the first line of standard input.  One that is empty or is not UTF-8 is refused.  0 or a
 * status, explained; the caller wipes ${out}. */
int secret_read(const char *what, int twice, struct buf *out);
/* Asks whether to go on, on a terminal; the answer has to be ${word}.  1 or 0. */
int secret_confirm(const char *question, const char *word);

#endif
