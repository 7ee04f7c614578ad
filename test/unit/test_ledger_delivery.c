/* Every row of the table that decides what a delivery comes to; how long it is kept. */
#include <string.h>

#include "test/support/starve.h"
#include "test/support/unit.h"
#include "test/support/webhook_rig.h"

/* A project with a webhook of github. */
static struct ledger_webhook
begin(struct ledger_rig *rig)
{
	rig_project(rig, 1);
	return rig_webhook(rig, 1, "github", 1);
}

/* Fills the queue of the project, in which ${have} wait, with manual runs 101, 102... */
static void
fill(struct ledger_rig *rig, int project, int have)
{
	for (int n = 101; n < 101 + LEDGER_QUEUE_MAX - have; n++)
		rig_accept(rig, project, n);
}

static struct ledger_delivery
kept(const struct ledger_rig *rig, const struct ledger_offer *o)
{
	struct ledger_at at = rig_at(rig);
	const struct ledger_delivery *d = &o->delivery;
	struct ledger_delivery row;

	assert_int_equal(
	    ledger_delivery_get(&at, d->project_id, d->provider, d->delivery_id, &row), 0);
	return row;
}

static void
same_text(const char *a, const char *b)
{
	if (a == NULL || b == NULL)
		assert_ptr_equal(a, b);
	else
		assert_string_equal(a, b);
}

/* All that the payload says is in the row. */
static void
has_payload(const struct ledger_delivery *row, const struct ledger_delivery *d)
{
	assert_string_equal(row->project_id, d->project_id);
	assert_string_equal(row->provider, d->provider);
	assert_string_equal(row->delivery_id, d->delivery_id);
	assert_string_equal(row->event_kind, d->event_kind);
	assert_string_equal(row->event_name, d->event_name);
	assert_string_equal(row->repository_url, d->repository_url);
	same_text(row->ref, d->ref);
	same_text(row->branch, d->branch);
	same_text(row->commit_sha, d->commit_sha);
	same_text(row->before_sha, d->before_sha);
	assert_string_equal(row->body_sha256, d->body_sha256);
	assert_int_equal(row->body_bytes, d->body_bytes);
}

/* ---- the rows of the table ---- */

/* Row 8. */
static void
a_push_makes_a_run_and_a_row_at_once(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_webhook w = begin(rig);
	struct ledger_offer o = rig_push(rig, &w, 1, 1);
	struct ledger_recorded rec;
	struct ledger_delivery d;

	rig->now += 77;
	rec = rig_record(rig, &o);
	assert_int_equal(rec.kind, LEDGER_RECORD_ACCEPTED);
	assert_false(rec.again);
	assert_string_equal(rec.run.run_id, rig_run(rig, 1));
	assert_string_equal(rec.run.trigger_type, "webhook");
	assert_null(rec.run.triggered_by_user_id);
	assert_string_equal(rec.run.provider, "github");
	assert_string_equal(rec.run.delivery_id, "delivery-1");
	assert_string_equal(rec.run.branch, "main");
	assert_string_equal(rec.run.commit_sha, o.delivery.commit_sha);
	/* Where it is, and how it is built, is the project's, not the payload's. */
	assert_string_equal(rec.run.repo_url, "https://git.example/acme/app.git");
	assert_string_equal(rec.run.config_path, ".anvil.yml");
	assert_int_equal(rec.run.state, LEDGER_EXECUTABLE);
	assert_int_equal(rec.run.position, 1);
	assert_int_equal(rec.run.queued_at, rig->now);
	d = kept(rig, &o);
	has_payload(&d, &o.delivery);
	assert_string_equal(d.outcome, "accepted");
	assert_string_equal(d.reason, "run created");
	assert_string_equal(d.run_id, rig_run(rig, 1));
	assert_int_equal(d.received_at, rig->now);
	rig_sound(rig);
	/* The next one waits behind it, at its own commit. */
	o = rig_push(rig, &w, 2, 2);
	o.delivery.commit_sha = "fedcba9876543210";
	o.delivery.branch = "release/2";
	rec = rig_record(rig, &o);
	assert_int_equal(rec.run.state, LEDGER_PENDING);
	assert_string_equal(rec.run.commit_sha, "fedcba9876543210");
	assert_string_equal(rec.run.branch, "release/2");
	rig_sound(rig);
}

