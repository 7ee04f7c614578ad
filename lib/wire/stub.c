#include "lib/wire/stub.h"

#include "lib/base/err.h"
#include "lib/base/mem.h"

int
stub_send(struct rpc_peer *p, const char *method, const struct codec_type *t,
    const void *params, const struct rpc_call_opts *opts, rpc_answer_fn *cb,
    const struct stub_call *call)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	CLEANUP_FREE struct stub_call *copy = mem_dup(call, sizeof(*call));
	int r;

	if (copy == NULL || codec_encode(&text, t, params) < 0)
		return E_NOMEM;
	r = rpc_send(p, method, &text, opts, cb, copy);
	if (r == 0)
		(void)TAKE_PTR(copy);
	return r;
}

int
stub_notify(struct rpc_peer *p, const char *method, const struct codec_type *t,
    const void *params, const struct rpc_call_opts *opts)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;

	if (codec_encode(&text, t, params) < 0)
		return E_NOMEM;
	return rpc_notify(p, method, &text, opts);
}

int
stub_answer(struct stub_call *call, const struct rpc_answer *answer, const struct codec_type *t,
    void *ret_result)
{
	struct codec c;

	if (answer->err < 0)
		return answer->err;
	call->arena = arena_new();
	if (call->arena == NULL)
		return E_NOMEM;
	codec_init(&c, call->arena, NULL);
	c.lenient = 1;
	return codec_decode(&c, t, answer->result, ret_result);
}

void
stub_done(struct stub_call *call)
{
	arena_free(call->arena);
	mem_free(call);
}
