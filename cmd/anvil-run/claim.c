/* Rows 1 to 5 of spec run 4: from the lease to a store that says `starting`.  The token is
 * unsealed here; no key outlives that. */
#include <stdio.h>
#include <string.h>

#include "cmd/anvil-run/journal.h"
#include "cmd/anvil-run/phases.h"
#include "cmd/anvil-run/token.h"
#include "lib/base/crash.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/vault/vault.h"

/* ---- what the claim brought ---- */

static const char *
keep(struct run_actor *r, const char *text, int *failed)
{
	char *copy = text != NULL ? arena_strdup(r->arena, text) : NULL;

	*failed |= text != NULL && copy == NULL;
	return copy;
}

static int
keep_snapshot(struct run_actor *r, const struct project_claim_run_claimed *c)
{
	const struct run_snapshot *s = &c->snapshot;
	int failed = 0;

	r->claim = (struct record_claim) { .run_id = r->run_id,
		.project_id = r->project_id,
		.owner_slug = keep(r, s->owner_slug, &failed),
		.project_slug = keep(r, s->project_slug, &failed),
		.trigger_type = s->trigger_type,
		.triggered_by_user_id = keep(r, s->triggered_by_user_id, &failed),
		.branch = keep(r, s->branch, &failed),
		.commit_sha = keep(r, s->commit_sha, &failed),
		.queued_at_ms = s->queued_at,
		.epoch = c->lease_epoch,
		.spawn_id = r->spawn_id,
		.sandbox = r->driver->name };
	r->repo_url = keep(r, s->repo_url, &failed);
	r->config_path = keep(r, s->config_path, &failed);
	return failed ? E_NOMEM : 0;
}

/* ---- row 2: the token ---- */

static void
release_keyless(struct run_actor *r, int64_t version)
{
	log_event(LOG_LEVEL_WARN, "key_version_missing", LOG_STR("runId", r->run_id),
	    LOG_STR("projectId", r->project_id), LOG_INT("keyVersion", version));
	(void)place_note_keyless(&r->place);
	CRASH_POINT("run_keyless_noted");
	r->keyless = 1;
	r->life = LIFE_RELEASE;
	finish(r);
}

/* 1: the run goes another way.  A token that does not open fails the run, but the store comes
 * first. */
static int
unseal(struct run_actor *r, const struct sealed_value *sealed)
{
	/* Room for all of it: a buffer that grows leaves copies behind. */
	int err = buf_reserve(&r->token, VAULT_PLAIN_MAX + 1);

	if (err == 0)
		err = token_unseal(r->proc, r->project_id, sealed, &r->token);
	proc_forget_start(r->proc);
	if (err == E_NOKEY && !place_was_keyless(&r->place)) {
		release_keyless(r, sealed->key_version);
		return 1;
	}
	if (err != E_NOMEM) {
		r->token_error = err;
		r->token_version = sealed != NULL ? sealed->key_version : 0;
		err = redactor_new(r->token.len != 0 ? (const char *)r->token.data : "",
		    r->token.len, &r->redactor);
	}
	if (err < 0)
		finish_exit(r, EXIT_INTERNAL);
	return err < 0;
}

/* ---- row 5: the sandbox ---- */

static void
open_sandbox(struct run_actor *r)
{
	const struct config *c = r->config;
	const char *const hide[] = { c->data_dir, c->runtime_dir, "/etc/anvil", c->keys_file,
		r->config_file, NULL };
	struct sandbox_paths paths = { .workspace = r->place.ws,
		.tmp = r->place.tmp,
		.home = r->place.home,
		.objects = r->place.objects,
		.init_path = r->place.init,
		.hide = hide };
	struct sandbox_limits limits = { .memory_bytes = c->runs_step_memory_bytes,
		.max_processes = c->runs_step_max_processes };

	if (r->driver->open(&paths, &limits, &r->sandbox, &r->problem) < 0)
		r->sandbox = NULL;
}

/* ---- rows 3 and 4: the store ---- */

static void
has_ended_before(struct run_actor *r)
{
	CRASH_POINT("run_had_ended");
	r->life = LIFE_FINISH;
	r->ending_posted = 1;
	finish(r);
}

