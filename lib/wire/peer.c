#include "lib/wire/peer.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"

#define FINISH_MS       1000
#define OUT_EAGER_BYTES (256u << 10) /* Written in the middle of a round. */
#define OUT_KEEP_BYTES  (64u << 10)  /* Storage kept while idle.          */
#define READS_AT_ONCE   8

static void
peer_destroy(struct rpc_peer *p)
{
	frame_in_done(&p->in);
	buf_done(&p->out);
	free(p->calls);
	p->magic = 0;
	free(p);
}

struct rpc_peer *
rpc_peer_ref(struct rpc_peer *p)
{
	OBJ_CHECK(p, RPC_PEER_MAGIC);
	p->refs++;
	return p;
}

struct rpc_peer *
rpc_peer_unref(struct rpc_peer *p)
{
	if (p == NULL)
		return NULL;
	OBJ_CHECK(p, RPC_PEER_MAGIC);
	must(p->refs > 0);
	if (--p->refs == 0) {
		/* An owner leaves by rpc_peer_free(), which tells everybody first. */
		must(p->state == PEER_GONE);
		peer_destroy(p);
	}
	return NULL;
}

void
peer_soon(struct rpc_peer *p)
{
	if (p->soon)
		return;
	p->soon = 1;
	rpc_peer_ref(p);
	event_active(&p->ev_soon, EV_TIMEOUT, 0);
}

void
peer_timer(struct rpc_peer *p, int64_t at_us)
{
	int64_t left = at_us - clock_mono().us;
	struct timeval tv;

	if (at_us >= p->timer_us)
		return;
	p->timer_us = at_us;
	left = max_i64(left, 1000);
	tv.tv_sec = (time_t)(left / 1000000);
	tv.tv_usec = (suseconds_t)(left % 1000000);
	if (evtimer_add(&p->ev_timer, &tv) < 0)
		rpc_peer_close(p, E_NOMEM);
}

void
rpc_peer_close(struct rpc_peer *p, int err)
{
	OBJ_CHECK(p, RPC_PEER_MAGIC);
	if (p->state >= PEER_CLOSED)
		return;
	if (p->state == PEER_OPEN)
		p->err = err;
	p->state = PEER_CLOSED;
	(void)event_del(&p->ev_read);
	(void)event_del(&p->ev_write);
	(void)evtimer_del(&p->ev_timer);
	io_close(&p->fd);
	buf_done(&p->out);
	p->out_at = 0;
	peer_soon(p);
}

void
rpc_peer_finish(struct rpc_peer *p, int err)
{
	OBJ_CHECK(p, RPC_PEER_MAGIC);
	if (p->state != PEER_OPEN)
		return;
	p->err = err;
	p->state = PEER_FINISHING;
	(void)event_del(&p->ev_read);
	(void)evtimer_del(&p->ev_timer);
	p->timer_us = INT64_MAX;
	peer_timer(p, clock_mono().us + FINISH_MS * 1000);
	peer_soon(p);
}

struct rpc_peer *
rpc_peer_free(struct rpc_peer *p)
{
	if (p == NULL)
		return NULL;
	rpc_peer_set_ops(p, NULL, NULL);
	rpc_peer_close(p, E_LINK);
	return rpc_peer_unref(p);
}

void
rpc_peer_set_ops(struct rpc_peer *p, const struct rpc_peer_ops *ops, void *arg)
{
	OBJ_CHECK(p, RPC_PEER_MAGIC);
	p->ops = ops != NULL ? *ops : (struct rpc_peer_ops) { .on_close = NULL };
	p->arg = arg;
}

/* 1 when everything is out, 0 when the socket is full, or the peer has closed. */
static int
write_out(struct rpc_peer *p)
{
	while (p->out_at < p->out.len) {
		ssize_t n = send(
		    p->fd, p->out.data + p->out_at, p->out.len - p->out_at, MSG_NOSIGNAL);

		if (n >= 0) {
			p->out_at += (size_t)n;
			p->stats.bytes_out += (uint64_t)n;
		} else if (errno == EAGAIN) {
			return 0;
		} else if (errno != EINTR) {
			rpc_peer_close(p, E_LINK);
			return 0;
		}
	}
	return 1;
}

