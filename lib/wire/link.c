#include "lib/wire/link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/wire/hello.h"

/* Outlives the link when that is freed before its hello is answered. */
struct hello_wait {
	struct link *link; /* NULL: nobody waits any more. */
};

struct link {
	uint32_t magic;
#define LINK_MAGIC 0x11c7b0e5
	struct event_base *base;
	int dirfd;
	char *to, *address;
	char socket[RPC_ADDRESS_SIZE + 8];
	enum rpc_role role;
	int once;
	int closed; /* For good. */
	struct link_ops ops;
	void *arg;
	struct rpc_peer *peer;   /* Owned; from connect() on.                     */
	struct hello_wait *wait; /* Until the answer to our hello; freed by it.   */
	int up;                  /* The hello has been accepted.                  */
	int told;                /* on_down has run for this stretch of failures. */
	int err;
	struct event ev_retry; /* Pending: waits; active: connects.  */
	int64_t backoff_ms;
};

static void link_connect(struct link *l);

/* Lets the connection go; its callbacks come no more. */
static void
drop_peer(struct link *l)
{
	if (l->wait != NULL)
		l->wait->link = NULL;
	l->wait = NULL;
	l->peer = rpc_peer_free(l->peer);
	l->up = 0;
}

/* Last act of a callback: on_down may free the link. */
static void
link_failed(struct link *l, int err)
{
	int64_t ms = l->up ? LINK_BACKOFF_MS : l->backoff_ms;
	struct timeval tv = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };
	int news = l->up || !l->told;

	drop_peer(l);
	l->err = err;
	l->told = 1;
	l->backoff_ms = min_i64(ms * 2, LINK_BACKOFF_MAX_MS);
	if (!l->once)
		(void)evtimer_add(&l->ev_retry, &tv);
	if (news && l->ops.on_down != NULL)
		l->ops.on_down(l->arg, l, err);
}

static void
link_on_close(void *arg, struct rpc_peer *p, int err)
{
	struct link *l = arg;

	OBJ_CHECK(l, LINK_MAGIC);
	must(p == l->peer);
	link_failed(l, err);
}

static void
link_on_request(void *arg, struct rpc_peer *p, struct rpc_request *req)
{
	struct link *l = arg;

	OBJ_CHECK(l, LINK_MAGIC);
	if (!l->up)
		rpc_reply_error(req, E_DENIED, "the hello has not been answered", NULL);
	else if (l->ops.on_request == NULL)
		rpc_reply_error(req, E_METHOD, NULL, NULL);
	else
		l->ops.on_request(l->arg, p, req);
}

static int
check_answer(struct link *l, const struct rpc_answer *a)
{
	const char *address;
	pid_t pid;
	uid_t uid;
	int r = a->err;

	if (r == 0)
		r = hello_read_result(a->result, &address);
	if (r == 0 && strcmp(address, l->to) != 0)
		r = E_PEER;
	if (r == 0)
		r = rpc_peer_cred(l->peer, &pid, &uid);
	if (r == 0 && l->ops.check != NULL)
		r = l->ops.check(l->arg, address, pid);
	if (r == 0)
		rpc_peer_set_identity(
		    l->peer, (enum rpc_role)link_address_role(address), address, pid);
	return r;
}

static void
link_on_hello(void *arg, const struct rpc_answer *a)
{
	struct hello_wait *wait = arg;
	struct link *l = wait->link;
	int r;

	free(wait);
	if (l == NULL)
		return;
	OBJ_CHECK(l, LINK_MAGIC);
	l->wait = NULL;
	r = check_answer(l, a);
	if (r < 0) {
		link_failed(l, r);
		return;
	}
	l->up = 1;
	l->told = 0;
	l->err = 0;
	l->backoff_ms = LINK_BACKOFF_MS;
	if (l->ops.on_up != NULL)
		l->ops.on_up(l->arg, l, l->peer);
}

