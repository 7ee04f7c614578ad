/*
 * lib/base/crash.h -- named points at which a test lets a process die.
 *
 * They stand between two durable steps, where design.md section 6 lets a process die.  The
 * environment variable ANVIL_CRASH_FILE names a file whose text is `POINT [SKIP]`: the process
 * that comes to POINT for the SKIP+1-th time since the file was put there renames the file to
 * `<file>.hit`, adds a line with its pid and kills itself with SIGKILL.  Whoever renames it
 * first dies, and nobody else.  Put the file there by renaming, so that nobody reads half of
 * it.  The variable is read when a process comes to its first point; where it is not set, a
 * point is one look at a flag.
 *
 * For tests only: without ANVIL_FAULTS the points are not compiled in.  Calls are
 * async-signal-safe once the variable has been read, so that points may stand between fork and
 * exec.  A point's name is lower-case words joined by `_`, and stands in the sources once.
 */
#ifndef LIB_BASE_CRASH_H
#define LIB_BASE_CRASH_H

#ifdef ANVIL_FAULTS
/* CRASH_POINT("run_socket_bound"); */
#define CRASH_POINT(name) crash_point("", name)
/* CRASH_POINT_OF("project/1", "after_commit"): the point project_after_commit, one of several
 * actors' at the same place.  ${actor}: an address; what follows a `/` does not count. */
#define CRASH_POINT_OF(actor, name) crash_point(actor, name)

/* The variable as it stands in the environment, for a child that gets no other; NULL. */
#define CRASH_VARIABLE() crash_variable()

void crash_point(const char *actor, const char *name);
char *crash_variable(void);
#else
#define CRASH_POINT(name)           ((void)0)
#define CRASH_POINT_OF(actor, name) ((void)(actor))
#define CRASH_VARIABLE()            NULL
#endif

#endif
