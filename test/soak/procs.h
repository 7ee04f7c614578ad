/*
 * test/soak/procs.h -- the processes of anvil: started, found by their roles, started again.
 *
 * The soak is a subreaper: whatever loses its parent becomes its child, so that nothing of anvil
 * is out of sight, and what is left at the end is seen.
 */
#ifndef TEST_SOAK_PROCS_H
#define TEST_SOAK_PROCS_H

#include "test/soak/soak.h"

enum proc_role {
	PROC_SUPERVISOR,
	PROC_INGRESS,
	PROC_SHARD,
	PROC_RUN,
	PROC_SERVE,
	PROC_CHECKOUT,
	PROC_STEP,
	PROC_GATE,   /* Forked and not yet what it will be. */
	PROC_ERRAND, /* Copies or checks records of runs. */
	PROC_CTL,    /* anvilctl, in an operator's hands.   */
	NPROCS
};

extern const char *const role_names[NPROCS];

struct proc {
	pid_t pid, parent;
	enum proc_role role;
	char run[ID_SIZE]; /* "": of none. */
};

#define PROCS_MAX 512

/* All that are alive; how many. */
size_t procs_list(const struct soak *s, struct proc out[PROCS_MAX]);

/* Starts what the shell makes of this line, its output going to ${dir}/operator.log. */
void procs_operate(const struct soak *s, const char *line);

/* Starts anvild, and the thread that reaps and starts it again. */
void procs_begin(struct soak *s);
/* Ends that thread. */
void procs_end(struct soak *s);

#endif
