/*
 * cmd/anvil-run/recorder.h -- the one thread that works on run.db and log.zst (spec run 17).
 *
 * Jobs run one at a time, in the order in which they were posted; the loop never waits for
 * one.  A job that meets a full disk, no memory or an I/O error is tried again every second;
 * after RECORDER_PATIENCE_MS the reserve is given up, the owner is told, and from then on log
 * jobs have one try.  Where the run itself has filled the disk that comes earlier, so that others
 * find room again before their patience ends.  Reads pass by a job that waits for its next try.
 */
#ifndef CMD_ANVIL_RUN_RECORDER_H
#define CMD_ANVIL_RUN_RECORDER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "lib/base/base.h"
#include "lib/record/record.h"

#define RECORDER_RETRY_MS    1000
#define RECORDER_PATIENCE_MS 30000
#define RECORDER_HEAVY_MS    15000             /* Of one that has filled the disk. */
#define RECORDER_MAX_BYTES   ((size_t)4 << 20) /* Of what jobs carry. */

struct actor;
struct recorder;

/* What the jobs work on.  It belongs to the thread; the loop never looks at it. */
struct desk {
	const char *dir;       /* The run's directory, borrowed.            */
	int64_t max_log_bytes; /* runs.max_log_bytes.                       */
	int64_t free_bytes;    /* On the disk when the store was opened; 0: not known. */
	struct record *record; /* Owned; NULL until a job has opened it.    */
	const struct redactor *redactor; /* Borrowed; NULL until a job has brought it. */
	struct record_stream streams[LOG_STREAM_COUNT];
	int64_t first_ms[LOG_STREAM_COUNT]; /* Time of the oldest text in the stream, */
	int64_t steps[LOG_STREAM_COUNT];    /* and whose it is; 0: no step's.         */
	struct record_row *rows;            /* Owned: chunks cut and not yet stored.  */
	size_t nrows, rows_cap;
};

enum job_kind {
	JOB_STATE, /* Retried until it succeeds.            */
	JOB_LOG,   /* Given up when the disk stays full.    */
	JOB_READ   /* One try.                              */
};

/* Embedded as the first member of what it carries. */
struct job {
	STAILQ_ENTRY(job) entry;
	enum job_kind kind;
	size_t bytes; /* What it carries, for recorder_has_room(). */
	/* On the thread.  0 or an error; a retry calls it again with what it left. */
	int (*work)(struct job *j, struct desk *d);
	/* On the loop, exactly once; the job is its own again.  E_CANCELED: the process ends
	 * and it did not run. */
	void (*done)(struct job *j, int err);
	int err;
};

struct recorder_ops {
	/* A job has failed for the first time in a row, or succeeds again (${err} 0). */
	void (*on_trouble)(void *arg, int err);
	/* The patience is over: no more output, please. */
	void (*on_full)(void *arg);
	/* A job that is not a read has succeeded; before its done(), so that a read posted in
	 * here can be the next job.  NULL: nobody wants to know. */
	void (*on_stored)(void *arg, enum job_kind kind);
};

/* ${dir} is borrowed.  NULL: no memory. */
struct recorder *recorder_new(struct actor *a, const char *dir, int64_t max_log_bytes,
    const struct recorder_ops *ops, void *arg);
/* After the actor's loop: jobs that did not run are told so, the store is closed. */
struct recorder *recorder_free(struct recorder *r);
DEFINE_CLEANUP(struct recorder *, recorder_free)

/* Takes ${j}. */
void recorder_post(struct recorder *r, struct job *j);
/* 1 while jobs carry less than RECORDER_MAX_BYTES. */
int recorder_has_room(const struct recorder *r);
/* Jobs posted and not done. */
size_t recorder_njobs(const struct recorder *r);

/* For jobs: opens the store when it is not open.  0 or an error of record_open(). */
int desk_open(struct desk *d);
/* Says that a log was put aside which was another store's (lib/store/mark.h). */
void desk_tell_set_aside(const struct desk *d, const char *aside);

#endif
