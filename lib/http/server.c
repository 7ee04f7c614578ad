#include "lib/http/server.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/http/conn.h"

#define ACCEPT_BATCH    64          /* connections of one wake-up */
#define ACCEPT_AGAIN_MS 100         /* pause after descriptors or memory ran out */
#define REFUSED_MAX     64          /* connections that may wait for their 503 to leave */
#define NOTSENT_LOWAT   (64 * 1024) /* bytes that the kernel holds back for a slow client */

struct http_limits
http_limits_default(void)
{
	return (struct http_limits) {
		.target_bytes = 8192,
		.header_bytes = 32768,
		.drop_bytes = 65536,
		.max_conns = 4096,
		.head_ms = 10000,
		.body_idle_ms = 10000,
		.body_ms = 60000,
		.idle_ms = 75000,
		.write_ms = 300000,
		.linger_ms = 5000,
	};
}

/* ---- callbacks that are owed ----------------------------------------------------------- */

/* The callback that ${req} is owed now, if any.  1: it was made, and may have ended others. */
static int
orphan_call(struct http_req *req)
{
	void (*want)(void *, struct http_req *) = req->want_fn;
	http_body_fn *body = req->body_fn;

	if (body != NULL) {
		req->body_fn = NULL;
		body(req->body_arg, req, E_EOF, NULL, 0);
		req->held = 0;
	} else if (req->answer == ANSWER_RAW && !req->input_told) {
		req->input_told = 1;
		req->input_fn(req->input_arg, req, NULL, 0);
	} else if (req->gone_fn != NULL && !req->gone_told) {
		req->gone_told = 1;
		req->gone_fn(req->gone_arg, req);
	} else if (want != NULL && !req->want_told) {
		req->want_fn = NULL;
		req->want_told = 1; /* or a writer that asks again would never end */
		want(req->want_arg, req);
	} else {
		return 0;
	}
	return 1;
}

/* 0: nothing is owed to any. */
static int
orphan_serve_one(struct http_server *s)
{
	struct http_req *req;

	LIST_FOREACH (req, &s->orphans, orphan) {
		if (!req->held) {
			req_free(req, 1);
			return 1;
		}
		if (orphan_call(req))
			return 1;
	}
	return 0;
}

static void
server_on_later(evutil_socket_t fd, short what, void *arg)
{
	struct http_server *s = arg;
	void (*fn)(void *, struct http_server *);

	(void)fd;
	(void)what;
	OBJ_CHECK(s, HTTP_SERVER_MAGIC);
	while (orphan_serve_one(s))
		;
	if (!s->stopping || s->on_stopped == NULL || !TAILQ_EMPTY(&s->conns) ||
	    !LIST_EMPTY(&s->orphans))
		return;
	fn = s->on_stopped;
	s->on_stopped = NULL;
	fn(s->stop_arg, s); /* may free the server */
}

void
server_later(struct http_server *s)
{
	event_active(&s->later, EV_TIMEOUT, 0);
}

/* ---- accepting ------------------------------------------------------------------------- */

static void
socket_tune(int fd, int family)
{
	int on = 1, lowat = NOTSENT_LOWAT;

	if (family == AF_UNIX)
		return;
	/* Each of these may fail without harm. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &lowat, sizeof(lowat));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

/* A new connection; over the limit it only gets its 503. */
static int
server_serve(struct http_server *s, int fd, const struct sockaddr_storage *ss)
{
	int full = s->count.open >= s->limits.max_conns + s->nrefused;
	struct client_addr peer;
	struct conn *c;

	s->count.accepted++;
	s->count.overloaded += (uint64_t)full;
	if (full && s->nrefused >= REFUSED_MAX) {
		close(fd);
		return 0;
	}
	socket_tune(fd, ss->ss_family);
	client_addr_set(&peer, ss);
	c = conn_new(s, fd, &peer);
	if (c == NULL)
		return E_NOMEM;
	if (!full)
		return 0;
	c->refused = 1;
	s->nrefused++;
	c->need_linger = 1;
	c->req = req_new(c);
	if (c->req == NULL)
		c->broken = 1;
	conn_kick(c);
	return 0;
}

static void
listener_on_accept(evutil_socket_t lfd, short what, void *arg)
{
	struct listener *l = arg;
	struct http_server *s = l->srv;
	struct timeval pause = { 0, ACCEPT_AGAIN_MS * 1000 };
	int i, fd;

	(void)what;
	OBJ_CHECK(s, HTTP_SERVER_MAGIC);
	for (i = 0; i < ACCEPT_BATCH; i++) {
		struct sockaddr_storage ss = { 0 };
		socklen_t len = sizeof(ss);

		fd = accept4(
		    lfd, (struct sockaddr *)(void *)&ss, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			(void)server_serve(s, fd, &ss);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
			break;
		if (errno != ECONNABORTED && errno != EINTR)
			return;
	}
	if (i == ACCEPT_BATCH)
		return;
	/* The socket stays readable: without a pause the loop would spin on it. */
	LIST_FOREACH (l, &s->listeners, entry)
		event_del(&l->ev);
	event_add(&s->accept_again, &pause);
}

static void
server_on_accept_again(evutil_socket_t fd, short what, void *arg)
{
	struct http_server *s = arg;
	struct listener *l;

	(void)fd;
	(void)what;
	OBJ_CHECK(s, HTTP_SERVER_MAGIC);
	LIST_FOREACH (l, &s->listeners, entry)
		event_add(&l->ev, NULL);
}

int
http_server_listen(struct http_server *s, int fd)
{
	struct listener *l;
	int on = 0;
	socklen_t len = sizeof(on);

	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on, &len) < 0 || !on)
		return E_INVAL;
	if (io_set_nonblocking(fd) < 0)
		return E_SYS;
	l = mem_calloc(1, sizeof(*l));
	if (l == NULL)
		return E_NOMEM;
	l->srv = s;
	if (event_assign(&l->ev, s->base, fd, EV_READ | EV_PERSIST, listener_on_accept, l) <
		0 ||
	    event_add(&l->ev, NULL) < 0) {
		free(l);
		return E_SYS;
	}
	LIST_INSERT_HEAD(&s->listeners, l, entry);
	return 0;
}