/* Row 1: before anything else, a rotation included. */
static void
the_same_request_again_is_accepted_again(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_webhook w = begin(rig);
	struct ledger_offer o = rig_push(rig, &w, 1, 1);
	struct ledger_recorded rec = rig_record(rig, &o);
	struct ledger_run first = rec.run;

	rig->now += 250;
	rec = rig_record(rig, &o);
	assert_int_equal(rec.kind, LEDGER_RECORD_ACCEPTED);
	assert_true(rec.again);
	assert_int_equal(rec.run.accept_seq, first.accept_seq);
	rig_unchanged(rig, &first);
	assert_int_equal(kept(rig, &o).received_at, first.queued_at);
	assert_int_equal(ledger_webhook_save(rig->s, &w, rig->now), 0);
	rec = rig_record(rig, &o);
	assert_true(rec.kind == LEDGER_RECORD_ACCEPTED && rec.again);
	assert_int_equal(ledger_webhook_remove(rig->s, w.project_id, w.provider, rig->now), 0);
	rec = rig_record(rig, &o);
	assert_true(rec.kind == LEDGER_RECORD_ACCEPTED && rec.again);
	/* The run has moved on meanwhile, and its row is as it is. */
	(void)rig_claim(rig, 1);
	(void)rig_settle(rig, 1, LEDGER_PASSED);
	rec = rig_record(rig, &o);
	assert_int_equal(rec.run.state, LEDGER_PASSED);
	assert_true(rig_has_deliveries(rig, 1));
	rig_sound(rig);
}

/* Row 2. */
static void
what_was_verified_against_another_webhook_is_stale(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_webhook w = begin(rig);
	struct ledger_offer push = rig_push(rig, &w, 1, 1), ping = rig_ping(rig, &w, 2), o;

#define IS_STALE(offer)                                                                 \
	do {                                                                            \
		assert_int_equal(rig_record(rig, &(offer)).kind, LEDGER_RECORD_STALE);  \
		assert_true(rig_has_deliveries(rig, 0));                                \
		assert_true(rig_holds(rig, "NOT EXISTS (SELECT 1 FROM project_runs)")); \
	} while (0)
	o = push;
	o.version--;
	IS_STALE(o);
	o = ping;
	o.version++;
	IS_STALE(o);
	o = push;
	o.webhook_id = rig_whk(rig, 2);
	IS_STALE(o);
	o = push; /* that webhook is another forge's */
	o.delivery.provider = "gitlab";
	IS_STALE(o);
	/* Disabled, although this very version. */
	w.enabled = 0;
	assert_int_equal(ledger_webhook_save(rig->s, &w, rig->now), 0);
	o = push;
	o.version = w.updated_at;
	IS_STALE(o);
	IS_STALE(push);
	/* Enabled again it is another version still. */
	w.enabled = 1;
	assert_int_equal(ledger_webhook_save(rig->s, &w, rig->now), 0);
	IS_STALE(push);
	o.version = w.updated_at;
	assert_int_equal(rig_record(rig, &o).kind, LEDGER_RECORD_ACCEPTED);
}

static void
a_webhook_that_is_gone_or_made_again_leaves_deliveries_stale(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_webhook w = begin(rig), other;
	struct ledger_offer push = rig_push(rig, &w, 1, 1), ping = rig_ping(rig, &w, 2);

	assert_int_equal(ledger_webhook_remove(rig->s, w.project_id, w.provider, rig->now), 0);
	IS_STALE(push);
	IS_STALE(ping);
	/* In the same millisecond, so that the version is the same. */
	other = rig_webhook(rig, 1, "github", 2);
	assert_int_equal(other.updated_at, w.updated_at);
	IS_STALE(push);
#undef IS_STALE
	push.webhook_id = other.webhook_id;
	assert_int_equal(rig_record(rig, &push).kind, LEDGER_RECORD_ACCEPTED);
}

