#include "test/support/move_rig.h"

#include "lib/base/mem.h"
#include "lib/wire/wire.h"
#include "test/support/unit.h"

int
pair_setup(void **state)
{
	struct move_pair *pair = mem_calloc(1, sizeof(*pair));
	void *rig;

	assert_int_equal(rig_setup(&rig), 0);
	pair->from = rig;
	assert_int_equal(rig_setup(&rig), 0);
	pair->to = rig;
	*state = pair;
	return 0;
}

static void
forget_parts(struct move_pair *pair)
{
	for (int64_t i = 0; i < pair->nparts; i++)
		json_decref(pair->parts[i]);
	pair->nparts = 0;
}

int
pair_teardown(void **state)
{
	struct move_pair *pair = *state;
	void *from = pair->from, *to = pair->to;

	forget_parts(pair);
	(void)rig_teardown(&from);
	(void)rig_teardown(&to);
	free(pair);
	return 0;
}

const char *
pair_move_id(const struct move_pair *pair, int n)
{
	return rig_hex(pair->from, 1000 + n);
}

struct ledger_move
pair_look(const struct ledger_rig *rig, int project)
{
	struct ledger_move m;

	assert_int_equal(ledger_move_get(rig->s, rig_prj(rig, project), &m), 0);
	assert_string_equal(m.project_id, rig_prj(rig, project));
	return m;
}

void
pair_freeze(struct move_pair *pair, int project, int move)
{
	struct ledger_rig *rig = pair->from;

	assert_int_equal(
	    ledger_freeze(rig->s, rig_prj(rig, project), pair_move_id(pair, move), 1, rig->now),
	    0);
	assert_int_equal(
	    ledger_freeze_done(rig->s, rig_prj(rig, project), pair_move_id(pair, move)), 0);
}

void
pair_export(struct move_pair *pair, int project, size_t limit)
{
	struct ledger_pages pages = { .project_id = rig_prj(pair->from, project) };
	int last = 0;

	forget_parts(pair);
	while (!last) {
		CLEANUP(buf_done) struct buf text = BUF_INIT;

		assert_true(pair->nparts < PART_MAX);
		assert_int_equal(
		    ledger_move_part(pair->from->s, &pages, limit, &text, &last), 0);
		assert_true(text.len <= limit || limit < 4096);
		assert_int_equal(json_text_parse((const char *)text.data, text.len, 8,
				     &pair->parts[pair->nparts]),
		    0);
		pair->nparts++;
	}
}

int
pair_store_part(
    const struct move_pair *pair, int project, int move, int64_t part, const json_t *rows)
{
	const struct ledger_part p = { .project_id = rig_prj(pair->to, project),
		.move_id = pair_move_id(pair, move),
		.part = part,
		.rows = rows };

	return ledger_part_add(pair->to->s, &p);
}

void
pair_send(const struct move_pair *pair, int project, int move)
{
	for (int64_t i = 0; i < pair->nparts; i++)
		assert_int_equal(
		    pair_store_part(pair, project, move, i + 1, pair->parts[i]), 0);
}

int
pair_import(const struct move_pair *pair, int project, int move)
{
	const struct ledger_at at = rig_at(pair->to);
	int left, r;

	do
		r = ledger_import(&at, rig_prj(pair->to, project), pair_move_id(pair, move),
		    pair->nparts, &left);
	while (r == 0 && left);
	return r;
}

int
pair_give(const struct move_pair *pair, int project, int move)
{
	return ledger_give(pair->from->s, rig_prj(pair->from, project),
	    pair_move_id(pair, move), pair->from->now);
}

void
pair_clear(const struct move_pair *pair, int project)
{
	int left;

	do
		assert_int_equal(
		    ledger_empty_some(pair->from->s, rig_prj(pair->from, project), 2, &left),
		    0);
	while (left);
}

void
pair_discard(const struct move_pair *pair, int project, int move)
{
	int left;

	do
		assert_int_equal(ledger_discard(pair->to->s, rig_prj(pair->to, project),
				     pair_move_id(pair, move), &left),
		    0);
	while (left);
}

int
pair_activate(const struct move_pair *pair, int project, int move, struct ledger_move *ret)
{
	return ledger_activate(pair->to->s, rig_prj(pair->to, project),
	    pair_move_id(pair, move), pair->to->now, ret);
}

void
pair_move(struct move_pair *pair, int project, int move, size_t limit)
{
	struct ledger_move m;

	pair_freeze(pair, project, move);
	pair_export(pair, project, limit);
	pair_send(pair, project, move);
	assert_int_equal(pair_import(pair, project, move), 0);
	assert_int_equal(pair_give(pair, project, move), 0);
	pair_clear(pair, project);
	assert_int_equal(pair_activate(pair, project, move, &m), 0);
	assert_int_equal(m.where, LEDGER_HERE);
}

const char *
pair_dump(const struct ledger_rig *rig, int project)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct ledger_pages pages = { .project_id = rig_prj(rig, project), .table = 1 };
	const char *copy;
	int last;

	assert_int_equal(ledger_move_part(rig->s, &pages, SIZE_MAX, &text, &last), 0);
	assert_true(last);
	copy = arena_strndup(rig->a, (const char *)text.data, text.len);
	assert_non_null(copy);
	return copy;
}

void
pair_fill(struct ledger_rig *rig, int project)
{
	struct ledger_webhook w;
	struct ledger_refusal f = { .at = rig->now,
		.reason = "signature_mismatch",
		.hint = "the secret differs, \"or\" a proxy\n changed it",
		.event_name = "push",
		.client_address = "127.0.0.1",
		.count = 3 };
	struct ledger_change change = { .set_badge_public = 1, .badge_public = 1 };
	struct ledger_project p;
	struct ledger_offer o;
	int base = project * 100, done;

	rig_project(rig, project);
	assert_int_equal(ledger_project_update(rig->s, rig->a, rig_prj(rig, project), &change,
			     rig->now, &p, &done),
	    0);
	rig_accept(rig, project, base + 1);
	(void)rig_claim(rig, base + 1);
	rig_report(rig, base + 1, LEDGER_PUBLIC_RUNNING, rig->now + 5);
	(void)rig_settle(rig, base + 1, LEDGER_PASSED);
	assert_int_equal(ledger_sync_applied(rig->s, rig->a, rig_run(rig, base + 1),
			     rig_row(rig, base + 1).index_rev, rig->now, &done),
	    0);
	assert_true(done);
	rig_accept(rig, project, base + 2);
	(void)rig_claim(rig, base + 2);
	rig_cancel(rig, base + 2);
	(void)rig_settle(rig, base + 2, LEDGER_CANCELED);
	rig_accept(rig, project, base + 3);
	(void)rig_claim(rig, base + 3);
	rig_report(rig, base + 3, LEDGER_PUBLIC_RUNNING, rig->now + 7);
	rig_accept(rig, project, base + 4);
	w = rig_webhook(rig, project, "github", base + 1);
	(void)rig_webhook(rig, project, "gitlab", base + 2);
	(void)rig_webhook(rig, project, "gitea", base + 3);
	o = rig_push(rig, &w, base + 1, base + 5);
	assert_int_equal(rig_record(rig, &o).kind, LEDGER_RECORD_ACCEPTED);
	o = rig_ping(rig, &w, base + 2);
	assert_int_equal(rig_record(rig, &o).kind, LEDGER_RECORD_RECORDED);
	for (int i = 0; i < 3; i++) {
		f.client_address = arena_format(rig->a, "127.0.0.%d", i);
		assert_int_equal(ledger_refusal_add(rig->s, w.webhook_id, &f), 0);
	}
}
