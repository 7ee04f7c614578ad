/* Methods whose handlers are being written. */
#include "cmd/anvil-project/shard.h"
#include "gen/project.h"
#include "lib/base/err.h"

int
webhook_get_verification(struct shard *ctx, struct turn *t,
    const struct webhook_get_verification_params *params,
    struct webhook_get_verification_result *ret)
{
	(void)ctx;
	(void)t;
	(void)params;
	(void)ret;
	return E_UNSUPPORTED;
}

int
webhook_record(struct shard *ctx, struct turn *t, const struct webhook_record_params *params,
    struct webhook_record_result *ret)
{
	(void)ctx;
	(void)t;
	(void)params;
	(void)ret;
	return E_UNSUPPORTED;
}

int
webhook_refused(struct shard *ctx, struct turn *t, const struct webhook_refused_params *params,
    struct webhook_refused_result *ret)
{
	(void)ctx;
	(void)t;
	(void)params;
	(void)ret;
	return E_UNSUPPORTED;
}

int
webhook_list(struct shard *ctx, struct turn *t, const struct webhook_list_params *params,
    struct webhook_list_result *ret)
{
	(void)ctx;
	(void)t;
	(void)params;
	(void)ret;
	return E_UNSUPPORTED;
}

int
webhook_create(struct shard *ctx, struct turn *t, const struct webhook_create_params *params,
    struct webhook_create_result *ret)
{
	(void)ctx;
	(void)t;
	(void)params;
	(void)ret;
	return E_UNSUPPORTED;
}

int
webhook_update(struct shard *ctx, struct turn *t, const struct webhook_update_params *params,
    struct webhook_update_result *ret)
{
	(void)ctx;
	(void)t;
	(void)params;
	(void)ret;
	return E_UNSUPPORTED;
}

int
webhook_rotate(struct shard *ctx, struct turn *t, const struct webhook_rotate_params *params,
    struct webhook_rotate_result *ret)
{
	(void)ctx;
	(void)t;
	(void)params;
	(void)ret;
	return E_UNSUPPORTED;
}

int
webhook_remove(struct shard *ctx, struct turn *t, const struct webhook_remove_params *params,
    struct webhook_remove_result *ret)
{
	(void)ctx;
	(void)t;
	(void)params;
	(void)ret;
	return E_UNSUPPORTED;
}

int
webhook_deliveries(struct shard *ctx, struct turn *t,
    const struct webhook_deliveries_params *params, struct webhook_deliveries_result *ret)
{
	(void)ctx;
	(void)t;
	(void)params;
	(void)ret;
	return E_UNSUPPORTED;
}

int
project_list_sealed(struct shard *ctx, struct turn *t,
    const struct project_list_sealed_params *params, struct project_list_sealed_result *ret)
{
	(void)ctx;
	(void)t;
	(void)params;
	(void)ret;
	return E_UNSUPPORTED;
}

int
project_replace_sealed(struct shard *ctx, struct turn *t,
    const struct project_replace_sealed_params *params,
    struct project_replace_sealed_result *ret)
{
	(void)ctx;
	(void)t;
	(void)params;
	(void)ret;
	return E_UNSUPPORTED;
}
