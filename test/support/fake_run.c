#include "test/support/fake_run.h"

#include <stdio.h>
#include <stdlib.h>

#include "gen/ingress.h"
#include "gen/run_methods.h"
#include "lib/actor/actor.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "test/support/unit.h"

#define WINDOW_BYTES  ((size_t)1 << 20)
#define MESSAGE_BYTES ((size_t)60000)
#define CREATED_AT    INT64_C(1700000000123)

/* ---- sending ---- */

static void
send_items(struct fake_sub *s, const struct run_item *items, size_t n)
{
	const struct run_events_params p = {
		.subscription = s->id, .items = items, .nitems = n
	};

	if (rpc_peer_is_open(s->peer))
		assert_int_equal(run_events_send(s->peer, NULL, &p), 0);
}

static void
send_state(struct fake_run *f, struct fake_sub *s)
{
	const struct run_live live = {
		.status = f->status, .has_current_step = f->step != 0, .current_step = f->step
	};
	const struct run_item item = {
		.type = RUN_ITEM_TYPE_STATE, .run = &live, .has_steps = 1
	};

	s->replayed |= s->told_state && s->next >= s->replay_end;
	s->told_state = 1;
	s->version = f->version;
	send_items(s, &item, 1);
}

static void
send_gap(struct fake_run *f, struct fake_sub *s)
{
	const struct run_item item = { .type = RUN_ITEM_TYPE_GAP,
		.has_from_seq = 1,
		.from_seq = s->next,
		.has_to_seq = 1,
		.to_seq = f->first - 1 };

	send_items(s, &item, 1);
	s->next = f->first;
}

static void
send_lines(struct fake_run *f, struct fake_sub *s)
{
	enum { MAX = 500 };
	static struct run_item items[MAX];
	static struct log_row rows[MAX];
	static char ids[MAX][64];
	size_t n = 0, bytes = 0;

	for (; n < MAX && s->next < f->next && bytes < MESSAGE_BYTES; n++, s->next++) {
		(void)snprintf(
		    ids[n], sizeof(ids[n]), "%s:log:%lld", f->run_id, (long long)s->next);
		rows[n] = (struct log_row) { .id = ids[n],
			.run_id = f->run_id,
			.seq = s->next,
			.stream = LOG_STREAM_STDOUT,
			.chunk = { (const char *)f->text.data + f->at[s->next],
			    f->at[s->next + 1] - f->at[s->next] },
			.created_at = CREATED_AT };
		items[n] = (struct run_item) { .type = RUN_ITEM_TYPE_LOG, .event = &rows[n] };
		bytes += rows[n].chunk.n;
	}
	send_items(s, items, n);
}

/* Bytes that were sent and not acknowledged. */
static size_t
unacked(const struct fake_run *f, const struct fake_sub *s)
{
	return f->at[s->next] - f->at[min_i64(s->next, max_i64(s->acked + 1, f->first))];
}

static void
serve(struct fake_run *f, struct fake_sub *s)
{
	const struct run_item end = { .type = RUN_ITEM_TYPE_END };

	if (s->id == 0)
		return;
	if (!s->told_state)
		send_state(f, s);
	if (s->next < f->first)
		send_gap(f, s);
	while (s->next < f->next && unacked(f, s) < WINDOW_BYTES) {
		if (!s->replayed && s->next >= s->replay_end)
			send_state(f, s);
		send_lines(f, s);
	}
	if (s->next < f->next)
		return;
	if (s->version != f->version || !s->replayed)
		send_state(f, s);
	if (f->ended) {
		send_items(s, &end, 1);
		s->id = 0;
	}
}

/* ---- methods ---- */

static void
forget(struct fake_run *f, struct rpc_peer *p, int64_t id)
{
	for (size_t i = 0; i < FAKE_RUN_SUBS; i++)
		if (f->subs[i] != NULL && f->subs[i]->peer == p &&
		    (id == 0 || f->subs[i]->id == id)) {
			free(f->subs[i]);
			f->subs[i] = NULL;
		}
}

int
run_subscribe(struct run_actor *ctx, struct turn *t, const struct run_subscribe_params *p,
    struct run_subscribe_result *ret)
{
	struct fake_run *f = (struct fake_run *)(void *)ctx;
	struct fake_sub *s = NULL;

	for (size_t i = 0; i < FAKE_RUN_SUBS && s == NULL; i++)
		if (f->subs[i] == NULL)
			s = f->subs[i] = mem_calloc(1, sizeof(*s));
	if (s == NULL)
		return E_OVERLOADED;
	s->peer = t->peer;
	s->id = ++f->last_id;
	s->from = s->next = p->has_from_seq ? min_i64(p->from_seq, f->next) : f->first;
	s->acked = s->next - 1;
	s->replay_end = f->next;
	f->nsubscribed++;
	ret->kind = RUN_SUBSCRIBE_OK;
	ret->u.ok = (struct run_subscribe_ok) { s->id, f->first, f->next, 0 };
	return 0;
}

int
run_ack(struct run_actor *ctx, struct turn *t, const struct run_ack_params *p)
{
	struct fake_run *f = (struct fake_run *)(void *)ctx;

	for (size_t i = 0; i < FAKE_RUN_SUBS; i++)
		if (f->subs[i] != NULL && f->subs[i]->peer == t->peer &&
		    f->subs[i]->id == p->subscription)
			f->subs[i]->acked = max_i64(f->subs[i]->acked, p->seq);
	return 0;
}

