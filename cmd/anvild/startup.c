#include "cmd/anvild/startup.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "cmd/anvild/check.h"
#include "cmd/anvild/child.h"
#include "cmd/anvild/drain.h"
#include "cmd/anvild/errand.h"
#include "cmd/anvild/exits.h"
#include "cmd/anvild/keys.h"
#include "cmd/anvild/methods.h"
#include "cmd/anvild/options.h"
#include "cmd/anvild/place.h"
#include "cmd/anvild/removal.h"
#include "cmd/anvild/runners.h"
#include "cmd/anvild/salvage.h"
#include "cmd/anvild/serves.h"
#include "cmd/anvild/signals.h"
#include "cmd/anvild/stop.h"
#include "cmd/anvild/supervisor.h"
#include "cmd/anvild/surplus.h"
#include "cmd/anvild/sweep.h"
#include "cmd/anvild/watchdog.h"
#include "gen/supervisor.h"
#include "lib/base/io.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

#define DEFAULT_CONFIG  "/etc/anvil/anvil.yml"
#define LISTEN_RETRY_MS 2000
#define LISTEN_AGAIN_MS 50
#define ROOM_BYTES      (1 << 20) /* with less SQLite may not even open a store */
#define ROOM_AGAIN_MS   1000

/* ---- configuration ---- */

static int
read_config(struct supervisor *s, const struct options *o, char why[STARTUP_WHY_SIZE])
{
	CLEANUP(buf_done) struct buf problems = BUF_INIT;
	int r;

	s->config_path = o->config_path;
	if (s->config_path == NULL && access(DEFAULT_CONFIG, F_OK) == 0)
		s->config_path = DEFAULT_CONFIG;
	r = config_load(s->config_path, &problems, &s->config);
	if (r < 0)
		(void)snprintf(why, STARTUP_WHY_SIZE, "%s",
		    problems.len != 0 ? buf_cstr(&problems) : err_text(r));
	return r;
}

/* ---- sockets ---- */

/* An ingress that a killed supervisor left holds its sockets until it is ended, which only the
 * store can tell how; ports below 1024 can be had only before that.  So: before we become
 * ${u} all that can be had, and afterwards (NULL) the others. */
static int
open_listeners(struct supervisor *s, const struct place_user *u, char why[STARTUP_WHY_SIZE])
{
	if (s->listeners.from_systemd)
		return 0;
	for (size_t i = 0; i < s->config->listen.n; i++) {
		const char *address = s->config->listen.at[i];
		int r;

		if (s->listening[i])
			continue;
		r = listeners_add(&s->listeners, address, why);
		/* The user has to be able to replace it, later and without us. */
		if (r == 0 && u != NULL && geteuid() == 0 && strncmp(address, "unix:", 5) == 0)
			r = chown(address + 5, u->uid, u->gid) < 0 ? E_SYS : 0;
		if (r < 0 && (r != E_EXISTS || u == NULL))
			return r;
		s->listening[i] = r == 0;
	}
	return 0;
}

int
startup_listen(struct supervisor *s, char why[STARTUP_WHY_SIZE])
{
	struct mono_time end = mono_add_ms(clock_mono(), LISTEN_RETRY_MS);
	int r;

	/* Who has been ended may let go a moment later: there is no event to wait on. */
	while ((r = open_listeners(s, NULL, why)) == E_EXISTS && clock_mono().us < end.us)
		(void)poll(NULL, 0, LISTEN_AGAIN_MS);
	return r;
}

/* ---- the actor itself ---- */

/* Its children are known to it before anybody else knows them. */
static int
check_hello(void *ctx, struct rpc_peer *p, const struct hello *h)
{
	const struct supervisor *s = ctx;

	(void)p;
	if (h->role == ROLE_CTL || h->role == ROLE_RUN)
		return 0;
	for (size_t i = 0; i < s->nresidents; i++)
		if (strcmp(child_address(s->residents[i]), h->address) == 0)
			return child_pid(s->residents[i]) == h->pid ? 0 : E_PEER;
	return E_DENIED;
}

static void
on_peer_up(void *ctx, struct rpc_peer *p)
{
	struct supervisor *s = ctx;
	const char *address = rpc_peer_address(p);

	if (rpc_peer_role(p) == ROLE_CTL)
		return;
	sup_announce(s);
	if (strncmp(address, "project/", 8) == 0)
		exits_deliver(s->exits, strtol(address + 8, NULL, 10));
}

