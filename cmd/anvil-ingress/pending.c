/* Methods and routes whose handlers are being written. */
#include "gen/ingress.h"
#include "lib/base/err.h"

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
