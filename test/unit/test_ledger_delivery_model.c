/* Random deliveries, duplicates with the same and with other bodies, changes of webhooks and of
 * the queue, restarts, crashes and leaps of the clock, beside a model that is nothing but the
 * table of the specification: each answer and each row must be the model's.
 *
 * Each sequence has a seed of its own, which a failure names; ANVIL_SEED=<it> plays it alone. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "test/support/unit.h"
#include "test/support/webhook_rig.h"

#define NSEQUENCES 600
#define NSTEPS     30
#define NPROVIDERS 3
#define NIDS       6
#define NRUNS      64

static const char *const providers[NPROVIDERS] = { "gitea", "github", "gitlab" };
static const char *const outcomes[] = { "accepted", "ignored_ping", "ignored_event",
	"ignored_branch", "queue_full" };

enum { ACCEPTED, PING, EVENT, BRANCH, FULL, NOUTCOMES };

struct model_webhook {
	int id; /* 0: there is none */
	int enabled;
	int64_t version;
};

struct model_delivery {
	int known;
	int outcome, body, run, name;
	int64_t received_at;
};

struct model_run {
	enum ledger_state state;
	int provider, id; /* of its delivery; -1: started by hand */
};

/* What is on disk with the last commit, or would be with the next. */
struct model_state {
	struct model_webhook webhooks[NPROVIDERS];
	struct model_delivery deliveries[NPROVIDERS][NIDS];
	struct model_run runs[NRUNS + 1];
	int nruns;
};

struct model {
	struct ledger_rig *rig;
	struct model_state is, committed;
	uint64_t seed, random;
	int project, step;
	int next_run, next_webhook; /* of all sequences: an id is used once */
	int first_run;
	/* What ingress has kept, and may be out of date. */
	struct model_webhook seen[NPROVIDERS];
};

static long nkinds[LEDGER_RECORD_RECORDED + 1], nagain, nforgotten, ncrashes;

static int
pick(struct model *m, int n)
{
	m->random ^= m->random << 13;
	m->random ^= m->random >> 7;
	m->random ^= m->random << 17;
	return (int)(m->random % (uint64_t)n);
}

static void
same(const struct model *m, const char *what, long long got, long long want)
{
	if (got != want)
		fail_msg("seed %llu, step %d: %s is %lld, not %lld",
		    (unsigned long long)m->seed, m->step, what, got, want);
}
#define SAME(m, got, want) same(m, #got, (long long)(got), (long long)(want))

static void
same_text(const struct model *m, const char *got, const char *want)
{
	if ((got == NULL) != (want == NULL) || (got != NULL && strcmp(got, want) != 0))
		fail_msg("seed %llu, step %d: %s, not %s", (unsigned long long)m->seed, m->step,
		    got != NULL ? got : "nothing", want != NULL ? want : "nothing");
}

/* Run ${n} of this sequence. */
static const char *
run_id(const struct model *m, int n)
{
	return rig_run(m->rig, m->first_run + n);
}

static int
is_kept(const struct model *m, const struct model_delivery *d)
{
	return d->known && d->received_at > m->rig->now - 72 * HOUR_MS;
}

/* What is old goes with every write; should the clock be set back later, it is gone. */
static void
forget(struct model *m)
{
	for (int p = 0; p < NPROVIDERS; p++) {
		for (int id = 0; id < NIDS; id++) {
			struct model_delivery *d = &m->is.deliveries[p][id];

			nforgotten += d->known && !is_kept(m, d);
			d->known = is_kept(m, d);
		}
	}
}

/* ---- the queue ---- */

static int
is_queued(const struct model_run *r)
{
	return r->state == LEDGER_PENDING || r->state == LEDGER_EXECUTABLE;
}

static int
head_of(const struct model *m)
{
	for (int n = 1; n <= m->is.nruns; n++)
		if (m->is.runs[n].state == LEDGER_EXECUTABLE ||
		    ledger_is_claimed(m->is.runs[n].state))
			return n;
	return 0;
}

static int
count_queued(const struct model *m)
{
	int count = 0;

	for (int n = 1; n <= m->is.nruns; n++)
		count += is_queued(&m->is.runs[n]);
	return count;
}

static void
promote(struct model *m)
{
	for (int n = 1; head_of(m) == 0 && n <= m->is.nruns; n++)
		if (m->is.runs[n].state == LEDGER_PENDING)
			m->is.runs[n].state = LEDGER_EXECUTABLE;
}

