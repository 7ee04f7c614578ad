#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/wire/hello.h"

#define WAITING_MAX     64 /* Connections without a hello; the oldest goes first. */
#define ACCEPTS_AT_ONCE 16
#define PAUSE_MS        100 /* Out of descriptors: accept again so much later. */

/* A connection that has not said hello. */
struct waiting {
	TAILQ_ENTRY(waiting) entry;
	struct listener *listener;
	struct rpc_peer *peer; /* Owned. */
	int64_t until_us;
};

struct listener {
	uint32_t magic;
#define LISTENER_MAGIC 0x4d1e52a9
	struct event_base *base;
	int dirfd, fd;
	char *address;
	char socket[RPC_ADDRESS_SIZE + 8];
	dev_t dev; /* Of the socket's name, to see whether it is still ours. */
	ino_t ino;
	struct event ev_accept;
	struct event ev_timer; /* For the oldest waiting, or the end of a pause. */
	int paused;
	struct listener_ops ops;
	void *arg;
	TAILQ_HEAD(, waiting) waiting;
	size_t nwaiting;
};

static void
waiting_free(struct waiting *w)
{
	TAILQ_REMOVE(&w->listener->waiting, w, entry);
	w->listener->nwaiting--;
	w->peer = rpc_peer_free(w->peer);
	free(w);
}

static void
timer_set(struct listener *l)
{
	const struct waiting *w = TAILQ_FIRST(&l->waiting);
	int64_t us;
	struct timeval tv;

	if (w == NULL || evtimer_pending(&l->ev_timer, NULL))
		return;
	us = max_i64(w->until_us - clock_mono().us, 1000);
	tv = (struct timeval) { .tv_sec = us / 1000000, .tv_usec = us % 1000000 };
	(void)evtimer_add(&l->ev_timer, &tv);
}

static void
waiting_on_close(void *arg, struct rpc_peer *p, int err)
{
	(void)p;
	(void)err;
	waiting_free(arg);
}

/* Says why and hangs up; on_close frees what is left. */
static void
refuse(struct rpc_request *req, struct rpc_peer *p, int err, const char *message)
{
	rpc_reply_error(req, err, message, NULL);
	rpc_peer_finish(p, err);
}

static int
check_hello(
    struct listener *l, struct rpc_peer *p, const struct rpc_request *req, struct hello *ret)
{
	pid_t pid;
	uid_t uid;
	int r = hello_check_uid(p);

	if (r == 0)
		r = hello_read_params(req->params, ret);
	if (r == 0 && (rpc_peer_cred(p, &pid, &uid) < 0 || pid != ret->pid))
		r = E_DENIED;
	if (r == 0 && l->ops.check != NULL)
		r = l->ops.check(l->arg, p, ret);
	return r;
}

static void
waiting_on_request(void *arg, struct rpc_peer *p, struct rpc_request *req)
{
	CLEANUP(buf_done) struct buf result = BUF_INIT;
	struct waiting *w = arg;
	struct listener *l = w->listener;
	struct hello h;
	int r;

	OBJ_CHECK(l, LISTENER_MAGIC);
	if (req->notification || strcmp(req->method, HELLO_METHOD) != 0) {
		refuse(req, p, E_REQUEST, "a connection begins with hello");
		return;
	}
	r = check_hello(l, p, req, &h);
	if (r == 0)
		r = hello_write_result(&result, l->address);
	if (r < 0) {
		refuse(req, p, r, NULL);
		return;
	}
	rpc_peer_set_identity(p, h.role, h.address, h.pid);
	rpc_reply(req, (const char *)result.data, result.len);
	w->peer = NULL;
	waiting_free(w);
	rpc_peer_set_ops(p, NULL, NULL);
	l->ops.on_peer(l->arg, p);
}

/* Takes ${fd} in any case. */
static void
waiting_new(struct listener *l, int fd)
{
	static const struct rpc_peer_ops ops = { .on_request = waiting_on_request,
		.on_close = waiting_on_close };
	struct waiting *w = mem_calloc(1, sizeof(*w));

	if (w != NULL)
		w->peer = rpc_peer_new(l->base, fd, &ops, w);
	if (w == NULL || w->peer == NULL) {
		free(w);
		io_close(&fd);
		return;
	}
	w->listener = l;
	w->until_us = mono_add_ms(clock_mono(), LINK_HELLO_MS).us;
	TAILQ_INSERT_TAIL(&l->waiting, w, entry);
	if (++l->nwaiting > WAITING_MAX)
		waiting_free(TAILQ_FIRST(&l->waiting));
	timer_set(l);
}

