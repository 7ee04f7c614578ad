/*
 * cmd/anvil-run/stepenv.h -- what a step is given and how its end reads (spec run 8).  Plain
 * functions.
 */
#ifndef CMD_ANVIL_RUN_STEPENV_H
#define CMD_ANVIL_RUN_STEPENV_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/record/record.h"
#include "lib/sandbox/sandbox.h"

#define STEPENV_MAX 20 /* With the NULL. */

/* Who the step belongs to.  Texts are borrowed. */
struct stepenv {
	const struct record_claim *claim;
	const char *commit_sha;
	const char *name; /* Of the step. */
	size_t position;
	const char *home, *tmp; /* As the step sees them. */
};

/* NULL-terminated, in ${a}.  0 or E_NOMEM. */
int stepenv_make(struct arena *a, const struct stepenv *e, const char *env[STEPENV_MAX]);

/* What became of a step. */
struct step_end {
	int passed;
	struct record_exit exit;
	enum failure_code code; /* Unless it passed. */
	char *message; /* Owned: the run's errorMessage; NULL: it passed, or out of memory. */
};

void step_end_done(struct step_end *end);
/* ${dir}: the working directory, for one that is gone; ${memory_bytes}: the limit. */
void step_end_judge(const struct sandbox_result *res, const char *name, const char *dir,
    int64_t memory_bytes, struct step_end *ret);

/* `Killed 2 processes left by step "test": node (413), sleep (420)`. */
void step_left_line(const struct sandbox_result *res, const char *name, char *out, size_t size);

#endif
