/*
 * cmd/anvil-run/place.h -- the run's directory: `lock`, and what a run leaves in it
 * (spec run 1).  Functions block for as long as the disk does.
 */
#ifndef CMD_ANVIL_RUN_PLACE_H
#define CMD_ANVIL_RUN_PLACE_H

#include "lib/base/base.h"

#define PLACE_LOCK_MS 5000 /* How long a lock that is held is waited for. */

/* Absolute paths; all owned. */
struct place {
	char *runs; /* Holds the directories of all runs. */
	char *dir;  /* This run's. */
	char *ws, *tmp, *home;
	char *mirror, *mirror_lock; /* Of the project; NULL in the serve form. */
	char *objects;              /* The mirror's. */
	char *keyless;              /* Says that a claim was released for want of a key. */
	char *init;                 /* The program anvil-init, beside this one. */
	const char *name;           /* Of `dir` in `runs`: the run's id. */
	int lock_fd;                /* -1: not locked. */
};

/* ${project_id} NULL: the serve form.  0, E_NOMEM, E_SYS. */
int
place_init(struct place *p, const char *data_dir, const char *run_id, const char *project_id);
/* Unlocks and frees; fine on a zeroed struct whose lock_fd is -1. */
void place_done(struct place *p);

/* Makes the directory (0700, on disk).  0, E_FULL, E_SYS. */
int place_make(const struct place *p);
/* Makes ws, tmp and home, empty; under the lock.  0, E_FULL, E_SYS, E_NOMEM. */
int place_make_trees(const struct place *p);
/* Takes the lock and writes who holds it.  0, E_LOCKED after PLACE_LOCK_MS, E_NOENT (no
 * directory), E_FULL, E_SYS. */
int place_lock(struct place *p, const char *spawn_id);
/* Takes the lock of a run in ${dir} that nobody executes or serves now, for ${what} ("copy").
 * 0 with *ret_fd, the caller's; E_LOCKED, E_NOENT (no directory), E_FULL (no lock, and no room for
 * one), E_SYS. */
int place_lock_ended(const char *dir, const char *what, int *ret_fd);

/* Removes ws, tmp and home.  0 or the first failure. */
int place_remove_trees(const struct place *p);
/* Removes the whole directory; the lock stays held.  0 or the first failure. */
int place_remove(const struct place *p);

/* Path of a program of anvil: they lie side by side, in the build tree and when installed.
 * The caller frees; NULL: no memory, or no /proc. */
char *place_program(const char *name);

/* Whether an earlier claim had to be given back because its key was missing. */
int place_was_keyless(const struct place *p);
/* 0, E_FULL, E_SYS. */
int place_note_keyless(const struct place *p);
void place_forget_keyless(const struct place *p);

#endif