/* Row 3, for each outcome that a row can have. */
static void
an_id_with_another_body_is_a_conflict_whatever_became_of_the_first(void **state)
{
	static const char *const outcomes[] = { "accepted", "ignored_ping", "ignored_event",
		"ignored_branch", "queue_full" };
	struct ledger_rig *rig = *state;
	struct ledger_webhook w = begin(rig);
	const char *before;

	for (int i = 0; i < (int)ARRAY_LEN(outcomes); i++) {
		struct ledger_offer o = rig_push(rig, &w, 10 + i, 10 + i), other;

		if (strcmp(outcomes[i], "queue_full") == 0)
			fill(rig, 1, 1);
		else
			o.delivery.outcome = outcomes[i];
		if (strcmp(outcomes[i], "queue_full") == 0)
			assert_int_equal(rig_record(rig, &o).kind, LEDGER_RECORD_QUEUE_FULL);
		else
			(void)rig_record(rig, &o);
		before = kept(rig, &o).outcome;
		assert_string_equal(before, outcomes[i]);
		rig->now += 1000;
		other = o;
		other.delivery.body_sha256 = rig_sha256(rig, 77);
		other.delivery.run_id = rig_run(rig, 50 + i);
		assert_int_equal(rig_record(rig, &other).kind, LEDGER_RECORD_CONFLICT);
		other.delivery.body_sha256 = o.delivery.body_sha256;
		other.delivery.body_bytes++;
		assert_int_equal(rig_record(rig, &other).kind, LEDGER_RECORD_CONFLICT);
		other = rig_ping(rig, &w, 10 + i);
		other.delivery.body_bytes = 0;
		assert_int_equal(rig_record(rig, &other).kind, LEDGER_RECORD_CONFLICT);
		/* Nothing of it is kept. */
		assert_string_equal(kept(rig, &o).outcome, before);
		assert_int_equal(kept(rig, &o).received_at, rig->now - 1000);
		assert_true(rig_has_deliveries(rig, i + 1));
	}
	rig_sound(rig);
}

/* Row 4. */
static void
a_decided_delivery_is_replayed_whatever_it_would_be_now(void **state)
{
	static const char *const outcomes[] = { "accepted", "ignored_ping", "ignored_event",
		"ignored_branch" };
	struct ledger_rig *rig = *state;
	struct ledger_webhook w = begin(rig);

	for (int i = 0; i < (int)ARRAY_LEN(outcomes); i++) {
		struct ledger_offer o = rig_push(rig, &w, i, 1 + i);
		struct ledger_recorded rec;
		struct ledger_delivery first;

		o.delivery.outcome = outcomes[i];
		rec = rig_record(rig, &o);
		assert_int_equal(
		    rec.kind, i == 0 ? LEDGER_RECORD_ACCEPTED : LEDGER_RECORD_RECORDED);
		first = kept(rig, &o);
		rig->now += 3600;
		for (size_t k = 0; k < ARRAY_LEN(outcomes); k++) {
			o.delivery.outcome = outcomes[k];
			o.delivery.run_id = rig_run(rig, 70);
			o.delivery.reason = "something else";
			o.delivery.event_name = "renamed";
			rec = rig_record(rig, &o);
			assert_int_equal(rec.kind, LEDGER_RECORD_REPLAYED);
			assert_string_equal(rec.outcome, outcomes[i]);
			same_text(rec.run_id, i == 0 ? rig_run(rig, 1) : NULL);
		}
		assert_string_equal(kept(rig, &o).reason, first.reason);
		assert_string_equal(kept(rig, &o).event_name, first.event_name);
		assert_int_equal(kept(rig, &o).received_at, first.received_at);
	}
	assert_true(rig_holds(rig, "(SELECT count(*) FROM project_runs) = 1"));
	rig_sound(rig);
}

