/*
 * cmd/anvild/spawn.h -- gated forks (spec operations 3).
 *
 * The child closes everything but what it was given and waits at a pipe; the parent commits
 * who it is, then opens the gate, and only then the child executes its program.  When the
 * parent dies or lets go before that, the child ends without having run anything.
 */
#ifndef CMD_ANVILD_SPAWN_H
#define CMD_ANVILD_SPAWN_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SPAWN_ARGV_MAX 16
#define SPAWN_FDS_MAX  32

/* What the child is to be.  Everything is borrowed. */
struct spawn_desc {
	const char *program;              /* path of the executable                  */
	const char *argv[SPAWN_ARGV_MAX]; /* ends with NULL                          */
	int start_fd;                     /* becomes 3                               */
	int lifeline_fd;                  /* becomes 4; -1: it gets none             */
	int more_fds[SPAWN_FDS_MAX];      /* become 5, 6, …                          */
	size_t nmore_fds;
};

/* A child at its gate, or past it. */
struct spawned {
	pid_t pid;
	int pidfd;            /* readable when it has ended                   */
	int gate_fd;          /* -1 once open or abandoned                    */
	uint64_t start_ticks; /* with the boot id: tells it from a later pid  */
};

#define SPAWNED_NONE          \
	{                     \
		-1, -1, -1, 0 \
	}

/* Forks up to the gate.  0, E_NOMEM, E_BUSY (no more processes), E_SYS. */
int spawn_fork(const struct spawn_desc *d, struct spawned *ret);

/* Lets the child go on to its program. */
void spawn_open(struct spawned *s);

/* Ends a child that is still at its gate, and reaps it. */
void spawn_abandon(struct spawned *s);

/* A sealed memory file with ${n} bytes of text, read from its beginning; -1 with errno. */
int spawn_memfd(const void *text, size_t n);

#endif
