#include "lib/ledger/delivery.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/enc.h"
#include "lib/base/err.h"
#include "lib/ledger/inside.h"

#define DIGEST_BYTES 32

/* ---- looking ---- */

/* What a decision rests on, as of the beginning of its transaction. */
struct look {
	int live;
	int current; /* the webhook is enabled, and the one that was verified against */
	int known;   /* there is a row                                                */
	int expired; /* ... which is kept no longer                                   */
	int same;    /* ... and has the same body                                     */
	const char *outcome, *run_id;
};

static int
is_outcome(const char *outcome, const char *word)
{
	return outcome != NULL && strcmp(outcome, word) == 0;
}

static int
same_body(struct stmt *st, int col, const uint8_t digest[DIGEST_BYTES], int64_t bytes)
{
	size_t n;
	const void *p = stmt_blob(st, col, &n);

	return n == DIGEST_BYTES && memcmp(p, digest, n) == 0 && stmt_int(st, col + 1) == bytes;
}

static int
look(const struct ledger_at *at, const struct ledger_offer *o,
    const uint8_t digest[DIGEST_BYTES], struct look *ret)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(at->store, LG_RECORD_LOOK);
	const struct ledger_delivery *d = &o->delivery;
	int err = 0;
	int r = stmt_first(
	    st, stmt_bind(st, "sss", d->project_id, d->provider, d->delivery_id));

	if (r < 0)
		return r;
	*ret = (struct look) { .live = strcmp(stmt_text(st, 0), "live") == 0,
		.current = !stmt_is_null(st, 1) &&
		    strcmp(stmt_text(st, 1), o->webhook_id) == 0 && stmt_int(st, 2) != 0 &&
		    stmt_int(st, 3) == o->version,
		.known = !stmt_is_null(st, 4),
		.outcome = stmt_text_dup(st, 4, at->arena, &err),
		.run_id = stmt_text_dup(st, 5, at->arena, &err) };
	if (ret->known) {
		ret->same = same_body(st, 6, digest, d->body_bytes);
		ret->expired = stmt_int(st, 8) <= at->now_ms - LEDGER_DELIVERY_KEPT_MS;
	}
	return err;
}

/* ---- writing ---- */

int
ledger_prune_deliveries(struct store *s, int64_t now_ms, int64_t *ret_n)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_DELIVERY_PRUNE);
	int r = ledger_run_stmt(st,
	    stmt_bind(st, "ii", now_ms - LEDGER_DELIVERY_KEPT_MS,
		(int64_t)LEDGER_DELIVERY_PRUNE_ROWS));

	if (ret_n != NULL)
		*ret_n = r == 0 ? store_changes(s) : 0;
	return r;
}

/* Makes room for a row of the same key, and for others. */
static int
forget_old(const struct ledger_at *at, const struct ledger_delivery *d, struct look *l)
{
	int r = 0;

	if (l->expired) {
		CLEANUP(stmt_resetp)
		struct stmt *st = store_stmt(at->store, LG_DELIVERY_REMOVE);

		r = ledger_run_stmt(
		    st, stmt_bind(st, "sss", d->project_id, d->provider, d->delivery_id));
		l->known = 0;
	}
	return r < 0 ? r : ledger_prune_deliveries(at->store, at->now_ms, NULL);
}

static int
add(const struct ledger_at *at, const struct ledger_delivery *d,
    const uint8_t digest[DIGEST_BYTES])
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(at->store, LG_DELIVERY_ADD);
	const char *run_id = is_outcome(d->outcome, LEDGER_OUTCOME_ACCEPTED) ? d->run_id : NULL;

	return ledger_run_stmt(st,
	    stmt_bind(st, "ssssssssssssbisi", d->project_id, d->provider, d->delivery_id,
		d->event_kind, d->event_name, d->outcome, d->reason, d->repository_url, d->ref,
		d->branch, d->commit_sha, d->before_sha, digest, (size_t)DIGEST_BYTES,
		d->body_bytes, run_id, at->now_ms));
}

/* A delivery that met a full queue has come again: its row takes what it says now.  Reason
 * NULL stays. */
