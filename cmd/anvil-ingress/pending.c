/* Methods and routes whose handlers are being written. */
#include "cmd/anvil-ingress/answer.h"
#include "cmd/anvil-ingress/routes.h"
#include "gen/ingress.h"
#include "lib/base/err.h"

int
run_events(struct ingress *ctx, struct turn *t, const struct run_events_params *params)
{
	(void)ctx;
	(void)t;
	(void)params;
	return E_UNSUPPORTED;
}

int
ingress_keys_status(struct ingress *ctx, struct turn *t,
    const struct ingress_keys_status_params *params, struct ingress_keys_status_result *ret)
{
	(void)ctx;
	(void)t;
	(void)params;
	(void)ret;
	return E_UNSUPPORTED;
}

void
route_watch_run(struct exchange *x)
{
	answer_error(x, HTTP_CODE_NOT_FOUND);
}

void
route_stream_run(struct exchange *x)
{
	answer_error(x, HTTP_CODE_NOT_FOUND);
}
