/*
 * cmd/anvil-run/window.h -- what a subscriber has been sent and has not acknowledged
 * (spec run 14).
 *
 * Counted are the encoded bytes of lines and gaps.  States and ends are not: their number is
 * bounded by the run, and the connection's own queue bounds the rest.
 */
#ifndef CMD_ANVIL_RUN_WINDOW_H
#define CMD_ANVIL_RUN_WINDOW_H

#include <stddef.h>
#include <stdint.h>

#define WINDOW_BYTES ((size_t)1 << 20)
#define WINDOW_MARKS 32 /* Messages told apart; of more, the newest count as one. */

struct window {
	size_t unacked; /* Bytes. */
	size_t first, n;
	struct window_mark {
		int64_t seq; /* The newest line of it. */
		size_t bytes;
	} marks[WINDOW_MARKS]; /* A ring, ascending. */
};

/* Bytes that may be sent. */
size_t window_room(const struct window *w);
/* A message of ${bytes} has left, whose newest line is ${seq}. */
void window_add(struct window *w, int64_t seq, size_t bytes);
/* All lines up to ${seq} have been taken. */
void window_ack(struct window *w, int64_t seq);

#endif
