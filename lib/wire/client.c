#include "lib/wire/client.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <event2/event.h>

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/wire/codec.h"
#include "lib/wire/link.h"

#define CLIENT_ADDRESS "ctl"

/* A connection.  After it went down the entry is made anew by the next call. */
struct client_link {
	uint32_t magic;
#define CLIENT_LINK_MAGIC 0x2d90c4b7
	LIST_ENTRY(client_link) entry;
	struct client *client;
	struct link *link; /* Owned. */
	int up;
	uint64_t nevents; /* Notifications that have come. */
	int err;          /* Why it is not; 0 while that is open. */
};

/* JSON trees that replies have lent. */
struct kept {
	SLIST_ENTRY(kept) entry;
	json_t *json; /* Owned. */
};

struct client {
	struct event_base *base;
	int dirfd;
	LIST_HEAD(, client_link) links;
	SLIST_HEAD(, kept) kept;
	struct arena *arena; /* Texts of replies. */
	client_event_fn *on_event;
	void *arg;
};

/* A call that is waited for; lives on the stack of client_call(). */
struct waiting {
	struct client *client;
	struct client_reply *reply;
	int done;
};

struct client *
client_new(int dirfd)
{
	struct client *c = mem_calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->dirfd = dirfd;
	c->base = event_base_new();
	c->arena = arena_new();
	return c->base != NULL && c->arena != NULL ? c : client_free(c);
}

static void
drop_link(struct client_link *l)
{
	LIST_REMOVE(l, entry);
	(void)link_free(l->link);
	l->magic = 0;
	free(l);
}

struct client *
client_free(struct client *c)
{
	if (c == NULL)
		return NULL;
	while (!LIST_EMPTY(&c->links))
		drop_link(LIST_FIRST(&c->links));
	client_forget(c);
	if (c->base != NULL) {
		/* Closed peers say good-bye from the loop. */
		(void)event_base_loop(c->base, EVLOOP_NONBLOCK);
		event_base_free(c->base);
	}
	(void)arena_free(c->arena);
	free(c);
	return NULL;
}

/* ---- connecting ---- */

static void
on_up(void *arg, struct link *link, struct rpc_peer *p)
{
	struct client_link *l = arg;

	(void)link;
	(void)p;
	OBJ_CHECK(l, CLIENT_LINK_MAGIC);
	l->up = 1;
}

static void
on_down(void *arg, struct link *link, int err)
{
	struct client_link *l = arg;

	(void)link;
	OBJ_CHECK(l, CLIENT_LINK_MAGIC);
	l->up = 0;
	l->err = err;
}

static void
on_request(void *arg, struct rpc_peer *p, struct rpc_request *req)
{
	struct client_link *l = arg;
	struct client *c = l->client;

	OBJ_CHECK(l, CLIENT_LINK_MAGIC);
	if (!req->notification) {
		rpc_reply_error(req, E_METHOD, NULL, NULL);
		return;
	}
	l->nevents++;
	if (c->on_event != NULL)
		c->on_event(c->arg, rpc_peer_address(p), req->method, req->params);
	rpc_reply(req, "", 0); /* says that we are through with it */
}

static struct client_link *
find_link(struct client *c, const char *address)
{
	struct client_link *l;

	LIST_FOREACH (l, &c->links, entry)
		if (strcmp(link_to(l->link), address) == 0)
			return l;
	return NULL;
}

static struct client_link *
open_link(struct client *c, const char *address)
{
	static const struct link_ops ops = {
		.on_up = on_up, .on_down = on_down, .on_request = on_request
	};
	struct link_desc desc = { .dirfd = c->dirfd,
		.to = address,
		.role = ROLE_CTL,
		.address = CLIENT_ADDRESS,
		.once = 1 };
	struct client_link *l = mem_calloc(1, sizeof(*l));

	if (l == NULL)
		return NULL;
	l->magic = CLIENT_LINK_MAGIC;
	l->client = c;
	l->link = link_new(c->base, &desc, &ops, l);
	if (l->link == NULL) {
		free(l);
		return NULL;
	}
	LIST_INSERT_HEAD(&c->links, l, entry);
	return l;
}

/* A link that is up, or why there is none. */
static int
get_link(struct client *c, const char *address, struct client_link **ret_link)
{
	char name[RPC_ADDRESS_SIZE + 8];
	struct client_link *l = find_link(c, address);
	int r = link_socket_name(address, name);

	if (r < 0)
		return r;
	if (l != NULL && link_peer(l->link) == NULL) {
		drop_link(l);
		l = NULL;
	}
	if (l == NULL)
		l = open_link(c, address);
	if (l == NULL)
		return E_NOMEM;
	while (!l->up && l->err == 0)
		if (event_base_loop(c->base, EVLOOP_ONCE) != 0)
			l->err = E_SYS;
	if (l->up) {
		*ret_link = l;
		return 0;
	}
	r = l->err;
	drop_link(l);
	return r;
}