/* Whoever reads it looks at the keys first: what is sealed is hardly ever damaged. */
static void
fail_sealed(struct run_actor *r)
{
	char what[360];

	(void)snprintf(what, sizeof(what),
	    r->token_error == E_NOKEY
		? "the repository token needs key version %lld, which is not in the keys file "
		  "of the server; put that key back and restart anvild, or set the token anew "
		  "(`anvilctl keys status` and `anvilctl check` tell what depends on it)"
		: "the repository token cannot be opened with key version %lld; probably the "
		  "keys file of the server has another key under that number than it was "
		  "sealed with: put that one back and restart anvild, or set the token anew "
		  "(`anvilctl keys status` and `anvilctl check` tell what depends on it)",
	    (long long)r->token_version);
	life_fail_internal(r, what, r->token_error);
}

static void
has_store(struct run_actor *r)
{
	CRASH_POINT("run_store_made");
	place_forget_keyless(&r->place);
	if (r->life != LIFE_STORE)
		return;
	r->life = LIFE_CHECKOUT;
	if (life_diverted(r))
		return;
	if (r->token_error == E_NOKEY || r->token_error == E_SEAL) {
		fail_sealed(r);
	} else if (r->token_error < 0) {
		life_fail_internal(r, "repository token", r->token_error);
	} else if (r->sandbox == NULL) {
		log_event(LOG_LEVEL_ERROR, "sandbox_failed", LOG_STR("runId", r->run_id),
		    LOG_STR("projectId", r->project_id), LOG_STR("why", r->problem.reason));
		life_fail(r, FAILURE_CODE_SANDBOX_FAILED, 1, "Sandbox could not start: %s. %s",
		    r->problem.reason, r->problem.remedy);
	} else {
		life_has_store(r);
	}
}

/* A store that exists may be terminal: then nothing is started.  Without one the checkout
 * need not wait for it. */
static void
begin_store(struct run_actor *r)
{
	int fresh = !record_exists(r->place.dir);
	char lines[1024] = "";

	r->life = LIFE_STORE;
	r->store_begun = 1;
	open_sandbox(r);
	if (r->sandbox != NULL)
		r->driver->describe(r->sandbox, lines, sizeof(lines));
	journal_claim(r, lines[0] != '\0' ? lines : NULL, has_store, has_ended_before);
	if (fresh && r->sandbox != NULL && r->token_error == 0 && r->cancel_at_ms == 0)
		life_checkout(r);
}

void
claim_store_alone(struct run_actor *r, void (*then)(struct run_actor *r))
{
	r->store_begun = 1;
	journal_claim(r, NULL, then, has_ended_before);
}

/* ---- row 1: the claim ---- */

static void
on_claimed(void *arg, const struct project_claim_run_claimed *c)
{
	struct run_actor *r = arg;

	OBJ_CHECK(r, RUN_MAGIC);
	CRASH_POINT("run_claimed");
	log_event(LOG_LEVEL_INFO, "run_started", LOG_STR("runId", r->run_id),
	    LOG_STR("projectId", r->project_id), LOG_STR("spawnId", r->spawn_id),
	    LOG_STR("sandbox", r->driver->name));
	if (keep_snapshot(r, c) < 0) {
		finish_exit(r, EXIT_INTERNAL);
		return;
	}
	if (c->has_cancel_requested_at)
		life_cancel(r, c->cancel_requested_at);
	if (r->releasing) {
		r->life = LIFE_RELEASE;
		finish(r);
	} else if (!unseal(r, c->repo_token)) {
		begin_store(r);
	}
}

static void
on_stale(void *arg, const char *reason)
{
	struct run_actor *r = arg;

	OBJ_CHECK(r, RUN_MAGIC);
	CRASH_POINT("run_stale");
	log_event(LOG_LEVEL_INFO, "stale_claim", LOG_STR("runId", r->run_id),
	    LOG_STR("projectId", r->project_id), LOG_STR("reason", reason));
	(void)(record_exists(r->place.dir) ? place_remove_trees(&r->place)
					   : place_remove(&r->place));
	finish_exit(r, EXIT_SETTLED);
}

static void
on_unclaimed(void *arg)
{
	finish_exit(arg, EXIT_NOT_CLAIMED);
}

static void
on_cancel(void *arg, int64_t requested_at_ms)
{
	life_cancel(arg, requested_at_ms);
}

static void
on_lost(void *arg, const char *reason)
{
	life_lose(arg, reason);
}

const struct lease_ops claim_lease_ops = { on_claimed, on_stale, on_unclaimed, on_cancel,
	on_lost };
