/* project.listSealed, project.replaceSealed: secrets when keys are rotated (spec webhooks 12).
 * What is here is ciphertext; ingress has the keys. */
#include <string.h>

#include "cmd/anvil-project/notice.h"
#include "cmd/anvil-project/shard.h"
#include "gen/project.h"

int
project_list_sealed(struct shard *s, struct turn *t, const struct project_list_sealed_params *p,
    struct project_list_sealed_result *ret)
{
	const struct ledger_at at = { t->store, t->arena, t->now_ms };
	struct ledger_sealed_row *list;
	struct sealed_secret *rows;
	size_t n;
	int r = ledger_sealed_list(
	    &at, p->below_version, p->cursor, (size_t)p->limit, &list, &n, &ret->u.page.next);

	(void)s;
	if (r == 0)
		r = ledger_moving_count(t->store, &ret->u.page.moving);
	if (r == E_INVAL)
		return turn_fail(t, E_PARAMS, "cursor: expected one of an earlier page");
	if (r < 0)
		return r;
	rows = arena_calloc(t->arena, n, sizeof(*rows));
	if (rows == NULL)
		return E_NOMEM;
	for (size_t i = 0; i < n; i++)
		rows[i] = (struct sealed_secret) { .project_id = list[i].project_id,
			.table = list[i].table,
			.row_id = list[i].row_id,
			.column = list[i].column,
			.sealed = { list[i].sealed.ciphertext, list[i].sealed.nonce,
			    list[i].sealed.key_version } };
	ret->kind = PROJECT_LIST_SEALED_PAGE;
	ret->u.page.secrets = rows;
	ret->u.page.nsecrets = n;
	return 0;
}

int
project_replace_sealed(struct shard *s, struct turn *t,
    const struct project_replace_sealed_params *p, struct project_replace_sealed_result *ret)
{
	const struct ledger_sealed_row to = { .table = p->table,
		.row_id = p->row_id,
		.column = p->column,
		.sealed = { p->sealed.ciphertext, p->sealed.nonce, p->sealed.key_version } };
	const char *project_id;
	int r = ledger_sealed_replace(
	    t->store, t->arena, &to, p->expect_ciphertext, &project_id);

	if (r == E_INVAL)
		return turn_fail(t, E_PARAMS, "expected the table and column of a secret");
	if (r < 0)
		return r;
	if (project_id == NULL) {
		ret->kind = PROJECT_REPLACE_SEALED_CHANGED;
		return 0;
	}
	ret->kind = PROJECT_REPLACE_SEALED_REPLACED;
	r = shard_clean_after(s, t);
	/* No version moves; but the key of what ingress has kept may soon be gone. */
	if (r == 0 && strcmp(p->table, LEDGER_SEALED_WEBHOOKS) == 0)
		r = notice_webhook_after(s, t, project_id, NULL);
	return r;
}
