#include "test/support/http_rig.h"

/* ---- handler ---- */

static void
rig_on_gone(void *arg, struct http_req *req)
{
	struct rig *r = arg;

	(void)req;
	r->ngone++;
}

void
rig_echo(void *arg, struct http_req *req, int err, const uint8_t *data, size_t len)
{
	struct rig *r = arg;

	if (err < 0) {
		r->nbody_errors++;
		r->body_err = err;
		return;
	}
	http_answer_add(req, "Content-Type", "text/plain");
	http_answer(req, 200, data, len);
}

static void
rig_count(void *arg, struct http_req *req, int err, const uint8_t *data, size_t len)
{
	struct rig *r = arg;
	char text[32];

	(void)data;
	if (err < 0) {
		r->nbody_errors++;
		r->body_err = err;
		return;
	}
	r->body_bytes += len;
	if (strcmp(http_req_path(req), "/sink401") == 0) {
		http_answer(req, 401, "no", 2);
		return;
	}
	if (len > 0)
		return;
	snprintf(text, sizeof(text), "%llu", (unsigned long long)http_req_body_read(req));
	http_answer(req, 200, text, strlen(text));
}

/* Writes 1000 bytes whenever there is room. */
static void
rig_pour(void *arg, struct http_req *req)
{
	struct rig *r = arg;
	char piece[1000];
	size_t n = r->stream_left < sizeof(piece) ? r->stream_left : sizeof(piece);

	r->nwants++;
	memset(piece, 'p', sizeof(piece));
	if (http_stream_write(req, piece, n) < 0) {
		http_stream_break(req);
		r->held = NULL;
		return;
	}
	r->stream_left -= n;
	if (http_stream_unsent(req) > r->stream_most)
		r->stream_most = http_stream_unsent(req);
	if (r->stream_left == 0) {
		http_stream_end(req);
		r->held = NULL;
	} else {
		http_stream_want(req, 4096, rig_pour, r);
	}
}

static void
rig_on_raw(void *arg, struct http_req *req, const uint8_t *data, size_t len)
{
	struct rig *r = arg;

	(void)req;
	if (len == 0)
		r->raw_ended++;
	else
		(void)buf_add(&r->raw, data, len);
}

static void
rig_on_body_path(struct rig *r, struct http_req *req, const char *path)
{
	if (strcmp(path, "/echo") == 0)
		http_body_collect(req, RIG_COLLECT, rig_echo, r);
	else if (strcmp(path, "/drop") == 0)
		http_body_drop(req, RIG_COLLECT, rig_echo, r);
	else
		http_body_stream(
		    req, strcmp(path, "/sink401") == 0 ? 1000000 : RIG_COLLECT, rig_count, r);
}

static void
rig_on_stream_path(struct rig *r, struct http_req *req, const char *path)
{
	r->held = req;
	if (strcmp(path, "/raw") == 0) {
		http_answer_add(req, "Upgrade", "raw");
		http_takeover(req, 101, rig_on_raw, r);
		return;
	}
	http_stream_begin(req, 200);
	if (strcmp(path, "/pour") == 0)
		http_stream_want(req, 4096, rig_pour, r);
}

static void
rig_on_request(void *arg, struct http_req *req)
{
	struct rig *r = arg;
	const char *path = http_req_path(req);

	r->nrequests++;
	snprintf(r->last_path, sizeof(r->last_path), "%s", path);
	if (strcmp(path, "/echo") == 0 || strcmp(path, "/drop") == 0 ||
	    strcmp(path, "/count") == 0 || strcmp(path, "/sink401") == 0) {
		rig_on_body_path(r, req, path);
	} else if (strcmp(path, "/later") == 0) {
		r->held = req;
		http_req_on_gone(req, rig_on_gone, r);
	} else if (strcmp(path, "/stream") == 0 || strcmp(path, "/pour") == 0 ||
	    strcmp(path, "/raw") == 0) {
		rig_on_stream_path(r, req, path);
	} else if (strcmp(path, "/204") == 0 || strcmp(path, "/304") == 0) {
		http_answer(req, atoi(path + 1), NULL, 0);
	} else if (strcmp(path, "/inject") == 0) {
		http_answer_add(req, "X-Bad", "a\r\nSet-Cookie: b");
		http_answer(req, 200, "never", 5);
	} else if (strcmp(path, "/blob") == 0) {
		http_answer_blob(req, 200, r->blob);
	} else {
		http_answer(req, 200, "ok", 2);
	}
}

