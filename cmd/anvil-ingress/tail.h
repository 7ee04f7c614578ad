/*
 * cmd/anvil-ingress/tail.h -- the newest lines of one run, framed, for viewers to take them from
 * at their own pace.
 *
 * Entries are numbered from 0 on for the life of the tail; old ones go, numbers stay.
 */
#ifndef CMD_ANVIL_INGRESS_TAIL_H
#define CMD_ANVIL_INGRESS_TAIL_H

#include <stddef.h>
#include <stdint.h>

struct http_blob;
struct tail;

/* What stands for the lines [first, next). */
struct tail_entry {
	int64_t first, next;
	struct http_blob *blob; /* NULL: they are a gap. */
	uint64_t at;            /* Bytes of all entries before it. */
};

/* An empty one that begins with the line ${seq}.  NULL: out of memory. */
struct tail *tail_new(int64_t seq);
struct tail *tail_free(struct tail *t);

/* Adds what stands for the lines up to ${next}; takes ${blob} (NULL: a gap), on failure too.
 * 0 or E_NOMEM. */
int tail_add_take(struct tail *t, int64_t next, struct http_blob *blob);
/* Lets the oldest ones go, as far as more than ${max} bytes are kept. */
void tail_trim(struct tail *t, size_t max);

/* The oldest line that is in it, or will be. */
int64_t tail_first_seq(const struct tail *t);
/* 1 while nothing of it has gone. */
int tail_is_whole(const struct tail *t);

/* Numbers of the oldest entry that is left, and of the one to come. */
uint64_t tail_begin(const struct tail *t);
uint64_t tail_end(const struct tail *t);
/* begin <= ${i} < end; valid until the tail changes. */
const struct tail_entry *tail_at(const struct tail *t, uint64_t i);
/* Of the entry that the line ${seq} >= first_seq is in; tail_end() for one to come. */
uint64_t tail_find(const struct tail *t, int64_t seq);
/* Bytes of the entries from ${i} >= begin on. */
size_t tail_bytes_from(const struct tail *t, uint64_t i);

#endif
