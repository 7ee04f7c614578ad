/*
 * cmd/anvil-ingress/exchange.h -- one HTTP request on its way to its answer.
 *
 * It lives until the last byte of the answer is out, so that callbacks of other actors find it
 * alive for as long as they owe something to it.  Texts that it keeps live in its arena.
 */
#ifndef CMD_ANVIL_INGRESS_EXCHANGE_H
#define CMD_ANVIL_INGRESS_EXCHANGE_H

#include <sys/queue.h>

#include <jansson.h>

#include "cmd/anvil-ingress/ingress.h"
#include "gen/http.h"

struct route;

struct exchange {
	uint32_t magic;
#define EXCHANGE_MAGIC 0x5ce1d90b
	LIST_ENTRY(exchange) entry;
	struct ingress *in;
	struct http_req *req;
	const struct route *route; /* NULL: the path has none.                  */
	struct arena *arena;       /* Owned.                                    */
	int answered;              /* Nothing of this request may be sent more. */
	const char *code;          /* Of an error answer, for the log.          */
	/* Who asks, on private routes. */
	struct index_user user;
	/* What the path names, once it has been found. */
	struct index_project project;
	/* The body of routes that read one. */
	json_t *body; /* Owned. */
	struct codec codec;
	void (*on_body)(struct exchange *x);
	/* A whole answer that waits for a commit. */
	int status;
	struct buf out;
	/* Work of its own that must end with it. */
	void *work;
	void (*stop)(struct exchange *x); /* Orderly end of ingress: end it soon. */
	void (*drop)(struct exchange *x); /* Frees what ${work} holds.            */
};

/* NULL: out of memory. */
struct exchange *exchange_new(struct ingress *in, struct http_req *req);
struct exchange *exchange_free(struct exchange *x);

/* ---- turns ---- */

typedef int exchange_turn_fn(void *exchange, struct turn *t);

/* A turn for this request.  What ${fn} returns; a storage error has been answered then. */
int exchange_turn(struct exchange *x, int write, exchange_turn_fn *fn);
/* The same where no error means anything else: every one has been answered then. */
void exchange_do(struct exchange *x, int write, exchange_turn_fn *fn);
/* Last act of a turn: x->out leaves with ${status} after the commit. */
int exchange_answer_after(struct exchange *x, struct turn *t, int status);
/* Answers an error of the store or of memory. */
void exchange_fail(struct exchange *x, int err);

/* ---- bodies ---- */

/* Reads the body as JSON; calls ${next} with x->body when that is well. */
void exchange_read_body(struct exchange *x, void (*next)(struct exchange *x));
/* The two passes over x->body (http-api 2.5), into ${ret} of ${t}: 0, or it has been answered. */
int exchange_shapes(struct exchange *x, const struct codec_type *t, void *ret);
int exchange_rules(struct exchange *x, const struct codec_type *t, void *ret);

#endif
