#include "lib/ledger/webhook.h"

#include <string.h>

#include "lib/base/err.h"
#include "lib/ledger/inside.h"

/* ---- reading ---- */

/* Columns in the order of LEDGER_WEBHOOK_COLUMNS. */
static int
webhook_read(struct stmt *st, struct arena *a, void *row)
{
	struct ledger_webhook *w = row;
	int err = 0;

	*w = (struct ledger_webhook) { .webhook_id = stmt_text_dup(st, 0, a, &err),
		.project_id = stmt_text_dup(st, 1, a, &err),
		.provider = stmt_text_dup(st, 2, a, &err),
		.enabled = stmt_int(st, 3) != 0,
		.instance_url = stmt_text_dup(st, 4, a, &err),
		.secret = { stmt_text_dup(st, 5, a, &err), stmt_text_dup(st, 6, a, &err),
		    stmt_int(st, 7) },
		.created_at = stmt_int(st, 8),
		.updated_at = stmt_int(st, 9) };
	return err;
}

int
ledger_webhook_get(struct store *s, struct arena *a, const char *project_id,
    const char *provider, struct ledger_webhook *ret)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_WEBHOOK_GET);
	int r = stmt_first(st, stmt_bind(st, "ss", project_id, provider));

	return r < 0 ? r : webhook_read(st, a, ret);
}

int
ledger_webhook_list(struct store *s, struct arena *a, const char *project_id,
    struct ledger_webhook **ret, size_t *ret_n)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_WEBHOOK_LIST);
	void *rows;
	int r = stmt_rows(
	    st, stmt_bind(st, "s", project_id), a, webhook_read, sizeof(**ret), &rows, ret_n);

	if (r == 0)
		*ret = rows;
	return r;
}

/* ---- writing ---- */

static int
webhook_add(struct store *s, const struct ledger_webhook *w)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_WEBHOOK_ADD);

	return ledger_run_stmt(st,
	    stmt_bind(st, "sssisssii", w->webhook_id, w->project_id, w->provider,
		(int64_t)(w->enabled != 0), w->instance_url, w->secret.ciphertext,
		w->secret.nonce, w->secret.key_version, w->created_at));
}

int
ledger_webhook_create(
    struct store *s, struct arena *a, struct ledger_webhook *w, int64_t now_ms)
{
	struct ledger_webhook have;
	int r = ledger_webhook_get(s, a, w->project_id, w->provider, &have);

	if (r == 0) {
		/* Sealed with a random nonce: only a repeat has the same ciphertext. */
		if (strcmp(have.webhook_id, w->webhook_id) != 0 ||
		    strcmp(have.secret.ciphertext, w->secret.ciphertext) != 0)
			return E_EXISTS;
		*w = have;
		return 0;
	}
	if (r != E_NOENT)
		return r;
	w->created_at = w->updated_at = now_ms;
	r = webhook_add(s, w);
	return r < 0 ? r : ledger_prune_deliveries(s, now_ms, NULL);
}

int
ledger_webhook_save(struct store *s, struct ledger_webhook *w, int64_t now_ms)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_WEBHOOK_SAVE);
	int64_t version = max_i64(now_ms, w->updated_at + 1);
	int r = ledger_run_stmt(st,
	    stmt_bind(st, "sisssii", w->webhook_id, (int64_t)(w->enabled != 0), w->instance_url,
		w->secret.ciphertext, w->secret.nonce, w->secret.key_version, version));

	if (r < 0)
		return r;
	w->updated_at = version;
	return ledger_prune_deliveries(s, now_ms, NULL);
}

int
ledger_webhooks_touch(struct store *s, const char *project_id, int64_t now_ms)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_WEBHOOK_TOUCH);

	return ledger_run_stmt(st, stmt_bind(st, "si", project_id, now_ms));
}

int
ledger_webhook_remove(
    struct store *s, const char *project_id, const char *provider, int64_t now_ms)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_WEBHOOK_REMOVE);
	int r = ledger_run_stmt(st, stmt_bind(st, "ss", project_id, provider));

	if (r == 0 && store_changes(s) == 0)
		r = E_NOENT;
	return r < 0 ? r : ledger_prune_deliveries(s, now_ms, NULL);
}

/* ---- refused attempts ---- */

/* 1: it became part of a row of the last minute. */
static int
refusal_merge(struct store *s, const char *webhook_id, const struct ledger_refusal *f)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_REFUSAL_MERGE);
	int r = ledger_run_stmt(st,
	    stmt_bind(st, "sssisssIi", webhook_id, f->reason, f->client_address, f->at, f->hint,
		f->event_name, f->delivery_id, f->has_body_bytes ? &f->body_bytes : NULL,
		f->count));

	return r < 0 ? r : store_changes(s) != 0;
}

int
ledger_refusal_add(struct store *s, const char *webhook_id, const struct ledger_refusal *f)
{
	int r = refusal_merge(s, webhook_id, f);

	if (r != 0)
		return r < 0 ? r : 0;
	{
		CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_REFUSAL_ADD);

		r = ledger_run_stmt(st,
		    stmt_bind(st, "sssisssIii", webhook_id, f->reason, f->client_address, f->at,
			f->hint, f->event_name, f->delivery_id,
			f->has_body_bytes ? &f->body_bytes : NULL, f->count,
			(int64_t)LEDGER_REFUSALS_MINUTE));
	}
	if (r == 0) {
		CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_REFUSAL_TRIM);

		r = ledger_run_stmt(
		    st, stmt_bind(st, "si", webhook_id, (int64_t)LEDGER_REFUSALS_KEPT));
	}
	return r;
}

static int
refusal_read(struct stmt *st, struct arena *a, void *row)
{
	struct ledger_refusal *f = row;
	int err = 0;

	*f = (struct ledger_refusal) { .at = stmt_int(st, 0),
		.reason = stmt_text_dup(st, 1, a, &err),
		.hint = stmt_text_dup(st, 2, a, &err),
		.event_name = stmt_text_dup(st, 3, a, &err),
		.delivery_id = stmt_text_dup(st, 4, a, &err),
		.has_body_bytes = !stmt_is_null(st, 5),
		.body_bytes = stmt_int(st, 5),
		.client_address = stmt_text_dup(st, 6, a, &err),
		.count = stmt_int(st, 7) };
	return err;
}

int
ledger_refusals(struct store *s, struct arena *a, const char *webhook_id,
    struct ledger_refusal **ret, size_t *ret_n)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_REFUSAL_LIST);
	void *rows;
	int r = stmt_rows(
	    st, stmt_bind(st, "s", webhook_id), a, refusal_read, sizeof(**ret), &rows, ret_n);

	if (r == 0)
		*ret = rows;
	return r;
}
