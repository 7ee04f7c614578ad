/*
 * lib/wire/rpc.h -- one connection of symmetric JSON-RPC 2.0 (design 2).
 *
 * Either side calls.  Every call gets exactly one callback, and never from inside the call
 * itself; every request gets exactly one reply, now or later.  A side never stops reading:
 * what would grow without bound (256 calls in flight, 32 MiB of queued output, each
 * direction) closes the connection instead.  All functions belong to the loop's thread.
 */
#ifndef LIB_WIRE_RPC_H
#define LIB_WIRE_RPC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <jansson.h>

#include "lib/base/buf.h"
#include "lib/base/clock.h"

#define RPC_PROTOCOL        1 /* Spoken by this release; it serves the one before, too. */
#define RPC_CALLS_MAX       256
#define RPC_OUT_MAX_BYTES   (32u << 20)
#define RPC_DEPTH_MAX       64
#define RPC_DEADLINE_MS     5000 /* When the caller gives none. */
#define RPC_REQUEST_ID_SIZE 32
#define RPC_ADDRESS_SIZE    64
#define RPC_ID_SIZE         72 /* A request's id as JSON text; longer ones are refused. */

struct codec;
struct event_base;
struct turn;

/* Bits, so that a method can name the set of its callers. */
enum rpc_role {
	ROLE_SUPERVISOR = 1,
	ROLE_INGRESS = 2,
	ROLE_PROJECT = 4,
	ROLE_RUN = 8,
	ROLE_CTL = 16,
};

enum rpc_turn { RPC_TURN_NONE, RPC_TURN_READ, RPC_TURN_WRITE };

/* Row of a generated dispatch table. */
struct rpc_method {
	const char *name;
	uint32_t from; /* ROLE_* bits of those who may call. */
	enum rpc_turn turn;
	int notification; /* 1: has no reply. */
	size_t params_size, result_size;
	/* Into zeroed ${ret_params}; 0 or E_PARAMS (the codec has the issues), E_NOMEM. */
	int (*decode)(struct codec *c, const json_t *params, void *ret_params);
	/* 0, TURN_PARKED, or an error of err.def. */
	int (*run)(void *ctx, struct turn *t, const void *params, void *ret_result);
	/* Adds the result as JSON text.  0 or E_NOMEM.  NULL: notification. */
	int (*encode)(struct buf *out, const void *result);
};

struct rpc_peer;

/* A request or notification that came in.  Whoever gets it answers exactly once with
 * rpc_reply() or rpc_reply_error() (for a notification these send nothing), now or later:
 * that frees it.  It keeps its peer alive, also after the connection has closed. */
struct rpc_request {
	uint32_t magic;
#define RPC_REQUEST_MAGIC 0x7e5b0c41
	int notification;
	struct rpc_peer *peer;
	const char *method;   /* Valid until on_request returns.               */
	const json_t *params; /* Valid until on_request returns; NULL: absent. */
	struct mono_time came;
	int64_t deadline_ms; /* What the caller waits, from `came`; 0: unknown. */
	char request_id[RPC_REQUEST_ID_SIZE];
	char id[RPC_ID_SIZE]; /* As JSON text.  */
};

/* Callbacks of the owner; each may be NULL.  Each runs from the loop, never from inside a
 * function of this header. */
struct rpc_peer_ops {
	void (*on_request)(void *arg, struct rpc_peer *p, struct rpc_request *req);
	/* Once, last, after every call has had its callback. */
	void (*on_close)(void *arg, struct rpc_peer *p, int err);
	/* The choke point for tracing: ${dir} is '<' or '>', ${n} the bytes of the body. */
	void (*on_trace)(void *arg, struct rpc_peer *p, char dir, const char *body, size_t n);
};

/* Takes ${fd} (non-blocking, close-on-exec are set here) on success.  NULL: no memory.
 * The caller owns one reference; rpc_peer_free() is how an owner lets go. */
struct rpc_peer *
rpc_peer_new(struct event_base *base, int fd, const struct rpc_peer_ops *ops, void *arg);
struct rpc_peer *rpc_peer_ref(struct rpc_peer *p);
struct rpc_peer *rpc_peer_unref(struct rpc_peer *p);

