/* Methods whose handlers are being written. */
#include "cmd/anvild/supervisor.h"
#include "gen/supervisor.h"
#include "lib/base/err.h"

int
supervisor_rotate_keys(struct supervisor *ctx, struct turn *t,
    const struct supervisor_rotate_keys_params *params,
    struct supervisor_rotate_keys_result *ret)
{
	(void)ctx;
	(void)t;
	(void)params;
	(void)ret;
	return E_UNSUPPORTED;
}
