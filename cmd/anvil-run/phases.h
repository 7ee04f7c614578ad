/*
 * cmd/anvil-run/phases.h -- how the parts of a run's life call each other; run.h has the list.
 */
#ifndef CMD_ANVIL_RUN_PHASES_H
#define CMD_ANVIL_RUN_PHASES_H

#include <stddef.h>
#include <stdint.h>

#include "cmd/anvil-run/run.h"
#include "lib/base/base.h"

/* ---- claim.c ---- */

extern const struct lease_ops claim_lease_ops;

/* A run that was not given back, though it has no store yet, gets one to end in. */
void claim_store_alone(struct run_actor *r, void (*then)(struct run_actor *r));

/* ---- life.c ---- */

extern const struct git_ops life_git_ops;

/* Row 6, as soon as nothing speaks against it. */
void life_checkout(struct run_actor *r);
/* The store says `starting`: goes on with row 6 or 7. */
void life_has_store(struct run_actor *r);
/* 1: a control point has been passed that ends the normal course; the way to the end has
 * begun. */
int life_diverted(struct run_actor *r);
/* The run fails with this, unless it has failed before, and goes to its end.  ${fmt} is the
 * errorMessage; it is redacted by the store. */
void life_fail(struct run_actor *r, enum failure_code code, int64_t exit_code, const char *fmt,
    ...) PRINTF_LIKE(4, 5);
/* The same for what nobody foresaw: logged, with an id that stands in the message too. */
void life_fail_internal(struct run_actor *r, const char *what, int err);
/* A cancel was requested; the first counts. */
void life_cancel(struct run_actor *r, int64_t requested_at_ms);
/* Tells store and processes of a cancel that came before they could be told. */
void life_tell_of_cancel(struct run_actor *r);
void life_lose(struct run_actor *r, const char *reason);
/* Gives the run back if that is still possible.  1: it will be. */
int life_release(struct run_actor *r);

/* ---- steps.c ---- */

/* Starts the step r->step, which the store calls running. */
void steps_start(struct run_actor *r);
/* Reads the output of a step that has ended, or never will, to its end. */
void steps_drain(struct run_actor *r);

/* ---- stop.c ---- */

enum stop_why { STOP_CANCEL, STOP_TIMEOUT, STOP_END, STOP_AT_ONCE };

/* Tells the step's processes to end; a stricter call shortens the grace. */
void stop_step(struct run_actor *r, enum stop_why why);
/* They are gone. */
void stop_is_over(struct run_actor *r);
int stop_init(struct run_actor *r);

/* ---- finish.c ---- */

/* Goes to the end from wherever the run stands; more calls are harmless: each takes it one
 * step further if it can. */
void finish(struct run_actor *r);
/* Ends the process. */
void finish_exit(struct run_actor *r, int status);

/* ---- serve.c ---- */

/* Begins the form --serve. */
void serve_begin(struct run_actor *r);
/* Somebody has asked for something. */
void serve_touch(struct run_actor *r);

#endif
