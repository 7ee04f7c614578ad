#include "cmd/anvil-run/setup.h"

#include <stdio.h>
#include <stdlib.h>

#include "cmd/anvil-run/check.h"
#include "cmd/anvil-run/copy.h"
#include "cmd/anvil-run/phases.h"
#include "gen/run.h"
#include "lib/base/crash.h"
#include "lib/base/err.h"
#include "lib/base/id.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/wire/wire.h"

/* ---- callbacks of the parts ---- */

static void
on_trouble(void *arg, int err)
{
	struct run_actor *r = arg;

	OBJ_CHECK(r, RUN_MAGIC);
	if (err < 0)
		log_event(LOG_LEVEL_WARN, "store_full", LOG_STR("runId", r->run_id),
		    LOG_STR("projectId", r->project_id), LOG_STR("errorCode", err_symbol(err)));
	else
		log_event(LOG_LEVEL_INFO, "store_writable", LOG_STR("runId", r->run_id),
		    LOG_STR("projectId", r->project_id));
}

static void
disk_is_full(struct run_actor *r)
{
	if (r->serving || r->life < LIFE_STORE)
		return;
	output_stop(r->output);
	stop_step(r, STOP_AT_ONCE);
	life_fail(r, FAILURE_CODE_DISK_FULL, 1, "The server's disk is full.");
}

static void
on_full(void *arg)
{
	disk_is_full(arg);
}

static void
on_stored(void *arg, enum job_kind kind)
{
	struct run_actor *r = arg;

	OBJ_CHECK(r, RUN_MAGIC);
	subscribers_stored(r->subscribers, kind);
}

static void
on_output_lost(void *arg, int err)
{
	struct run_actor *r = arg;

	OBJ_CHECK(r, RUN_MAGIC);
	if (err == E_FULL || err == E_NOMEM || err == E_STORAGE) {
		disk_is_full(r);
	} else if (err != E_ILLEGAL) { /* the run has ended, and its lines with it */
		stop_step(r, STOP_AT_ONCE);
		life_fail_internal(r, "log", err);
	}
}

static void
on_capped(void *arg)
{
	struct run_actor *r = arg;

	OBJ_CHECK(r, RUN_MAGIC);
	log_event(LOG_LEVEL_INFO, "log_capped", LOG_STR("runId", r->run_id),
	    LOG_STR("projectId", r->project_id));
}

/* ---- callbacks of the actor ---- */

static void
on_term(void *ctx)
{
	struct run_actor *r = ctx;

	if (r->serving)
		actor_drain(r->actor);
	else
		(void)life_release(r);
}

static const char *const life_names[] = {
	[LIFE_CLAIM] = "claim",
	[LIFE_STORE] = "store",
	[LIFE_CHECKOUT] = "checkout",
	[LIFE_COMMIT] = "commit",
	[LIFE_CONFIG] = "config",
	[LIFE_WORKSPACE] = "workspace",
	[LIFE_BEGIN] = "begin",
	[LIFE_STEPS] = "steps",
	[LIFE_RELEASE] = "release",
	[LIFE_FINISH] = "finish",
	[LIFE_SETTLE] = "settle",
	[LIFE_OVER] = "over",
};

static void
on_inspect(void *ctx, struct buf *out)
{
	const struct run_actor *r = ctx;

	(void)buf_printf(out,
	    "{\"form\":\"%s\",\"life\":\"%s\",\"status\":\"%s\",\"step\":%zu,"
	    "\"storeJobs\":%zu,\"subscriptions\":%zu,\"lost\":%s,\"cancelRequestedAt\":%lld}",
	    r->serving ? "serve" : "run", r->serving ? "" : life_names[r->life],
	    run_status_name(r->status), r->step, recorder_njobs(r->recorder),
	    subscribers_count(r->subscribers), r->lost ? "true" : "false",
	    (long long)r->cancel_at_ms);
}

static void
on_doing(void *ctx, char *out, size_t size)
{
	const struct run_actor *r = ctx;

	if (r->serving)
		(void)snprintf(out, size, "serves");
	else if (r->life == LIFE_STEPS && r->step != 0)
		(void)snprintf(out, size, "step %zu of %zu", r->step, r->pipeline->nsteps);
	else
		(void)snprintf(out, size, "%s", life_names[r->life]);
}

static void
on_peer_down(void *ctx, struct rpc_peer *p)
{
	struct run_actor *r = ctx;

	OBJ_CHECK(r, RUN_MAGIC);
	subscribers_forget(r->subscribers, p);
}

static void
on_end(void *ctx)
{
	struct run_actor *r = ctx;

	OBJ_CHECK(r, RUN_MAGIC);
	git_free(r->git);
	actor_watch_free(r->process_watch);
	if (r->sandbox != NULL)
		r->driver->abandon(r->sandbox);
	recorder_free(r->recorder);
	subscribers_free(r->subscribers);
	output_free(r->output);
	lease_free(r->lease);
	redactor_free(r->redactor);
	buf_wipe(&r->token);
	actor_timer_free(r->idle);
	actor_timer_free(r->deadline);
	actor_timer_free(r->process_timer);
	actor_timer_free(r->stop.timer);
	actor_timer_free(r->teardown);
	free(r->failure.message);
	free(r->ending.error_message);
	arena_free(r->arena);
	config_free(r->config);
	place_done(&r->place);
	r->magic = 0;
	free(r);
}

