/*
 * lib/wire/peer.h -- inside of a peer, shared by peer.c (bytes), call.c (ours to them) and
 * request.c (theirs to us).
 */
#ifndef LIB_WIRE_PEER_H
#define LIB_WIRE_PEER_H

#include <stdint.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "lib/wire/envelope.h"
#include "lib/wire/frame.h"
#include "lib/wire/rpc.h"

/* A call in flight.  The slot is in the low bits of the id.  A call whose deadline has passed
 * keeps its slot until the late answer, so that both sides count the same. */
struct call {
	int64_t id; /* 0: the slot is free. */
	int64_t deadline_us;
	rpc_answer_fn *cb; /* NULL: the caller has been told. */
	void *arg;
};

#define CALL_SLOT_BITS 8
#define CALL_SLOT_MASK (RPC_CALLS_MAX - 1)

enum peer_state {
	PEER_OPEN,
	PEER_FINISHING, /* Writes what is queued, reads no more.     */
	PEER_CLOSED,    /* No descriptor; callbacks are still owed.  */
	PEER_GONE,      /* Everybody has been told.                  */
};

struct rpc_peer {
	uint32_t magic;
#define RPC_PEER_MAGIC 0x3c9ad177
	int refs;
	enum peer_state state;
	int err; /* Why it closed. */
	int fd;
	struct event_base *base;
	struct rpc_peer_ops ops;
	void *arg;
	/* Input. */
	struct event ev_read;
	struct frame_in in;
	int reading;                 /* Inside the read event: output waits for its end. */
	struct rpc_request *current; /* Its request, while on_request runs.              */
	/* Output. */
	struct event ev_write; /* Pending only while the socket is full. */
	struct buf out;
	size_t out_at; /* Bytes of `out` that were written. */
	/* Later, in this round of the loop: flush, or tell that it closed. */
	struct event ev_soon;
	int soon;
	/* Calls. */
	struct call *calls;
	size_t ncalls;   /* Slots that exist.                                    */
	size_t nlate;    /* Calls that only wait for a late answer.              */
	unsigned next;   /* Where the search for a free slot begins.             */
	int64_t last_id; /* Without the slot bits.                               */
	struct event ev_timer;
	int64_t timer_us; /* When it fires; INT64_MAX: it does not. */
	/* Who. */
	int has_cred;
	pid_t cred_pid;
	uid_t cred_uid;
	uint32_t role;
	pid_t pid;
	char address[RPC_ADDRESS_SIZE];
	struct rpc_peer_stats stats;
};

/* ---- peer.c ---- */

/* Ends the frame begun at ${at} and sees to it that it leaves.  0, E_TOO_BIG, E_NOMEM. */
int peer_queue(struct rpc_peer *p, size_t at);
/* Sees to it that ev_soon runs in this round of the loop. */
void peer_soon(struct rpc_peer *p);
/* Sets the one timer, unless it fires early enough already. */
void peer_timer(struct rpc_peer *p, int64_t at_us);

/* ---- call.c ---- */

/* An answer has come: 0, or an error that the connection does not survive. */
int call_answer(struct rpc_peer *p, struct envelope *e);
/* Tells those whose time is over, and sets the timer for the next. */
void call_expire(struct rpc_peer *p);
/* Tells everybody ${err}. */
void call_fail_all(struct rpc_peer *p, int err);

/* ---- request.c ---- */

/* A whole frame: 0, or an error that the connection does not survive. */
int request_dispatch(struct rpc_peer *p, char *body, size_t n);
/* One error without an id. */
void request_refuse(struct rpc_peer *p, const char *id, int err, const char *message);

#endif