static void
on_drain(void *ctx)
{
	const struct supervisor *s = ctx;

	actor_drained(s->actor);
}

static void
inspect(void *ctx, struct buf *out)
{
	const struct supervisor *s = ctx;

	buf_printf(out,
	    "{\"runners\":%zu,\"serving\":%zu,\"slotsMax\":%lld,\"slotsUsed\":%lld,"
	    "\"waiting\":%zu,\"draining\":%s,\"lowDisk\":%s,\"poolFailures\":%d,"
	    "\"stopping\":%s,\"sandbox\":\"%s\"}",
	    runners_count(s->runners), serves_count(s->serves), (long long)s->slots.max,
	    (long long)s->slots.live, s->slots.nqueued, s->slots.draining ? "true" : "false",
	    s->slots.low_disk ? "true" : "false", s->slots.failures,
	    s->stopping ? "true" : "false", s->config->runs_sandbox);
}

static const struct actor_desc supervisor_desc = { .role = ROLE_SUPERVISOR,
	.methods = supervisor_methods,
	.nmethods = &supervisor_methods_count,
	.document = supervisor_document,
	.store = &supervisor_store,
	.nworkers = 1,
	.inspect = inspect,
	.checks = &supervisor_checks,
	.on_drain = on_drain,
	.check = check_hello,
	.on_peer_up = on_peer_up,
	.outlives_store = 1,
	.without_store = methods_without_store };

static int
has_no_room(const char *dir)
{
	struct statvfs vfs;

	return statvfs(dir, &vfs) == 0 && (uint64_t)vfs.f_bavail * vfs.f_frsize < ROOM_BYTES;
}

/* A full disk is waited for, as by every actor: whoever starts anvild might give it up after a
 * few starts in vain.  No event says that there is room again. */
static int
open_actor(struct supervisor *s, const struct actor_place *place, char **ret_why)
{
	int told = 0, r;

	for (;;) {
		r = salvage_actor_new(&supervisor_desc, place, &s->actor, ret_why);
		if ((r != E_STORAGE && r != E_FULL) || !has_no_room(s->config->data_dir))
			return r;
		if (!told)
			log_event(LOG_LEVEL_WARN, "disk_full",
			    LOG_STR("file", place->store_path), LOG_STR("why", *ret_why),
			    LOG_STR("remedy",
				"make room on that disk; anvild starts by itself then"));
		told = 1;
		*ret_why = mem_free(*ret_why);
		(void)poll(NULL, 0, ROOM_AGAIN_MS);
	}
}

static int
make_actor(struct supervisor *s, char why[STARTUP_WHY_SIZE])
{
	const struct config *c = s->config;
	CLEANUP_FREE char *store = mem_format("%s/supervisor.db", c->data_dir);
	CLEANUP_FREE char *lock = mem_format("%s/supervisor.db.lock", c->data_dir);
	CLEANUP_FREE char *crash = mem_format("%s/crash", c->data_dir);
	CLEANUP_FREE char *reason = NULL;
	struct actor_place place = { .address = "supervisor",
		.runtime_dir = c->runtime_dir,
		.lock_path = lock,
		.store_path = store,
		.supervisor_pid = getpid() };
	int r;

	if (store == NULL || lock == NULL)
		return E_NOMEM;
	r = open_actor(s, &place, &reason);
	if (r < 0) {
		(void)snprintf(
		    why, STARTUP_WHY_SIZE, "%s", reason != NULL ? reason : err_text(r));
		return r;
	}
	actor_set_ctx(s->actor, s);
	if (crash == NULL || crash_catch(crash, "supervisor") < 0)
		log_plain(LOG_LEVEL_WARN, "crash_note_unavailable");
	s->runners = runners_new(s);
	s->serves = serves_new(s);
	s->checks = errand_new(s, "checks");
	s->copies = errand_new(s, "copies");
	s->exits = exits_new(s);
	s->sweep = sweep_new(s);
	s->removals = removals_new(s);
	s->signals = signals_new(s);
	s->handover = keys_new(s);
	s->stop = stop_new(s);
	s->watchdog = watchdog_new(s);
	slots_init(&s->slots, c->runs_max_concurrent);
	if (s->runners == NULL || s->serves == NULL || s->checks == NULL || s->copies == NULL ||
	    s->exits == NULL || s->sweep == NULL || s->removals == NULL || s->signals == NULL ||
	    s->handover == NULL || s->stop == NULL || s->watchdog == NULL)
		return E_NOMEM;
	return 0;
}

