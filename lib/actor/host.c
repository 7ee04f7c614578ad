#include "lib/actor/host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "lib/actor/inside.h"
#include "lib/actor/trace.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

/* ---- who is connected ---- */

static void
trace_link(const char *what, const struct rpc_peer *p)
{
	if (trace_on(TRACE_LINK))
		log_event(LOG_LEVEL_INFO, "trace_link", LOG_STR("what", what),
		    LOG_STR("peer", rpc_peer_address(p)), LOG_INT("peerPid", rpc_peer_pid(p)));
}

/* Lengths only: bodies may hold secrets. */
static void
conn_on_trace(void *arg, struct rpc_peer *p, char dir, const char *body, size_t n)
{
	char arrow[2] = { dir, '\0' };

	(void)arg;
	(void)body;
	log_event(LOG_LEVEL_INFO, "trace_wire", LOG_STR("dir", arrow),
	    LOG_STR("peer", rpc_peer_address(p)), LOG_INT("bytes", n));
}

static void
conn_on_close(void *arg, struct rpc_peer *p, int err)
{
	struct conn *c = arg;
	struct actor *a = c->actor;

	(void)err;
	LIST_REMOVE(c, entry);
	a->nconns--;
	trace_link("closed", p);
	if (a->desc->on_peer_down != NULL)
		a->desc->on_peer_down(a->ctx, p);
	(void)rpc_peer_free(c->peer);
	free(c);
}

static void
conn_on_request(void *arg, struct rpc_peer *p, struct rpc_request *req)
{
	struct conn *c = arg;

	actor_on_request(c->actor, p, req);
}

static void
actor_on_peer(void *arg, struct rpc_peer *p)
{
	const struct rpc_peer_ops ops = { .on_request = conn_on_request,
		.on_close = conn_on_close,
		.on_trace = trace_on(TRACE_WIRE) ? conn_on_trace : NULL };
	struct actor *a = arg;
	struct conn *c = mem_calloc(1, sizeof(*c));

	OBJ_CHECK(a, ACTOR_MAGIC);
	if (c == NULL) {
		(void)rpc_peer_free(p);
		return;
	}
	c->actor = a;
	c->peer = p;
	LIST_INSERT_HEAD(&a->conns, c, entry);
	a->nconns++;
	rpc_peer_set_ops(p, &ops, c);
	trace_link("accepted", p);
	if (a->desc->on_peer_up != NULL)
		a->desc->on_peer_up(a->ctx, p);
}

int
actor_check_hello(const struct actor *a, const struct hello *h)
{
	const void *pid;

	/* A run proves itself by its lease, ctl by its uid. */
	if (h->role == ROLE_RUN || h->role == ROLE_CTL)
		return 0;
	if (h->role == ROLE_SUPERVISOR)
		return a->supervisor_pid != 0 && h->pid != a->supervisor_pid ? E_PEER : 0;
	pid = map_get(a->announced, h->address);
	return (intptr_t)pid == (intptr_t)h->pid ? 0 : E_PEER;
}

static int
actor_on_check(void *arg, struct rpc_peer *p, const struct hello *h)
{
	struct actor *a = arg;

	OBJ_CHECK(a, ACTOR_MAGIC);
	if (a->nconns >= ACTOR_CONNS_MAX)
		return E_OVERLOADED;
	return a->desc->check != NULL ? a->desc->check(a->ctx, p, h) : actor_check_hello(a, h);
}

int
actor_announce(struct actor *a, const char *address, pid_t pid)
{
	if (pid == 0) {
		(void)map_remove(a->announced, address);
		return 0;
	}
	return map_set(a->announced, address, (void *)(intptr_t)pid);
}

struct rpc_peer *
actor_peer(const struct actor *a, const char *address)
{
	const struct conn *c;

	LIST_FOREACH (c, &a->conns, entry)
		if (rpc_peer_is_open(c->peer) &&
		    strcmp(rpc_peer_address(c->peer), address) == 0)
			return c->peer;
	return NULL;
}

struct rpc_peer *
actor_peer_next(const struct actor *a, size_t *at)
{
	const struct conn *c;
	size_t i = 0;

	LIST_FOREACH (c, &a->conns, entry)
		if (i++ == *at) {
			++*at;
			return c->peer;
		}
	return NULL;
}

/* ---- connections of ours ---- */

static void
out_on_up(void *arg, struct link *l, struct rpc_peer *p)
{
	struct out_link *o = arg;

	trace_link("up", p);
	if (o->ops.on_up != NULL)
		o->ops.on_up(o->arg, l, p);
}

static void
out_on_down(void *arg, struct link *l, int err)
{
	struct out_link *o = arg;

	if (o->ops.on_down != NULL)
		o->ops.on_down(o->arg, l, err);
}

