/*
 * cmd/anvild/watchdog.h -- tells systemd that the loop turns (WatchdogSec of the unit).
 */
#ifndef CMD_ANVILD_WATCHDOG_H
#define CMD_ANVILD_WATCHDOG_H

struct supervisor;
struct watchdog;

/* NULL: no memory. */
struct watchdog *watchdog_new(struct supervisor *s);
struct watchdog *watchdog_free(struct watchdog *w);

/* WATCHDOG=1 from now on, twice in the time that WATCHDOG_USEC allows; without that, nothing.
 * It comes from the loop: a supervisor that hangs says nothing and is started anew. */
void watchdog_begin(struct watchdog *w);

#endif