static void
rig_on_headers(void *arg, struct http_req *req, int status)
{
	(void)arg;
	(void)status;
	http_answer_add(req, "X-Request-Id", http_req_id(req));
}

static void
rig_on_refusal(void *arg, struct http_req *req, int status, const char *code)
{
	(void)arg;
	http_answer(req, status, code, strlen(code));
}

static void
rig_on_end(void *arg, struct http_req *req)
{
	struct rig *r = arg;

	snprintf(r->ended[r->nended % 32], sizeof(r->ended[0]), "%d %d", http_req_status(req),
	    http_req_was_cut(req));
	r->nended++;
	if (r->held == req)
		r->held = NULL;
}

/* ---- life ---- */

static void
rig_on_guard(evutil_socket_t fd, short what, void *arg)
{
	struct rig *r = arg;

	(void)fd;
	(void)what;
	r->timed_out = 1;
}

struct rig *
rig_new(const struct http_limits *limits)
{
	struct rig *r = calloc(1, sizeof(*r));
	struct timeval tv = { RIG_PATIENCE_S, 0 };
	struct http_hooks hooks = { rig_on_request, rig_on_headers, rig_on_refusal, rig_on_end,
		r };

	assert_non_null(r);
	r->base = event_base_new();
	r->limits = limits != NULL ? *limits : http_limits_default();
	r->srv = http_server_new(r->base, &r->limits, &hooks);
	evtimer_assign(&r->guard, r->base, rig_on_guard, r);
	evtimer_add(&r->guard, &tv);
	return r;
}

void
rig_free(struct rig *r)
{
	http_server_free(r->srv);
	http_blob_unref(r->blob);
	event_del(&r->guard);
	event_base_free(r->base);
	buf_done(&r->raw);
	free(r);
}

/* Whatever can happen now has happened. */
void
rig_settle(struct rig *r)
{
	for (int i = 0; i < 6; i++)
		event_base_loop(r->base, EVLOOP_NONBLOCK);
}

/* ---- clients ---- */

static void
client_on_read(evutil_socket_t fd, short what, void *arg)
{
	struct client *c = arg;
	char piece[65536];
	ssize_t n = recv(fd, piece, sizeof(piece), MSG_DONTWAIT);

	(void)what;
	if (n > 0) {
		assert_int_equal(buf_add(&c->got, piece, (size_t)n), 0);
	} else {
		c->eof = n < 0 ? -1 : 1;
		event_del(&c->ev);
	}
}

void
client_read(struct client *c, int on)
{
	if (on == c->reading)
		return;
	c->reading = on;
	if (on)
		event_add(&c->ev, NULL);
	else
		event_del(&c->ev);
}

struct client *
client_new_fd(struct rig *r, int fd)
{
	struct client *c = calloc(1, sizeof(*c));

	assert_non_null(c);
	c->rig = r;
	c->fd = fd;
	event_assign(&c->ev, r->base, fd, EV_READ | EV_PERSIST, client_on_read, c);
	client_read(c, 1);
	return c;
}

struct client *
client_new(struct rig *r)
{
	int sv[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv), 0);
	assert_int_equal(http_server_serve_take(r->srv, sv[0]), 0);
	return client_new_fd(r, sv[1]);
}

void
client_free(struct client *c)
{
	event_del(&c->ev);
	close(c->fd);
	buf_done(&c->got);
	free(c);
}