static int
say_hello(struct link *l)
{
	static const struct rpc_call_opts opts = { .deadline_ms = LINK_HELLO_MS };
	CLEANUP(buf_done) struct buf params = BUF_INIT;
	int r;

	l->wait = mem_calloc(1, sizeof(*l->wait));
	if (l->wait == NULL)
		return E_NOMEM;
	l->wait->link = l;
	(void)hello_write_params(&params, l->role, l->address);
	r = rpc_send(l->peer, HELLO_METHOD, &params, &opts, link_on_hello, l->wait);
	if (r < 0) {
		free(l->wait);
		l->wait = NULL;
	}
	return r;
}

static int
open_socket(const struct link *l, int *ret_fd)
{
	CLEANUP(io_closep)
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct sockaddr_un to;
	int r = hello_sockaddr(l->dirfd, l->socket, &to);

	if (r < 0)
		return r;
	if (fd < 0)
		return err_from_errno(errno);
	if (connect(fd, (const struct sockaddr *)(const void *)&to, sizeof(to)) < 0)
		return errno == ENOENT ? E_NOENT : E_LINK;
	*ret_fd = fd;
	fd = -1;
	return 0;
}

static int
try_connect(struct link *l)
{
	static const struct rpc_peer_ops ops = { .on_request = link_on_request,
		.on_close = link_on_close };
	int fd = -1, r = open_socket(l, &fd);

	if (r < 0)
		return r;
	l->peer = rpc_peer_new(l->base, fd, &ops, l);
	if (l->peer == NULL) {
		io_close(&fd);
		return E_NOMEM;
	}
	r = hello_check_uid(l->peer);
	return r < 0 ? r : say_hello(l);
}

static void
link_connect(struct link *l)
{
	int r = try_connect(l);

	if (r < 0)
		link_failed(l, r);
}

static void
link_on_retry(evutil_socket_t fd, short what, void *arg)
{
	struct link *l = arg;

	(void)fd;
	(void)what;
	OBJ_CHECK(l, LINK_MAGIC);
	if (l->peer == NULL)
		link_connect(l);
}

struct link *
link_new(struct event_base *base, const struct link_desc *desc, const struct link_ops *ops,
    void *arg)
{
	struct link *l = mem_calloc(1, sizeof(*l));

	if (l == NULL)
		return NULL;
	l->magic = LINK_MAGIC;
	l->base = base;
	l->dirfd = desc->dirfd;
	l->role = desc->role;
	l->once = desc->once;
	l->ops = *ops;
	l->arg = arg;
	l->backoff_ms = LINK_BACKOFF_MS;
	evtimer_assign(&l->ev_retry, base, link_on_retry, l);
	l->to = mem_strdup(desc->to);
	l->address = mem_strdup(desc->address);
	if (l->to == NULL || l->address == NULL || link_socket_name(l->to, l->socket) < 0)
		return link_free(l);
	event_active(&l->ev_retry, EV_TIMEOUT, 0);
	return l;
}

void
link_close(struct link *l)
{
	OBJ_CHECK(l, LINK_MAGIC);
	l->closed = 1;
	drop_peer(l);
	(void)event_del(&l->ev_retry);
}

struct link *
link_free(struct link *l)
{
	if (l == NULL)
		return NULL;
	link_close(l);
	free(l->to);
	free(l->address);
	l->magic = 0;
	free(l);
	return NULL;
}

struct rpc_peer *
link_peer(const struct link *l)
{
	return l->up && rpc_peer_is_open(l->peer) ? l->peer : NULL;
}

void
link_retry(struct link *l)
{
	l->backoff_ms = LINK_BACKOFF_MS;
	if (l->peer == NULL && !l->closed)
		event_active(&l->ev_retry, EV_TIMEOUT, 0);
}

int
link_error(const struct link *l)
{
	return l->up ? 0 : l->err;
}

const char *
link_to(const struct link *l)
{
	return l->to;
}