/* Rows 9, 6, 7 and 5, in the order in which a delivery meets them. */
static void
a_delivery_that_met_a_full_queue_is_accepted_when_there_is_room(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_webhook w = begin(rig);
	struct ledger_offer o = rig_push(rig, &w, 1, 1), again, other;
	struct ledger_recorded rec;
	struct ledger_delivery d;

	fill(rig, 1, 0);
	assert_int_equal(rig_record(rig, &o).kind, LEDGER_RECORD_QUEUE_FULL); /* 9 */
	d = kept(rig, &o);
	has_payload(&d, &o.delivery);
	assert_string_equal(d.outcome, "queue_full");
	assert_string_equal(d.reason, "20 runs are queued already");
	assert_null(d.run_id);
	assert_int_equal(d.received_at, rig->now);

	rig->now += 60000;
	again = rig_push(rig, &w, 1, 2);
	again.delivery.event_name = "Push again";
	again.delivery.before_sha = NULL;
	assert_int_equal(rig_record(rig, &again).kind, LEDGER_RECORD_QUEUE_FULL); /* 6 */
	d = kept(rig, &again);
	has_payload(&d, &again.delivery);
	assert_string_equal(d.outcome, "queue_full");
	assert_string_equal(d.reason, "20 runs are queued already");
	assert_int_equal(d.received_at, rig->now);

	rig->now += 60000;
	other = again;
	other.delivery.outcome = "ignored_branch";
	other.delivery.reason = "another branch";
	other.delivery.branch = "topic";
	assert_int_equal(rig_record(rig, &other).kind, LEDGER_RECORD_QUEUE_FULL); /* 7 */
	d = kept(rig, &again);
	has_payload(&d, &again.delivery);
	assert_int_equal(d.received_at, rig->now - 60000);

	rig_cancel(rig, 105);
	assert_int_equal(rig_record(rig, &other).kind, LEDGER_RECORD_QUEUE_FULL); /* 7, too */
	again.delivery.run_id = rig_run(rig, 3);
	rec = rig_record(rig, &again); /* 5 */
	assert_int_equal(rec.kind, LEDGER_RECORD_ACCEPTED);
	assert_false(rec.again);
	assert_string_equal(rec.run.run_id, rig_run(rig, 3));
	assert_int_equal(rec.run.queued_at, rig->now);
	d = kept(rig, &again);
	has_payload(&d, &again.delivery);
	assert_string_equal(d.outcome, "accepted");
	assert_string_equal(d.reason, "run created");
	assert_string_equal(d.run_id, rig_run(rig, 3));
	assert_int_equal(d.received_at, rig->now);
	assert_true(rig_has_deliveries(rig, 1));
	rig_sound(rig);
	/* Decided now. */
	again.delivery.run_id = rig_run(rig, 4);
	assert_int_equal(rig_record(rig, &again).kind, LEDGER_RECORD_REPLAYED);
	assert_int_equal(rig_record(rig, &other).kind, LEDGER_RECORD_REPLAYED);
}

/* Row 10. */
static void
what_starts_no_run_is_recorded(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_webhook w = begin(rig);
	struct ledger_offer o = rig_ping(rig, &w, 1);
	struct ledger_recorded rec;
	struct ledger_delivery d;

	fill(rig, 1, 0); /* which matters only to what would start one */
	rec = rig_record(rig, &o);
	assert_int_equal(rec.kind, LEDGER_RECORD_RECORDED);
	assert_string_equal(rec.outcome, "ignored_ping");
	d = kept(rig, &o);
	has_payload(&d, &o.delivery);
	assert_string_equal(d.reason, "ping");
	assert_null(d.run_id);
	assert_true(rig_holds(rig, "(SELECT count(*) FROM project_runs) = 20"));
	assert_true(
	    rig_holds(rig, "(SELECT next_seq FROM project_state) = %d", LEDGER_QUEUE_MAX + 1));
}

