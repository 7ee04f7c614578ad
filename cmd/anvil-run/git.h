/*
 * cmd/anvil-run/git.h -- the checkout child as the loop sees it (spec run 6).
 *
 * It is a program of its own, anvil-checkout, started before this process has read anything,
 * so that it loads while the run claims; it waits for its request, and is gone before the
 * first step.  No function here blocks.
 */
#ifndef CMD_ANVIL_RUN_GIT_H
#define CMD_ANVIL_RUN_GIT_H

#include <stdint.h>
#include <sys/types.h>

#include "lib/base/base.h"
#include "lib/checkout/checkout.h"

#define GIT_KILL_MS 2000 /* From TERM to KILL. */

struct actor;
struct git;

/* Our ends of what leads to it. */
struct git_child {
	pid_t pid;
	int request_fd, result_fd;
	int noise_fd; /* Its standard output and error. */
};

#define GIT_CHILD_NONE         \
	{                      \
		-1, -1, -1, -1 \
	}

/* Starts it; what cannot be executed shows as its end.  0, E_NOMEM, E_SYS. */
int git_start(struct git_child *ret);

struct git_ops {
	/* A message; texts are valid until this returns. */
	void (*on_message)(void *arg, const struct checkout_message *m);
	/* Once: it has ended and is reaped.  ${how}: NULL when its last word has been
	 * delivered, else what became of it, for people. */
	void (*on_gone)(void *arg, const char *how);
};

/* Takes the descriptors of ${c} but noise_fd, on failure too.  NULL: no memory. */
struct git *
git_new(struct actor *a, const struct git_child *c, const struct git_ops *ops, void *arg);
struct git *git_free(struct git *g);
DEFINE_CLEANUP(struct git *, git_free)

/* Each sends one message.  0, E_NOMEM, E_INVAL, E_TOO_BIG, E_LINK (it is gone). */
int git_request(struct git *g, const struct checkout_request *req);
int git_go_on(struct git *g);
int git_workspace(struct git *g, uint32_t depth);
/* It will hear no more: it leaves as soon as it listens. */
void git_dismiss(struct git *g);

/* TERM, then KILL; ${now}: KILL at once.  Messages are delivered no more, on_gone is. */
void git_stop(struct git *g, int now);
int git_is_gone(const struct git *g);

#endif
