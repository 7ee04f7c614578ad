/* What needs nothing but the session: app-config, me (http-api 4, 5). */
#include "cmd/anvil-ingress/answer.h"
#include "cmd/anvil-ingress/routes.h"

void
route_get_app_config(struct exchange *x)
{
	if (x->in->keys == NULL)
		answer_error(x, HTTP_CODE_ENCRYPTION_NOT_CONFIGURED);
	else
		answer_empty(x, 204);
}

void
route_get_me(struct exchange *x)
{
	struct http_me me = { .user = answer_user(&x->user),
		.invite_ttl_seconds = INVITE_TTL_SECONDS };

	answer_value(x, 200, &http_me_codec, &me);
}

void
route_get_openapi(struct exchange *x)
{
	(void)buf_add_str(&x->out, http_document());
	answer_json(x, 200);
}
