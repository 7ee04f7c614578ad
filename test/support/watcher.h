/*
 * test/support/watcher.h -- somebody who watches a run over HTTP, by WebSocket or by Server-Sent
 * Events.
 *
 * It checks what holds for every viewer (spec http-api 8.1): a state first, lines in order, none
 * twice, none missing without a gap, nothing behind the end.
 */
#ifndef TEST_SUPPORT_WATCHER_H
#define TEST_SUPPORT_WATCHER_H

#include <stdint.h>

#include "lib/base/buf.h"

struct edge_rig;

struct watcher {
	int fd; /* -1: closed. */
	int ws;
	int silent; /* Does not read. */
	/* What came. */
	int status; /* Of HTTP; 0: no head yet. */
	char head[2048];
	struct buf raw;      /* Behind the head, not yet understood. */
	struct buf events;   /* Of SSE, without the chunks. */
	int whole;           /* SSE: the last chunk has come. */
	int64_t first, next; /* Lines [first, next); next 0: none yet. */
	struct buf text;     /* All chunks. */
	int nstates, nlogs, ngaps, nbeats, npongs;
	int64_t gap_from, gap_to; /* The newest.                          */
	int64_t replay_at;        /* Line that came next at the second state. */
	char run[32];             /* Status of the newest state.          */
	char newest[512];         /* That state, as far as it fits.       */
	char end[32];             /* Reason: of the close frame, or of the event. */
	int code;                 /* Of the close frame; 0: none.         */
};

/* Begins to watch `/api/private/runs/<id>` as the user of the rig; by WebSocket with a ticket of
 * its own.  ${query} follows the path of SSE, or the ticket: "from=3"; "": nothing. */
void
watcher_join(struct watcher *w, struct edge_rig *g, const char *run, int ws, const char *query);
/* Sends this request as it is. */
void watcher_ask(struct watcher *w, struct edge_rig *g, int ws, const char *request);
/* Request for the socket with these header lines more, in a static buffer. */
const char *watcher_request(const char *run, const char *query, const char *headers);
/* A ticket for the run, in a static buffer. */
const char *watcher_ticket(struct edge_rig *g, const char *run);
void watcher_leave(struct watcher *w);
/* Takes in what is there, unless it is silent. */
void watcher_read(struct watcher *w);
void watcher_say(struct watcher *w, const char *text);

#endif
