/*
 * cmd/anvil-run/output.h -- from the pipes of a step to the store (spec run 10, 17).
 *
 * The loop reads, at most 64 KiB of each pipe a turn; redaction, decoding and cutting are
 * jobs of the recorder.  A pipe with 1 MiB that is not stored yet is not read.
 */
#ifndef CMD_ANVIL_RUN_OUTPUT_H
#define CMD_ANVIL_RUN_OUTPUT_H

#include <stddef.h>
#include <stdint.h>

#include "gen/types.h"
#include "lib/base/base.h"

#define OUTPUT_READ_BYTES     65536
#define OUTPUT_UNSTORED_BYTES ((size_t)1 << 20)
#define OUTPUT_PIPE_BYTES     (1 << 20) /* Asked of the kernel for each pipe.      */
#define OUTPUT_FLUSH_MS       50        /* An incomplete chunk waits so long.      */
#define OUTPUT_ARCHIVE_MS     5000      /* A frame of the archive waits so long.   */
#define OUTPUT_DRAIN_MS       2000      /* For pipes that outlive their step.      */

struct actor;
struct output;
struct recorder;

struct output_ops {
	/* A batch could not be stored at all (the disk stays full, the record is damaged). */
	void (*on_lost)(void *arg, int err);
	/* The archive has reached its cap; once. */
	void (*on_capped)(void *arg);
};

struct output *
output_new(struct actor *a, struct recorder *rec, const struct output_ops *ops, void *arg);
struct output *output_free(struct output *o);
DEFINE_CLEANUP(struct output *, output_free)

/* A pipe for ${stream} of ${step} (0: none); its writing end is the caller's to close.
 * 0, E_SYS, E_NOMEM. */
int output_open(struct output *o, enum log_stream stream, int64_t step, int *ret_write_fd);
/* The same for the reading end of a pipe that exists, which is taken, on failure too. */
int output_attach(struct output *o, enum log_stream stream, int64_t step, int fd);

/* The step's processes are gone: reads stdout and stderr to their ends, OUTPUT_DRAIN_MS at
 * most, and posts what came.  Then ${fn}(arg) runs, once, from the loop or from in here: jobs
 * posted from then on find all of the output stored. */
void output_drain(struct output *o, void (*fn)(void *arg), void *arg);
/* Posts what has been read so far, so that what is posted next comes behind it. */
void output_push(struct output *o);
/* Reads nothing more: the disk is full. */
void output_stop(struct output *o);

#endif
