/*
 * cmd/anvild/sweep.h -- disk space, left-over files and processes, old run folders.
 *
 * Removing trees is slow: it runs on the worker thread.
 */
#ifndef CMD_ANVILD_SWEEP_H
#define CMD_ANVILD_SWEEP_H

struct supervisor;
struct sweep;

#define SWEEP_DISK_MS      5000    /* free space is looked at so often            */
#define SWEEP_RETENTION_MS 3600000 /* old run folders are looked for so often     */

struct sweep *sweep_new(struct supervisor *s);
struct sweep *sweep_free(struct sweep *w);

/* First looks, at start: free space, and whatever older runs left in ws, tmp and home. */
void sweep_begin(struct sweep *w);
/* Removes ws, tmp and home of a run whose runner has ended. */
void sweep_leftovers(struct sweep *w, const char *run_id);
/* Removes the whole folder of a run. */
void sweep_run(struct sweep *w, const char *run_id);
/* Removes the mirror of a project. */
void sweep_mirror(struct sweep *w, const char *project_id);
/* Kills processes that have become our children because the run that made them died. */
void sweep_orphans(struct sweep *w);
/* 1 while something is being removed. */
int sweep_is_busy(const struct sweep *w);
/* Free space has changed its side of runs.min_free_bytes; looks now. */
void sweep_disk(struct sweep *w);

#endif