static int
make_residents(struct supervisor *s)
{
	size_t n = (size_t)s->config->shards + 1;

	s->residents = mem_calloc(n, sizeof(struct child *));
	if (s->residents == NULL)
		return E_NOMEM;
	for (size_t i = 0; i < n; i++) {
		s->residents[i] = child_new(s, i + 1 < n ? (int)i : -1);
		if (s->residents[i] == NULL)
			return E_NOMEM;
		s->nresidents++;
	}
	return 0;
}

/* ---- all of it ---- */

static int
become_user(struct supervisor *s, const struct place_user *u, char why[STARTUP_WHY_SIZE])
{
	int r = place_make_dirs(s->config->data_dir, s->config->runtime_dir, u, why);

	if (r == 0)
		r = keys_load(s, u->uid, u->gid, why);
	if (r == 0)
		r = open_listeners(s, u, why);
	if (r == 0)
		r = place_user_become(u, why);
	if (r == 0)
		r = keys_settle(s, why);
	/* What a dying run leaves running becomes ours, and is ended. */
	if (r == 0 && prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		r = E_SYS;
	if (r == 0)
		(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	return r;
}

int
startup_prepare(struct supervisor *s, const struct options *o, char why[STARTUP_WHY_SIZE])
{
	struct place_user u;
	enum log_level level;
	int r;

	(void)snprintf(why, STARTUP_WHY_SIZE, "out of memory");
	s->stop_runs = o->stop_runs;
	s->started_ms = clock_wall_ms();
	(void)listeners_from_systemd(&s->listeners);
	r = read_config(s, o, why);
	if (r < 0)
		return r;
	if (log_level_parse(s->config->log_level, &level) == 0)
		log_set_level(level);
	r = place_user_find(s->config->user, &u, why);
	if (r < 0 || o->test_only)
		return r;
	s->libexec = place_libexec();
	if (s->libexec == NULL) {
		(void)snprintf(why, STARTUP_WHY_SIZE,
		    "anvil-ingress and the other programs are not "
		    "beside anvild nor in ../libexec/anvil; install anvil as a whole");
		return E_NOENT;
	}
	if (io_boot_id(s->boot_id) < 0 || pipe2(s->lifeline, O_CLOEXEC) < 0) {
		(void)snprintf(why, STARTUP_WHY_SIZE, "%s", strerror(errno));
		return E_SYS;
	}
	r = place_make_dirs(s->config->data_dir, s->config->runtime_dir, &u, why);
	if (r == 0)
		r = place_lock(s->config->runtime_dir, &u, &s->lock_fd, why);
	if (r == 0)
		r = become_user(s, &u, why);
	if (r == 0)
		r = surplus_check(s, why, STARTUP_WHY_SIZE);
	if (r == 0)
		r = make_actor(s, why);
	return r < 0 ? r : make_residents(s);
}

void
startup_residents(struct supervisor *s)
{
	drain_recall(s);
	sweep_begin(s->sweep);
	/* Ingress follows when they are up. */
	for (size_t i = 0; i + 1 < s->nresidents; i++)
		child_event(s->residents[i], ON_START);
}

void
supervisor_done(struct supervisor *s)
{
	for (size_t i = 0; i < s->nresidents; i++)
		child_free(s->residents[i]);
	free(s->residents);
	if (s->actor != NULL) {
		runners_free(s->runners);
		serves_free(s->serves);
		errand_free(s->checks);
		errand_free(s->copies);
		exits_free(s->exits);
		sweep_free(s->sweep);
		removals_free(s->removals);
		signals_free(s->signals);
		keys_free(s->handover);
		stop_free(s->stop);
		watchdog_free(s->watchdog);
		slots_done(&s->slots);
	}
	actor_free(s->actor);
	listeners_close(&s->listeners);
	vault_keys_free(s->keys);
	config_free(s->config);
	free(s->libexec);
	io_close(&s->lifeline[0]);
	io_close(&s->lifeline[1]);
	io_close(&s->lock_fd);
}