/* The model's next run; 0: the queue is full. */
static int
enqueue(struct model *m, int provider, int id)
{
	int n = m->is.nruns + 1;

	if (count_queued(m) >= LEDGER_QUEUE_MAX)
		return 0;
	m->is.runs[n] = (struct model_run) { .state = head_of(m) != 0 ? LEDGER_PENDING
								      : LEDGER_EXECUTABLE,
		.provider = provider,
		.id = id };
	m->is.nruns = n;
	return n;
}

static void
op_manual(struct model *m)
{
	struct ledger_accept q = { .project_id = rig_prj(m->rig, m->project),
		.run_id = run_id(m, m->is.nruns + 1),
		.user_id = rig_usr(m->rig, 1) };
	enum ledger_accepted kind;
	struct ledger_run run;
	int times = 1 + pick(m, 30);

	/* In bursts, so that the queue is full now and then. */
	for (int i = 0; i < times && m->is.nruns < NRUNS; i++) {
		q.run_id = run_id(m, m->is.nruns + 1);
		SAME(m, ledger_accept_run(m->rig->s, m->rig->a, &q, m->rig->now, &kind, &run),
		    0);
		SAME(m, kind, enqueue(m, -1, 0) != 0 ? LEDGER_ACCEPTED : LEDGER_QUEUE_FULL);
	}
}

static void
op_finish(struct model *m)
{
	int n = head_of(m);
	struct ledger_claim c;
	struct ledger_end e = rig_end(m->rig, LEDGER_PASSED);
	struct ledger_settlement s;

	if (n == 0)
		return;
	SAME(m,
	    ledger_claim_run(
		m->rig->s, m->rig->a, run_id(m, n), rig_hex(m->rig, n), m->rig->now, &c),
	    0);
	SAME(m, c.claimed, 1);
	m->is.runs[n].state = LEDGER_ACTIVE;
	if (pick(m, 3) == 0)
		return; /* the next time */
	SAME(m,
	    ledger_finalize_run(
		m->rig->s, m->rig->a, run_id(m, n), c.run.lease_id, &e, m->rig->now, &s),
	    0);
	m->is.runs[n].state = LEDGER_PASSED;
	promote(m);
}

static void
op_cancel(struct model *m)
{
	struct ledger_at at = rig_at(m->rig);
	struct ledger_promoted promoted;
	struct ledger_run run;
	int push, n = m->is.nruns != 0 ? 1 + pick(m, m->is.nruns) : 0;

	if (n == 0 || !is_queued(&m->is.runs[n]))
		return;
	SAME(m, ledger_cancel_run(&at, run_id(m, n), "operator", &run, &push, &promoted), 0);
	m->is.runs[n].state = LEDGER_CANCELED;
	promote(m);
}

/* ---- webhooks ---- */

static void
op_make(struct model *m)
{
	int p = pick(m, NPROVIDERS);
	struct model_webhook *w = &m->is.webhooks[p];

	if (w->id != 0)
		return;
	w->id = ++m->next_webhook;
	w->enabled = 1;
	w->version = m->rig->now;
	(void)rig_webhook(m->rig, m->project, providers[p], w->id);
	forget(m);
}

static void
op_remove(struct model *m)
{
	int p = pick(m, NPROVIDERS);
	struct model_webhook *w = &m->is.webhooks[p];

	SAME(m,
	    ledger_webhook_remove(
		m->rig->s, rig_prj(m->rig, m->project), providers[p], m->rig->now),
	    w->id != 0 ? 0 : E_NOENT);
	if (w->id != 0)
		forget(m);
	w->id = 0;
}

/* A rotation, or it is switched. */
static void
op_change(struct model *m)
{
	int p = pick(m, NPROVIDERS);
	struct model_webhook *w = &m->is.webhooks[p];
	struct ledger_webhook row;

	if (w->id == 0)
		return;
	row = rig_stored(m->rig, m->project, providers[p]);
	if (pick(m, 3) == 0)
		row.secret.ciphertext = "cm90YXRlZA";
	else
		w->enabled = row.enabled = !row.enabled;
	SAME(m, ledger_webhook_save(m->rig->s, &row, m->rig->now), 0);
	w->version = max_i64(m->rig->now, w->version + 1);
	forget(m);
}