int
http_server_serve_take(struct http_server *s, int fd)
{
	struct sockaddr_storage ss = { 0 };
	socklen_t len = sizeof(ss);

	if (getpeername(fd, (struct sockaddr *)(void *)&ss, &len) < 0 ||
	    io_set_nonblocking(fd) < 0) {
		close(fd);
		return E_SYS;
	}
	return server_serve(s, fd, &ss);
}

/* ---- life ------------------------------------------------------------------------------ */

struct http_server *
http_server_new(
    struct event_base *base, const struct http_limits *limits, const struct http_hooks *hooks)
{
	struct http_server *s = mem_calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->magic = HTTP_SERVER_MAGIC;
	s->base = base;
	s->limits = *limits;
	s->hooks = *hooks;
	s->date_s = -1;
	LIST_INIT(&s->listeners);
	TAILQ_INIT(&s->conns);
	LIST_INIT(&s->orphans);
	evtimer_assign(&s->later, base, server_on_later, s);
	evtimer_assign(&s->accept_again, base, server_on_accept_again, s);
	return s;
}

static void
server_stop_listening(struct http_server *s)
{
	struct listener *l;

	while ((l = LIST_FIRST(&s->listeners)) != NULL) {
		LIST_REMOVE(l, entry);
		event_del(&l->ev);
		free(l);
	}
	event_del(&s->accept_again);
}

struct http_server *
http_server_free(struct http_server *s)
{
	struct http_req *req;

	if (s == NULL)
		return NULL;
	OBJ_CHECK(s, HTTP_SERVER_MAGIC);
	server_stop_listening(s);
	s->stopping = 1;
	while (!TAILQ_EMPTY(&s->conns))
		conn_free(TAILQ_FIRST(&s->conns));
	while (orphan_serve_one(s))
		;
	while ((req = LIST_FIRST(&s->orphans)) != NULL) {
		LIST_REMOVE(req, orphan);
		req->srv = NULL;
	}
	event_del(&s->later);
	client_proxies_done(&s->proxies);
	buf_done(&s->head);
	s->magic = 0;
	return mem_free(s);
}

int
http_server_trust(struct http_server *s, const char *cidr)
{
	return client_proxies_add(&s->proxies, cidr);
}

void
http_server_stop(
    struct http_server *s, void (*on_stopped)(void *arg, struct http_server *s), void *arg)
{
	struct conn *c;

	if (s->stopping)
		return;
	s->stopping = 1;
	s->on_stopped = on_stopped;
	s->stop_arg = arg;
	server_stop_listening(s);
	TAILQ_FOREACH (c, &s->conns, entry)
		conn_kick(c);
	server_later(s);
}

void
http_server_counters(const struct http_server *s, struct http_counters *ret)
{
	*ret = s->count;
}

const char *
server_date(struct http_server *s)
{
	int64_t now_s = clock_wall_ms() / 1000;
	time_t t = (time_t)now_s;
	struct tm tm;

	if (now_s != s->date_s) {
		s->date_s = now_s;
		gmtime_r(&t, &tm);
		/* The C locale's names, which are those that HTTP wants: nothing sets another. */
		strftime(s->date, sizeof(s->date), "%a, %d %b %Y %H:%M:%S GMT", &tm);
	}
	return s->date;
}