static void
equal_bodies_under_other_ids_or_forges_are_other_deliveries(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_webhook w = begin(rig), lab = rig_webhook(rig, 1, "gitlab", 2), far;
	struct ledger_offer o = rig_push(rig, &w, 1, 1);

	rig_project(rig, 2);
	far = rig_webhook(rig, 2, "github", 3);
	assert_int_equal(rig_record(rig, &o).kind, LEDGER_RECORD_ACCEPTED);
	o.delivery.delivery_id = "Delivery-1"; /* ids tell case apart */
	o.delivery.run_id = rig_run(rig, 2);
	assert_int_equal(rig_record(rig, &o).kind, LEDGER_RECORD_ACCEPTED);
	o = rig_push(rig, &lab, 1, 3);
	assert_int_equal(rig_record(rig, &o).kind, LEDGER_RECORD_ACCEPTED);
	o = rig_push(rig, &far, 1, 4);
	assert_int_equal(rig_record(rig, &o).kind, LEDGER_RECORD_ACCEPTED);
	assert_true(rig_has_deliveries(rig, 4));
	rig_sound(rig);
}

static void
a_project_that_is_not_live_records_nothing(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_webhook w = begin(rig);
	struct ledger_offer o = rig_push(rig, &w, 1, 1);
	struct ledger_at at = rig_at(rig);
	struct ledger_move move = { .to = 1 };
	struct ledger_recorded rec;

	(void)snprintf(move.project_id, sizeof(move.project_id), "%s", rig_prj(rig, 1));
	(void)snprintf(move.move_id, sizeof(move.move_id), "%s", rig_hex(rig, 1));
	assert_int_equal(
	    ledger_freeze(rig->s, move.project_id, move.move_id, move.to, rig->now), 0);
	assert_int_equal(ledger_record(&at, &o, &rec), E_NOENT);
	assert_int_equal(ledger_thaw(rig->s, &move, rig->now), 0);
	assert_int_equal(ledger_project_begin_removal(rig->s, move.project_id, rig->now), 0);
	assert_int_equal(ledger_record(&at, &o, &rec), E_NOENT);
	o.delivery.project_id = rig_prj(rig, 9);
	assert_int_equal(ledger_record(&at, &o, &rec), E_NOENT);
	assert_true(rig_has_deliveries(rig, 0));
}

static void
a_candidate_that_cannot_be_is_invalid(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_webhook w = begin(rig);
	struct ledger_at at = rig_at(rig);
	struct ledger_recorded rec;
	struct ledger_offer o;

#define INVALID(member, value)                                           \
	do {                                                             \
		o = rig_push(rig, &w, 1, 1);                             \
		o.delivery.member = value;                               \
		assert_int_equal(ledger_record(&at, &o, &rec), E_INVAL); \
	} while (0)
	INVALID(outcome, "queue_full");
	INVALID(branch, NULL);
	INVALID(commit_sha, NULL);
	INVALID(event_kind, "other");
	INVALID(body_sha256, "00ff");
	/* A run id that stands for something else. */
	rig_accept(rig, 1, 7);
	INVALID(run_id, rig_run(rig, 7));
#undef INVALID
	assert_true(rig_has_deliveries(rig, 0));
}

/* ---- retention ---- */

static void
after_seventy_two_hours_an_id_is_new_again(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_webhook w = begin(rig);
	struct ledger_offer o = rig_push(rig, &w, 1, 1), other;
	struct ledger_at at;
	struct ledger_delivery d;

	(void)rig_record(rig, &o);
	rig->now += 72 * HOUR_MS - 1;
	o.delivery.run_id = rig_run(rig, 2);
	assert_int_equal(rig_record(rig, &o).kind, LEDGER_RECORD_REPLAYED);
	other = o;
	other.delivery.body_bytes = 1;
	assert_int_equal(rig_record(rig, &other).kind, LEDGER_RECORD_CONFLICT);
	rig->now += 1;
	at = rig_at(rig);
	/* Not shown any more, and a read removes nothing. */
	assert_int_equal(
	    ledger_delivery_get(&at, w.project_id, w.provider, "delivery-1", &d), E_NOENT);
	assert_true(rig_has_deliveries(rig, 1));
	assert_int_equal(rig_record(rig, &other).kind, LEDGER_RECORD_ACCEPTED);
	assert_int_equal(kept(rig, &other).body_bytes, 1);
	assert_true(rig_has_deliveries(rig, 1));
	/* The first run is still there, the id has another. */
	assert_string_equal(rig_row(rig, 1).delivery_id, "delivery-1");
	rig_sound(rig);
}