static void
op_update(struct model *m)
{
	struct ledger_change c = { .default_branch = arena_format(
				       m->rig->a, "branch-%d", m->step) };
	struct ledger_project p;
	int stale;

	SAME(m,
	    ledger_project_update(
		m->rig->s, m->rig->a, rig_prj(m->rig, m->project), &c, m->rig->now, &p, &stale),
	    0);
	SAME(m, stale, 1);
	for (int i = 0; i < NPROVIDERS; i++)
		if (m->is.webhooks[i].id != 0)
			m->is.webhooks[i].version = max_i64(
			    m->rig->now, m->is.webhooks[i].version + 1);
}

/* Ingress loads what it verifies with. */
static void
op_look(struct model *m)
{
	int p = pick(m, NPROVIDERS);

	if (m->is.webhooks[p].id != 0)
		m->seen[p] = m->is.webhooks[p];
}

/* ---- deliveries ---- */

struct offer {
	int provider, id, body, outcome, run, name;
	struct model_webhook against;
};

/* The table, row by row; *ret_run is the run of an answer that has one. */
static enum ledger_record
decide(struct model *m, const struct offer *o, int *ret_again, int *ret_outcome, int *ret_run)
{
	struct model_delivery *d = &m->is.deliveries[o->provider][o->id];
	const struct model_webhook *w = &m->is.webhooks[o->provider];
	int run;

	*ret_again = *ret_run = 0;
	if (is_kept(m, d) && d->outcome == ACCEPTED && d->run == o->run) { /* 1 */
		*ret_again = 1;
		*ret_run = d->run;
		return LEDGER_RECORD_ACCEPTED;
	}
	forget(m);
	if (w->id == 0 || !w->enabled || w->id != o->against.id ||
	    w->version != o->against.version) /* 2 */
		return LEDGER_RECORD_STALE;
	if (d->known && d->body != o->body) /* 3 */
		return LEDGER_RECORD_CONFLICT;
	if (d->known && d->outcome != FULL) { /* 4 */
		*ret_outcome = d->outcome;
		*ret_run = d->run;
		return LEDGER_RECORD_REPLAYED;
	}
	if (o->outcome != ACCEPTED) { /* 7, 10 */
		*ret_outcome = o->outcome;
		if (d->known)
			return LEDGER_RECORD_QUEUE_FULL;
		*d = (struct model_delivery) { .known = 1,
			.outcome = o->outcome,
			.body = o->body,
			.name = o->name,
			.received_at = m->rig->now };
		return LEDGER_RECORD_RECORDED;
	}
	run = enqueue(m, o->provider, o->id); /* 5, 6, 8, 9 */
	*d = (struct model_delivery) { .known = 1,
		.outcome = run != 0 ? ACCEPTED : FULL,
		.body = o->body,
		.run = run,
		.name = o->name,
		.received_at = m->rig->now };
	*ret_run = run;
	return run != 0 ? LEDGER_RECORD_ACCEPTED : LEDGER_RECORD_QUEUE_FULL;
}

static struct ledger_offer
offer_of(struct model *m, const struct offer *o)
{
	const struct ledger_webhook w = { .webhook_id = rig_whk(m->rig, o->against.id),
		.project_id = rig_prj(m->rig, m->project),
		.provider = providers[o->provider],
		.updated_at = o->against.version };
	struct ledger_offer offer = o->outcome == PING ? rig_ping(m->rig, &w, o->id)
						       : rig_push(m->rig, &w, o->id, 0);

	offer.delivery.run_id = run_id(m, o->run);
	offer.delivery.outcome = outcomes[o->outcome];
	offer.delivery.event_name = arena_format(m->rig->a, "event %d", o->name);
	offer.delivery.body_sha256 = rig_sha256(m->rig, o->body);
	offer.delivery.body_bytes = o->body / 2; /* two bodies of a length */
	return offer;
}

