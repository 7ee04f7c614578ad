/*
 * cmd/anvilctl/show.h -- JSON values for people: indented text, or a tree without marks.
 */
#ifndef CMD_ANVILCTL_SHOW_H
#define CMD_ANVILCTL_SHOW_H

#include <jansson.h>

#include "lib/base/buf.h"

/* Indented JSON, without a newline at its end.  0 or E_NOMEM. */
int show_json(const json_t *j, struct buf *out);
/*
 * A member a line, deeper ones further in; lists of objects with a dash each.  Integers whose
 * name ends in Ms, Us, Bytes or At are durations, sizes and times.  Each line is indented by
 * ${depth} times two blanks.  0 or E_NOMEM.
 */
int show_tree(const json_t *j, unsigned depth, struct buf *out);

#endif