/* Closes soon: calls in flight get ${err} from the loop, then on_close runs. */
void rpc_peer_close(struct rpc_peer *p, int err);
/* As rpc_peer_close() once what is queued has been written, or after 1 s. */
void rpc_peer_finish(struct rpc_peer *p, int err);
/* The owner leaves: no callback of its ops runs any more, the connection closes (calls in
 * flight still get theirs), its reference is dropped.  NULL is fine; NULL back. */
struct rpc_peer *rpc_peer_free(struct rpc_peer *p);
/* Exchanges ops and arg, as when a link takes a connection over after its hello. */
void rpc_peer_set_ops(struct rpc_peer *p, const struct rpc_peer_ops *ops, void *arg);

/* How long the callee may take, and whose request this serves. */
struct rpc_call_opts {
	int64_t deadline_ms;    /* From now; 0: RPC_DEADLINE_MS. */
	const char *request_id; /* NULL or "": none.             */
};

/* How a call ended.  Everything is borrowed until the callback returns. */
struct rpc_answer {
	int err;              /* 0, or E_LINK, E_DEADLINE, E_NOMEM, or what the peer said.  */
	int sent_by_peer;     /* 1: the peer answered; 0: this side gave up.                */
	const char *message;  /* For people; never NULL when err != 0.                      */
	const json_t *data;   /* Of an error; NULL: absent.                                 */
	const json_t *result; /* Never NULL when err == 0.                                  */
};

typedef void rpc_answer_fn(void *arg, const struct rpc_answer *answer);

/* Queues a call; ${params} is the text of a JSON object, borrowed (NULL: no params).  0, then
 * ${cb} runs exactly once and later; or E_LINK (closed), E_OVERLOADED (256 in flight),
 * E_TOO_BIG, E_NOMEM (also when ${params} had failed), and ${cb} never runs. */
int rpc_send(struct rpc_peer *p, const char *method, const struct buf *params,
    const struct rpc_call_opts *opts, rpc_answer_fn *cb, void *arg);
/* As rpc_send() without an answer. */
int rpc_notify(struct rpc_peer *p, const char *method, const struct buf *params,
    const struct rpc_call_opts *opts);

/* Answers and frees ${req}.  ${result} is JSON text.  A result too big for a frame or for
 * memory becomes an error by itself. */
void rpc_reply(struct rpc_request *req, const char *result, size_t n);
/* ${message} NULL: err_text(err).  ${data}: JSON text or NULL. */
void rpc_reply_error(struct rpc_request *req, int err, const char *message, const char *data);

/* What is known of the other side.  The identity is set after its hello; "" and 0 before. */
void
rpc_peer_set_identity(struct rpc_peer *p, enum rpc_role role, const char *address, pid_t pid);
uint32_t rpc_peer_role(const struct rpc_peer *p);
const char *rpc_peer_address(const struct rpc_peer *p);
pid_t rpc_peer_pid(const struct rpc_peer *p);
/* SO_PEERCRED, read when the peer was made: 0 or E_SYS (not a Unix socket). */
int rpc_peer_cred(const struct rpc_peer *p, pid_t *ret_pid, uid_t *ret_uid);
int rpc_peer_is_open(const struct rpc_peer *p);

struct rpc_peer_stats {
	uint64_t frames_in, frames_out, bytes_in, bytes_out;
	uint64_t bad_requests;  /* Answered with an error before on_request.    */
	uint64_t stray_answers; /* For ids never used, or after their deadline. */
	size_t calls_out;       /* In flight from here.                         */
	size_t calls_in;        /* Requests that are owed an answer.            */
	size_t queued_bytes;    /* Output that the socket has not taken.        */
};
void rpc_peer_stats(const struct rpc_peer *p, struct rpc_peer_stats *ret);

/* The row of that name; NULL: none. */
const struct rpc_method *
rpc_method_find(const struct rpc_method *rows, size_t nrows, const char *name);

/* "supervisor", "ingress", "project", "run", "ctl"; "" when it is not one role. */
const char *rpc_role_name(uint32_t role);
/* 0 or E_INVAL. */
int rpc_role_parse(const char *name, enum rpc_role *ret_role);

#endif