static const struct actor_desc desc = { .role = ROLE_RUN,
	.methods = run_methods,
	.nmethods = &run_methods_count,
	.document = run_document,
	.backup = &run_backup,
	.checks = &run_checks,
	.nworkers = 1,
	.inspect = on_inspect,
	.doing = on_doing,
	.on_term = on_term,
	.on_end = on_end,
	.on_peer_down = on_peer_down };
static const struct actor_desc serve_desc = { .role = ROLE_RUN,
	.methods = run_methods,
	.nmethods = &run_methods_count,
	.document = run_document,
	.backup = &run_backup,
	.checks = &run_checks,
	.nworkers = 1,
	.says_ready = 1,
	.inspect = on_inspect,
	.doing = on_doing,
	.on_term = on_term,
	.on_end = on_end,
	.on_peer_down = on_peer_down };

/* ---- the pieces ---- */

static struct config *
read_config(struct proc *p)
{
	CLEANUP(buf_wipe) struct buf text = BUF_INIT;
	struct config *c = NULL;
	int err = json_text_dump(&text, proc_config(p));

	if (err == 0)
		err = config_from_json((const char *)text.data, text.len, &c);
	if (err < 0)
		proc_die(p, "bad configuration");
	return c;
}

static void
die(struct proc *p, struct run_actor *r, const char *what, int err)
{
	char why[128];

	if (err == E_LOCKED) {
		log_event(LOG_LEVEL_WARN, "run_locked", LOG_STR("runId", r->run_id));
		exit(EXIT_NOT_CLAIMED);
	}
	(void)snprintf(why, sizeof(why), "%s: %s", what, err_text(err));
	proc_die(p, why);
}

static void
take_place(struct proc *p, struct run_actor *r)
{
	int err = place_init(&r->place, r->config->data_dir, r->run_id, r->project_id);

	if (err == 0 && !r->serving)
		err = place_make(&r->place);
	CRASH_POINT_OF(r->serving ? "serve" : "run", "has_place");
	if (err == 0)
		err = place_lock(&r->place, r->spawn_id != NULL ? r->spawn_id : "serve");
	CRASH_POINT_OF(r->serving ? "serve" : "run", "locked");
	if (err == 0 && !r->serving)
		err = place_make_trees(&r->place);
	if (err < 0)
		die(p, r, "the run's directory", err);
}

static int
make_common(struct run_actor *r)
{
	static const struct recorder_ops ops = {
		.on_trouble = on_trouble, .on_full = on_full, .on_stored = on_stored
	};

	r->recorder = recorder_new(
	    r->actor, r->place.dir, r->config->runs_max_log_bytes, &ops, r);
	r->subscribers = subscribers_new(r);
	return r->recorder == NULL || r->subscribers == NULL ? E_NOMEM : 0;
}

static int
make_parts(struct run_actor *r, int64_t shard, const struct git_child *child)
{
	static const struct output_ops ops = { on_output_lost, on_capped };
	const struct lease_who who = { r->project_id, r->run_id, r->spawn_id, shard };

	r->output = output_new(r->actor, r->recorder, &ops, r);
	r->lease = lease_new(r->actor, &who, &claim_lease_ops, r);
	r->git = git_new(r->actor, child, &life_git_ops, r);
	if (r->output == NULL || r->lease == NULL || r->git == NULL || stop_init(r) < 0)
		return E_NOMEM;
	return output_attach(r->output, LOG_STREAM_SYSTEM, 0, child->noise_fd);
}

static struct run_actor *
run_new(struct proc *p, int serving)
{
	struct run_actor *r = mem_calloc(1, sizeof(*r));

	if (r == NULL)
		proc_die(p, "out of memory");
	r->magic = RUN_MAGIC;
	r->proc = p;
	r->serving = serving;
	r->run_id = proc_option(p, "RUN_ID");
	r->project_id = serving ? NULL : proc_option(p, "--project");
	r->spawn_id = serving ? NULL : proc_option(p, "--spawn");
	r->place.lock_fd = -1;
	r->config = read_config(p);
	r->arena = arena_new();
	if (r->arena == NULL)
		proc_die(p, "out of memory");
	if (proc_config_file(p) != NULL &&
	    (r->config_file = arena_strdup(r->arena, proc_config_file(p))) == NULL)
		proc_die(p, "out of memory");
	return r;
}

struct run_actor *
setup_run(struct proc *p, int serving, const struct git_child *child)
{
	struct run_actor *r = run_new(p, serving);
	char address[ID_SIZE + 4];
	struct actor_place place = { .address = address,
		.runtime_dir = r->config->runtime_dir };
	int64_t shard = proc_option_int(p, "--shard", 0, INT32_MAX, 0);
	int err;

	(void)snprintf(address, sizeof(address), "run/%s", r->run_id);
	r->driver = sandbox_driver_find(r->config->runs_sandbox);
	if (r->driver == NULL)
		proc_die(p, "runs.sandbox names no driver");
	take_place(p, r);
	r->actor = proc_actor(p, serving ? &serve_desc : &desc, &place, r->config->data_dir);
	CRASH_POINT_OF(serving ? "serve" : "run", "listens");
	err = make_common(r);
	if (err == 0 && !serving)
		err = make_parts(r, shard, child);
	if (err < 0)
		die(p, r, "start", err);
	if (serving) {
		proc_forget_start(p);
		serve_begin(r);
	} else {
		lease_claim(r->lease);
	}
	return r;
}
