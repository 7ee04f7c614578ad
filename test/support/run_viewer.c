#include "test/support/run_viewer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/ingress.h"
#include "lib/base/err.h"
#include "test/support/unit.h"

/* ---- what comes ---- */

static void
note(struct run_viewer *v, char what)
{
	if (what == 'l' && v->trail.len != 0 && v->trail.data[v->trail.len - 1] == 'l')
		return;
	(void)buf_add_byte(&v->trail, (uint8_t)what);
}

static void
take_line(struct run_viewer *v, const struct log_row *row)
{
	char id[64];

	(void)snprintf(id, sizeof(id), "%s:log:%lld", v->g->run_id, (long long)row->seq);
	assert_string_equal(row->id, id);
	assert_string_equal(row->run_id, v->g->run_id);
	if (v->next != 0)
		assert_int_equal(row->seq, v->next);
	else
		v->first = row->seq;
	v->next = row->seq + 1;
	assert_true(row->chunk.n != 0);
	assert_int_equal(buf_add(&v->text, row->chunk.p, row->chunk.n), 0);
	v->unacked += row->chunk.n;
	v->waited_ms = clock_wall_ms() - row->created_at;
	note(v, 'l');
}

static void
take_gap(struct run_viewer *v, const struct run_item *item)
{
	assert_true(item->has_from_seq && item->has_to_seq);
	assert_true(item->from_seq <= item->to_seq);
	if (v->next != 0)
		assert_int_equal(item->from_seq, v->next);
	else
		v->first = item->from_seq;
	v->next = item->to_seq + 1;
	v->gap_from = item->from_seq;
	v->gap_to = item->to_seq;
	if (v->ngaps == 0)
		v->at_first_gap = v->text.len;
	v->at_gap = v->text.len;
	v->ngaps++;
	note(v, 'g');
}

static void
take_state(struct run_viewer *v, const struct run_item *item)
{
	assert_non_null(item->run);
	assert_true(item->has_steps);
	v->status = item->run->status;
	v->current_step = item->run->has_current_step ? item->run->current_step : 0;
	if (v->at_step[v->current_step] == 0)
		v->at_step[v->current_step] = v->text.len;
	v->nstates++;
	note(v, 's');
}

static void
take_item(struct run_viewer *v, const struct run_item *item)
{
	assert_false(v->ended);
	switch (item->type) {
	case RUN_ITEM_TYPE_LOG: take_line(v, item->event); break;
	case RUN_ITEM_TYPE_STATE: take_state(v, item); break;
	case RUN_ITEM_TYPE_GAP: take_gap(v, item); break;
	case RUN_ITEM_TYPE_END:
		v->ended = 1;
		note(v, 'e');
		break;
	case RUN_ITEM_TYPE_COUNT: fail();
	}
}

static int
events_decode(struct codec *c, const json_t *params, void *ret)
{
	return codec_decode(c, &run_events_params_codec, params, ret);
}

static int
events(void *ctx, struct turn *t, const void *params, void *result)
{
	const struct run_events_params *p = params;
	struct run_viewer *v = ctx;

	(void)t;
	(void)result;
	/* The answer comes before the first event. */
	assert_true(v->subscription != 0);
	if (p->subscription != v->subscription)
		return 0;
	v->nmessages++;
	for (size_t i = 0; i < p->nitems; i++)
		take_item(v, &p->items[i]);
	if (!v->silent && v->unacked != 0 && v->unacked >= v->ack_lag)
		run_viewer_ack(v);
	return 0;
}

static const struct rpc_method methods[] = {
	{ .name = "run.events",
	    .from = ROLE_RUN,
	    .turn = RPC_TURN_NONE,
	    .notification = 1,
	    .params_size = sizeof(struct run_events_params),
	    .decode = events_decode,
	    .run = events },
};
static const size_t nmethods = ARRAY_LEN(methods);
static const struct actor_desc desc = {
	.role = ROLE_CTL, .methods = methods, .nmethods = &nmethods
};

