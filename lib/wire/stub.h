/*
 * lib/wire/stub.h -- what generated client stubs and contract tables stand on.
 */
#ifndef LIB_WIRE_STUB_H
#define LIB_WIRE_STUB_H

#include "lib/wire/codec.h"
#include "lib/wire/rpc.h"

/* A method as others see it. */
struct rpc_contract {
	const char *name;
	const struct codec_type *params;
	const struct codec_type *result; /* NULL: a notification. */
};

/* Whatever type a callback really has; the stub that stored it calls it by that type. */
typedef void stub_fn(void);

struct stub_call {
	stub_fn *fn;
	void *arg;
	struct arena *arena; /* Of the result while it is shown. */
};

/* rpc_send() of ${params} by their table, with a copy of ${call} as its argument, which
 * ${cb} frees with stub_done().  Errors as there; then nothing is left. */
int stub_send(struct rpc_peer *p, const char *method, const struct codec_type *t,
    const void *params, const struct rpc_call_opts *opts, rpc_answer_fn *cb,
    const struct stub_call *call);
int stub_notify(struct rpc_peer *p, const char *method, const struct codec_type *t,
    const void *params, const struct rpc_call_opts *opts);

/* Decodes an answer into zeroed ${ret_result}.  0, the error of the answer, E_PARAMS when the
 * result is not what the contract says, E_UNSUPPORTED (a kind of a later release), E_NOMEM. */
int stub_answer(struct stub_call *call, const struct rpc_answer *answer,
    const struct codec_type *t, void *ret_result);
void stub_done(struct stub_call *call);

#endif
