/*
 * lib/record/log_archive.h -- the way of the log into its archive, for log.c.
 *
 * A chunk that has a row is fed when that is stored, and again from the row when the archive
 * could not take it then.  In a burst a batch is fed before it is stored, and its frames are
 * recorded with it.
 */
#ifndef LIB_RECORD_LOG_ARCHIVE_H
#define LIB_RECORD_LOG_ARCHIVE_H

#include "lib/record/inside.h"

/* A batch of one record_append(). */
struct log_batch {
	struct record_row *rows;
	size_t n;
	int64_t bytes;
	int in_hurry;
};

/* Opens the archive, and gives it what it has not got: rows of a claim before, or of an append
 * after which it failed.  0, E_FULL, E_NOMEM, E_STORAGE. */
int record_feed_backlog(struct record *r);
/* 1 while one more chunk may be fed: it closes two frames at most. */
int record_has_room(const struct record *r);
/* Gives one stored chunk to the archive.  0, E_FULL, E_NOMEM, E_STORAGE: it was not taken and
 * will be read from its row again. */
int record_feed(struct record *r, int64_t seq, const char *chunk, size_t n);

/* 1: the archive alone may have the text of the batch, which is large and below the cap. */
int record_may_pack(const struct record *r, const struct log_batch *b);
/* Gives the archive a batch that is not stored, all of it in closed frames.  Unless it is
 * stored then, or on failure, record_forget_fed() follows. */
int record_feed_first(struct record *r, const struct log_batch *b);
/* Takes back what is not recorded: the archive is cut before it is needed again. */
void record_forget_fed(struct record *r);

/* In log.c, inside a transaction: rows of the frames that are in the file by now; and away
 * with the oldest chunks that are over the limit and no longer needed here: they are in a
 * recorded frame, or the archive will never take them. */
int record_put_frames(struct record *r, struct record_log *log);
int record_prune(struct record *r, struct record_log *log);

#endif
