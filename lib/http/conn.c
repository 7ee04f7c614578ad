#include "lib/http/conn.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

#define WANT_ROUNDS 8 /* calls of a writer in one go, before others get their turn */

int64_t
conn_now_us(void)
{
	return clock_mono().us;
}

/* ---- deadlines ------------------------------------------------------------------------- */

static int64_t
after_ms(int64_t us, int ms)
{
	return us + (int64_t)ms * 1000;
}

/* When something has to have happened; INT64_MAX: no deadline. */
static int64_t
conn_deadline(const struct conn *c)
{
	const struct http_limits *l = &c->srv->limits;
	const struct http_req *req = c->req;

	switch ((enum conn_phase)c->phase) {
	case CONN_IDLE:
		return c->out.unsent > 0 ? INT64_MAX : after_ms(c->since_us, l->idle_ms);
	case CONN_HEAD: return after_ms(req->started.us, l->head_ms);
	case CONN_LINGER:
		return c->out.unsent > 0 ? INT64_MAX : after_ms(c->since_us, l->linger_ms);
	case CONN_BUSY:
		if (req->answer == ANSWER_RAW || !serve_wants_input(c))
			return INT64_MAX;
		return min_i64(after_ms(req->body_last_us, l->body_idle_ms),
		    after_ms(req->body_begin_us, l->body_ms));
	case CONN_DEAD: break;
	}
	return INT64_MAX;
}

/* The same for the sending side. */
static int64_t
conn_send_deadline(const struct conn *c)
{
	if (!c->stalled || (c->req != NULL && c->req->answer == ANSWER_RAW))
		return INT64_MAX;
	return after_ms(c->moved_us, c->srv->limits.write_ms);
}

static void
conn_check_deadlines(struct conn *c)
{
	int64_t now = conn_now_us();

	if (now >= conn_send_deadline(c)) {
		c->broken = 1;
		return;
	}
	if (now < conn_deadline(c))
		return;
	switch ((enum conn_phase)c->phase) {
	case CONN_IDLE:
	case CONN_LINGER: c->phase = CONN_DEAD; break;
	case CONN_HEAD:
		c->srv->count.timeouts++;
		serve_refuse(c, 408);
		break;
	case CONN_BUSY: serve_body_fail(c, E_DEADLINE); break;
	case CONN_DEAD: break;
	}
}

static void
conn_arm(struct conn *c)
{
	int64_t at = min_i64(conn_deadline(c), conn_send_deadline(c));
	int64_t wait;
	struct timeval tv;

	/* A timer that fires too early looks again; so most requests leave it alone. */
	if (at == INT64_MAX || (c->armed_us != 0 && c->armed_us <= at))
		return;
	wait = max_i64(at - conn_now_us(), 0) + 999;
	tv.tv_sec = wait / 1000000;
	tv.tv_usec = wait % 1000000;
	if (event_add(&c->timer, &tv) < 0)
		c->broken = 1;
	c->armed_us = at;
}

/* ---- waiting --------------------------------------------------------------------------- */

static int
conn_reads(const struct conn *c)
{
	if (c->eof)
		return 0;
	if (c->phase == CONN_BUSY)
		return serve_wants_input(c);
	return c->phase == CONN_LINGER || c->out.unsent <= HTTP_PIPELINE_BYTES;
}

static void conn_on_io(evutil_socket_t fd, short what, void *arg);

static void
conn_wait(struct conn *c)
{
	short mask = 0;

	if (conn_reads(c)) {
		mask = EV_READ;
		c->noisy = 0;
	} else if (!c->eof && c->phase == CONN_BUSY) {
		/* Only watching, and what is not read would fire for ever: then by edges.  Most
		 * clients are silent, and for them nothing has to be changed. */
		mask = c->noisy ? EV_READ | EV_CLOSED | EV_ET : EV_READ;
	}
	if (c->out.unsent > 0)
		mask |= EV_WRITE;
	if (mask == c->mask)
		return;
	event_del(&c->io);
	c->mask = mask;
	if (mask == 0)
		return;
	if (event_assign(
		&c->io, c->srv->base, c->fd, (short)(mask | EV_PERSIST), conn_on_io, c) < 0 ||
	    event_add(&c->io, NULL) < 0)
		c->broken = 1;
}

