/*
 * cmd/anvild/signals.h -- SIGTERM, SIGINT and SIGHUP as events of the loop.
 */
#ifndef CMD_ANVILD_SIGNALS_H
#define CMD_ANVILD_SIGNALS_H

struct signals;
struct supervisor;

/* Blocks them for this process and its threads, ignores SIGPIPE.  NULL: no memory or no
 * descriptor. */
struct signals *signals_new(struct supervisor *s);
/* They stay blocked.  NULL is fine; NULL back. */
struct signals *signals_free(struct signals *g);

#endif
