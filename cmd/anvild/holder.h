/*
 * cmd/anvild/holder.h -- who holds the lock of a run's store (spec run 1).
 *
 * The supervisor's own store may be lost while runs go on.  The lock is not: as long as somebody
 * holds it, the run has a process, and nobody else may execute or conclude it.
 */
#ifndef CMD_ANVILD_HOLDER_H
#define CMD_ANVILD_HOLDER_H

#include "cmd/anvild/process.h"

enum holder_kind {
	HOLDER_NONE,   /* nobody, or nobody whose name is in it         */
	HOLDER_RUNNER, /* it executes the run: id and birth are set     */
	HOLDER_SERVE,  /* it only reads: pid in birth                   */
	HOLDER_OTHER   /* somebody who has not written yet who it is    */
};

struct holder {
	enum holder_kind kind;
	struct process_id id;
	struct process_birth birth;
};

/* 0, E_NOMEM or E_SYS: it cannot be told. */
int holder_find(const char *data_dir, const char *run_id, struct holder *ret);

#endif
