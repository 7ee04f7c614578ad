#include "test/soak/view.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/wire/json.h"
#include "test/soak/dice.h"
#include "test/soak/http.h"
#include "test/soak/load.h"

#define SILENCE_MS  500   /* of a read; the limit of a connection is looked at then */
#define PATIENCE_US 120e6 /* with one run                                            */

enum { OP_TEXT = 1, OP_CLOSE = 8, OP_PING = 9 };

/* ---- messages ---- */

static uint64_t
hash_of(const char *a, const char *b)
{
	uint64_t h = 0xcbf29ce484222325U;

	for (; *a != '\0'; a++)
		h = (h ^ (uint8_t)*a) * 0x100000001b3U;
	for (h *= 31; *b != '\0'; b++)
		h = (h ^ (uint8_t)*b) * 0x100000001b3U;
	return h;
}

static const char *
text_of(const json_t *j, const char *name)
{
	const char *text = json_string_value(json_object_get(j, name));

	return text != NULL ? text : "";
}

static void
take_line(struct view *v, const json_t *event)
{
	int64_t seq = json_integer_value(json_object_get(event, "seq"));

	if (v->next != 0 && seq != v->next)
		book_loss(&v->s->book, "%s: line %lld came where %lld comes next", v->run,
		    (long long)seq, (long long)v->next);
	v->next = seq + 1;
	v->first = v->first == 0 ? seq : v->first;
	book_line(&v->s->book, v->run, seq,
	    hash_of(text_of(event, "stream"), text_of(event, "chunk")));
}

static int
is_terminal(const char *status)
{
	return strcmp(status, "passed") == 0 || strcmp(status, "failed") == 0 ||
	    strcmp(status, "canceled") == 0;
}

static void
take_message(struct view *v, const char *text, size_t n)
{
	CLEANUP(json_unrefp) json_t *j = NULL;
	const char *type, *status;

	if (json_text_parse(text, n, 32, &j) < 0) {
		book_loss(
		    &v->s->book, "%s: no message: %.*s", v->run, (int)min_size(n, 100), text);
		return;
	}
	type = text_of(j, "type");
	if (strcmp(type, "log") == 0) {
		take_line(v, json_object_get(j, "event"));
	} else if (strcmp(type, "gap") == 0) {
		v->next = json_integer_value(json_object_get(j, "toSeq")) + 1;
	} else if (strcmp(type, "state") == 0) {
		status = text_of(json_object_get(j, "run"), "status");
		if (is_terminal(status))
			book_ended(&v->s->book, v->run, status);
	} else if (strcmp(type, "end") == 0) {
		v->ended = strcmp(text_of(j, "reason"), "run_finished") == 0;
	}
}

/* ---- one connection ---- */

struct feed {
	int fd;
	double until_us;
	struct buf in;
	int over;
};

