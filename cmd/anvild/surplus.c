#include "cmd/anvild/surplus.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include "cmd/anvild/supervisor.h"
#include "gen/project.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/wire/wire.h"

#define FD_START       3 /* as lib/actor expects it */
#define REPORT_MAX     (1 << 20)
#define REPORT_DEPTH   4
#define PROJECTS_SHOWN 10
#define PROJECTS_ASKED 500

extern char **environ;

/* What the program prints.  0 or E_SYS. */
static int
ask_program(const struct supervisor *s, int shard, struct buf *out)
{
	CLEANUP_FREE char *program = sup_program(s, "anvil-project");
	CLEANUP(io_closep) int start = sup_start_fd(s, NULL);
	CLEANUP(io_closep) int from = -1;
	posix_spawn_file_actions_t acts;
	char number[16], check[] = "--check";
	char *argv[] = { program, number, check, NULL };
	int ends[2], r, status = -1;
	pid_t pid;

	(void)snprintf(number, sizeof(number), "%d", shard);
	if (program == NULL || start < 0 || pipe2(ends, O_CLOEXEC) < 0)
		return E_SYS;
	from = ends[0];
	(void)posix_spawn_file_actions_init(&acts);
	(void)posix_spawn_file_actions_adddup2(&acts, ends[1], STDOUT_FILENO);
	(void)posix_spawn_file_actions_adddup2(&acts, start, FD_START);
	r = posix_spawn(&pid, program, &acts, NULL, argv, environ);
	(void)posix_spawn_file_actions_destroy(&acts);
	io_close(&ends[1]);
	if (r != 0)
		return E_SYS;
	r = io_read_all(from, REPORT_MAX, out);
	if (waitpid(pid, &status, 0) != pid || status != 0)
		r = E_SYS;
	return r;
}

static void
list_projects(const json_t *projects, int shard, char *why, size_t size)
{
	const json_t *p;
	size_t i, at;

	(void)snprintf(why, size,
	    "shards: %d or more are needed, for shard %d holds %zu projects; move them first "
	    "(anvilctl project move):",
	    shard + 1, shard, json_array_size(projects));
	json_array_foreach (projects, i, p) {
		at = strlen(why);
		(void)snprintf(why + at, size - at, " %s",
		    i < PROJECTS_SHOWN ? json_string_value(p) : "...");
		if (i == PROJECTS_SHOWN)
			return;
	}
}

static int
check_one(const struct supervisor *s, int shard, char *why, size_t size)
{
	CLEANUP(buf_done) struct buf report = BUF_INIT;
	json_t *tree = NULL, *projects;
	int r = ask_program(s, shard, &report);

	if (r == 0)
		r = json_text_parse((const char *)report.data, report.len, REPORT_DEPTH, &tree);
	if (r < 0) {
		(void)snprintf(why, size,
		    "shards: %s/project-%d.db may hold projects, and cannot be read",
		    s->config->data_dir, shard);
		return E_SYS;
	}
	projects = json_object_get(tree, "projects");
	if (json_array_size(projects) != 0) {
		list_projects(projects, shard, why, size);
		r = E_BUSY;
	}
	json_decref(tree);
	return r;
}

int
surplus_check(const struct supervisor *s, char *why, size_t size)
{
	for (int shard = SUP_SHARDS_MAX - 1; shard >= s->config->shards; shard--) {
		CLEANUP_FREE char *path = mem_format(
		    "%s/project-%d.db", s->config->data_dir, shard);
		int r = path == NULL          ? E_NOMEM
		    : access(path, F_OK) == 0 ? check_one(s, shard, why, size)
					      : 0;

		if (r < 0)
			return r;
	}
	return 0;
}

void
surplus_note(const struct supervisor *s)
{
	for (int shard = (int)s->config->shards; shard < SUP_SHARDS_MAX; shard++) {
		CLEANUP_FREE char *path = mem_format(
		    "%s/project-%d.db", s->config->data_dir, shard);

		if (path != NULL && access(path, F_OK) == 0)
			(void)fprintf(stderr,
			    "anvild: shards: %s would be left out; while it holds projects "
			    "anvild does not start so (a running one lists them after a "
			    "SIGHUP, with the commands: anvilctl health)\n",
			    path);
	}
}

/* ---- while all of them run ---- */

static void
log_projects(int shard, const struct project_list_ledger_result *res)
{
	CLEANUP(buf_done) struct buf names = BUF_INIT;
	size_t n = 0;

	for (size_t i = 0; i < res->nprojects; i++) {
		const struct project_config *c = res->projects[i].config;

		if (c == NULL)
			continue; /* has moved away */
		if (n < PROJECTS_SHOWN)
			buf_printf(&names, "%s%s/%s", n > 0 ? " " : "", c->owner_slug,
			    c->project_slug);
		n++;
	}
	if (n > PROJECTS_SHOWN)
		buf_add_str(&names, " ...");
	if (n > 0)
		log_event(LOG_LEVEL_WARN, "shard_still_needed", LOG_INT("shard", shard),
		    LOG_INT("projects", n), LOG_STR("names", buf_cstr(&names)),
		    LOG_STR("remedy",
			"anvilctl project move PROJECT SHARD for each of them; before that anvild "
			"does not start again with so few shards (anvilctl health lists them)"));
}

static void
on_ledger(void *arg, int err, const struct project_list_ledger_result *res)
{
	int shard = (int)(intptr_t)arg;

	if (err == 0)
		log_projects(shard, res);
	else
		log_event(LOG_LEVEL_WARN, "shard_not_asked", LOG_INT("shard", shard),
		    LOG_STR("errorCode", err_symbol(err)),
		    LOG_STR("remedy",
			"if it holds projects, anvild does not start again with so few shards; "
			"anvilctl health tells"));
}

void
surplus_warn(struct supervisor *s)
{
	const struct project_list_ledger_params p = { .limit = PROJECTS_ASKED };

	for (int shard = (int)s->shards_wanted; shard > 0 && shard < s->config->shards;
	     shard++) {
		char address[RPC_ADDRESS_SIZE];
		struct rpc_peer *peer;

		(void)snprintf(address, sizeof(address), "project/%d", shard);
		peer = actor_peer(s->actor, address);
		if (peer == NULL ||
		    project_list_ledger_call(
			peer, NULL, &p, on_ledger, (void *)(intptr_t)shard) < 0)
			on_ledger((void *)(intptr_t)shard, E_LINK, NULL);
	}
}