/* ---- writing --------------------------------------------------------------------------- */

static void
conn_send(struct conn *c)
{
	size_t sent = 0;

	if (outq_send(&c->out, c->fd, &sent) < 0)
		c->broken = 1;
	c->srv->count.bytes_out += sent;
	if (sent > 0 || !c->stalled)
		c->moved_us = conn_now_us();
	c->stalled = c->out.unsent > 0;
}

/* A writer that waits for room gets its call. */
static int
conn_call_writer(struct conn *c)
{
	struct http_req *req = c->req;
	void (*fn)(void *, struct http_req *);

	if (c->broken || req == NULL || req->want_fn == NULL || c->out.unsent > req->want_low)
		return 0;
	fn = req->want_fn;
	req->want_fn = NULL;
	fn(req->want_arg, req);
	return 1;
}

static void
conn_flush(struct conn *c)
{
	int rounds = 0;

	if (c->out.unsent > 0)
		conn_send(c);
	while (conn_call_writer(c)) {
		if (c->out.unsent > 0 && !c->broken)
			conn_send(c);
		if (++rounds == WANT_ROUNDS) {
			conn_again(c);
			break;
		}
	}
	if (c->phase != CONN_LINGER || c->out.unsent > 0 || c->broken)
		return;
	if (!c->need_linger || c->eof) {
		c->phase = CONN_DEAD;
	} else if (!c->shut) {
		c->shut = 1;
		c->since_us = conn_now_us();
		(void)shutdown(c->fd, SHUT_WR);
	}
}

void
conn_begin_linger(struct conn *c)
{
	c->phase = CONN_LINGER;
	c->since_us = conn_now_us();
}

/* ---- the loop of one connection -------------------------------------------------------- */

/* The client closed its side, and the handler wants to know. */
static void
conn_tell_hup(struct conn *c)
{
	struct http_req *req = c->req;

	if (c->phase != CONN_BUSY || !req->held || req->gone_told || req->gone_fn == NULL)
		return;
	req->gone_told = 1;
	req->gone_fn(req->gone_arg, req);
}

/* What was not used is kept until its time comes. */
static void
conn_keep(struct conn *c, const uint8_t *p, size_t n, size_t used)
{
	if (c->phase == CONN_LINGER || c->phase == CONN_DEAD) {
		buf_wipe(&c->in);
		return;
	}
	if (p != c->in.data && used < n && buf_add(&c->in, p + used, n - used) < 0)
		c->broken = 1;
	if (p == c->in.data && used > 0) {
		if (used == c->in.len)
			buf_wipe(&c->in);
		else
			buf_consume(&c->in, used);
	}
}

/* No more will come: is there anything left to do without it? */
static int
conn_is_cut_short(const struct conn *c)
{
	if (c->phase == CONN_BUSY)
		return c->req->answer != ANSWER_RAW && serve_wants_input(c);
	return c->phase != CONN_LINGER;
}

static void
conn_work(struct conn *c, const uint8_t *p, size_t n)
{
	size_t used = 0;

	while (!c->broken) {
		used += serve_input(c, p + used, n - used);
		if (serve_advance(c))
			continue;
		conn_flush(c);
		if (!serve_is_ready(c, n - used))
			break;
	}
	conn_keep(c, p, n, used);
	if (c->eof && c->out.unsent == 0 && conn_is_cut_short(c))
		c->phase = CONN_DEAD;
	if (c->srv->stopping && c->phase == CONN_IDLE && c->out.unsent == 0)
		c->phase = CONN_DEAD;
}