static void
old_rows_go_with_every_write_a_hundred_at_a_time(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_webhook w = begin(rig);
	struct ledger_offer o;
	int64_t n;

	for (int i = 1; i <= 340; i++) {
		o = rig_ping(rig, &w, i);
		(void)rig_record(rig, &o);
		rig->now++;
	}
	rig->now += 72 * HOUR_MS;
	/* A stale one and one more of those that are old: the newest of them is no row. */
	o.version--;
	assert_int_equal(rig_record(rig, &o).kind, LEDGER_RECORD_STALE);
	assert_true(rig_has_deliveries(rig, 239));
	o = rig_ping(rig, &w, 339);
	o.delivery.body_bytes = 5;
	assert_int_equal(rig_record(rig, &o).kind, LEDGER_RECORD_RECORDED);
	assert_true(rig_has_deliveries(rig, 139));
	/* Writes of a webhook. */
	assert_int_equal(ledger_webhook_save(rig->s, &w, rig->now), 0);
	assert_true(rig_has_deliveries(rig, 39));
	assert_int_equal(ledger_prune_deliveries(rig->s, rig->now, &n), 0);
	assert_int_equal(n, 38);
	assert_int_equal(ledger_prune_deliveries(rig->s, rig->now, &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(kept(rig, &o).body_bytes, 5);
}

/* ---- lists ---- */

static struct ledger_delivery *
list_of(const struct ledger_rig *rig, const struct ledger_at *at, int project,
    const char *provider, size_t limit, size_t *ret_n)
{
	const struct ledger_delivery_query q = {
		.project_id = rig_prj(rig, project), .provider = provider, .limit = limit
	};
	struct ledger_delivery_page page;

	assert_int_equal(ledger_deliveries(at, &q, &page), 0);
	*ret_n = page.n;
	return page.rows;
}

static void
lists_are_newest_first_and_bounded(void **state)
{
	static const char *const providers[] = { "github", "gitlab", "gitea" };
	struct ledger_rig *rig = *state;
	struct ledger_webhook w[3];
	struct ledger_delivery *list;
	struct ledger_at at;
	size_t n;

	rig_project(rig, 1);
	rig_project(rig, 2);
	w[0] = rig_webhook(rig, 2, "github", 9);
	for (int i = 0; i < 40; i++) {
		struct ledger_offer o = rig_ping(rig, &w[0], 1000 + i);

		(void)rig_record(rig, &o); /* of another project */
	}
	for (int i = 0; i < 3; i++)
		w[i] = rig_webhook(rig, 1, providers[i], 1 + i);
	for (int i = 0; i < 30; i++) {
		struct ledger_offer o = rig_ping(rig, &w[i % 3], i);

		(void)rig_record(rig, &o);
		rig->now += i % 2; /* some in one millisecond */
	}
	at = rig_at(rig);
	list = list_of(rig, &at, 1, "gitlab", 4, &n);
	assert_int_equal(n, 4);
	for (size_t i = 0; i < n; i++)
		assert_string_equal(
		    list[i].delivery_id, arena_format(rig->a, "delivery-%d", 28 - 3 * (int)i));
	list = list_of(rig, &at, 1, NULL, 500, &n);
	assert_int_equal(n, 30);
	for (size_t i = 0; i < n; i++)
		assert_string_equal(
		    list[i].delivery_id, arena_format(rig->a, "delivery-%d", 29 - (int)i));
	list = list_of(rig, &at, 1, NULL, 7, &n);
	assert_int_equal(n, 7);
	list = list_of(rig, &at, 3, NULL, 7, &n);
	assert_int_equal(n, 0);
	at.now_ms += 72 * HOUR_MS - 5;
	list = list_of(rig, &at, 1, NULL, 500, &n);
	assert_int_equal(n, 8);
	list = list_of(rig, &at, 1, "gitea", 500, &n);
	assert_int_equal(n, 3);
}

/* ${numbers}: of the newest, of the oldest, and how far they are apart. */
static void
expect_pages(const struct ledger_rig *rig, const struct ledger_at *at, const char *provider,
    size_t limit, const int numbers[3])
{
	struct ledger_delivery_query q = {
		.project_id = rig_prj(rig, 1), .provider = provider, .limit = limit
	};
	int next = numbers[0];

	do {
		struct ledger_delivery_page page;

		assert_int_equal(ledger_deliveries(at, &q, &page), 0);
		assert_in_range(page.n, 1, limit);
		for (size_t i = 0; i < page.n; i++, next -= numbers[2])
			assert_string_equal(page.rows[i].delivery_id,
			    arena_format(rig->a, "delivery-%d", next));
		q.cursor = page.next;
	} while (q.cursor != NULL);
	assert_int_equal(next, numbers[1] - numbers[2]);
}

static void
pages_show_each_delivery_once_however_many_are_of_one_moment(void **state)
{
	static const char *const providers[] = { "github", "gitlab", "gitea" };
	static const char *const bad[] = { "", ".", "1", "1.", ".1", "1.2x", "1.2.3", "x.1" };
	static const int all[] = { 19, 0, 1 }, some[] = { 19, 1, 3 };
	struct ledger_rig *rig = *state;
	struct ledger_delivery_query q = { .project_id = rig_prj(rig, 1), .limit = 5 };
	struct ledger_delivery_page page;
	struct ledger_webhook w[3];
	struct ledger_at at;

	rig_project(rig, 1);
	for (int i = 0; i < 3; i++)
		w[i] = rig_webhook(rig, 1, providers[i], 1 + i);
	for (int i = 0; i < 20; i++) {
		struct ledger_offer o = rig_ping(rig, &w[i % 3], i);

		(void)rig_record(rig, &o);
		rig->now += i % 8 == 0;
	}
	at = rig_at(rig);
	for (size_t limit = 1; limit < 23; limit++) {
		expect_pages(rig, &at, NULL, limit, all);
		expect_pages(rig, &at, "gitlab", limit, some);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		q.cursor = bad[i];
		assert_int_equal(ledger_deliveries(&at, &q, &page), E_INVAL);
	}
}

/* ---- invariants, removal ---- */

static void
broken_invariants_of_deliveries_are_told(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_webhook w = begin(rig);
	struct ledger_offer o = rig_push(rig, &w, 1, 1);
	const char *broken;

	(void)rig_record(rig, &o);
	o = rig_push(rig, &w, 2, 2);
	(void)rig_record(rig, &o);
	rig_sound(rig);
	assert_int_equal(rig_exec(rig, "SAVEPOINT hand"), 0);
	assert_int_equal(
	    rig_exec(rig, "DELETE FROM project_runs WHERE run_id = '%s'", rig_run(rig, 2)), 0);
	assert_int_equal(ledger_check(rig->s, rig->a, &broken), 0);
	assert_string_equal(broken, "delivery-2 was accepted and its run is not there");
	assert_int_equal(rig_exec(rig, "ROLLBACK TO hand"), 0);
	rig_sound(rig);
	/* A second run of one delivery. */
	assert_int_equal(
	    rig_exec(rig,
		"UPDATE project_state SET next_seq = 9;"
		"INSERT INTO project_runs (run_id, project_id, accept_seq, position,"
		" status, public_status, dispatch_status, dispatch_attempts,"
		" trigger_type, provider, delivery_id, branch, repo_url, config_path,"
		" commit_sha, queued_at, lease_epoch, index_sync, index_rev,"
		" index_since, index_attempt) SELECT '%s', project_id, 8, 8, 'pending',"
		" 'queued', 'blocked', 0, trigger_type, provider, delivery_id, branch,"
		" repo_url, config_path, commit_sha, queued_at + 5, 0, 'needs_create',"
		" 1, 1, 0 FROM project_runs WHERE delivery_id = 'delivery-2'",
		rig_run(rig, 3)),
	    0);
	assert_int_equal(ledger_check(rig->s, rig->a, &broken), 0);
	assert_non_null(strstr(broken, rig_run(rig, 3)));
}

static void
a_project_takes_its_deliveries_along(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_webhook w = begin(rig);
	struct ledger_offer o = rig_push(rig, &w, 1, 1);

	rig_project(rig, 2);
	(void)rig_record(rig, &o);
	w = rig_webhook(rig, 2, "github", 2);
	o = rig_push(rig, &w, 1, 2);
	(void)rig_record(rig, &o);
	assert_int_equal(ledger_project_delete(rig->s, rig_prj(rig, 1)), 0);
	assert_true(rig_has_deliveries(rig, 1));
	assert_true(rig_holds(rig, "(SELECT count(*) FROM project_webhooks) = 1"));
	assert_string_equal(kept(rig, &o).run_id, rig_run(rig, 2));
}

/* ---- memory ---- */

struct hunger {
	struct ledger_rig *rig;
	struct ledger_offer offer;
};

static int
hungry(void *arg)
{
	const struct hunger *h = arg;
	struct ledger_rig rig = *h->rig;
	struct ledger_recorded rec;
	const struct ledger_delivery_query q = { .project_id = h->offer.delivery.project_id,
		.limit = 20 };
	struct ledger_delivery_page page;
	struct ledger_delivery d;
	struct ledger_at at;
	int r;

	rig.a = arena_new();
	if (rig.a == NULL)
		return E_NOMEM;
	at = rig_at(&rig);
	assert_int_equal(store_exec(rig.s, "SAVEPOINT hungry"), 0);
	r = ledger_record(&at, &h->offer, &rec);
	if (r == 0)
		r = ledger_record(&at, &h->offer, &rec);
	if (r == 0)
		r = ledger_deliveries(&at, &q, &page);
	if (r == 0)
		r = ledger_delivery_get(&at, h->offer.delivery.project_id,
		    h->offer.delivery.provider, h->offer.delivery.delivery_id, &d);
	assert_int_equal(store_exec(rig.s, "ROLLBACK TO hungry"), 0);
	assert_int_equal(store_exec(rig.s, "RELEASE hungry"), 0);
	(void)arena_free(rig.a);
	return r;
}

static void
each_survives_every_failed_allocation(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_webhook w = begin(rig);
	struct hunger h = { .rig = rig, .offer = rig_push(rig, &w, 1, 1) };

	for (int i = 2; i < 40; i++) {
		struct ledger_offer o = rig_ping(rig, &w, i);

		(void)rig_record(rig, &o);
	}
	assert_true(starve(hungry, &h) >= 3);
	h.offer = rig_ping(rig, &w, 1);
	assert_true(starve(hungry, &h) >= 3);
	h.offer = rig_ping(rig, &w, 2); /* replayed */
	assert_true(starve(hungry, &h) >= 2);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_push_makes_a_run_and_a_row_at_once),
		TEST(the_same_request_again_is_accepted_again),
		TEST(what_was_verified_against_another_webhook_is_stale),
		TEST(a_webhook_that_is_gone_or_made_again_leaves_deliveries_stale),
		TEST(an_id_with_another_body_is_a_conflict_whatever_became_of_the_first),
		TEST(a_decided_delivery_is_replayed_whatever_it_would_be_now),
		TEST(a_delivery_that_met_a_full_queue_is_accepted_when_there_is_room),
		TEST(what_starts_no_run_is_recorded),
		TEST(equal_bodies_under_other_ids_or_forges_are_other_deliveries),
		TEST(a_project_that_is_not_live_records_nothing),
		TEST(a_candidate_that_cannot_be_is_invalid),
		TEST(after_seventy_two_hours_an_id_is_new_again),
		TEST(old_rows_go_with_every_write_a_hundred_at_a_time),
		TEST(lists_are_newest_first_and_bounded),
		TEST(pages_show_each_delivery_once_however_many_are_of_one_moment),
		TEST(broken_invariants_of_deliveries_are_told),
		TEST(a_project_takes_its_deliveries_along),
		TEST(each_survives_every_failed_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