static void
op_deliver(struct model *m)
{
	struct offer o = { .provider = pick(m, NPROVIDERS),
		.id = pick(m, NIDS),
		.outcome = pick(m, 3) != 0 ? ACCEPTED : PING + pick(m, 3),
		.run = m->is.nruns + 1,
		.name = m->step };
	const struct model_delivery *d = &m->is.deliveries[o.provider][o.id];
	struct ledger_offer offer;
	struct ledger_recorded rec;
	enum ledger_record kind;
	int again, outcome = 0, run;

	if (m->is.nruns == NRUNS)
		return;
	/* The same body, mostly; the same request, now and then, but not three days later. */
	o.body = d->known && pick(m, 5) != 0 ? d->body : pick(m, 4);
	if (is_kept(m, d) && d->run != 0 && pick(m, 3) == 0)
		o.run = d->run;
	o.against = pick(m, 4) != 0 ? m->is.webhooks[o.provider] : m->seen[o.provider];
	offer = offer_of(m, &o);
	rec = rig_record(m->rig, &offer);
	kind = decide(m, &o, &again, &outcome, &run);
	nkinds[kind]++;
	nagain += again;
	SAME(m, rec.kind, kind);
	SAME(m, rec.again, again);
	if (kind == LEDGER_RECORD_ACCEPTED)
		same_text(m, rec.run.run_id, run_id(m, run));
	if (kind == LEDGER_RECORD_REPLAYED) {
		same_text(m, rec.outcome, outcomes[outcome]);
		same_text(m, rec.run_id, run != 0 ? run_id(m, run) : NULL);
	}
	if (kind == LEDGER_RECORD_RECORDED)
		same_text(m, rec.outcome, outcomes[outcome]);
}

/* ---- time, restarts ---- */

static void
op_time(struct model *m)
{
	static const int64_t steps[] = { 1, 50, 1000, 60000, 10 * HOUR_MS, 71 * HOUR_MS,
		72 * HOUR_MS, 100 * HOUR_MS, -5000 };

	m->rig->now += steps[pick(m, ARRAY_LEN(steps))];
}

static void
op_prune(struct model *m)
{
	int64_t n;

	SAME(m, ledger_prune_deliveries(m->rig->s, m->rig->now, &n), 0);
	forget(m);
}

/* No power is lost here: what is decided is tried, not the disk. */
static void
unsafe(const struct model *m)
{
	SAME(m, rig_exec(m->rig, "PRAGMA synchronous=OFF"), 0);
}

static void
reopen(struct model *m)
{
	CLEANUP_FREE char *path = mem_format("%s/project-0.db", m->rig->dir);
	CLEANUP_FREE char *why = NULL;

	(void)store_close(m->rig->s);
	if (store_open(&ledger_store, path, &m->rig->s, &why) < 0)
		fail_msg("%s", why);
	unsafe(m);
	SAME(m, store_begin(m->rig->s), 0);
}

static void
op_commit(struct model *m)
{
	SAME(m, store_commit(m->rig->s), 0);
	m->committed = m->is;
	if (pick(m, 4) == 0)
		reopen(m);
	else
		SAME(m, store_begin(m->rig->s), 0);
}

/* What was not committed is gone, in the store as in the model. */
static void
op_crash(struct model *m)
{
	store_rollback(m->rig->s);
	m->is = m->committed;
	ncrashes++;
	reopen(m);
}

/* ---- what must hold ---- */

static void
compare_delivery(const struct model *m, int p, int id)
{
	const struct model_delivery *d = &m->is.deliveries[p][id];
	struct ledger_at at = rig_at(m->rig);
	struct ledger_delivery row;
	int known = is_kept(m, d);

	SAME(m,
	    ledger_delivery_get(&at, rig_prj(m->rig, m->project), providers[p],
		arena_format(m->rig->a, "delivery-%d", id), &row),
	    known ? 0 : E_NOENT);
	if (!known)
		return;
	same_text(m, row.outcome, outcomes[d->outcome]);
	same_text(m, row.run_id, d->run != 0 ? run_id(m, d->run) : NULL);
	same_text(m, row.body_sha256, rig_sha256(m->rig, d->body));
	same_text(m, row.event_name, arena_format(m->rig->a, "event %d", d->name));
	SAME(m, row.body_bytes, d->body / 2);
	SAME(m, row.received_at, d->received_at);
}

static void
compare_webhooks(const struct model *m)
{
	struct ledger_webhook *list;
	size_t n, i = 0;

	SAME(m,
	    ledger_webhook_list(m->rig->s, m->rig->a, rig_prj(m->rig, m->project), &list, &n),
	    0);
	for (int p = 0; p < NPROVIDERS; p++) {
		const struct model_webhook *w = &m->is.webhooks[p];

		if (w->id == 0)
			continue;
		SAME(m, i < n, 1);
		same_text(m, list[i].webhook_id, rig_whk(m->rig, w->id));
		SAME(m, list[i].enabled, w->enabled);
		SAME(m, list[i].updated_at, w->version);
		i++;
	}
	SAME(m, i, n);
}

