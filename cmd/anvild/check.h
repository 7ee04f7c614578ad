/*
 * cmd/anvild/check.h -- how the supervisor looks at its own store.
 */
#ifndef CMD_ANVILD_CHECK_H
#define CMD_ANVILD_CHECK_H

#include <stdint.h>

struct actor_check;
struct store_problems;

/* What is wrong in supervisor.db, by schema/supervisor.rules.def; for any thread. */
int supervisor_look(const char *path, int64_t now_ms, struct store_problems *ret);

extern const struct actor_check supervisor_checks;

#endif
