/*
 * cmd/anvil-run/feed.h -- a job of the recorder that stores what was read from pipes.
 *
 * On the thread each piece is redacted, decoded and cut; full chunks go to the store at once,
 * the rest with a flush or the stream's end.  A try that the store refuses goes on where it
 * stopped: no byte is fed twice.
 */
#ifndef CMD_ANVIL_RUN_FEED_H
#define CMD_ANVIL_RUN_FEED_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "gen/types.h"

/* A feed of so much says that the step is ahead of us. */
#define FEED_BURST_BYTES ((size_t)256 << 10)

struct feed;
struct recorder;

/* What one read brought. */
struct block {
	STAILQ_ENTRY(block) entry;
	enum log_stream stream;
	int64_t step;   /* 0: none. */
	int64_t now_ms; /* When it was read. */
	int end;        /* Nothing but the stream's end. */
	size_t size;    /* Of data. */
	size_t n;
	char data[];
};
STAILQ_HEAD(block_list, block);

struct feed_result {
	int err;
	size_t bytes[LOG_STREAM_COUNT]; /* That are off the loop's hands now. */
	int capped;
	struct block_list blocks; /* What it was made of, to take and fill again. */
};

/* With room for ${size} bytes; free() it unless it is taken.  NULL: no memory. */
struct block *block_new(size_t size);
void block_list_free(struct block_list *l);

/* ${fn} runs on the loop when it is through.  NULL: no memory. */
struct feed *feed_new(void (*fn)(void *arg, struct feed_result *res), void *arg);
/* One that was never posted. */
void feed_free(struct feed *f);

/* Takes ${b}, of which `n` bytes are filled, and gives back what room it has beyond them if
 * that is much. */
void feed_add_take(struct feed *f, struct block *b);
/* Of its blocks. */
size_t feed_bytes(const struct feed *f);
/* Incomplete chunks go too. */
void feed_set_flush(struct feed *f);

/* Takes ${f}. */
void feed_post(struct feed *f, struct recorder *rec);
/* Puts what waits into the archive.  0 or E_NOMEM. */
int feed_post_archive(struct recorder *rec);

#endif