static void
peer_flush(struct rpc_peer *p)
{
	if (p->state >= PEER_CLOSED)
		return;
	if (!write_out(p)) {
		if (p->state >= PEER_CLOSED)
			return;
		/* What was written goes when that is the larger part: each byte moves once. */
		if (p->out_at > p->out.len / 2) {
			buf_consume(&p->out, p->out_at);
			p->out_at = 0;
		}
		if (event_add(&p->ev_write, NULL) < 0)
			rpc_peer_close(p, E_NOMEM);
		return;
	}
	(void)event_del(&p->ev_write);
	p->out_at = 0;
	if (p->out.cap > OUT_KEEP_BYTES)
		buf_done(&p->out);
	else
		buf_reset(&p->out);
	if (p->state == PEER_FINISHING)
		rpc_peer_close(p, p->err);
}

int
peer_queue(struct rpc_peer *p, size_t at)
{
	int r = frame_end(&p->out, at);

	if (r < 0)
		return r;
	p->stats.frames_out++;
	if (p->ops.on_trace != NULL)
		p->ops.on_trace(p->arg, p, '>', (char *)p->out.data + at + FRAME_HEAD_BYTES,
		    p->out.len - at - FRAME_HEAD_BYTES);
	if (p->out.len - p->out_at > OUT_EAGER_BYTES &&
	    !event_pending(&p->ev_write, EV_WRITE, NULL))
		peer_flush(p);
	if (p->out.len - p->out_at > RPC_OUT_MAX_BYTES)
		rpc_peer_close(p, E_LINK);
	else if (!p->reading)
		peer_soon(p);
	return 0;
}

static void
peer_on_soon(evutil_socket_t fd, short what, void *arg)
{
	struct rpc_peer *p = arg;

	(void)fd;
	(void)what;
	OBJ_CHECK(p, RPC_PEER_MAGIC);
	p->soon = 0;
	if (p->state == PEER_CLOSED) {
		p->state = PEER_GONE;
		call_fail_all(p, p->err);
		if (p->ops.on_close != NULL)
			p->ops.on_close(p->arg, p, p->err);
		rpc_peer_set_ops(p, NULL, NULL);
	} else if (!event_pending(&p->ev_write, EV_WRITE, NULL)) {
		peer_flush(p);
	}
	rpc_peer_unref(p);
}

static void
peer_on_write(evutil_socket_t fd, short what, void *arg)
{
	struct rpc_peer *p = arg;

	(void)fd;
	(void)what;
	OBJ_CHECK(p, RPC_PEER_MAGIC);
	peer_flush(p);
}

static void
peer_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct rpc_peer *p = arg;

	(void)fd;
	(void)what;
	OBJ_CHECK(p, RPC_PEER_MAGIC);
	p->timer_us = INT64_MAX;
	rpc_peer_ref(p);
	if (p->state == PEER_FINISHING)
		rpc_peer_close(p, p->err);
	else if (p->state == PEER_OPEN)
		call_expire(p);
	rpc_peer_unref(p);
}

/* All frames that are whole.  0, or an error that the connection does not survive. */
static int
read_frames(struct rpc_peer *p)
{
	char *body;
	size_t n;
	int r;

	while (p->state == PEER_OPEN && (r = frame_in_next(&p->in, &body, &n)) != 0) {
		if (r < 0)
			return r;
		p->stats.frames_in++;
		if (p->ops.on_trace != NULL)
			p->ops.on_trace(p->arg, p, '<', body, n);
		r = request_dispatch(p, body, n);
		if (r < 0)
			return r;
	}
	return 0;
}

/* One error, as far as the socket takes it, and the end. */
static void
refuse_and_close(struct rpc_peer *p, int err)
{
	if (p->state != PEER_OPEN)
		return;
	if (err != E_LINK && err != E_NOMEM)
		request_refuse(p, "null", err, NULL);
	(void)write_out(p);
	rpc_peer_close(p, err);
}

