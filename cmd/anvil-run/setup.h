/*
 * cmd/anvil-run/setup.h -- puts the process together before its loop begins.
 */
#ifndef CMD_ANVIL_RUN_SETUP_H
#define CMD_ANVIL_RUN_SETUP_H

#include "cmd/anvil-run/run.h"

/* Lock, socket, parts; what cannot be had ends the process (a lock: 75, else 70).  ${child}:
 * of git_start(), taken; in the serve form there is none. */
struct run_actor *setup_run(struct proc *p, int serving, const struct git_child *child);

#endif