int
client_connect(struct client *c, const char *address)
{
	struct client_link *l;

	return get_link(c, address, &l);
}

/* ---- calling ---- */

/* Keeps ${j} until client_forget(); NULL: there is none, or no memory. */
static const json_t *
keep(struct client *c, const json_t *j)
{
	struct kept *k = j != NULL ? mem_calloc(1, sizeof(*k)) : NULL;

	if (k == NULL)
		return NULL;
	k->json = json_incref((json_t *)(uintptr_t)j);
	SLIST_INSERT_HEAD(&c->kept, k, entry);
	return j;
}

static void
on_answer(void *arg, const struct rpc_answer *a)
{
	struct waiting *w = arg;
	struct client_reply *reply = w->reply;

	w->done = 1;
	reply->err = a->err;
	if (a->err < 0) {
		reply->message = arena_strdup(w->client->arena, a->message);
		reply->data = keep(w->client, a->data);
		return;
	}
	reply->result = keep(w->client, a->result);
	if (reply->result == NULL)
		reply->err = E_NOMEM;
}

int
client_call(struct client *c, const char *address, const char *method, const struct buf *params,
    int64_t deadline_ms, struct client_reply *ret)
{
	struct rpc_call_opts opts = { .deadline_ms = deadline_ms };
	struct waiting w = { .client = c, .reply = ret };
	struct client_link *l = NULL;

	*ret = (struct client_reply) { .err = get_link(c, address, &l) };
	if (ret->err < 0)
		return ret->err;
	must(l != NULL);
	ret->reached = 1;
	ret->err = rpc_send(link_peer(l->link), method, params, &opts, on_answer, &w);
	/* The deadline sees to it that this ends. */
	while (ret->err == 0 && !w.done)
		must(event_base_loop(c->base, EVLOOP_ONCE) == 0);
	return ret->err;
}

int
client_call_as(struct client *c, const char *address, const struct rpc_contract *m,
    const void *params, int64_t deadline_ms, struct client_reply *ret, void *ret_result)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct codec codec;

	*ret = (struct client_reply) { .err = codec_encode(&text, m->params, params) };
	if (ret->err < 0 || client_call(c, address, m->name, &text, deadline_ms, ret) < 0)
		return ret->err;
	codec_init(&codec, c->arena, NULL);
	codec.lenient = 1;
	ret->err = codec_decode(&codec, m->result, ret->result, ret_result);
	return ret->err;
}

void
client_on_event(struct client *c, client_event_fn *fn, void *arg)
{
	c->on_event = fn;
	c->arg = arg;
}

int
client_notify_as(
    struct client *c, const char *address, const struct rpc_contract *m, const void *params)
{
	const struct client_link *l = find_link(c, address);
	struct rpc_peer *p = l != NULL ? link_peer(l->link) : NULL;

	return p != NULL ? stub_notify(p, m->name, m->params, params, NULL) : E_LINK;
}

int
client_wait(struct client *c, const char *address)
{
	const struct client_link *l = find_link(c, address);
	uint64_t before = l != NULL ? l->nevents : 0;

	/* Entries go in client_call() and client_connect() alone, which nobody runs meanwhile. */
	while (l != NULL && l->nevents == before && link_peer(l->link) != NULL)
		if (event_base_loop(c->base, EVLOOP_ONCE) != 0)
			return E_LINK;
	return l != NULL && l->nevents != before ? 0 : E_LINK;
}

void
client_forget(struct client *c)
{
	while (!SLIST_EMPTY(&c->kept)) {
		struct kept *k = SLIST_FIRST(&c->kept);

		SLIST_REMOVE_HEAD(&c->kept, entry);
		json_decref(k->json);
		free(k);
	}
	if (c->arena != NULL)
		arena_reset(c->arena);
}

static void
on_pause_end(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	*(int *)arg = 1;
}

void
client_pause(struct client *c, int64_t ms)
{
	struct timeval tv = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };
	int over = 0;

	if (event_base_once(c->base, -1, EV_TIMEOUT, on_pause_end, &over, &tv) < 0)
		return;
	while (!over)
		must(event_base_loop(c->base, EVLOOP_ONCE) == 0);
}
