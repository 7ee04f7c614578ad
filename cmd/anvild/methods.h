/*
 * cmd/anvild/methods.h -- answers that are given later, for the modules that give them.
 */
#ifndef CMD_ANVILD_METHODS_H
#define CMD_ANVILD_METHODS_H

#include "cmd/anvild/serves.h"

struct parked;
struct process_end;
struct runner_how;
struct turn;

/* `how` of the contract; ${end} NULL: it is not known.  Texts are borrowed from ${end}. */
void methods_set_how(struct runner_how *how, const struct process_end *end);
/* To a parked supervisor.killRun: the process has been reaped. */
void methods_answer_gone(struct parked *waiter, const struct process_end *end);
/* Answers a parked supervisor.removeProject: all is gone. */
void methods_answer_removed(struct parked *waiter);
/* actor_desc.without_store of the supervisor. */
int methods_without_store(void *ctx, struct turn *t, const void *params, void *result);
/* To a parked supervisor.serveRun. */
void methods_answer_serve(struct parked *waiter, enum serve_verdict verdict);

#endif
