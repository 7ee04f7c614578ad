#include "test/support/watcher.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <jansson.h>

#include "lib/base/io.h"
#include "lib/wire/wire.h"
#include "test/support/edge_rig.h"
#include "test/support/unit.h"
#include "test/unit/http_ws_frames.h"

/* ---- messages ---- */

static int64_t
number(const json_t *j, const char *name)
{
	return json_integer_value(json_object_get(j, name));
}

static void
take_log(struct watcher *w, const json_t *event)
{
	const json_t *chunk = json_object_get(event, "chunk");
	int64_t seq = number(event, "seq");

	assert_true(json_string_length(json_object_get(event, "createdAt")) == 24);
	if (w->next == 0)
		w->first = seq;
	else
		assert_int_equal(seq, w->next);
	w->next = seq + 1;
	w->nlogs++;
	assert_int_equal(
	    buf_add(&w->text, json_string_value(chunk), json_string_length(chunk)), 0);
}

static void
take_state(struct watcher *w, const json_t *j, const char *text, size_t n)
{
	const json_t *run = json_object_get(j, "run");

	(void)snprintf(
	    w->run, sizeof(w->run), "%s", json_string_value(json_object_get(run, "status")));
	(void)snprintf(w->newest, sizeof(w->newest), "%.*s", (int)n, text);
	if (++w->nstates == 2)
		w->replay_at = w->next;
}

static void
take_message(struct watcher *w, const char *text, size_t n)
{
	CLEANUP(json_unrefp) json_t *j = NULL;
	const char *type;

	assert_int_equal(json_text_parse(text, n, 16, &j), 0);
	type = json_string_value(json_object_get(j, "type"));
	assert_string_equal(w->end, "");
	if (strcmp(type, "state") == 0) {
		take_state(w, j, text, n);
		return;
	}
	if (strcmp(type, "hb") == 0) {
		w->nbeats++;
		return;
	}
	if (strcmp(type, "end") == 0) {
		(void)snprintf(w->end, sizeof(w->end), "%s",
		    json_string_value(json_object_get(j, "reason")));
		return;
	}
	assert_true(w->nstates > 0);
	if (strcmp(type, "log") == 0) {
		take_log(w, json_object_get(j, "event"));
		return;
	}
	assert_string_equal(type, "gap");
	w->ngaps++;
	w->gap_from = number(j, "fromSeq");
	w->gap_to = number(j, "toSeq");
	assert_true(w->gap_from <= w->gap_to && (w->next == 0 || w->next == w->gap_from));
	if (w->next == 0)
		w->first = w->gap_from;
	w->next = w->gap_to + 1;
}

/* ---- WebSocket ---- */

static void
take_close(struct watcher *w, const uint8_t *p, size_t n)
{
	assert_true(n >= 2);
	w->code = p[0] << 8 | p[1];
	(void)snprintf(w->end, sizeof(w->end), "%.*s", (int)(n - 2), (const char *)p + 2);
}

static void
take_frame(struct watcher *w, int first, const uint8_t *p, size_t n)
{
	switch (first) {
	case WS_TEXT:
		if (n == 4 && memcmp(p, "pong", 4) == 0)
			w->npongs++;
		else
			take_message(w, (const char *)p, n);
		break;
	case WS_CLOSE: take_close(w, p, n); break;
	case WS_PING: break;
	default: fail_msg("a frame of kind %x", (unsigned)first);
	}
}

static void
take_frames(struct watcher *w)
{
	size_t at = 0;

	for (;;) {
		const uint8_t *p = w->raw.data + at;
		size_t left = w->raw.len - at, head = 2, n;

		if (left < 2)
			break;
		n = p[1];
		head = n == 127 ? 10 : n == 126 ? 4 : 2;
		if (left < head)
			break;
		if (head > 2)
			n = 0;
		for (size_t i = 2; i < head; i++)
			n = n << 8 | p[i];
		if (left < head + n)
			break;
		take_frame(w, p[0], p + head, n);
		at += head + n;
	}
	buf_consume(&w->raw, at);
}

/* ---- Server-Sent Events ---- */

static void
take_event(struct watcher *w, char *text)
{
	char *data = strstr(text, "data: ");
	long long id = 0;
	int64_t before = w->next;
	int nlogs = w->nlogs;

	assert_non_null(data);
	(void)sscanf(text, "id: %lld\n", &id);
	take_message(w, data + 6, strcspn(data + 6, "\n"));
	(void)before;
	assert_int_equal(id, w->nlogs > nlogs ? w->next - 1 : 0);
}

