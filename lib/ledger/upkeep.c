#include "lib/ledger/upkeep.h"

#include <string.h>

#include "lib/base/base.h"
#include "lib/base/err.h"
#include "lib/base/json_text.h"
#include "lib/base/utf8.h"
#include "lib/ledger/inside.h"

#define DISPATCH_LONGEST_MS 120000
#define SYNC_LONGEST_MS     300000
#define DETAIL_TEXT_MAX     800 /* of a text in an event, so that it fits when escaped */

/* ---- deadlines ---- */

static int
min_of(struct store *s, enum ledger_stmt which, int64_t *at)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, (unsigned)which);
	int r = stmt_step(st);

	if (r == 1 && !stmt_is_null(st, 0))
		*at = min_i64(*at, stmt_int(st, 0));
	return r < 0 ? r : 0;
}

int
ledger_next_deadline(struct store *s, int64_t *ret_at)
{
	static const enum ledger_stmt kinds[] = { LG_NEXT_DISPATCH, LG_NEXT_SYNC,
		LG_NEXT_STATE_SYNC };
	int64_t at = INT64_MAX;

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		int r = min_of(s, kinds[i], &at);

		if (r < 0)
			return r;
	}
	*ret_at = at;
	return 0;
}

int
ledger_clamp_deadlines(struct store *s, int64_t now_ms)
{
	static const struct {
		enum ledger_stmt which;
		int64_t longest;
	} kinds[] = { { LG_CLAMP_DISPATCH, DISPATCH_LONGEST_MS },
		{ LG_CLAMP_SYNC, SYNC_LONGEST_MS }, { LG_CLAMP_STATE_SYNC, SYNC_LONGEST_MS } };

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, (unsigned)kinds[i].which);
		int r = ledger_run_stmt(st, stmt_bind(st, "i", now_ms + kinds[i].longest));

		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- repairs, retention ---- */

int
ledger_headless(
    struct store *s, struct arena *a, size_t limit, const char ***ret, size_t *ret_n)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_RUN_NO_HEAD);
	const char **ids = arena_calloc(a, limit, sizeof(*ids));
	int err = 0, r = stmt_bind(st, "i", (int64_t)limit);
	size_t n = 0;

	if (ids == NULL)
		return E_NOMEM;
	while (r == 0 && n < limit && (r = stmt_step(st)) == 1) {
		ids[n++] = stmt_text_dup(st, 0, a, &err);
		r = err;
	}
	*ret = ids;
	*ret_n = n;
	return r;
}

int
ledger_prune(struct store *s, int64_t now_ms, int64_t *ret_n)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_RUN_PRUNE);
	int r = ledger_run_stmt(
	    st, stmt_bind(st, "ii", now_ms - LEDGER_KEPT_MS, (int64_t)LEDGER_PRUNE_ROWS));

	*ret_n = r == 0 ? store_changes(s) : 0;
	return r;
}

/* ---- history ---- */

int
ledger_event_add(
    struct store *s, const char *run_id, int64_t at, const char *event, const char *detail)
{
	int r;

	{
		CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_EVENT_ADD);

		r = ledger_run_stmt(st, stmt_bind(st, "siss", run_id, at, event, detail));
	}
	if (r == 0) {
		CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_EVENT_TRIM);

		r = ledger_run_stmt(
		    st, stmt_bind(st, "si", run_id, (int64_t)LEDGER_EVENTS_KEPT));
	}
	return r;
}

int
ledger_event_text(struct store *s, const char *run_id, int64_t at, const char *event,
    const char *name, const char *value)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	size_t n = utf8_cut(value, strlen(value), DETAIL_TEXT_MAX);

	/* Escaping may make it longer than a detail can be: then less of it. */
	do {
		buf_reset(&b);
		buf_printf(&b, "{\"%s\":", name);
		json_text_string(&b, value, n);
		buf_add_byte(&b, '}');
		n = utf8_cut(value, n, n / 2);
	} while (b.len > 1024);
	if (buf_cstr(&b) == NULL)
		return E_NOMEM;
	return ledger_event_add(s, run_id, at, event, (const char *)b.data);
}

int
ledger_event_int(struct store *s, const char *run_id, int64_t at, const char *event,
    const char *name, int64_t value)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;

	buf_printf(&b, "{\"%s\":%lld}", name, (long long)value);
	if (buf_cstr(&b) == NULL)
		return E_NOMEM;
	return ledger_event_add(s, run_id, at, event, (const char *)b.data);
}

int
ledger_events(struct store *s, struct arena *a, const char *run_id, struct ledger_event **ret,
    size_t *ret_n)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_EVENT_LIST);
	struct ledger_event *rows = arena_calloc(a, LEDGER_EVENTS_KEPT, sizeof(*rows));
	int err = 0, r = stmt_bind(st, "s", run_id);
	size_t n = 0;

	if (rows == NULL)
		return E_NOMEM;
	while (r == 0 && n < LEDGER_EVENTS_KEPT && (r = stmt_step(st)) == 1) {
		rows[n++] = (struct ledger_event) { .seq = stmt_int(st, 0),
			.at = stmt_int(st, 1),
			.event = stmt_text_dup(st, 2, a, &err),
			.detail = stmt_text_dup(st, 3, a, &err) };
		r = err;
	}
	*ret = rows;
	*ret_n = n;
	return r;
}