/* Reads what fits and serves it.  1: there may be more; 0: that was all; or an error. */
static int
read_some(struct rpc_peer *p)
{
	size_t nroom;
	uint8_t *room = frame_in_room(&p->in, &nroom);
	ssize_t n;
	int r;

	if (room == NULL)
		return E_NOMEM;
	n = read(p->fd, room, nroom);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return E_LINK;
	frame_in_add(&p->in, (size_t)n);
	p->stats.bytes_in += (uint64_t)n;
	r = read_frames(p);
	return r < 0 ? r : (size_t)n == nroom;
}

static void
peer_on_read(evutil_socket_t fd, short what, void *arg)
{
	struct rpc_peer *p = arg;
	int r = 1;

	(void)fd;
	(void)what;
	OBJ_CHECK(p, RPC_PEER_MAGIC);
	rpc_peer_ref(p);
	p->reading = 1;
	/* What came together is served together, within bounds: others wait for their turn. */
	for (int i = 0; r == 1 && p->state == PEER_OPEN && i < READS_AT_ONCE; i++)
		r = read_some(p);
	p->reading = 0;
	if (r < 0)
		refuse_and_close(p, r);
	else if (p->out_at < p->out.len && !event_pending(&p->ev_write, EV_WRITE, NULL))
		peer_flush(p);
	frame_in_idle(&p->in);
	rpc_peer_unref(p);
}

static void
read_cred(struct rpc_peer *p)
{
	struct ucred cred;
	socklen_t size = sizeof(cred);

	if (getsockopt(p->fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0 || cred.pid <= 0)
		return;
	p->has_cred = 1;
	p->cred_pid = cred.pid;
	p->cred_uid = cred.uid;
}

struct rpc_peer *
rpc_peer_new(struct event_base *base, int fd, const struct rpc_peer_ops *ops, void *arg)
{
	struct rpc_peer *p = mem_calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	p->magic = RPC_PEER_MAGIC;
	p->refs = 1;
	p->fd = fd;
	p->base = base;
	p->timer_us = INT64_MAX;
	rpc_peer_set_ops(p, ops, arg);
	frame_in_init(&p->in);
	event_assign(&p->ev_read, base, fd, EV_READ | EV_PERSIST, peer_on_read, p);
	event_assign(&p->ev_write, base, fd, EV_WRITE | EV_PERSIST, peer_on_write, p);
	event_assign(&p->ev_soon, base, -1, 0, peer_on_soon, p);
	evtimer_assign(&p->ev_timer, base, peer_on_timer, p);
	if (io_set_nonblocking(fd) < 0 || io_set_cloexec(fd, 1) < 0 ||
	    event_add(&p->ev_read, NULL) < 0) {
		peer_destroy(p);
		return NULL;
	}
	read_cred(p);
	return p;
}

void
rpc_peer_set_identity(struct rpc_peer *p, enum rpc_role role, const char *address, pid_t pid)
{
	OBJ_CHECK(p, RPC_PEER_MAGIC);
	p->role = (uint32_t)role;
	p->pid = pid;
	(void)snprintf(p->address, sizeof(p->address), "%s", address);
}

uint32_t
rpc_peer_role(const struct rpc_peer *p)
{
	return p->role;
}

const char *
rpc_peer_address(const struct rpc_peer *p)
{
	return p->address;
}

pid_t
rpc_peer_pid(const struct rpc_peer *p)
{
	return p->pid;
}

int
rpc_peer_cred(const struct rpc_peer *p, pid_t *ret_pid, uid_t *ret_uid)
{
	if (!p->has_cred)
		return E_SYS;
	*ret_pid = p->cred_pid;
	*ret_uid = p->cred_uid;
	return 0;
}

int
rpc_peer_is_open(const struct rpc_peer *p)
{
	return p->state == PEER_OPEN;
}

void
rpc_peer_stats(const struct rpc_peer *p, struct rpc_peer_stats *ret)
{
	*ret = p->stats;
	ret->queued_bytes = p->out.len - p->out_at;
}