static void
compare_runs(const struct model *m)
{
	for (int n = 1; n <= m->is.nruns; n++) {
		const struct model_run *r = &m->is.runs[n];
		struct ledger_run row;

		SAME(m, ledger_run_get(m->rig->s, m->rig->a, run_id(m, n), &row), 0);
		SAME(m, row.state, r->state);
		same_text(m, row.provider, r->provider >= 0 ? providers[r->provider] : NULL);
		same_text(m, row.delivery_id,
		    r->provider >= 0 ? arena_format(m->rig->a, "delivery-%d", r->id) : NULL);
	}
	SAME(m,
	    rig_holds(m->rig,
		"(SELECT count(*) FROM project_runs WHERE project_id = '%s') = %d",
		rig_prj(m->rig, m->project), m->is.nruns),
	    1);
}

static void
compare(const struct model *m)
{
	struct ledger_at at = rig_at(m->rig);
	const struct ledger_delivery_query q = { .project_id = rig_prj(m->rig, m->project),
		.limit = 500 };
	struct ledger_delivery_page page;
	int kept = 0;

	for (int p = 0; p < NPROVIDERS; p++) {
		for (int id = 0; id < NIDS; id++) {
			compare_delivery(m, p, id);
			kept += is_kept(m, &m->is.deliveries[p][id]);
		}
	}
	SAME(m, ledger_deliveries(&at, &q, &page), 0);
	SAME(m, page.n, kept);
	for (size_t i = 1; i < page.n; i++)
		SAME(m, page.rows[i].received_at <= page.rows[i - 1].received_at, 1);
	compare_webhooks(m);
	compare_runs(m);
	rig_sound(m->rig);
}

/* ---- sequences ---- */

static void (*const ops[])(struct model *m) = { op_deliver, op_deliver, op_deliver, op_deliver,
	op_deliver, op_deliver, op_deliver, op_deliver, op_deliver, op_make, op_look, op_finish,
	op_cancel, op_manual, op_time, op_time };
static void (*const rare[])(struct model *m) = { op_remove, op_remove, op_change, op_change,
	op_change, op_update, op_update, op_prune, op_commit, op_commit, op_commit, op_crash };

static void
run_one(struct model *m, uint64_t seed)
{
	m->seed = seed;
	m->random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	m->project++;
	m->step = 0;
	memset(&m->is, 0, sizeof(m->is));
	memset(m->seen, 0, sizeof(m->seen));
	m->first_run = m->next_run;
	m->next_run += NRUNS + 2;
	rig_project(m->rig, m->project);
	for (int i = 0; i < NPROVIDERS; i++)
		op_make(m);
	if (pick(m, 3) == 0)
		op_manual(m);
	SAME(m, store_commit(m->rig->s), 0);
	m->committed = m->is;
	unsafe(m);
	SAME(m, store_begin(m->rig->s), 0);
	for (m->step = 1; m->step <= NSTEPS; m->step++) {
		if (pick(m, 6) == 0)
			rare[pick(m, ARRAY_LEN(rare))](m);
		else
			ops[pick(m, ARRAY_LEN(ops))](m);
		if (m->step % 10 == 0)
			compare(m);
		arena_reset(m->rig->a);
	}
	/* With all that is its own, so that what is left of it is in nobody's way. */
	SAME(m, ledger_project_delete(m->rig->s, rig_prj(m->rig, m->project)), 0);
}

static void
each_delivery_comes_to_what_the_table_says_whatever_happens(void **state)
{
	struct model m = { .rig = *state };
	const char *only = getenv("ANVIL_SEED");

	if (only != NULL) {
		run_one(&m, strtoull(only, NULL, 10));
		return;
	}
	for (uint64_t seed = 1; seed <= NSEQUENCES; seed++)
		run_one(&m, seed);
	/* It has been everywhere. */
	for (size_t i = 0; i < ARRAY_LEN(nkinds); i++)
		assert_true(nkinds[i] > 40);
	assert_true(nagain > 40);
	assert_true(nforgotten > 40);
	assert_true(ncrashes > 40);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    each_delivery_comes_to_what_the_table_says_whatever_happens, rig_setup,
		    rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