static void
out_on_request(void *arg, struct rpc_peer *p, struct rpc_request *req)
{
	struct out_link *o = arg;

	actor_on_request(o->actor, p, req);
}

/* A name in the directory is not enough: its holder must be who the supervisor says. */
static int
out_check(void *arg, const char *address, pid_t pid)
{
	struct out_link *o = arg;
	const struct actor *a = o->actor;
	const void *known = map_get(a->announced, address);

	if (link_address_role(address) == ROLE_SUPERVISOR && a->supervisor_pid != 0 &&
	    pid != a->supervisor_pid)
		return E_PEER;
	if (known != NULL && (intptr_t)known != (intptr_t)pid)
		return E_PEER;
	return o->ops.check != NULL ? o->ops.check(o->arg, address, pid) : 0;
}

struct link *
actor_link(struct actor *a, const char *to, const struct link_ops *ops, void *arg)
{
	static const struct link_ops outer = { out_on_up, out_on_down, out_on_request,
		out_check };
	struct link_desc desc = {
		.dirfd = a->dirfd, .to = to, .role = a->desc->role, .address = a->address
	};
	struct out_link *o = a->ended ? NULL : mem_calloc(1, sizeof(*o));

	if (o == NULL)
		return NULL;
	o->actor = a;
	o->ops = ops != NULL ? *ops : (struct link_ops) { .on_up = NULL };
	o->arg = arg;
	o->link = link_new(a->base, &desc, &outer, o);
	if (o->link == NULL) {
		free(o);
		return NULL;
	}
	LIST_INSERT_HEAD(&a->links, o, entry);
	return o->link;
}

struct link *
actor_unlink(struct actor *a, struct link *l)
{
	struct out_link *o;

	LIST_FOREACH (o, &a->links, entry)
		if (o->link == l)
			break;
	if (o != NULL) {
		LIST_REMOVE(o, entry);
		(void)link_free(o->link);
		free(o);
	}
	return NULL;
}

/* ---- life ---- */

static int
take_lock(struct actor *a, const char *path)
{
	return path == NULL ? 0 : io_lock_file(AT_FDCWD, path, &a->lock_fd);
}

static int
open_store(struct actor *a, const char *path, char **ret_why)
{
	int r;

	if (a->desc->store == NULL)
		return 0;
	a->store_path = mem_strdup(path);
	if (a->store_path == NULL)
		return E_NOMEM;
	r = outage_open(a, &a->store, ret_why);
	if (r < 0)
		return r;
	a->batch = batch_new(a->store);
	return a->batch == NULL ? E_NOMEM : 0;
}

/* Who has no lock does not stay: it would open the store later, beside another. */
static int
open_or_stay(struct actor *a, const struct actor_place *place, char **ret_why)
{
	int r = open_store(a, place->store_path, ret_why);

	if (!place->stays || (r != E_CORRUPT && r != E_STORAGE && r != E_FULL))
		return r;
	return outage_begin(a, r, TAKE_PTR(*ret_why));
}

/* One thread, few descriptors: no locks, and no change list that costs a call each. */
static struct event_base *
make_base(void)
{
	struct event_config *config = event_config_new();
	struct event_base *base;

	if (config == NULL)
		return NULL;
	(void)event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
	base = event_base_new_with_config(config);
	event_config_free(config);
	return base;
}

static int
make_loop(struct actor *a, const char *runtime_dir)
{
	static const struct listener_ops ops = { .check = actor_on_check,
		.on_peer = actor_on_peer };
	struct listener_desc desc = { .address = a->address };

	a->base = make_base();
	if (a->base == NULL)
		return E_NOMEM;
	event_assign(&a->ev_commit, a->base, -1, 0, turn_on_commit, a);
	drain_init(a);
	outage_init(a);
	full_init(a);
	address_init(a);
	signals_init(a);
	a->dirfd = io_open_dir(AT_FDCWD, runtime_dir);
	if (a->dirfd < 0)
		return err_from_errno(errno);
	desc.dirfd = a->dirfd;
	return listener_new(a->base, &desc, &ops, a, &a->listener);
}

static int
make_parts(struct actor *a, const struct actor_place *place)
{
	const struct actor_desc *desc = a->desc;
	int r;

	a->address = mem_strdup(place->address);
	a->runtime_dir = mem_strdup(place->runtime_dir);
	a->methods = map_new();
	a->announced = map_new();
	a->arena = arena_new();
	if (a->address == NULL || a->runtime_dir == NULL || a->methods == NULL ||
	    a->announced == NULL || a->arena == NULL)
		return E_NOMEM;
	r = builtin_add(a);
	if (r == 0 && desc->methods != NULL)
		r = methods_add(a, desc->methods, *desc->nmethods, 0);
	return r;
}