static int
update(const struct ledger_at *at, const struct ledger_delivery *d)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(at->store, LG_DELIVERY_AGAIN);

	return ledger_run_stmt(st,
	    stmt_bind(st, "sssssssssssssi", d->project_id, d->provider, d->delivery_id,
		d->event_kind, d->event_name, d->outcome, d->reason, d->repository_url, d->ref,
		d->branch, d->commit_sha, d->before_sha, d->run_id, at->now_ms));
}

/* ---- deciding ---- */

/* The queue decides; the delivery's row and the run's are of one transaction. */
static int
enqueue(const struct ledger_at *at, const struct ledger_delivery *d, const struct look *l,
    const uint8_t digest[DIGEST_BYTES], struct ledger_recorded *ret)
{
	const struct ledger_accept q = { .project_id = d->project_id,
		.run_id = d->run_id,
		.branch = d->branch,
		.provider = d->provider,
		.delivery_id = d->delivery_id,
		.commit_sha = d->commit_sha };
	struct ledger_delivery row = *d;
	enum ledger_accepted kind;
	int r = ledger_accept_run(at->store, at->arena, &q, at->now_ms, &kind, &ret->run);

	if (r < 0 || kind == LEDGER_ACCEPT_CONFLICT)
		return r < 0 ? r : E_INVAL;
	ret->kind = LEDGER_RECORD_ACCEPTED;
	if (kind == LEDGER_QUEUE_FULL) {
		ret->kind = LEDGER_RECORD_QUEUE_FULL;
		row.outcome = LEDGER_OUTCOME_QUEUE_FULL;
		row.reason = l->known ? NULL : "20 runs are queued already";
	}
	return l->known ? update(at, &row) : add(at, &row, digest);
}

/* An earlier try of the same request got through, and its answer was lost. */
static int
accepted_before(const struct ledger_at *at, const char *run_id, const struct look *l,
    struct ledger_run *ret)
{
	if (!l->known || l->expired || l->run_id == NULL || strcmp(l->run_id, run_id) != 0)
		return E_NOENT;
	return ledger_run_get(at->store, at->arena, run_id, ret);
}

static int
is_acceptable(const struct ledger_delivery *d)
{
	return strcmp(d->event_kind, "push") == 0 && d->branch != NULL && d->commit_sha != NULL;
}

/* Rows 3 to 10: the webhook is what it was verified against. */
static int
decide(const struct ledger_at *at, const struct ledger_delivery *d, const struct look *l,
    const uint8_t digest[DIGEST_BYTES], struct ledger_recorded *ret)
{
	int accept = is_outcome(d->outcome, LEDGER_OUTCOME_ACCEPTED);

	if (l->known && !l->same) {
		ret->kind = LEDGER_RECORD_CONFLICT;
		return 0;
	}
	if (l->known && !is_outcome(l->outcome, LEDGER_OUTCOME_QUEUE_FULL)) {
		ret->kind = LEDGER_RECORD_REPLAYED;
		ret->outcome = l->outcome;
		ret->run_id = l->run_id;
		return 0;
	}
	if (accept)
		return enqueue(at, d, l, digest, ret);
	if (l->known) {
		ret->kind = LEDGER_RECORD_QUEUE_FULL;
		return 0;
	}
	ret->kind = LEDGER_RECORD_RECORDED;
	ret->outcome = d->outcome;
	return add(at, d, digest);
}

int
ledger_record(
    const struct ledger_at *at, const struct ledger_offer *o, struct ledger_recorded *ret)
{
	const struct ledger_delivery *d = &o->delivery;
	uint8_t digest[DIGEST_BYTES];
	struct look l;
	int r;

	if (hex_decode(d->body_sha256, strlen(d->body_sha256), digest, sizeof(digest)) < 0 ||
	    is_outcome(d->outcome, LEDGER_OUTCOME_QUEUE_FULL) ||
	    (is_outcome(d->outcome, LEDGER_OUTCOME_ACCEPTED) && !is_acceptable(d)))
		return E_INVAL;
	r = look(at, o, digest, &l);
	if (r < 0 || !l.live)
		return r < 0 ? r : E_NOENT;
	*ret = (struct ledger_recorded) { .kind = LEDGER_RECORD_ACCEPTED, .again = 1 };
	r = accepted_before(at, d->run_id, &l, &ret->run);
	if (r != E_NOENT)
		return r;
	ret->again = 0;
	r = forget_old(at, d, &l);
	if (r < 0)
		return r;
	if (!l.current) {
		ret->kind = LEDGER_RECORD_STALE;
		return 0;
	}
	return decide(at, d, &l, digest, ret);
}