void
conn_run(struct conn *c, const uint8_t *p, size_t n)
{
	OBJ_CHECK(c, CONN_MAGIC);
	must(!c->running);
	c->running = 1;
	c->again = 0;
	if (n == 0 && !c->broken)
		conn_check_deadlines(c);
	if (c->in.len > 0) {
		if (n > 0 && buf_add(&c->in, p, n) < 0)
			c->broken = 1;
		p = c->in.data;
		n = c->in.len;
	}
	if (c->refused && c->phase == CONN_IDLE && c->req != NULL)
		serve_refuse(c, 503);
	if (!c->broken && c->hup)
		conn_tell_hup(c);
	conn_work(c, p, n);
	if (!c->broken && c->phase != CONN_DEAD) {
		conn_wait(c);
		conn_arm(c);
	}
	c->running = 0;
	if (c->broken || c->phase == CONN_DEAD)
		conn_free(c);
	else if (c->again)
		conn_kick(c);
}

void
conn_kick(struct conn *c)
{
	if (!c->running)
		event_active(&c->timer, EV_TIMEOUT, 0);
}

void
conn_again(struct conn *c)
{
	c->again = 1;
	conn_kick(c);
}

static void
conn_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct conn *c = arg;

	(void)fd;
	(void)what;
	OBJ_CHECK(c, CONN_MAGIC);
	c->armed_us = 0;
	conn_run(c, c->srv->scratch, 0);
}

/* ---- reading --------------------------------------------------------------------------- */

/* Nothing is wanted now: has the client gone? */
static void
conn_watch(struct conn *c, short what)
{
	char byte;
	ssize_t n = recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	c->noisy = 1;
	if (n == 0 || (what & EV_CLOSED) != 0)
		c->hup = 1;
	if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
		c->broken = 1;
}

static void
conn_on_io(evutil_socket_t fd, short what, void *arg)
{
	struct conn *c = arg;
	struct http_server *s = c->srv;
	ssize_t n = 0;

	OBJ_CHECK(c, CONN_MAGIC);
	if ((what & (EV_READ | EV_CLOSED)) != 0 && !conn_reads(c)) {
		conn_watch(c, what);
	} else if ((what & EV_READ) != 0) {
		n = recv(fd, s->scratch, sizeof(s->scratch), MSG_DONTWAIT);
		if (n == 0)
			c->eof = c->hup = 1;
		else if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
			c->broken = 1;
		if (n > 0)
			s->count.bytes_in += (uint64_t)n;
	}
	conn_run(c, s->scratch, n > 0 ? (size_t)n : 0);
}

/* ---- life ------------------------------------------------------------------------------ */

struct conn *
conn_new(struct http_server *s, int fd, const struct client_addr *peer)
{
	struct conn *c = mem_calloc(1, sizeof(*c));

	if (c == NULL) {
		close(fd);
		return NULL;
	}
	c->magic = CONN_MAGIC;
	c->fd = fd;
	c->srv = s;
	c->peer = *peer;
	c->since_us = conn_now_us();
	outq_init(&c->out);
	event_assign(&c->io, s->base, fd, EV_READ | EV_PERSIST, conn_on_io, c);
	evtimer_assign(&c->timer, s->base, conn_on_timer, c);
	TAILQ_INSERT_TAIL(&s->conns, c, entry);
	s->count.open++;
	conn_wait(c);
	conn_arm(c);
	if (c->broken) {
		conn_free(c);
		return NULL;
	}
	return c;
}

void
conn_free(struct conn *c)
{
	struct http_server *s = c->srv;
	struct linger rst = { 1, 0 };

	serve_lost(c);
	event_del(&c->io);
	event_del(&c->timer);
	if (c->reset)
		(void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &rst, sizeof(rst));
	close(c->fd);
	TAILQ_REMOVE(&s->conns, c, entry);
	s->count.open--;
	if (c->refused)
		s->nrefused--;
	outq_clear(&c->out);
	buf_wipe(&c->in);
	c->magic = 0;
	free(c);
	if (s->stopping)
		server_later(s);
}
