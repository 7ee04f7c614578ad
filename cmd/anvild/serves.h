/*
 * cmd/anvild/serves.h -- processes that answer for runs that have ended (spec run 15).
 */
#ifndef CMD_ANVILD_SERVES_H
#define CMD_ANVILD_SERVES_H

#include <stddef.h>
#include <sys/types.h>

#define SERVES_MAX      32
#define SERVES_TAKEOVER 4 /* of these places are kept for takeovers */

struct parked;
struct process;
struct serves;
struct supervisor;
struct turn;

enum serve_verdict {
	SERVE_LIVE,
	SERVE_SERVING,
	SERVE_ABSENT,
	SERVE_BUSY,
	SERVE_FAILED,
	SERVE_WAIT
};

struct serves *serves_new(struct supervisor *s);
struct serves *serves_free(struct serves *v);

/* supervisor.serveRun.  *ret SERVE_WAIT: call serves_wait(), the answer comes when the process
 * listens or has ended.  ${takeover}: asked by a shard.  0, E_NOMEM, E_STORAGE, E_SYS. */
int serves_ask(struct serves *v, struct turn *t, const char *run_id, int takeover,
    enum serve_verdict *ret);
int serves_wait(struct serves *v, const char *run_id, struct parked *waiter);

/* A process of that run has said that it is ready. */
void serves_ready(struct serves *v, const char *run_id, pid_t pid);

/* Tells the serving process of a run to go; 1 while there is one. */
int serves_stop(struct serves *v, const char *run_id);
void serves_stop_all(struct serves *v, int sig);

int serves_has(const struct serves *v, const char *run_id);
size_t serves_count(const struct serves *v);
const struct process *serves_next(const struct serves *v, size_t *at);

#endif
