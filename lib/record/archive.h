/*
 * lib/record/archive.h -- log.zst: the whole log of a run in independent zstd frames.
 *
 * A frame holds at most ARCHIVE_FRAME_BYTES of text.  Order, on which recovery rests: the
 * frame is in the file before its description is handed out, the caller then commits that as
 * a row of log_frames, and rows of run_logs that it covers go in that transaction or later.
 * Killed in between, the file is longer than the rows say: archive_open() cuts it, and the
 * text is still in run_logs, or was not said to be stored.  A frame is not synced by itself, so
 * that power loss may damage the newest ones; archive_sync() comes before the run is said to
 * have ended.
 *
 * Byte positions are those of the complete log, also where a middle part was left out.
 */
#ifndef LIB_RECORD_ARCHIVE_H
#define LIB_RECORD_ARCHIVE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/base.h"
#include "lib/base/buf.h"

#define ARCHIVE_FRAME_BYTES ((size_t)1 << 20)

/* A row of log_frames. */
struct archive_frame {
	int64_t first_byte;  /* Position of its text in the log. */
	int64_t text_size;   /* 1..ARCHIVE_FRAME_BYTES */
	int64_t file_offset; /* Where it lies in log.zst. */
	int64_t file_size;
};

/* A range of the log that the cap left out; n 0: none. */
struct archive_gap {
	int64_t first_byte, n;
};

/* ---- writing ---- */

struct archive;

/* Opens or makes ${name} beneath ${dirfd} and cuts it after ${last}, the newest recorded
 * frame (NULL: none).  ${next_byte}: position of the text that comes next.
 * 0, E_FULL, E_NOMEM, E_STORAGE. */
int archive_open(int dirfd, const char *name, const struct archive_frame *last,
    int64_t next_byte, struct archive **ret);
/* Text of the open frame is forgotten; it is still in run_logs. */
struct archive *archive_free(struct archive *a);
DEFINE_CLEANUP(struct archive *, archive_free)
/* As if it were opened again, but it knows still what a sync has failed to bring to disk.  On
 * failure nothing has changed. */
int archive_go_back(struct archive *a, const struct archive_frame *last, int64_t next_byte);

/* Under load frames are compressed less and faster. */
void archive_set_hurry(struct archive *a, int hurry);

/* Adds whole characters (n <= ARCHIVE_FRAME_BYTES) to the open frame.  When they do not fit,
 * that frame is closed first.  1: it was, and is described in ${ret}; 0: it was not;
 * E_FULL, E_NOMEM, E_STORAGE: nothing has changed, the same call may be made again. */
int archive_append(struct archive *a, const char *text, size_t n, struct archive_frame *ret);
/* Closes the open frame.  As archive_append(); 0 when it is empty. */
int archive_close_frame(struct archive *a, struct archive_frame *ret);
/* Writes ${text} (1..ARCHIVE_FRAME_BYTES of whole characters) as a frame of its own, without a
 * copy; the open frame is empty.  0, and it is described in ${ret}; E_FULL, E_NOMEM, E_STORAGE:
 * nothing has changed. */
int archive_put_frame(struct archive *a, const char *text, size_t n, struct archive_frame *ret);
/* Leaves ${n} bytes of the log out: a line in the file says so, the position moves on.  The
 * open frame is empty.  0, E_FULL, E_NOMEM, E_STORAGE. */
int archive_omit(struct archive *a, int64_t n);

/* Bytes in the open frame. */
size_t archive_waiting(const struct archive *a);
/* Position of the text that comes next. */
int64_t archive_next_byte(const struct archive *a);
/* fsync of the frames that have been written, and nothing but them is in the file.  0, E_FULL,
 * E_NOMEM, E_STORAGE: the next one does it over again, all that is not known to be on disk. */
int archive_sync(struct archive *a);

/* ---- reading ---- */

struct archive_reader;

/* A file that is not there reads as one in which every frame is missing.  0, E_NOMEM, E_SYS. */
int archive_reader_open(int dirfd, const char *name, struct archive_reader **ret);
struct archive_reader *archive_reader_free(struct archive_reader *r);
DEFINE_CLEANUP(struct archive_reader *, archive_reader_free)

/* The part of the log that a call may read. */
struct archive_range {
	const struct archive_frame *frames; /* In order; the first ends behind the start. */
	size_t nframes;
	int64_t end;            /* Where the text that they cover ends. */
	struct archive_gap gap; /* Of the whole log. */
};

/* Appends the text from ${from} on, some ${max} bytes and at least one character, ending
 * between two characters, and tells where to go on.  What is missing or damaged is left out,
 * and so is the gap, each named in a line.  0, E_NOMEM. */
int archive_read(struct archive_reader *r, const struct archive_range *range, int64_t from,
    size_t max, struct buf *out, int64_t *ret_next);
/* How such a line names what is damaged: bytes. */
#define ARCHIVE_HOLE_LINE "[anvil: %lld bytes of the log are damaged or missing and left out]\n"

/* Copies ${n} bytes from ${from} of the log to ${p}.  0, E_NOMEM, E_CORRUPT: ${f} does not
 * hold them, is missing or damaged. */
int archive_read_exact(
    struct archive_reader *r, const struct archive_frame *f, int64_t from, char *p, size_t n);

#endif