/* ---- reading ---- */

/* Columns in the order of LEDGER_DELIVERY_COLUMNS. */
static int
delivery_read(struct stmt *st, struct arena *a, void *row)
{
	struct ledger_delivery *d = row;
	int err = 0;

	*d = (struct ledger_delivery) { .project_id = stmt_text_dup(st, 0, a, &err),
		.provider = stmt_text_dup(st, 1, a, &err),
		.delivery_id = stmt_text_dup(st, 2, a, &err),
		.event_kind = stmt_text_dup(st, 3, a, &err),
		.event_name = stmt_text_dup(st, 4, a, &err),
		.outcome = stmt_text_dup(st, 5, a, &err),
		.reason = stmt_text_dup(st, 6, a, &err),
		.repository_url = stmt_text_dup(st, 7, a, &err),
		.ref = stmt_text_dup(st, 8, a, &err),
		.branch = stmt_text_dup(st, 9, a, &err),
		.commit_sha = stmt_text_dup(st, 10, a, &err),
		.before_sha = stmt_text_dup(st, 11, a, &err),
		.body_sha256 = stmt_text_dup(st, 12, a, &err),
		.body_bytes = stmt_int(st, 13),
		.run_id = stmt_text_dup(st, 14, a, &err),
		.received_at = stmt_int(st, 15),
		.row = stmt_int(st, 16) };
	return err;
}

int
ledger_delivery_get(const struct ledger_at *at, const char *project_id, const char *provider,
    const char *delivery_id, struct ledger_delivery *ret)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(at->store, LG_DELIVERY_GET);
	int r = stmt_first(st,
	    stmt_bind(st, "sssi", project_id, provider, delivery_id,
		at->now_ms - LEDGER_DELIVERY_KEPT_MS));

	return r < 0 ? r : delivery_read(st, at->arena, ret);
}

/* A cursor is the time and the row of the last one that was listed, with a dot between. */
static int
cursor_parse(const char *cursor, int64_t *ret_at, int64_t *ret_row)
{
	const char *row;
	char *end;

	*ret_at = *ret_row = INT64_MAX;
	if (cursor == NULL)
		return 0;
	*ret_at = strtoll(cursor, &end, 10);
	if (end == cursor || *end != '.')
		return E_INVAL;
	row = end + 1;
	*ret_row = strtoll(row, &end, 10);
	return end != row && *end == '\0' ? 0 : E_INVAL;
}

/* One more than asked for tells that there is another page. */
static int
list(const struct ledger_at *at, const struct ledger_delivery_query *q,
    struct ledger_delivery_page *ret)
{
	unsigned which = q->provider != NULL ? LG_DELIVERY_LIST : LG_DELIVERY_LIST_ALL;
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(at->store, which);
	int64_t kept = at->now_ms - LEDGER_DELIVERY_KEPT_MS, limit = (int64_t)q->limit + 1;
	int64_t before, row;
	void *rows;
	int r = cursor_parse(q->cursor, &before, &row);

	if (r < 0)
		return r;
	r = q->provider != NULL
	    ? stmt_bind(st, "siiiis", q->project_id, kept, before, row, limit, q->provider)
	    : stmt_bind(st, "siiii", q->project_id, kept, before, row, limit);
	r = stmt_rows(st, r, at->arena, delivery_read, sizeof(*ret->rows), &rows, &ret->n);
	if (r == 0)
		ret->rows = rows;
	return r;
}

int
ledger_deliveries(const struct ledger_at *at, const struct ledger_delivery_query *q,
    struct ledger_delivery_page *ret)
{
	struct ledger_delivery_page page = { .next = NULL };
	int r = list(at, q, &page);

	if (r == 0 && q->limit > 0 && page.n > q->limit) {
		const struct ledger_delivery *last = &page.rows[q->limit - 1];

		page.n = q->limit;
		page.next = arena_format(
		    at->arena, "%lld.%lld", (long long)last->received_at, (long long)last->row);
		r = page.next == NULL ? E_NOMEM : 0;
	}
	if (r == 0)
		*ret = page;
	return r;
}
