#include "cmd/anvild/supervisor.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/anvild/child.h"
#include "cmd/anvild/history.h"
#include "cmd/anvild/notify.h"
#include "cmd/anvild/runners.h"
#include "cmd/anvild/spawn.h"
#include "cmd/anvild/stop.h"
#include "cmd/anvild/sweep.h"
#include "cmd/anvild/watchdog.h"
#include "gen/actor.h"
#include "lib/base/json_text.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

/* ---- whether the store takes what is written ---- */

static void
is_written(void *arg)
{
	struct supervisor *s = arg;

	s->storage_failed = 0;
}

static void
is_not_written(void *arg)
{
	struct supervisor *s = arg;

	s->storage_failed = 1;
}

/* Without memory it is what it was. */
void
sup_watch_write(struct supervisor *s, struct turn *t)
{
	(void)turn_after_commit(t, is_written, s, is_not_written);
}

struct watched {
	struct supervisor *sup;
	int (*fn)(void *arg, struct turn *t);
	void *arg;
};

static int
watched_turn(void *arg, struct turn *t)
{
	const struct watched *w = arg;
	int r = w->fn(w->arg, t);

	if (r == 0)
		sup_watch_write(w->sup, t);
	return r;
}

int
sup_write(struct supervisor *s, int (*fn)(void *arg, struct turn *t), void *arg)
{
	struct watched w = { s, fn, arg };
	int r = actor_turn(s->actor, 1, watched_turn, &w);

	if (r == E_STORAGE || r == E_FULL || r == E_CORRUPT)
		s->storage_failed = 1;
	return r;
}

static int
back_turn(void *arg, struct turn *t)
{
	static const struct history_entry back = { "supervisor", "recovered", 0, -1, NULL,
		"its store takes writes again" };

	(void)arg;
	return history_add(t, &back);
}

void
sup_try_store(struct supervisor *s)
{
	if (s->storage_failed)
		(void)sup_write(s, back_turn, NULL);
}

/* ---- what children are given ---- */

char *
sup_program(const struct supervisor *s, const char *name)
{
	return mem_format("%s/%s", s->libexec, name);
}

/* Runs hide the file from their steps, wherever it is. */
static int
add_config_path(const struct supervisor *s, struct buf *b)
{
	CLEANUP_FREE char *path = s->config_path != NULL ? realpath(s->config_path, NULL)
							 : NULL;

	if (path == NULL)
		return buf_add_str(b, "null");
	return json_text_string(b, path, strlen(path));
}

int
sup_start_fd(const struct supervisor *s, const struct vault_keys *keys)
{
	CLEANUP(buf_wipe) struct buf b = BUF_INIT;

	buf_add_str(&b, "{\"config\":");
	if (config_to_json(s->config, &b) < 0)
		return -1;
	buf_add_str(&b, ",\"configFile\":");
	if (add_config_path(s, &b) < 0)
		return -1;
	buf_printf(&b, ",\"supervisorPid\":%d,\"bootId\":\"%s\"", (int)getpid(), s->boot_id);
	/* Last, since text that follows could make the buffer grow and leave keys behind. */
	buf_add_str(&b, ",\"keys\":");
	if (keys == NULL)
		buf_add_str(&b, "null");
	else if (vault_keys_format(keys, &b) < 0)
		return -1;
	buf_add_byte(&b, '}');
	return b.failed ? -1 : spawn_memfd(b.data, b.len);
}

/* ---- who is who ---- */

void
sup_announce(struct supervisor *s)
{
	struct peer rows[SUP_SHARDS_MAX + 1];
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
		if (rpc_peer_role(peer) != ROLE_CTL)
			(void)actor_peers_send(peer, NULL, &p);
}

/* ---- start and stop as a whole ---- */

static struct child *
find_ingress(const struct supervisor *s)
{
	return s->residents[s->nresidents - 1];
}

/* When every shard has shown how it does: nobody is let in before there is somebody to serve
 * them, and one shard that fails does not keep the others from being used. */
static void
start_ingress(struct supervisor *s)
{
	struct child *ingress = find_ingress(s);

	if (s->ingress_started)
		return;
	for (size_t i = 0; i + 1 < s->nresidents; i++)
		if (child_state(s->residents[i]) == CH_STARTING ||
		    child_state(s->residents[i]) == CH_DOWN)
			return;
	s->ingress_started = 1;
	child_event(ingress, ON_START);
}

void
sup_resident_changed(struct supervisor *s)
{
	if (s->stopping) {
		stop_look(s->stop);
		return;
	}
	start_ingress(s);
	if (!s->ready_told && child_state(find_ingress(s)) == CH_UP) {
		s->ready_told = 1;
		notify_send("READY=1");
		watchdog_begin(s->watchdog);
		log_event(LOG_LEVEL_INFO, "ready", LOG_STR("publicUrl", s->config->public_url),
		    LOG_STR("dataDir", s->config->data_dir),
		    LOG_STR("runtimeDir", s->config->runtime_dir));
	}
}

void
sup_cannot_start(struct supervisor *s, const char *address, const char *why)
{
	if (s->failed)
		return;
	s->failed = 1;
	log_event(LOG_LEVEL_ERROR, "not_started", LOG_STR("actor", address),
	    LOG_STR("why", why[0] != '\0' ? why : "its store cannot be used"));
	stop_begin(s->stop);
}
