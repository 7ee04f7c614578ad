/* POST /api/private/runs/{runId}/log-ticket: a way to the live log for who cannot send a header,
 * such as a browser's WebSocket (http-api 7, 8.2). */
#include "cmd/anvil-ingress/answer.h"
#include "cmd/anvil-ingress/routes.h"
#include "cmd/anvil-ingress/run_find.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

#define TICKET_MS 60000

static int
ticket_turn(void *arg, struct turn *t)
{
	struct exchange *x = arg;
	const struct run_known *k = x->work;
	char text[VAULT_TOKEN_SIZE], hash[VAULT_SHA256_HEX_SIZE];
	struct index_ticket ticket = { k->row.run_id, x->user.id, t->now_ms + TICKET_MS };
	struct http_log_ticket answer = { text, ticket.expires_at };
	int r;

	vault_token_make(text);
	vault_token_hash(text, hash);
	r = index_ticket_add(t->store, hash, &ticket);
	if (r == 0)
		r = answer_prepare(x, &http_log_ticket_codec, &answer);
	mem_wipe(text, sizeof(text));
	return r < 0 ? r : exchange_answer_after(x, t, 200);
}

static void
on_found(struct exchange *x, struct run_known *k)
{
	x->work = k;
	exchange_do(x, 1, ticket_turn);
	x->work = NULL;
}

void
route_create_log_ticket(struct exchange *x)
{
	struct run_known *k = arena_alloc(x->arena, sizeof(*k));

	if (k == NULL)
		exchange_fail(x, E_NOMEM);
	else
		run_find(x, k, on_found);
}
