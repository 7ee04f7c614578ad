#include "test/support/run_rig.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gen/actor.h"
#include "gen/supervisor.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/sandbox/sandbox.h"
#include "lib/vault/vault.h"
#include "test/support/scratch.h"
#include "test/support/unit.h"

#define PATIENCE_MS 20000
#define NOBODY      65534

/* ---- the shard ---- */

#define ROW(method)                                                                    \
	static int method##_decode(struct codec *c, const json_t *params, void *ret)   \
	{                                                                              \
		return codec_decode(c, &project_##method##_params_codec, params, ret); \
	}                                                                              \
	static int method##_encode(struct buf *out, const void *result)                \
	{                                                                              \
		return codec_encode(out, &project_##method##_result_codec, result);    \
	}

ROW(claim_run)
ROW(heartbeat)
ROW(record_commit)
ROW(release_run)
ROW(finalize_run)

static int
claim_run(void *ctx, struct turn *t, const void *params, void *result)
{
	struct run_rig *g = ctx;
	const struct project_claim_run_params *p = params;
	struct project_claim_run_result *ret = result;
	struct project_claim_run_claimed *c = &ret->u.claimed;

	g->nclaims++;
	if (g->fail_claims > 0) {
		g->fail_claims--;
		return g->claim_error != 0 ? g->claim_error : E_STORAGE;
	}
	if (g->stale || strcmp(p->run_id, g->run_id) != 0) {
		ret->kind = PROJECT_CLAIM_RUN_STALE;
		ret->u.stale.reason = STALE_REASON_ALREADY_TERMINAL;
		return 0;
	}
	g->channel = t->peer;
	ret->kind = PROJECT_CLAIM_RUN_CLAIMED;
	*c = (struct project_claim_run_claimed) { .lease_id = g->lease_id,
		.lease_epoch = g->epoch,
		.lease_ms = 30000,
		.heartbeat_ms = g->heartbeat_ms,
		.has_cancel_requested_at = g->cancel_at != 0,
		.cancel_requested_at = g->cancel_at,
		.snapshot = { .run_id = g->run_id,
		    .project_id = g->project_id,
		    .owner_slug = "owner",
		    .project_slug = "project",
		    .trigger_type = TRIGGER_TYPE_MANUAL,
		    .triggered_by_user_id = g->user_id,
		    .branch = g->branch,
		    .commit_sha = g->commit[0] != '\0' ? g->commit : NULL,
		    .repo_url = g->url,
		    .config_path = g->config_path,
		    .queued_at = 1700000000000 },
		.repo_token = g->token };
	return 0;
}

static int
heartbeat(void *ctx, struct turn *t, const void *params, void *result)
{
	struct run_rig *g = ctx;
	const struct project_heartbeat_params *p = params;
	struct project_heartbeat_result *ret = result;

	if (g->nbeats < RUN_RIG_BEATS)
		g->beats[g->nbeats++] = p->status;
	g->channel = t->peer;
	if (g->cancel_after != 0 && g->nbeats > g->cancel_after && g->cancel_at == 0)
		g->cancel_at = clock_wall_ms();
	ret->kind = g->lost ? PROJECT_HEARTBEAT_LOST : PROJECT_HEARTBEAT_CURRENT;
	if (g->lost)
		ret->u.lost.reason = LOST_REASON_TAKEN_OVER;
	else
		ret->u.current = (struct project_heartbeat_current) { 30000,
			LEDGER_STATUS_ACTIVE, g->cancel_at != 0, g->cancel_at };
	return 0;
}

static int
record_commit(void *ctx, struct turn *t, const void *params, void *result)
{
	struct run_rig *g = ctx;
	const struct project_record_commit_params *p = params;
	struct project_record_commit_result *ret = result;

	(void)t;
	g->ncommits++;
	(void)snprintf(g->sha, sizeof(g->sha), "%s", p->commit_sha);
	ret->kind = g->lost      ? PROJECT_RECORD_COMMIT_LOST
	    : g->commit_conflict ? PROJECT_RECORD_COMMIT_COMMIT_CONFLICT
				 : PROJECT_RECORD_COMMIT_RECORDED;
	return 0;
}

static int
release_run(void *ctx, struct turn *t, const void *params, void *result)
{
	struct run_rig *g = ctx;
	const struct project_release_run_params *p = params;
	struct project_release_run_result *ret = result;

	(void)t;
	g->nreleases++;
	g->release_reason = p->reason;
	ret->kind = g->refuse_release ? PROJECT_RELEASE_RUN_REFUSED
				      : PROJECT_RELEASE_RUN_RELEASED;
	ret->u.refused.reason = RELEASE_REFUSAL_CANCEL_REQUESTED;
	return 0;
}

static int
finalize_run(void *ctx, struct turn *t, const void *params, void *result)
{
	struct run_rig *g = ctx;
	const struct project_finalize_run_params *p = params;
	struct project_finalize_run_result *ret = result;

	(void)t;
	g->nfinals++;
	if (g->fail_finals > 0) {
		g->fail_finals--;
		return E_STORAGE;
	}
	g->end = *p;
	(void)snprintf(g->message, sizeof(g->message), "%s",
	    p->error_message != NULL ? p->error_message : "");
	g->end.error_message = p->error_message != NULL ? g->message : NULL;
	ret->kind = g->lost ? PROJECT_FINALIZE_RUN_LOST
	    : g->conflict   ? PROJECT_FINALIZE_RUN_CONFLICT
			    : PROJECT_FINALIZE_RUN_SETTLED;
	if (g->conflict)
		ret->u.conflict.status = RUN_STATUS_CANCELED;
	return 0;
}

#define METHOD(word, method)                                                        \
	{                                                                           \
		.name = "project." word, .from = ROLE_RUN, .turn = RPC_TURN_NONE,   \
		.params_size = sizeof(struct project_##method##_params),            \
		.result_size = sizeof(struct project_##method##_result),            \
		.decode = method##_decode, .run = method, .encode = method##_encode \
	}

static const struct rpc_method shard_methods[] = {
	METHOD("claimRun", claim_run),
	METHOD("heartbeat", heartbeat),
	METHOD("recordCommit", record_commit),
	METHOD("releaseRun", release_run),
	METHOD("finalizeRun", finalize_run),
};
static const size_t shard_nmethods = ARRAY_LEN(shard_methods);
static const struct actor_desc shard_desc = {
	.role = ROLE_PROJECT, .methods = shard_methods, .nmethods = &shard_nmethods
};

/* ---- the supervisor ---- */

static int
ready_decode(struct codec *c, const json_t *params, void *ret)
{
	return codec_decode(c, &supervisor_ready_params_codec, params, ret);
}

static int
ready_encode(struct buf *out, const void *result)
{
	return codec_encode(out, &supervisor_ready_result_codec, result);
}

static int
ready(void *ctx, struct turn *t, const void *params, void *result)
{
	struct run_rig *g = ctx;
	struct supervisor_ready_result *ret = result;

	(void)t;
	(void)params;
	g->nready++;
	ret->kind = SUPERVISOR_READY_OK;
	return 0;
}

/* Who may come in as a shard. */
static void
announce(void *ctx, struct rpc_peer *p)
{
	struct peer shard = { "project/0", getpid() };
	struct actor_peers_params params = { .peers = &shard, .npeers = 1 };

	(void)ctx;
	must(actor_peers_send(p, NULL, &params) == 0);
}

static const struct rpc_method super_methods[] = {
	{ .name = "supervisor.ready",
	    .from = ROLE_RUN,
	    .turn = RPC_TURN_NONE,
	    .params_size = sizeof(struct supervisor_ready_params),
	    .result_size = sizeof(struct supervisor_ready_result),
	    .decode = ready_decode,
	    .run = ready,
	    .encode = ready_encode },
};
static const size_t super_nmethods = ARRAY_LEN(super_methods);
static const struct actor_desc super_desc = { .role = ROLE_SUPERVISOR,
	.methods = super_methods,
	.nmethods = &super_nmethods,
	.on_peer_up = announce };

static const struct actor_desc ctl_desc = { .role = ROLE_CTL };

/* ---- place ---- */

int
run_rig_has_bwrap(void)
{
	struct sandbox_problem problem;

	return sandbox_driver_bwrap.probe(&problem) == 0;
}

static void
become_nobody(void)
{
	if (geteuid() != 0)
		return;
	must(setgroups(0, NULL) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0 &&
	    setresuid(NOBODY, NOBODY, NOBODY) == 0);
}

void
run_rig_sh(const struct run_rig *g, const char *command)
{
	CLEANUP_FREE char *whole = mem_format(
	    "export HOME=%s GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=n@e.org "
	    "GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=n@e.org; cd %s; set -e; %s",
	    g->dir, g->repo, command);

	must(whole != NULL);
	must(system(whole) == 0);
}

void
run_rig_commit(struct run_rig *g, const char *config)
{
	CLEANUP_FREE char *path = mem_format("%s/.anvil.yml", g->repo);

	must(path != NULL);
	if (config == NULL)
		(void)unlink(path);
	else
		must(io_write_file(AT_FDCWD, path, config, strlen(config), 0644) == 0);
	run_rig_sh(g, "git add -A; git commit -q --allow-empty -m x");
}

static struct actor *
make_actor(struct run_rig *g, const struct actor_desc *desc, const char *address)
{
	struct actor_place place = { .address = address, .runtime_dir = g->runtime };
	struct actor *a = NULL;
	char *why = NULL;

	must(actor_new(desc, &place, &a, &why) == 0);
	actor_set_ctx(a, g);
	return a;
}

static void
init(struct run_rig *g)
{
	become_nobody();
	*g = (struct run_rig) { .sandbox = "none",
		.max_timeout_s = 3600,
		.max_log_bytes = 64 << 20,
		.branch = "main",
		.config_path = ".anvil.yml",
		.epoch = 1,
		.heartbeat_ms = 5000,
		.pid = -1,
		.mirror_fd = -1,
		.pidfd = -1 };
	g->dir = scratch_new();
	(void)snprintf(g->data, sizeof(g->data), "%s/data", g->dir);
	(void)snprintf(g->runtime, sizeof(g->runtime), "%s/run", g->dir);
	(void)snprintf(g->repo, sizeof(g->repo), "%s/repo", g->dir);
	(void)snprintf(g->url, sizeof(g->url), "file://%s", g->repo);
	(void)snprintf(g->log, sizeof(g->log), "%s/events", g->dir);
	must(mkdir(g->data, 0700) == 0 && mkdir(g->runtime, 0700) == 0 &&
	    mkdir(g->repo, 0700) == 0);
	id_make(ID_RUN, g->run_id);
	id_make(ID_PROJECT, g->project_id);
	id_make(ID_USER, g->user_id);
	id_hex32(g->spawn_id);
	id_hex32(g->lease_id);
	run_rig_sh(g, "git init -q -b main; mkdir -p sub; echo text > sub/file");
	g->shard = make_actor(g, &shard_desc, "project/0");
	g->super = make_actor(g, &super_desc, "supervisor");
	g->ctl = make_actor(g, &ctl_desc, "ctl");
}

int
run_rig_setup(void **state)
{
	struct run_rig *g = malloc(sizeof(*g));

	must(g != NULL);
	init(g);
	*state = g;
	return 0;
}

int
run_rig_teardown(void **state)
{
	struct run_rig *g = *state;

	if (g->pid > 0) {
		(void)kill(g->pid, SIGKILL);
		(void)waitpid(g->pid, NULL, 0);
	}
	io_close(&g->pidfd);
	io_close(&g->mirror_fd);
	g->shard = actor_free(g->shard);
	g->super = actor_free(g->super);
	g->ctl = actor_free(g->ctl);
	free(g->keys_text);
	free(g->sealed_text);
	scratch_free(g->dir);
	free(g);
	return 0;
}

/* ---- the process ---- */

static int
start_object(const struct run_rig *g)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	int fd = memfd_create("start", MFD_CLOEXEC);

	(void)buf_printf(&b,
	    "{\"config\":{\"version\":1,\"data_dir\":\"%s\",\"runtime_dir\":\"%s\","
	    "\"runs\":{\"sandbox\":\"%s\",\"max_timeout_seconds\":%lld,"
	    "\"max_log_bytes\":%lld},\"repositories\":{\"allow_local\":true}},"
	    "\"keys\":%s,\"supervisorPid\":%d,\"bootId\":\"x\"}",
	    g->data, g->runtime, g->sandbox, (long long)g->max_timeout_s,
	    (long long)g->max_log_bytes, g->keys != NULL ? g->keys : "null", (int)getpid());
	must(fd >= 0 && !b.failed && io_write_all(fd, b.data, b.len) == 0);
	must(lseek(fd, 0, SEEK_SET) == 0);
	return fd;
}

static void
launch(struct run_rig *g, char *const argv[])
{
	CLEANUP_FREE char *program = scratch_program("anvil-run");
	int start = start_object(g);
	int log = open(g->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	must(program != NULL && log >= 0 && null >= 0);
	g->pid = fork();
	must(g->pid >= 0);
	if (g->pid == 0) {
		(void)dup2(null, 0);
		(void)dup2(log, 1);
		(void)dup2(log, 2);
		(void)dup2(start, 3);
		(void)close_range(4, ~0U, 0);
		(void)execv(program, argv);
		_exit(127);
	}
	g->pidfd = io_pidfd_open(g->pid);
	io_close(&start);
	io_close(&log);
	io_close(&null);
}

void
run_rig_start(struct run_rig *g)
{
	char name[] = "anvil-run", project[] = "--project", shard[] = "--shard", zero[] = "0",
	     spawn[] = "--spawn";
	char *argv[] = { name, g->run_id, project, g->project_id, shard, zero, spawn,
		g->spawn_id, NULL };

	launch(g, argv);
}

void
run_rig_serve(struct run_rig *g)
{
	char name[] = "anvil-run", serve[] = "--serve";
	char *argv[] = { name, serve, g->run_id, NULL };

	launch(g, argv);
}

void
run_rig_until(struct run_rig *g, int (*until)(struct run_rig *g))
{
	struct mono_time limit = mono_add_ms(clock_mono(), PATIENCE_MS);

	while (!until(g)) {
		if (mono_diff_us(clock_mono(), limit) <= 0) {
			CLEANUP_FREE char *events = run_rig_events(g);

			(void)fprintf(stderr, "waited too long\n%s\n", events);
			abort();
		}
		actor_step(g->super);
		actor_step(g->ctl);
		actor_step(g->shard);
		(void)poll(NULL, 0, 1);
	}
}

static int
has_ended(struct run_rig *g)
{
	if (waitpid(g->pid, &g->status, WNOHANG) != g->pid)
		return 0;
	g->pid = -1;
	io_close(&g->pidfd);
	return 1;
}

int
run_rig_wait(struct run_rig *g)
{
	run_rig_until(g, has_ended);
	return WIFEXITED(g->status) ? WEXITSTATUS(g->status) : 256 + WTERMSIG(g->status);
}

void
run_rig_expect(struct run_rig *g, int status)
{
	int got;

	run_rig_start(g);
	got = run_rig_wait(g);
	if (got != status) {
		CLEANUP_FREE char *events = run_rig_events(g);

		(void)fputs(events, stderr);
	}
	assert_int_equal(got, status);
}

void
run_rig_hold_mirror(struct run_rig *g)
{
	CLEANUP_FREE char *dir = mem_format("%s/cache", g->data);
	CLEANUP_FREE char *name = mem_format("%s.lock", g->project_id);
	int fd;

	must(dir != NULL && name != NULL && io_mkdirs(dir, 0700) == 0);
	fd = io_open_dir(AT_FDCWD, dir);
	must(fd >= 0 && io_lock_file(fd, name, &g->mirror_fd) == 0);
	io_close(&fd);
}

void
run_rig_free_mirror(struct run_rig *g)
{
	io_close(&g->mirror_fd);
}

static void
on_concluded(void *arg, int err, const struct run_conclude_result *res)
{
	struct run_rig *g = arg;

	must(err == 0 && res->kind == RUN_CONCLUDE_TERMINAL);
	g->concluded = res->u.terminal;
	g->concluded.error_message = NULL;
	g->answered = 1;
}

static void
on_detail(void *arg, int err, const struct run_get_detail_result *res)
{
	struct run_rig *g = arg;

	must(err == 0);
	*g->detail = res->u.detail;
}

static void
on_log(void *arg, int err, const struct run_read_log_result *res)
{
	struct run_rig *g = arg;

	must(err == 0);
	must(buf_add(g->detail_text, res->u.text.text.p, res->u.text.text.n) == 0);
	g->answered = 1;
}

static void
on_run_up(void *arg, struct link *l, struct rpc_peer *p)
{
	struct run_rig *g = arg;
	struct run_get_detail_params detail = { 262144 };
	struct run_read_log_params log = { 0, 1 << 20 };
	struct run_conclude_params params = { g->epoch, FAILURE_CODE_RUNNER_LOST,
		"The process that executed this run ended unexpectedly (signal 9 (SIGKILL))." };

	(void)l;
	if (g->want_conclude) {
		must(run_conclude_call(p, NULL, &params, on_concluded, g) == 0);
		return;
	}
	must(run_get_detail_call(p, NULL, &detail, on_detail, g) == 0);
	must(run_read_log_call(p, NULL, &log, on_log, g) == 0);
}

static int
is_answered(struct run_rig *g)
{
	return g->answered;
}

static void
ask(struct run_rig *g)
{
	/* Reads are ingress's and ctl's, conclude is the shard's. */
	static const struct link_ops ops = { .on_up = on_run_up };
	struct actor *from = g->want_conclude ? g->shard : g->ctl;
	char address[ID_SIZE + 4];
	struct link *l;

	(void)snprintf(address, sizeof(address), "run/%s", g->run_id);
	g->answered = 0;
	l = actor_link(from, address, &ops, g);
	must(l != NULL);
	run_rig_until(g, is_answered);
	(void)actor_unlink(from, l);
}

void
run_rig_conclude(struct run_rig *g)
{
	g->want_conclude = 1;
	ask(g);
}

void
run_rig_ask(struct run_rig *g, struct run_get_detail_detail *ret, struct buf *ret_text)
{
	g->want_conclude = 0;
	g->detail = ret;
	g->detail_text = ret_text;
	ask(g);
}

void
run_rig_let_go(const struct run_rig *g)
{
	CLEANUP_FREE char *path = mem_format("%s/runs/%s/home/go", g->data, g->run_id);
	CLEANUP(io_closep)
	int fd = path != NULL ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;

	must(fd >= 0);
}

void
run_rig_restart_shard(struct run_rig *g)
{
	g->channel = NULL;
	g->shard = actor_free(g->shard);
	g->shard = make_actor(g, &shard_desc, "project/0");
}

/* ---- secrets ---- */

static struct vault_keys *
keys_of(const char *project_id, int version)
{
	CLEANUP_FREE char *text = mem_format(
	    "{\"current\":%d,\"keys\":{\"%d\":"
	    "\"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8\"}}",
	    version, version);
	CLEANUP(vault_keys_freep) struct vault_keys *master = NULL;
	struct vault_keys *derived = NULL;

	must(text != NULL && vault_keys_parse(text, strlen(text), &master, NULL) == 0);
	must(vault_keys_for_project(master, project_id, &derived) == 0);
	return derived;
}

void
run_rig_seal(struct run_rig *g, const char *token, int given)
{
	CLEANUP(vault_keys_freep) struct vault_keys *sealing = keys_of(g->project_id, 1);
	CLEANUP(vault_keys_freep) struct vault_keys *giving = keys_of(g->project_id, given);
	CLEANUP_FREE char *bound = mem_format("project_config|%s|repo_token", g->project_id);
	struct vault_sealed sealed = { 0 };
	struct buf keys = BUF_INIT;

	must(bound != NULL && vault_keys_format(giving, &keys) == 0);
	must(vault_seal(sealing, VAULT_REPO_TOKEN, g->project_id, bound, token, strlen(token),
		 &sealed) == 0);
	free(g->keys_text);
	free(g->sealed_text);
	g->keys = g->keys_text = buf_take_cstr(&keys);
	g->sealed_text = sealed.ciphertext;
	(void)snprintf(g->sealed_nonce, sizeof(g->sealed_nonce), "%s", sealed.nonce);
	g->sealed = (struct sealed_value) { g->sealed_text, g->sealed_nonce, 1 };
	g->token = &g->sealed;
}

/* ---- what it left ---- */

struct record *
run_rig_record(struct run_rig *g)
{
	CLEANUP_FREE char *dir = mem_format("%s/runs/%s", g->data, g->run_id);
	struct record *r = NULL;
	char *why = NULL;

	must(dir != NULL && record_exists(dir));
	must(record_open(dir, g->max_log_bytes, &r, &why) == 0);
	return r;
}

void
run_rig_text(struct run_rig *g, struct buf *out)
{
	CLEANUP(record_freep) struct record *r = run_rig_record(g);
	struct record_text text = { 0 };

	do {
		size_t before = out->len;

		must(record_text_get(r, text.next_byte, 1 << 20, out, &text) == 0);
		if (out->len == before)
			break;
	} while (!text.complete);
}

int
run_rig_said(struct run_rig *g, const char *text)
{
	CLEANUP(buf_done) struct buf all = BUF_INIT;

	run_rig_text(g, &all);
	return all.len != 0 && memmem(all.data, all.len, text, strlen(text)) != NULL;
}

char *
run_rig_events(const struct run_rig *g)
{
	struct buf b = BUF_INIT;

	must(io_read_file(AT_FDCWD, g->log, 16 << 20, &b) == 0);
	return buf_take_cstr(&b);
}