int
actor_new(const struct actor_desc *desc, const struct actor_place *place,
    struct actor **ret_actor, char **ret_why)
{
	struct actor *a = mem_calloc(1, sizeof(*a));
	const char *what = "memory";
	char *why = NULL;
	int r = E_NOMEM;

	if (a != NULL) {
		a->magic = ACTOR_MAGIC;
		a->desc = desc;
		a->lock_fd = a->dirfd = -1;
		a->supervisor_pid = place->supervisor_pid;
		a->started_ms = clock_wall_ms();
		a->started = clock_mono();
		a->batch_us = ACTOR_BATCH_US;
		r = make_parts(a, place);
	}
	if (r == 0 && (r = take_lock(a, place->lock_path)) < 0)
		what = place->lock_path;
	if (r == 0 && (r = open_or_stay(a, place, &why)) < 0)
		what = place->store_path;
	if (r == 0 && (r = make_loop(a, place->runtime_dir)) < 0)
		what = place->runtime_dir;
	if (r < 0) {
		*ret_why = why != NULL ? why : mem_format("%s: %s", what, err_text(r));
		(void)actor_free(a);
		return r;
	}
	free(why);
	*ret_actor = a;
	return 0;
}

/* Callbacks that are owed by connections run from the loop: rounds without waiting.  They look
 * for the links that their owners keep, which are still there. */
static void
let_go(struct actor *a)
{
	struct out_link *o;
	struct conn *c;

	a->ended = 1;
	if (a->base != NULL)
		signals_done(a);
	backup_stop(a);
	a->worker = worker_free(a->worker);
	a->aside = worker_free(a->aside);
	LIST_FOREACH (o, &a->links, entry)
		link_close(o->link);
	while ((c = LIST_FIRST(&a->conns)) != NULL) {
		LIST_REMOVE(c, entry);
		a->nconns--;
		(void)rpc_peer_free(c->peer);
		free(c);
	}
	a->listener = listener_free(a->listener);
	if (a->base != NULL)
		actor_step(a);
	if (a->batch != NULL)
		(void)turn_commit(a);
	if (a->base != NULL)
		actor_step(a);
}

struct actor *
actor_free(struct actor *a)
{
	if (a == NULL)
		return NULL;
	OBJ_CHECK(a, ACTOR_MAGIC);
	let_go(a);
	while (!LIST_EMPTY(&a->links))
		(void)actor_unlink(a, LIST_FIRST(&a->links)->link);
	outage_end(a);
	if (a->base != NULL) {
		(void)event_del(&a->ev_commit);
		(void)event_del(&a->ev_drain);
		(void)event_del(&a->ev_address);
		full_done(a);
		event_base_free(a->base);
	}
	round_done(a);
	a->batch = batch_free(a->batch);
	a->checkpointer = checkpointer_stop(a->checkpointer);
	a->store = store_close(a->store);
	methods_free(a);
	a->announced = map_free(a->announced);
	a->arena = arena_free(a->arena);
	io_close(&a->dirfd);
	io_close(&a->lock_fd);
	free(a->store_path);
	free(a->address);
	free(a->runtime_dir);
	a->magic = 0;
	free(a);
	return NULL;
}

void
actor_set_ctx(struct actor *a, void *ctx)
{
	a->ctx = ctx;
}

void
actor_step(struct actor *a)
{
	OBJ_CHECK(a, ACTOR_MAGIC);
	(void)event_base_loop(a->base, EVLOOP_NONBLOCK);
}

int
actor_run(struct actor *a)
{
	OBJ_CHECK(a, ACTOR_MAGIC);
	address_begin(a);
	while (!a->stopping)
		if (event_base_loop(a->base, EVLOOP_NO_EXIT_ON_EMPTY) < 0)
			return ACTOR_EXIT_RESTART;
	(void)turn_commit(a);
	let_go(a);
	return a->status;
}

void
actor_stop(struct actor *a, int status)
{
	if (a->stopping)
		return;
	a->stopping = 1;
	a->status = status;
	(void)event_base_loopexit(a->base, NULL);
}

struct event_base *
actor_loop(const struct actor *a)
{
	return a->base;
}

int
actor_runtime_dirfd(const struct actor *a)
{
	return a->dirfd;
}

int
actor_commit_now(struct actor *a)
{
	OBJ_CHECK(a, ACTOR_MAGIC);
	if (a->outage != NULL)
		return E_STORAGE;
	return a->batch == NULL ? 0 : turn_commit(a);
}

void
actor_truncate_log(struct actor *a)
{
	if (a->checkpointer != NULL)
		checkpointer_truncate(a->checkpointer);
}

int
actor_in_batch(const struct actor *a)
{
	return a->writing;
}