static void
listener_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct listener *l = arg;
	struct waiting *w;

	(void)fd;
	(void)what;
	OBJ_CHECK(l, LISTENER_MAGIC);
	while ((w = TAILQ_FIRST(&l->waiting)) != NULL && w->until_us <= clock_mono().us)
		waiting_free(w);
	if (!l->paused)
		(void)event_add(&l->ev_accept, NULL);
	timer_set(l);
}

static void
listener_on_accept(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval pause = { .tv_usec = PAUSE_MS * 1000 };
	struct listener *l = arg;

	(void)what;
	OBJ_CHECK(l, LISTENER_MAGIC);
	for (int i = 0; i < ACCEPTS_AT_ONCE; i++) {
		int peer = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (peer >= 0) {
			waiting_new(l, peer);
			continue;
		}
		/* The queue stays readable while there are no descriptors: do not spin. */
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
			(void)event_del(&l->ev_accept);
			(void)evtimer_add(&l->ev_timer, &pause);
		}
		return;
	}
}

/* Removes a stale socket, never anything else. */
static int
remove_stale(const struct listener *l)
{
	struct stat st;

	if (fstatat(l->dirfd, l->socket, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_from_errno(errno);
	if (!S_ISSOCK(st.st_mode))
		return E_EXISTS;
	return unlinkat(l->dirfd, l->socket, 0) < 0 ? err_from_errno(errno) : 0;
}

static int
bind_socket(struct listener *l)
{
	CLEANUP(io_closep)
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct sockaddr_un at;
	struct stat st;
	int r = hello_sockaddr(l->dirfd, l->socket, &at);

	if (r == 0)
		r = fd < 0 ? err_from_errno(errno) : remove_stale(l);
	if (r < 0)
		return r;
	/* The mode of the socket becomes that of its name. */
	if (fchmod(fd, 0600) < 0 ||
	    bind(fd, (const struct sockaddr *)(const void *)&at, sizeof(at)) < 0 ||
	    listen(fd, LINK_LISTEN_BACKLOG) < 0 ||
	    fstatat(l->dirfd, l->socket, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_from_errno(errno);
	l->dev = st.st_dev;
	l->ino = st.st_ino;
	if (l->fd >= 0)
		(void)event_del(&l->ev_accept);
	io_close(&l->fd);
	l->fd = fd;
	fd = -1;
	event_assign(
	    &l->ev_accept, l->base, l->fd, EV_READ | EV_PERSIST, listener_on_accept, l);
	return event_add(&l->ev_accept, NULL) < 0 ? E_NOMEM : 0;
}

int
listener_new(struct event_base *base, const struct listener_desc *desc,
    const struct listener_ops *ops, void *arg, struct listener **ret_listener)
{
	struct listener *l = mem_calloc(1, sizeof(*l));
	int r;

	if (l == NULL)
		return E_NOMEM;
	l->magic = LISTENER_MAGIC;
	l->base = base;
	l->dirfd = desc->dirfd;
	l->fd = -1;
	l->ops = *ops;
	l->arg = arg;
	TAILQ_INIT(&l->waiting);
	evtimer_assign(&l->ev_timer, base, listener_on_timer, l);
	l->address = mem_strdup(desc->address);
	r = l->address == NULL ? E_NOMEM : link_socket_name(desc->address, l->socket);
	if (r == 0)
		r = bind_socket(l);
	if (r < 0) {
		(void)listener_free(l);
		return r;
	}
	*ret_listener = l;
	return 0;
}

static int
name_is_ours(const struct listener *l)
{
	struct stat st;

	return fstatat(l->dirfd, l->socket, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    st.st_dev == l->dev && st.st_ino == l->ino;
}

struct listener *
listener_free(struct listener *l)
{
	if (l == NULL)
		return NULL;
	OBJ_CHECK(l, LISTENER_MAGIC);
	while (!TAILQ_EMPTY(&l->waiting))
		waiting_free(TAILQ_FIRST(&l->waiting));
	(void)evtimer_del(&l->ev_timer);
	if (l->fd >= 0) {
		(void)event_del(&l->ev_accept);
		if (name_is_ours(l))
			(void)unlinkat(l->dirfd, l->socket, 0);
	}
	io_close(&l->fd);
	free(l->address);
	l->magic = 0;
	free(l);
	return NULL;
}

void
listener_pause(struct listener *l)
{
	l->paused = 1;
	(void)event_del(&l->ev_accept);
}

int
listener_check(struct listener *l)
{
	int r;

	if (name_is_ours(l))
		return 0;
	r = bind_socket(l);
	return r < 0 ? r : 1;
}

size_t
listener_nwaiting(const struct listener *l)
{
	return l->nwaiting;
}