/* More bytes; 0: there are no more. */
static int
feed_more(struct feed *f)
{
	ssize_t n;

	if (f->over || book_now_us() > f->until_us || buf_reserve(&f->in, 65536) < 0)
		return 0;
	n = read(f->fd, f->in.data + f->in.len, f->in.cap - f->in.len);
	f->in.len += n > 0 ? (size_t)n : 0;
	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

/* Asks, and takes the head of the answer; its status, 0: none came. */
static int
feed_open(struct feed *f, struct view *v, const char *request, long limit_ms)
{
	const char *text, *end;
	int status;

	*f = (struct feed) { .fd = http_connect(v->s->port, SILENCE_MS),
		.until_us = book_now_us() + (double)limit_ms * 1e3 };
	v->connections++;
	if (f->fd < 0 || io_write_all(f->fd, request, strlen(request)) < 0)
		return 0;
	do {
		text = buf_cstr(&f->in);
		end = text == NULL || f->in.len == 0 ? NULL : strstr(text, "\r\n\r\n");
		if (end != NULL) {
			status = atoi(text + 9);
			buf_consume(&f->in, (size_t)(end - text) + 4);
			return status;
		}
	} while (feed_more(f));
	return 0;
}

static void
feed_close(struct feed *f)
{
	io_close(&f->fd);
	buf_done(&f->in);
}

static void
refused(struct view *v, int status)
{
	if (status == 404)
		book_loss(&v->s->book, "%s is not known to who watches it", v->run);
	if (status == 401)
		load_log_in(v->s);
	if (status == 410)
		v->ended = 1;
}

/* ---- Server-Sent Events ---- */

static void
take_events(struct view *v, struct buf *events)
{
	const char *text, *end, *data;

	while ((text = buf_cstr(events)) != NULL && events->len > 0 &&
	    (end = strstr(text, "\n\n")) != NULL) {
		data = strstr(text, "data: ");
		if (data != NULL && data < end)
			take_message(v, data + 6, (size_t)(end - data) - 6);
		buf_consume(events, (size_t)(end - text) + 2);
	}
}

void
view_events(struct view *v, long limit_ms)
{
	struct buf events = BUF_INIT;
	struct feed f;
	char request[512], from[32] = "";
	int status;

	if (v->next > 0)
		(void)snprintf(from, sizeof(from), "?from=%lld", (long long)v->next);
	(void)snprintf(request, sizeof(request),
	    "GET /api/private/runs/%s/events%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
	    "Authorization: Bearer %s\r\n\r\n",
	    v->run, from, v->s->port, v->s->session);
	status = feed_open(&f, v, request, limit_ms);
	if (status != 200)
		refused(v, status);
	else
		do {
			f.over = http_unchunk(&f.in, &events) != 0;
			take_events(v, &events);
		} while (!v->ended && feed_more(&f));
	buf_done(&events);
	feed_close(&f);
}

/* ---- WebSocket ---- */

/* Bytes of the first frame, 0: it is not whole. */
static size_t
frame_size(const struct buf *in, size_t *ret_head)
{
	const uint8_t *p = in->data;
	uint64_t len;
	size_t head = 2;

	if (in->len < 2)
		return 0;
	len = p[1] & 0x7f;
	if (len >= 126) {
		size_t more = len == 126 ? 2 : 8;

		if (in->len < 2 + more)
			return 0;
		len = 0;
		for (size_t i = 0; i < more; i++)
			len = len << 8 | p[2 + i];
		head += more;
	}
	*ret_head = head;
	return in->len >= head + len ? head + (size_t)len : 0;
}

static void
take_frames(struct view *v, struct feed *f)
{
	static const uint8_t pong[] = { 0x8a, 0x80, 0, 0, 0, 0 };
	size_t head, n;

	while (!f->over && (n = frame_size(&f->in, &head)) > 0) {
		const uint8_t *p = f->in.data;
		int op = p[0] & 0x0f;

		if (op == OP_TEXT)
			take_message(v, (const char *)p + head, n - head);
		else if (op == OP_PING)
			(void)io_write_all(f->fd, pong, sizeof(pong));
		if (op == OP_CLOSE) {
			f->over = 1;
			v->ended |= n - head >= 2 && (p[head] << 8 | p[head + 1]) == 1000;
		}
		buf_consume(&f->in, n);
	}
}

void
view_socket(struct view *v, long limit_ms)
{
	struct http h = { .port = v->s->port, .session = v->s->session };
	struct feed f;
	char request[768], path[128], ticket[64], from[32] = "";
	int status;

	(void)snprintf(path, sizeof(path), "/api/private/runs/%s/log-ticket", v->run);
	status = http_json(&h, "POST", path, NULL);
	if (status != 200 || http_member(&h, "ticket", ticket, sizeof(ticket)) < 0) {
		http_done(&h);
		refused(v, status);
		return;
	}
	http_done(&h);
	if (v->next > 0)
		(void)snprintf(from, sizeof(from), "&from=%lld", (long long)v->next);
	(void)snprintf(request, sizeof(request),
	    "GET /api/private/runs/%s/logs?ticket=%s%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
	    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
	    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
	    v->run, ticket, from, v->s->port);
	status = feed_open(&f, v, request, limit_ms);
	if (status != 101)
		refused(v, status);
	else
		do {
			take_frames(v, &f);
		} while (!v->ended && feed_more(&f));
	feed_close(&f);
}

/* ---- a viewer ---- */

static void
watch(struct view *v, struct dice *d)
{
	double since = book_now_us();

	while (
	    !v->ended && atomic_load(&v->s->loading) && book_now_us() - since < PATIENCE_US) {
		/* Some leave on their own, in the midst. */
		long limit = dice_below(d, 3) == 0 ? dice_between(d, 20, 1500) : 30000;

		if (v->connections > 0) {
			BOOK_COUNT(&v->s->book, reconnects);
			(void)usleep((useconds_t)dice_between(d, 5, 200) * 1000);
		}
		if (dice_below(d, 2))
			view_events(v, limit);
		else
			view_socket(v, limit);
	}
}

void *
view_thread(void *arg)
{
	struct load *l = arg;
	struct dice d = dice_of(l->s->seed, 400 + l->number);

	while (atomic_load(&l->s->loading)) {
		struct view v = { .s = l->s };

		if (!book_some_run(&l->s->book, 16, dice_next(&d), v.run)) {
			(void)usleep(100000);
			continue;
		}
		BOOK_COUNT(&l->s->book, viewers);
		watch(&v, &d);
	}
	return NULL;
}
