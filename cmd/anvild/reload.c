#include "cmd/anvild/reload.h"

#include <stdio.h>
#include <string.h>

#include "cmd/anvild/child.h"
#include "cmd/anvild/notify.h"
#include "cmd/anvild/runners.h"
#include "cmd/anvild/supervisor.h"
#include "cmd/anvild/surplus.h"
#include "cmd/anvild/sweep.h"
#include "gen/actor.h"
#include "gen/ingress.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

struct change {
	const struct config *now, *next;
};

static void
note_setting(void *arg, const char *path, int live)
{
	const struct change *c = arg;

	/* Shards hold projects: there can only be more of them. */
	if (strcmp(path, "shards") == 0 && c->next->shards < c->now->shards)
		live = 0;
	log_event(live ? LOG_LEVEL_INFO : LOG_LEVEL_WARN,
	    live ? "setting_changed" : "setting_needs_restart", LOG_STR("setting", path));
}

static int
add_shard(struct supervisor *s)
{
	size_t last = s->nresidents - 1;
	struct child **more = mem_realloc(
	    s->residents, (s->nresidents + 1) * sizeof(struct child *));

	if (more == NULL)
		return E_NOMEM;
	s->residents = more;
	more[last + 1] = more[last]; /* ingress stays the last */
	more[last] = child_new(s, (int)last);
	if (more[last] == NULL) {
		more[last] = more[last + 1];
		return E_NOMEM;
	}
	s->nresidents++;
	s->config->shards++;
	child_event(more[last], ON_START);
	return 0;
}

static void
apply(struct supervisor *s, const struct config *next)
{
	struct config *c = s->config;

	c->runs_max_concurrent = s->slots.max = next->runs_max_concurrent;
	c->runs_min_free_bytes = next->runs_min_free_bytes;
	c->runs_keep_days = next->runs_keep_days;
	c->limits_login_per_minute = next->limits_login_per_minute;
	c->limits_invite_accept_per_minute = next->limits_invite_accept_per_minute;
	c->limits_public_per_minute_per_address = next->limits_public_per_minute_per_address;
	while (c->shards < next->shards && add_shard(s) == 0)
		;
}

static void
on_level_set(void *arg, int err, const struct actor_set_log_level_result *res)
{
	(void)arg;
	(void)err;
	(void)res;
}

static void
set_log_level(struct supervisor *s, const char *word)
{
	struct actor_set_log_level_params p = { .level = LOG_LEVEL_WORD_INFO };
	struct rpc_peer *peer;
	enum log_level level;

	if (log_level_parse(word, &level) < 0 || log_level_word_parse(word, &p.level) < 0)
		return;
	log_set_level(level);
	for (size_t at = 0; (peer = actor_peer_next(s->actor, &at)) != NULL;)
		if (rpc_peer_role(peer) != ROLE_CTL)
			(void)actor_set_log_level_call(peer, NULL, &p, on_level_set, NULL);
}

static void
on_told(void *arg, int err, const struct ingress_configure_result *res)
{
	(void)arg;
	(void)res;
	/* When its link is lost it is told again as it comes back. */
	if (err < 0 && err != E_LINK)
		log_event(LOG_LEVEL_WARN, "settings_not_taken", LOG_STR("actor", "ingress"),
		    LOG_STR("errorCode", err_symbol(err)));
}

void
reload_tell(struct supervisor *s, struct rpc_peer *ingress)
{
	CLEANUP(buf_wipe) struct buf text = BUF_INIT;
	struct ingress_configure_params p = { .config = NULL };

	if (config_to_json(s->config, &text) < 0 || (p.config_text = buf_cstr(&text)) == NULL ||
	    ingress_configure_call(ingress, NULL, &p, on_told, NULL) < 0)
		log_event(LOG_LEVEL_WARN, "settings_not_taken", LOG_STR("actor", "ingress"));
}

static void
read_again(struct supervisor *s)
{
	CLEANUP(buf_done) struct buf problems = BUF_INIT;
	CLEANUP(config_freep) struct config *next = NULL;
	struct rpc_peer *ingress = actor_peer(s->actor, "ingress");
	struct change change;

	if (config_load(s->config_path, &problems, &next) < 0) {
		log_event(LOG_LEVEL_ERROR, "config_not_reloaded",
		    LOG_STR("reason", buf_cstr(&problems)));
		return;
	}
	change = (struct change) { s->config, next };
	config_diff(s->config, next, note_setting, &change);
	if (strcmp(s->config->log_level, next->log_level) != 0) {
		char *word = arena_strdup(s->config->arena, next->log_level);

		if (word != NULL)
			s->config->log_level = word;
		set_log_level(s, next->log_level);
	}
	s->shards_wanted = next->shards < s->config->shards ? next->shards : 0;
	surplus_warn(s);
	apply(s, next);
	if (ingress != NULL)
		reload_tell(s, ingress);
	sweep_disk(s->sweep);
	runners_pump(s->runners);
	log_event(LOG_LEVEL_INFO, "config_read", LOG_STR("file", s->config_path));
}

/* systemd takes a reload for done when READY=1 follows; a start that is not ready yet says that
 * once, when it is. */
void
reload(struct supervisor *s)
{
	char state[64];

	if (s->stopping)
		return;
	(void)snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%lld",
	    (long long)clock_mono().us);
	if (s->ready_told)
		notify_send(state);
	read_again(s);
	if (s->ready_told)
		notify_send("READY=1");
}
