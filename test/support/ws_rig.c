#include "test/support/ws_rig.h"

#define ASK                                                         \
	"GET /later HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n" \
	"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"       \
	"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

struct ws_limits
desk_patient(void)
{
	return (struct ws_limits) { 1000000, 1000000, 1000000 };
}

static void
desk_on_text(void *arg, struct ws *ws, const char *text, size_t n)
{
	struct desk *d = arg;

	assert_ptr_equal(ws, d->ws);
	(void)buf_add_byte(&d->texts, '[');
	(void)buf_add(&d->texts, text, n);
	(void)buf_add_byte(&d->texts, ']');
	if (d->answer)
		(void)ws_send_text(ws, text, n);
	if (d->close_on_text)
		ws_close(ws, WS_CLOSE_NORMAL, "enough");
	if (d->drop_on_text) {
		d->ws = NULL;
		ws_drop(ws);
	}
}

static void
desk_on_gone(void *arg, struct ws *ws, int code)
{
	struct desk *d = arg;

	assert_ptr_equal(ws, d->ws);
	assert_int_equal(strlen(http_req_id(d->req)), 22);
	d->ngone++;
	d->code = code;
	d->ws = NULL;
	ws_drop(ws);
}

void
desk_on_room(void *arg, struct ws *ws)
{
	struct desk *d = arg;

	d->nroom++;
	d->room_left = ws_unsent(ws);
}

struct desk *
desk_connect(struct rig *r)
{
	struct desk *d = calloc(1, sizeof(*d));

	assert_non_null(d);
	d->rig = r;
	d->client = client_new(r);
	/* So that what is ordered to fail later is none of ours. */
	assert_int_equal(buf_reserve(&d->client->got, 65536), 0);
	assert_int_equal(buf_reserve(&d->texts, 1000), 0);
	return d;
}

void
desk_request(struct desk *d)
{
	struct rig *r = d->rig;

	r->held = NULL;
	client_send(d->client, ASK);
	RIG_WAIT(r, r->held != NULL || d->client->eof);
}

struct desk *
desk_ask(struct rig *r)
{
	struct desk *d = desk_connect(r);

	desk_request(d);
	assert_non_null(r->held);
	return d;
}

struct ws *
desk_accept(struct desk *d, const struct ws_limits *limits)
{
	static const struct ws_ops ops = { desk_on_text, desk_on_gone };
	struct ws_limits patient = desk_patient();

	assert_int_equal(ws_request_check(d->rig->held), WS_REQUEST_OK);
	d->req = d->rig->held;
	d->ws = ws_accept(d->req, limits != NULL ? limits : &patient, &ops, d);
	return d->ws;
}

struct desk *
desk_new(struct rig *r, const struct ws_limits *limits)
{
	struct desk *d = desk_ask(r);

	assert_non_null(desk_accept(d, limits));
	client_expect(d->client, 101, NULL);
	return d;
}

void
desk_free(struct desk *d)
{
	if (d->ws != NULL)
		ws_drop(d->ws);
	client_free(d->client);
	buf_done(&d->texts);
	rig_settle(d->rig);
	free(d);
}

void
desk_send(struct desk *d, struct buf *b, size_t step)
{
	client_send_n(d->client, (const char *)b->data, b->len, step);
	buf_reset(b);
}

void
desk_send_text(struct desk *d, int first, const char *text)
{
	struct buf b = BUF_INIT;

	ws_put_text(&b, first, text);
	desk_send(d, &b, SIZE_MAX);
	buf_done(&b);
}

/* 1: a whole frame is there. */
static int
frame_try(struct client *c, struct frame *f)
{
	const uint8_t *p = c->got.data + c->at;
	size_t n = c->got.len - c->at, head = 2, len, i;

	if (n < head)
		return 0;
	assert_int_equal(p[1] & 0x80, 0); /* a server does not mask */
	len = p[1];
	if (len >= 126) {
		head += len == 126 ? 2 : 8;
		if (n < head)
			return 0;
		for (len = 0, i = 2; i < head; i++)
			len = len << 8 | p[i];
	}
	assert_true(len < sizeof(f->data));
	if (n < head + len)
		return 0;
	f->first = p[0];
	f->len = len;
	memcpy(f->data, p + head, len);
	f->data[len] = '\0';
	c->at += head + len;
	return 1;
}

const struct frame *
desk_frame(struct desk *d)
{
	static struct frame f;

	while (!frame_try(d->client, &f)) {
		assert_false(d->rig->timed_out);
		assert_false(d->client->eof);
		event_base_loop(d->rig->base, EVLOOP_ONCE);
	}
	return &f;
}

void
desk_expect(struct desk *d, int first, const char *text)
{
	const struct frame *f = desk_frame(d);

	assert_int_equal(f->first, first);
	assert_string_equal((const char *)f->data, text);
	assert_int_equal(f->len, strlen(text));
}

void
desk_expect_close(struct desk *d, int code, const char *reason)
{
	const struct frame *f = desk_frame(d);

	assert_int_equal(f->first, WS_CLOSE);
	assert_int_equal(f->len, code == 0 ? 0 : 2 + strlen(reason));
	if (code == 0)
		return;
	assert_int_equal(f->data[0] << 8 | f->data[1], code);
	assert_string_equal((const char *)f->data + 2, reason);
}

void
desk_expect_end(struct desk *d, int code)
{
	client_expect_end(d->client);
	RIG_WAIT(d->rig, d->ngone > 0);
	rig_settle(d->rig);
	assert_int_equal(d->ngone, 1);
	assert_int_equal(d->code, code);
}
