/*
 * cmd/anvild/child.h -- residents: ingress and the shards, kept alive (spec operations 3).
 */
#ifndef CMD_ANVILD_CHILD_H
#define CMD_ANVILD_CHILD_H

#include <stdint.h>
#include <sys/types.h>

struct child;
struct supervisor;

enum child_state { CH_DOWN, CH_STARTING, CH_UP, CH_BACKOFF, CH_STOPPING, CH_STATES };
enum child_event { ON_START, ON_READY, ON_EXIT, ON_STOP, ON_TIMEOUT, CH_EVENTS };

/* What it does about an event; "" is nothing: the pair cannot be, and is logged. */
const char *child_reaction(enum child_state state, enum child_event ev);

#define CHILD_DEATHS_MAX 5 /* more within CHILD_WINDOW_MS: failing    */
#define CHILD_WINDOW_MS  60000
#define CHILD_START_MS   30000 /* to say that it is ready                 */
#define CHILD_STOP_MS    8000  /* to leave after SIGTERM                  */
#define CHILD_WELL_MS    60000 /* of life: the back-off begins anew       */

/* What `anvilctl ps` shows of one. */
struct child_view {
	const char *address;
	const char *state; /* up, starting, failing, down */
	pid_t pid;         /* 0 while there is none        */
	int64_t started_ms;
	int64_t restarts;
	const char *last_exit; /* "" when it never ended    */
	int64_t last_exit_ms;
};

/* ${shard} < 0: ingress.  NULL: out of memory.  It is down until child_event(ON_START). */
struct child *child_new(struct supervisor *s, int shard);
struct child *child_free(struct child *c);

/* Feeds one event; a pair that cannot be is logged and ignored. */
void child_event(struct child *c, enum child_event ev);

enum child_state child_state(const struct child *c);
const char *child_address(const struct child *c);
pid_t child_pid(const struct child *c);
int child_is_failing(const struct child *c);
void child_view(const struct child *c, struct child_view *ret);
/* Why its store is out of order while it lives on; NULL: it serves. */
const char *child_outage(const struct child *c);
/* supervisor.ready of its process, from a turn: ON_READY follows from the loop.  ${outage}: it
 * lives, and cannot serve; NULL: it serves. */
void child_says_ready(struct child *c, pid_t pid, const char *outage);
/* Why it finds no room for what it writes, while it serves; NULL: it does. */
const char *child_full(const struct child *c);
void child_says_full(struct child *c, const char *why);

#endif