int
run_unsubscribe(struct run_actor *ctx, struct turn *t, const struct run_unsubscribe_params *p,
    struct run_unsubscribe_result *ret)
{
	forget((struct fake_run *)(void *)ctx, t->peer, p->subscription);
	ret->kind = RUN_UNSUBSCRIBE_OK;
	return 0;
}

int
run_read_log(struct run_actor *ctx, struct turn *t, const struct run_read_log_params *p,
    struct run_read_log_result *ret)
{
	struct fake_run *f = (struct fake_run *)(void *)ctx;
	size_t at = min_size((size_t)p->from_byte, f->text.len);
	size_t n = min_size((size_t)p->max_bytes, f->text.len - at);

	(void)t;
	ret->kind = RUN_READ_LOG_TEXT;
	ret->u.text =
	    (struct run_read_log_text) { .text = { (const char *)f->text.data + at, n },
		    .next_byte = (int64_t)(at + n),
		    .has_next_seq = at + n == f->text.len,
		    .next_seq = f->next,
		    .complete = at + n == f->text.len && f->ended };
	return 0;
}

int
run_get_detail(struct run_actor *ctx, struct turn *t, const struct run_get_detail_params *p,
    struct run_get_detail_result *ret)
{
	(void)ctx;
	(void)t;
	(void)p;
	(void)ret;
	return E_UNSUPPORTED;
}

int
run_cancel(struct run_actor *ctx, struct turn *t, const struct run_cancel_params *p,
    struct run_cancel_result *ret)
{
	(void)ctx;
	(void)t;
	(void)p;
	(void)ret;
	return E_UNSUPPORTED;
}

int
run_release(struct run_actor *ctx, struct turn *t, const struct run_release_params *p,
    struct run_release_result *ret)
{
	(void)ctx;
	(void)t;
	(void)p;
	(void)ret;
	return E_UNSUPPORTED;
}

int
run_conclude(struct run_actor *ctx, struct turn *t, const struct run_conclude_params *p,
    struct run_conclude_result *ret)
{
	(void)ctx;
	(void)t;
	(void)p;
	(void)ret;
	return E_UNSUPPORTED;
}

static void
on_peer_down(void *ctx, struct rpc_peer *p)
{
	forget(ctx, p, 0);
}

static const struct actor_desc desc = { .role = ROLE_RUN,
	.methods = run_methods,
	.nmethods = &run_methods_count,
	.on_peer_down = on_peer_down };

/* ---- life ---- */

void
fake_run_init(struct fake_run *f, const char *run_id, const char *dir, pid_t ingress)
{
	*f = (struct fake_run) { .ingress = ingress, .first = 1, .next = 1 };
	f->status = RUN_STATUS_STARTING;
	f->version = 1;
	(void)snprintf(f->run_id, sizeof(f->run_id), "%s", run_id);
	(void)snprintf(f->dir, sizeof(f->dir), "%s", dir);
}

void
fake_run_start(struct fake_run *f)
{
	char address[64];
	struct actor_place place = { .address = address, .runtime_dir = f->dir };
	char *why = NULL;

	(void)snprintf(address, sizeof(address), "run/%s", f->run_id);
	if (actor_new(&desc, &place, &f->actor, &why) < 0)
		fail_msg("%s", why);
	actor_set_ctx(f->actor, f);
	assert_int_equal(actor_announce(f->actor, "ingress", f->ingress), 0);
}

void
fake_run_die(struct fake_run *f)
{
	f->actor = actor_free(f->actor);
	for (size_t i = 0; i < FAKE_RUN_SUBS; i++) {
		free(f->subs[i]);
		f->subs[i] = NULL;
	}
}

void
fake_run_done(struct fake_run *f)
{
	fake_run_die(f);
	buf_done(&f->text);
}

void
fake_run_add(struct fake_run *f, size_t n)
{
	size_t end = f->text.len + n;

	assert_true(f->next <= FAKE_RUN_LINES && n >= 16);
	(void)buf_printf(&f->text, "line %lld ", (long long)f->next);
	while (f->text.len < end - 1)
		(void)buf_add_byte(&f->text, 'x');
	(void)buf_add_byte(&f->text, '\n');
	assert_false(f->text.failed);
	f->at[++f->next] = f->text.len;
}

void
fake_run_set(struct fake_run *f, enum run_status status)
{
	f->status = status;
	f->version++;
	f->ended = status == RUN_STATUS_PASSED || status == RUN_STATUS_FAILED ||
	    status == RUN_STATUS_CANCELED;
}

void
fake_run_forget(struct fake_run *f, int64_t seq)
{
	f->first = seq;
}

size_t
fake_run_nsubs(const struct fake_run *f)
{
	size_t n = 0;

	for (size_t i = 0; i < FAKE_RUN_SUBS; i++)
		n += f->subs[i] != NULL && f->subs[i]->id != 0;
	return n;
}

void
fake_run_step(struct fake_run *f)
{
	if (f->actor == NULL)
		return;
	actor_step(f->actor);
	for (size_t i = 0; i < FAKE_RUN_SUBS; i++)
		if (f->subs[i] != NULL)
			serve(f, f->subs[i]);
	actor_step(f->actor);
}
