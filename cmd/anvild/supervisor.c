#include "cmd/anvild/supervisor.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/anvild/child.h"
#include "cmd/anvild/notify.h"
#include "cmd/anvild/runners.h"
#include "cmd/anvild/serves.h"
#include "cmd/anvild/spawn.h"
#include "cmd/anvild/sweep.h"
#include "gen/actor.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

struct stmt *
sup_stmt(struct turn *t, enum supervisor_stmt which)
{
	return store_stmt(t->store, (unsigned)which);
}

char *
sup_program(const struct supervisor *s, const char *name)
{
	return mem_format("%s/%s", s->libexec, name);
}

int
sup_start_fd(const struct supervisor *s, const struct vault_keys *keys)
{
	CLEANUP(buf_wipe) struct buf b = BUF_INIT;

	buf_add_str(&b, "{\"config\":");
	if (config_to_json(s->config, &b) < 0)
		return -1;
	buf_add_str(&b, ",\"keys\":");
	if (keys == NULL)
		buf_add_str(&b, "null");
	else if (vault_keys_format(keys, &b) < 0)
		return -1;
	buf_printf(&b, ",\"supervisorPid\":%d,\"bootId\":\"%s\"}", (int)getpid(), s->boot_id);
	return b.failed ? -1 : spawn_memfd(b.data, b.len);
}

/* ---- who is who ---- */

void
sup_announce(struct supervisor *s)
{
	struct peer rows[LISTEN_MAX + 64];
	struct actor_peers_params p = { .peers = rows };
	struct rpc_peer *peer;

	for (size_t i = 0; i < s->nresidents && p.npeers < ARRAY_LEN(rows); i++) {
		const struct child *c = s->residents[i];

		/* Its own listener must let it in as well as everybody else's. */
		(void)actor_announce(s->actor, child_address(c), child_pid(c));
		if (child_pid(c) != 0)
			rows[p.npeers++] = (struct peer) { child_address(c),
				(int64_t)child_pid(c) };
	}
	for (size_t at = 0; (peer = actor_peer_next(s->actor, &at)) != NULL;)
		if ((rpc_peer_role(peer) & (ROLE_INGRESS | ROLE_PROJECT)) != 0)
			(void)actor_peers_send(peer, NULL, &p);
}

/* ---- start and stop as a whole ---- */

static struct child *
find_ingress(const struct supervisor *s)
{
	return s->residents[s->nresidents - 1];
}

static int
all_down(const struct supervisor *s, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		if (child_state(s->residents[i]) != CH_DOWN)
			return 0;
	return 1;
}

/* Ingress first, so that nobody is let in whom the shards could not serve; with --stop-runs
 * the shards wait for the runs; then the end. */
static void
stop_step(struct supervisor *s)
{
	size_t last = s->nresidents - 1;

	if (!all_down(s, last, s->nresidents))
		return;
	if (s->stop_runs && runners_count(s->runners) != 0)
		return;
	for (size_t i = 0; i < last; i++)
		if (child_state(s->residents[i]) != CH_STOPPING &&
		    child_state(s->residents[i]) != CH_DOWN)
			child_event(s->residents[i], ON_STOP);
	if (all_down(s, 0, s->nresidents))
		actor_drain(s->actor);
}

void
sup_resident_changed(struct supervisor *s)
{
	if (s->stopping) {
		stop_step(s);
		return;
	}
	if (!s->ready_told && child_state(find_ingress(s)) == CH_UP) {
		s->ready_told = 1;
		notify_send("READY=1");
		log_event(LOG_LEVEL_INFO, "ready", LOG_STR("publicUrl", s->config->public_url),
		    LOG_STR("dataDir", s->config->data_dir),
		    LOG_STR("runtimeDir", s->config->runtime_dir));
	}
}

void
sup_stop(struct supervisor *s)
{
	if (s->stopping) {
		/* A second SIGTERM: running builds are not waited for any more. */
		s->stop_runs = 1;
		runners_term(s->runners);
		return;
	}
	s->stopping = 1;
	notify_send("STOPPING=1");
	log_event(LOG_LEVEL_INFO, "stopping", LOG_INT("runs", runners_count(s->runners)));
	serves_stop_all(s->serves);
	if (s->stop_runs)
		runners_term(s->runners);
	child_event(find_ingress(s), ON_STOP);
	stop_step(s);
}

/* ---- SIGHUP ---- */

static void
note_setting(void *arg, const char *path, int live)
{
	(void)arg;
	log_event(live ? LOG_LEVEL_INFO : LOG_LEVEL_WARN,
	    live ? "setting_changed" : "setting_needs_restart", LOG_STR("setting", path));
}

void
sup_reload(struct supervisor *s)
{
	CLEANUP(buf_done) struct buf problems = BUF_INIT;
	CLEANUP(config_freep) struct config *next = NULL;
	enum log_level level;

	if (config_load(s->config_path, &problems, &next) < 0) {
		log_event(LOG_LEVEL_ERROR, "config_not_reloaded",
		    LOG_STR("reason", buf_cstr(&problems)));
		return;
	}
	config_diff(s->config, next, note_setting, s);
	if (log_level_parse(next->log_level, &level) == 0)
		log_set_level(level);
	s->config->runs_max_concurrent = next->runs_max_concurrent;
	s->config->runs_min_free_bytes = next->runs_min_free_bytes;
	s->config->runs_keep_days = next->runs_keep_days;
	s->slots.max = next->runs_max_concurrent;
	sweep_disk(s->sweep);
	runners_pump(s->runners);
}
