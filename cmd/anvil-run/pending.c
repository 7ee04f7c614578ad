/* Methods whose handlers are being written. */
#include "cmd/anvil-run/run.h"
#include "gen/run.h"
#include "lib/base/err.h"

int
run_subscribe(struct run_actor *ctx, struct turn *t, const struct run_subscribe_params *params,
    struct run_subscribe_result *ret)
{
	(void)ctx;
	(void)t;
	(void)params;
	(void)ret;
	return E_UNSUPPORTED;
}

int
run_ack(struct run_actor *ctx, struct turn *t, const struct run_ack_params *params)
{
	(void)ctx;
	(void)t;
	(void)params;
	return E_UNSUPPORTED;
}

int
run_unsubscribe(struct run_actor *ctx, struct turn *t,
    const struct run_unsubscribe_params *params, struct run_unsubscribe_result *ret)
{
	(void)ctx;
	(void)t;
	(void)params;
	(void)ret;
	return E_UNSUPPORTED;
}
