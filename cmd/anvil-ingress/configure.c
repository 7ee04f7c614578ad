/* ingress.configure: settings that apply without a restart (operations 2). */
#include "cmd/anvil-ingress/limiter.h"
#include "cmd/anvil-ingress/links.h"
#include "gen/ingress.h"
#include "lib/base/err.h"
#include "lib/wire/wire.h"

int
ingress_configure(struct ingress *in, struct turn *t,
    const struct ingress_configure_params *params, struct ingress_configure_result *ret)
{
	CLEANUP(buf_wipe) struct buf text = BUF_INIT;
	CLEANUP(config_freep) struct config *next = NULL;
	int r = json_text_dump(&text, params->config);

	(void)t;
	if (r == 0)
		r = config_from_json((const char *)text.data, text.len, &next);
	if (r == 0)
		r = links_open(in, (size_t)next->shards);
	if (r != 0)
		return r;
	limiter_set_max(in->limit_login, next->limits_login_per_minute);
	limiter_set_max(in->limit_accept, next->limits_invite_accept_per_minute);
	limiter_set_max(in->limit_address, next->limits_public_per_minute_per_address);
	ret->kind = INGRESS_CONFIGURE_OK;
	return 0;
}