/* Sends in pieces of ${step} bytes; a server that closed already is fine. */
void
client_send_n(struct client *c, const char *p, size_t n, size_t step)
{
	while (n > 0) {
		size_t take = n < step ? n : step;
		ssize_t w = send(c->fd, p, take, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (w < 0)
			event_base_loop(c->rig->base, EVLOOP_NONBLOCK);
		if (w < 0 && (c->eof || c->rig->timed_out))
			return;
		if (w <= 0)
			continue;
		p += w;
		n -= (size_t)w;
		if (step < 64)
			event_base_loop(c->rig->base, EVLOOP_NONBLOCK);
	}
}

void
client_send(struct client *c, const char *text)
{
	client_send_n(c, text, strlen(text), SIZE_MAX);
}

/* ---- answers ---- */

const char *
reply_header(const struct reply *p, const char *name)
{
	static char value[1024];
	const char *at = p->head;
	size_t n = strlen(name);

	while ((at = strstr(at, "\r\n")) != NULL) {
		at += 2;
		if (strncasecmp(at, name, n) == 0 && at[n] == ':') {
			at += n + 1;
			at += *at == ' ';
			snprintf(value, sizeof(value), "%.*s", (int)strcspn(at, "\r"), at);
			return value;
		}
	}
	return NULL;
}

/* Undoes the chunks at ${p}.  Bytes used; 0: not complete. */
static size_t
reply_unchunk(struct reply *p, const char *text, size_t n)
{
	size_t at = 0;

	p->body_len = 0;
	for (;;) {
		const char *nl = memchr(text + at, '\n', n - at);
		size_t size;

		if (nl == NULL)
			return 0;
		size = strtoul(text + at, NULL, 16);
		at = (size_t)(nl - text) + 1;
		if (n - at < size + 2)
			return 0;
		if (p->body_len + size < sizeof(p->body))
			memcpy(p->body + p->body_len, text + at, size);
		p->body_len += size;
		at += size + 2;
		if (size == 0)
			return at;
	}
}

/* Tries to read one answer from what came.  1: it is there. */
static int
reply_try(struct client *c, struct reply *p, int is_head)
{
	const char *text = c->got.data != NULL ? (const char *)c->got.data + c->at : "";
	size_t n = c->got.len - c->at, used;
	const char *end = n > 0 ? memmem(text, n, "\r\n\r\n", 4) : NULL;
	const char *value;

	if (end == NULL)
		return 0;
	used = (size_t)(end - text) + 4;
	assert_true(used < sizeof(p->head));
	memcpy(p->head, text, used);
	p->head[used] = '\0';
	p->status = atoi(p->head + 9);
	p->body_len = 0;
	p->complete = 1;
	if (is_head || p->status == 204 || p->status == 304 || p->status < 200) {
		/* no body */
	} else if ((value = reply_header(p, "Transfer-Encoding")) != NULL) {
		size_t chunked = reply_unchunk(p, text + used, n - used);

		if (chunked == 0 && !c->eof)
			return 0;
		p->complete = chunked != 0;
		used = chunked == 0 ? n : used + chunked;
	} else if ((value = reply_header(p, "Content-Length")) != NULL) {
		p->body_len = (size_t)atol(value);
		if (n - used < p->body_len)
			return 0;
		if (p->body_len < sizeof(p->body))
			memcpy(p->body, text + used, p->body_len);
		used += p->body_len;
	} else {
		if (!c->eof)
			return 0;
		p->body_len = n - used;
		if (p->body_len < sizeof(p->body))
			memcpy(p->body, text + used, p->body_len);
		used = n;
	}
	if (p->body_len < sizeof(p->body))
		p->body[p->body_len] = '\0';
	c->at += used;
	return 1;
}

const struct reply *
client_reply_of(struct client *c, int is_head)
{
	static struct reply p;

	while (!reply_try(c, &p, is_head)) {
		assert_false(c->rig->timed_out);
		assert_false(c->eof);
		event_base_loop(c->rig->base, EVLOOP_ONCE);
	}
	return &p;
}

const struct reply *
client_reply(struct client *c)
{
	return client_reply_of(c, 0);
}

/* The next answer has this status and body. */
void
client_expect(struct client *c, int status, const char *body)
{
	const struct reply *p = client_reply(c);

	if (p->status != status)
		print_message("%s%s\n", p->head, p->body);
	assert_int_equal(p->status, status);
	if (body != NULL)
		assert_string_equal(p->body, body);
}

/* The server closes, and nothing more came. */
void
client_expect_end(struct client *c)
{
	RIG_WAIT(c->rig, c->eof);
	assert_int_equal(c->got.len, c->at);
}