/* ---- what it does ---- */

void
run_viewer_ack(struct run_viewer *v)
{
	struct run_ack_params p = { v->subscription, v->next - 1 };

	v->unacked = 0;
	if (v->peer != NULL && rpc_peer_is_open(v->peer))
		assert_int_equal(run_ack_send(v->peer, NULL, &p), 0);
}

static void
on_subscribed(void *arg, int err, const struct run_subscribe_result *res)
{
	struct run_viewer *v = arg;

	v->err = err;
	v->nrefused += err < 0;
	if (err < 0)
		return;
	assert_int_equal(res->kind, RUN_SUBSCRIBE_OK);
	v->answer = res->u.ok;
	v->subscription = v->answer.subscription;
	v->nsubscriptions++;
	assert_true(v->answer.first_seq <= v->answer.next_seq);
}

void
run_viewer_subscribe(struct run_viewer *v)
{
	int64_t from = v->next != 0 ? v->next : v->from;
	struct run_subscribe_params p = { from != 0, from };

	v->err = 0;
	assert_int_equal(run_subscribe_call(v->peer, NULL, &p, on_subscribed, v), 0);
}

static void
on_gone(void *arg, int err, const struct run_unsubscribe_result *res)
{
	struct run_viewer *v = arg;

	assert_int_equal(err, 0);
	assert_int_equal(res->kind, RUN_UNSUBSCRIBE_OK);
	v->nunsubscribed++;
}

void
run_viewer_unsubscribe(struct run_viewer *v)
{
	struct run_unsubscribe_params p = { v->subscription };

	assert_int_equal(run_unsubscribe_call(v->peer, NULL, &p, on_gone, v), 0);
}

static void
on_up(void *arg, struct link *l, struct rpc_peer *p)
{
	struct run_viewer *v = arg;

	(void)l;
	v->peer = p;
	if (!v->ended)
		run_viewer_subscribe(v);
}

static void
on_down(void *arg, struct link *l, int err)
{
	struct run_viewer *v = arg;

	(void)l;
	(void)err;
	v->peer = NULL;
	v->subscription = 0;
	v->unacked = 0;
}

void
run_viewer_join(struct run_viewer *v)
{
	static const struct link_ops ops = { .on_up = on_up, .on_down = on_down };
	char address[ID_SIZE + 4];

	assert_null(v->link);
	(void)snprintf(address, sizeof(address), "run/%s", v->g->run_id);
	v->link = actor_link(v->actor, address, &ops, v);
	assert_non_null(v->link);
}

void
run_viewer_leave(struct run_viewer *v)
{
	if (v->link == NULL)
		return;
	v->link = actor_unlink(v->actor, v->link);
	on_down(v, NULL, 0);
}

void
run_viewer_step(struct run_viewer *v)
{
	actor_step(v->actor);
}

int
run_viewer_has(const struct run_viewer *v, const struct buf *all, int whole)
{
	if (v->text.len > all->len || (whole && v->text.len != all->len))
		return 0;
	return v->text.len == 0 ||
	    memcmp(all->data + (all->len - v->text.len), v->text.data, v->text.len) == 0;
}

/* ---- life ---- */

struct run_viewer *
run_viewer_new(struct run_rig *g)
{
	struct actor_place place = { .address = "ctl", .runtime_dir = g->runtime };
	struct run_viewer *v = calloc(1, sizeof(*v));
	char *why = NULL;

	assert_non_null(v);
	v->g = g;
	assert_int_equal(actor_new(&desc, &place, &v->actor, &why), 0);
	actor_set_ctx(v->actor, v);
	return v;
}

struct run_viewer *
run_viewer_free(struct run_viewer *v)
{
	if (v == NULL)
		return NULL;
	run_viewer_leave(v);
	v->actor = actor_free(v->actor);
	buf_done(&v->text);
	buf_done(&v->trail);
	free(v);
	return NULL;
}