static void
take_events(struct watcher *w)
{
	char *text = (char *)(uintptr_t)buf_cstr(&w->events), *end;
	size_t at = 0;

	while (text != NULL && (end = strstr(text + at, "\n\n")) != NULL) {
		*end = '\0';
		take_event(w, text + at);
		at = (size_t)(end - text) + 2;
	}
	buf_consume(&w->events, at);
}

static void
take_chunks(struct watcher *w)
{
	size_t at = 0;

	for (;;) {
		const char *text = buf_cstr(&w->raw);
		const char *end = text != NULL ? strstr(text + at, "\r\n") : NULL;
		size_t n, head;

		if (end == NULL)
			break;
		n = strtoul(text + at, NULL, 16);
		head = (size_t)(end - text) + 2;
		if (w->raw.len < head + n + 2)
			break;
		assert_int_equal(buf_add(&w->events, text + head, n), 0);
		at = head + n + 2;
		if (n == 0) {
			w->whole = 1;
			break;
		}
	}
	buf_consume(&w->raw, at);
	take_events(w);
}

/* ---- the connection ---- */

static void
take_head(struct watcher *w)
{
	const char *text = buf_cstr(&w->raw),
		   *end = text != NULL ? strstr(text, "\r\n\r\n") : NULL;

	if (end == NULL)
		return;
	(void)snprintf(w->head, sizeof(w->head), "%.*s", (int)(end - text), text);
	w->status = atoi(text + strlen("HTTP/1.1 "));
	buf_consume(&w->raw, (size_t)(end - text) + 4);
}

void
watcher_read(struct watcher *w)
{
	char piece[65536];
	ssize_t n;

	if (w->fd < 0 || w->silent)
		return;
	while ((n = recv(w->fd, piece, sizeof(piece), MSG_DONTWAIT)) > 0)
		assert_int_equal(buf_add(&w->raw, piece, (size_t)n), 0);
	if (n == 0 || (n < 0 && errno != EAGAIN))
		io_close(&w->fd);
	if (w->status == 0)
		take_head(w);
	if (w->status == 101)
		take_frames(w);
	else if (w->status == 200)
		take_chunks(w);
	/* The close handshake. */
	if (w->code != 0 && w->fd >= 0) {
		CLEANUP(buf_done) struct buf b = BUF_INIT;
		const uint8_t code[2] = { (uint8_t)(w->code >> 8), (uint8_t)w->code };

		ws_put(&b, WS_CLOSE, code, 2, 1);
		(void)send(w->fd, b.data, b.len, MSG_NOSIGNAL);
		io_close(&w->fd);
	}
}

void
watcher_ask(struct watcher *w, struct edge_rig *g, int ws, const char *request)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };

	*w = (struct watcher) { .ws = ws };
	w->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(w->fd >= 0);
	(void)snprintf(to.sun_path, sizeof(to.sun_path), "%s/http.sock", g->dir);
	assert_int_equal(connect(w->fd, (struct sockaddr *)(void *)&to, sizeof(to)), 0);
	assert_int_equal(io_write_all(w->fd, request, strlen(request)), 0);
}

const char *
watcher_request(const char *run, const char *query, const char *headers)
{
	return edge_fmt("GET %s/logs?%s HTTP/1.1\r\nHost: anvil.example:8470\r\n%s\r\n", run,
	    query, headers);
}

const char *
watcher_ticket(struct edge_rig *g, const char *run)
{
	(void)edge_ask(g, 200, "POST", edge_fmt("%s/log-ticket", run), NULL);
	return edge_fmt("%s", edge_text(g, "ticket"));
}

void
watcher_join(struct watcher *w, struct edge_rig *g, const char *run, int ws, const char *query)
{
	char request[1024];

	if (ws)
		(void)snprintf(request, sizeof(request), "%s",
		    watcher_request(run,
			edge_fmt("ticket=%s&%s", watcher_ticket(g, run), query),
			"Upgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n"
			"Sec-WebSocket-Version: 13\r\n"
			"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"));
	else
		(void)snprintf(request, sizeof(request),
		    "GET %s/events?%s HTTP/1.1\r\nHost: anvil.example:8470\r\n"
		    "Authorization: Bearer %s\r\n\r\n",
		    run, query, g->session);
	watcher_ask(w, g, ws, request);
}

void
watcher_leave(struct watcher *w)
{
	io_close(&w->fd);
	buf_done(&w->raw);
	buf_done(&w->events);
	buf_done(&w->text);
	*w = (struct watcher) { .fd = -1 };
}

void
watcher_say(struct watcher *w, const char *text)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;

	ws_put_text(&b, WS_TEXT, text);
	assert_int_equal(io_write_all(w->fd, b.data, b.len), 0);
}
