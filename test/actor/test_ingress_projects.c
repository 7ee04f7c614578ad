/*
 * test/actor/test_ingress_projects.c -- projects and runs over HTTP and by RPC, and what is left of
 * them when somebody dies.  The real anvild, ingress and two shards.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/id.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "test/support/edge_rig.h"
#include "test/support/scratch.h"
#include "test/support/unit.h"

#define LOGIN "/api/public/auth/login"

static struct edge_rig rig;
static struct edge_rig *const g = &rig;

/* Each test comes from an address of its own, signed out. */
static int
begin(void **state)
{
	(void)state;
	edge_move(g);
	g->session[0] = '\0';
	return 0;
}

/* ---- projects ---- */

static void
a_project_is_made_listed_and_shown(void **state)
{
	char path[96];

	(void)state;
	edge_sign_in(g, "donald");
	(void)edge_ask(g, 200, "GET", "/api/private/projects", NULL);
	assert_string_equal(edge_value(g, "projects"), "[]");
	(void)edge_ask(g, 201, "POST", "/api/private/projects",
	    "{\"projectSlug\":\"TeX\",\"name\":\" T e X \",\"repoToken\":null,"
	    "\"repoUrl\":\" https://GitHub.com/a/b.git/\",\"defaultBranch\":\" main \"}");
	assert_string_equal(edge_text(g, "project.name"), "T e X");
	assert_string_equal(edge_text(g, "project.repoUrl"), "https://github.com/a/b");
	assert_string_equal(edge_text(g, "project.defaultBranch"), "main");
	assert_string_equal(edge_text(g, "project.configPath"), ".anvil.yml");
	assert_string_equal(edge_text(g, "project.ownerSlug"), "donald");
	assert_string_equal(edge_text(g, "project.projectSlug"), "TeX");
	assert_string_equal(edge_text(g, "project.lastRunStatus"), "(null)");
	(void)snprintf(
	    path, sizeof(path), "/api/private/projects/%s", edge_text(g, "project.id"));
	edge_refused(g, 409, "project_slug_taken", "POST", "/api/private/projects",
	    "{\"projectSlug\":\"TeX\",\"name\":\"x\",\"repoUrl\":\"https://github.com/a/b\","
	    "\"defaultBranch\":\"main\",\"repoToken\":\"secret-token\"}");
	assert_null(strstr((const char *)g->body.data, "secret-token"));
	(void)edge_ask(g, 200, "GET", "/api/private/projects", NULL);
	assert_string_equal(edge_text(g, "projects.0.name"), "T e X");
	assert_string_equal(edge_text(g, "projects.1"), "(none)");
	(void)edge_ask(g, 200, "GET", path, NULL);
	assert_string_equal(edge_value(g, "activeRun"), "null");
	assert_string_equal(edge_value(g, "pendingRuns"), "[]");
}

static void
the_fields_of_a_project_are_judged_in_two_passes(void **state)
{
	static const struct {
		const char *body, *code, *issues;
	} rows[] = {
		{ "{\"projectSlug\":\"a b\",\"name\":\"\",\"repoUrl\":1,\"secret\":2}",
		    "invalid_request",
		    "projectSlug:Slug repoUrl:RepositoryUrl defaultBranch:BranchName secret:absent" },
		{ "{\"projectSlug\":\"a\",\"name\":\"n\",\"repoUrl\":\"http://example.com/a\","
		  "\"defaultBranch\":\"HEAD\"}",
		    "invalid_repo_url", "repoUrl:RepositoryUrl defaultBranch:BranchName" },
		{ "{\"projectSlug\":\"a\",\"name\":\"\",\"repoUrl\":\"x\",\"defaultBranch\":\"main\"}",
		    "invalid_request", "name:ProjectName repoUrl:RepositoryUrl" },
		{ "{\"projectSlug\":\"a\",\"name\":\"n\",\"repoUrl\":\"https://example.com/a\","
		  "\"defaultBranch\":\"main\",\"configPath\":\"../x\"}",
		    "invalid_config_path", "configPath:ConfigPath" },
		{ "{\"projectSlug\":\"a\",\"name\":\"n\",\"repoUrl\":\"https://example.com/a\","
		  "\"defaultBranch\":\"main\",\"configPath\":\" \"}",
		    "invalid_request", "configPath:ConfigPath" },
		{ "{\"projectSlug\":\"a\",\"name\":\"n\",\"repoUrl\":\"https://example.com/a\","
		  "\"defaultBranch\":\"main\",\"repoToken\":\" x\"}",
		    "invalid_repo_token", "repoToken:RepoToken" },
		{ "{\"projectSlug\":\"a\",\"name\":\"n\",\"repoUrl\":\"https://example.com/a\","
		  "\"defaultBranch\":\"main\",\"configPath\":null}",
		    "invalid_request", "configPath:ConfigPath" },
	};

	(void)state;
	edge_sign_in(g, "tony");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		edge_refused(
		    g, 400, rows[i].code, "POST", "/api/private/projects", rows[i].body);
		if (strcmp(edge_issues(g), rows[i].issues) != 0)
			fail_msg("%s: %s", rows[i].body, edge_issues(g));
	}
}

static void
an_update_changes_what_is_given_and_moves_updated_at(void **state)
{
	char path[96], before[32];

	(void)state;
	edge_sign_in(g, "ken");
	(void)edge_project(g, "unix", path);
	(void)snprintf(before, sizeof(before), "%s", edge_text(g, "project.updatedAt"));
	(void)edge_ask(g, 200, "PATCH", path, "{\"name\":\"Unix 7\",\"repoToken\":\"t\"}");
	assert_string_equal(edge_text(g, "project.name"), "Unix 7");
	assert_string_equal(edge_text(g, "project.repoUrl"), "https://example.com/a/b");
	assert_true(strcmp(edge_text(g, "project.updatedAt"), before) > 0);
	(void)snprintf(before, sizeof(before), "%s", edge_text(g, "project.updatedAt"));
	(void)edge_ask(g, 200, "GET", "/api/private/projects", NULL);
	assert_string_equal(edge_text(g, "projects.0.name"), "Unix 7");
	(void)edge_ask(g, 200, "PATCH", path, "{\"name\":\"Unix 7\"}");
	assert_true(strcmp(edge_text(g, "project.updatedAt"), before) > 0);
	(void)edge_ask(g, 200, "PATCH", path, "{\"repoToken\":null}");
	edge_refused(g, 400, "empty_update", "PATCH", path, "{}");
	edge_refused(g, 400, "invalid_request", "PATCH", path, "{\"projectSlug\":\"x\"}");
	assert_string_equal(edge_issues(g), "projectSlug:absent");
	edge_refused(g, 400, "invalid_repo_url", "PATCH", path, "{\"repoUrl\":\"\"}");
	edge_refused(g, 400, "invalid_request", "PATCH", path, "{\"name\":null}");
	edge_refused(g, 400, "invalid_json", "PATCH", path, "");
}

static void
what_is_anothers_looks_as_if_it_were_not_there(void **state)
{
	static const char *const shapes[] = { "prj_1", "prj_0000000000000000000000",
		"prj_000000000000000000000-", "x", "run_0000000000000000000000" };
	char path[96], run[96], other[96];

	(void)state;
	edge_sign_in(g, "mallory");
	(void)edge_project(g, "mine", other);
	edge_sign_in(g, "alice");
	(void)edge_project(g, "mine", path);
	(void)edge_trigger(g, path, run);
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
		const char *odd = edge_fmt("/api/private/projects/%s", shapes[i]);

		edge_refused(g, 404, "project_not_found", "GET", odd, NULL);
		edge_refused(g, 404, "project_not_found", "PATCH", odd, "!");
		edge_refused(
		    g, 404, "project_not_found", "POST", edge_fmt("%s%s", odd, "/runs"), "!");
		edge_refused(g, 404, "project_not_found", "GET",
		    edge_fmt("%s%s", odd, "/runs?limit=0"), NULL);
		odd = edge_fmt(
		    "/api/private/runs/%s", i == 4 ? "prj_0000000000000000000000" : shapes[i]);
		edge_refused(g, 404, "run_not_found", "GET", odd, NULL);
	}
	edge_refused(g, 404, "run_not_found", "GET",
	    "/api/private/runs/run_0000000000000000000000", NULL);
	g->session[0] = '\0';
	(void)edge_ask(g, 200, "POST", LOGIN,
	    "{\"email\":\"mallory@example.com\",\"password\":\"correct horse\"}");
	(void)snprintf(g->session, sizeof(g->session), "%s", edge_text(g, "sessionId"));
	edge_refused(g, 404, "project_not_found", "GET", path, NULL);
	edge_refused(g, 404, "project_not_found", "PATCH", path, "{\"name\":\"x\"}");
	edge_refused(g, 404, "project_not_found", "GET", edge_fmt("%s%s", path, "/runs"), NULL);
	edge_refused(
	    g, 404, "project_not_found", "POST", edge_fmt("%s%s", path, "/runs"), "{}");
	edge_refused(g, 404, "run_not_found", "GET", run, NULL);
	edge_refused(g, 404, "run_not_found", "GET", edge_fmt("%s%s", run, "/log"), NULL);
	(void)edge_ask(g, 200, "GET", "/api/private/projects", NULL);
	assert_string_equal(edge_text(g, "projects.1"), "(none)");
}

/* ---- runs ---- */

static void
pages_of_runs_have_each_once_from_the_newest_on(void **state)
{
	static const char *const bad[] = { "limit=", "limit=0", "limit=101", "limit=01",
		"limit=1x", "limit=-1", "limit=2&limit=2", "cursor=a&cursor=a", "limit=%zz" };
	char path[96], run[5][96], url[256], cursor[128] = "";

	(void)state;
	edge_sign_in(g, "linus");
	(void)edge_project(g, "kernel", path);
	for (int i = 0; i < 5; i++)
		(void)edge_trigger(g, path, run[i]);
	for (int i = 4; i >= 0; i -= 2) {
		(void)snprintf(
		    url, sizeof(url), "%s/runs?limit=2&cursor=%s&what=ever", path, cursor);
		(void)edge_ask(g, 200, "GET", url, NULL);
		assert_string_equal(edge_text(g, "runs.0.id"), strrchr(run[i], '/') + 1);
		assert_string_equal(edge_text(g, "runs.0.status"), "queued");
		if (i > 0)
			assert_string_equal(
			    edge_text(g, "runs.1.id"), strrchr(run[i - 1], '/') + 1);
		(void)snprintf(cursor, sizeof(cursor), "%s", edge_text(g, "nextCursor"));
	}
	assert_string_equal(cursor, "(null)");
	(void)edge_ask(g, 200, "GET", edge_fmt("%s%s", path, "/runs?limit=5"), NULL);
	assert_string_equal(edge_text(g, "nextCursor"), "(null)");
	assert_string_equal(edge_text(g, "runs.4.id"), strrchr(run[0], '/') + 1);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		edge_refused(g, 400, "invalid_request", "GET",
		    edge_fmt("%s/runs?%s", path, bad[i]), NULL);
	edge_refused(
	    g, 400, "invalid_cursor", "GET", edge_fmt("%s%s", path, "/runs?cursor=no"), NULL);
	(void)edge_ask(g, 200, "GET", "/api/private/projects", NULL);
	assert_string_equal(edge_text(g, "projects.0.lastRunStatus"), "queued");
}

static void
a_queued_run_is_shown_whole(void **state)
{
	char path[96], run[96];

	(void)state;
	edge_sign_in(g, "margaret");
	(void)edge_project(g, "apollo", path);
	(void)edge_ask(
	    g, 202, "POST", edge_fmt("%s%s", path, "/runs"), "{\"branch\":\" feature/x \"}");
	(void)snprintf(run, sizeof(run), "/api/private/runs/%s", edge_text(g, "runId"));
	(void)edge_ask(g, 200, "GET", run, NULL);
	assert_string_equal(edge_text(g, "run.id"), strrchr(run, '/') + 1);
	assert_string_equal(edge_text(g, "run.branch"), "feature/x");
	assert_string_equal(edge_text(g, "run.status"), "queued");
	assert_string_equal(edge_text(g, "run.triggerType"), "manual");
	assert_string_equal(edge_text(g, "run.commitSha"), "(null)");
	assert_true(id_check(ID_USER, edge_text(g, "run.triggeredByUserId")));
	assert_string_equal(edge_value(g, "steps"), "[]");
	assert_string_equal(edge_value(g, "recentLogs"), "[]");
	assert_string_equal(edge_value(g, "firstSeq"), "1");
	assert_string_equal(edge_value(g, "droppedBytes"), "0");
	assert_string_equal(edge_value(g, "logBytes"), "0");
	assert_string_equal(edge_value(g, "detailAvailable"), "true");
	assert_string_equal(edge_value(g, "currentStep"), "null");
	(void)edge_ask(g, 200, "GET", edge_fmt("%s%s", run, "?logBytes=0"), NULL);
	edge_refused(
	    g, 400, "invalid_request", "GET", edge_fmt("%s%s", run, "?logBytes=2097153"), NULL);
	edge_refused(
	    g, 400, "invalid_request", "GET", edge_fmt("%s%s", run, "?logBytes=x"), NULL);
	edge_refused(g, 400, "invalid_request", "POST", edge_fmt("%s%s", path, "/runs"),
	    "{\"branch\":\"a..b\"}");
	edge_refused(g, 400, "invalid_request", "POST", edge_fmt("%s%s", path, "/runs"),
	    "{\"branch\":null}");
	edge_refused(g, 400, "invalid_json", "POST", edge_fmt("%s%s", path, "/runs"), "");
	(void)edge_ask(g, 200, "GET", path, NULL);
	assert_string_equal(edge_text(g, "project.lastRunStatus"), "queued");
	assert_string_equal(edge_text(g, "pendingRuns.0.branch"), "feature/x");
}

static void
the_twenty_first_run_finds_the_queue_full(void **state)
{
	char path[96], run[96];

	(void)state;
	edge_sign_in(g, "frances");
	(void)edge_project(g, "queue", path);
	for (int i = 0; i < 20; i++)
		(void)edge_trigger(g, path, run);
	edge_refused(
	    g, 409, "project_queue_full", "POST", edge_fmt("%s%s", path, "/runs"), "{}");
	(void)edge_ask(g, 200, "GET", path, NULL);
	assert_string_equal(edge_text(g, "pendingRuns.19.runId"), strrchr(run, '/') + 1);
	assert_string_equal(edge_text(g, "pendingRuns.20"), "(none)");
}

static void
a_text_log_is_empty_before_the_start_and_ends_with_its_run(void **state)
{
	char path[96], run[96], params[256];
	int err, fd;

	(void)state;
	edge_sign_in(g, "radia");
	(void)edge_project(g, "bridge", path);
	(void)edge_trigger(g, path, run);
	(void)edge_ask(g, 200, "GET", edge_fmt("%s%s", run, "/log"), NULL);
	assert_int_equal(g->body.len, 0);
	assert_string_equal(edge_header(g, "Content-Type"), "text/plain; charset=utf-8");
	(void)snprintf(
	    params, sizeof(params), "inline; filename=\"%s.log\"", strrchr(run, '/') + 1);
	assert_string_equal(edge_header(g, "Content-Disposition"), params);
	(void)edge_ask(g, 200, "GET", edge_fmt("%s%s", run, "/log?download=1&follow=0"), NULL);
	assert_int_equal(strncmp(edge_header(g, "Content-Disposition"), "attachment; ", 12), 0);
	(void)edge_ask(g, 200, "HEAD", edge_fmt("%s%s", run, "/log?follow=1"), NULL);
	edge_refused(
	    g, 400, "invalid_request", "GET", edge_fmt("%s%s", run, "/log?follow=2"), NULL);
	edge_refused(
	    g, 400, "invalid_request", "GET", edge_fmt("%s%s", run, "/log?download="), NULL);

	fd = edge_send(g, "GET", edge_fmt("%s%s", run, "/log?follow=1"));
	(void)snprintf(params, sizeof(params),
	    "{\"projectId\":\"%s\",\"runId\":\"%s\",\"by\":\"operator\"}",
	    strrchr(path, '/') + 1, strrchr(run, '/') + 1);
	for (int shard = 0; shard < 2; shard++) {
		char address[24];

		(void)snprintf(address, sizeof(address), "project/%d", shard);
		(void)edge_rpc(g, address, "project.cancelRun", params, &err);
	}
	edge_receive(g, fd);
	assert_int_equal(g->status, 200);
	assert_int_equal(g->body.len, 0);
	(void)edge_ask(g, 200, "GET", run, NULL);
	assert_string_equal(edge_text(g, "run.status"), "canceled");
	assert_string_equal(edge_text(g, "run.failureCode"), "runtime_cancelled");
	assert_string_equal(edge_text(g, "failureCode"), "runtime_cancelled");
	assert_string_equal(edge_value(g, "run.exitCode"), "null");
	assert_string_equal(edge_value(g, "detailAvailable"), "true");
	assert_string_equal(edge_value(g, "firstSeq"), "1");
	(void)edge_ask(g, 200, "GET", edge_fmt("%s%s", run, "/log?follow=1"), NULL);
}

/* ---- anvilctl's side ---- */

static void
anvilctl_finds_makes_and_lists(void **state)
{
	char path[96], run[96], params[320];
	const json_t *res;
	int err;

	(void)state;
	edge_sign_in(g, "ctl-user");
	(void)edge_project(g, "one", path);
	(void)edge_trigger(g, path, run);
	(void)edge_ask(g, 200, "GET", edge_fmt("%s%s", path, "/runs"), NULL);
	res = edge_rpc(g, "ingress", "ingress.resolve", "{\"name\":\"ctl-user/one\"}", &err);
	assert_string_equal(edge_kind(res), "project");
	assert_string_equal(
	    json_string_value(json_object_get(res, "projectId")), strrchr(path, '/') + 1);
	(void)snprintf(params, sizeof(params), "{\"name\":\"%s\"}", strrchr(run, '/') + 1);
	assert_string_equal(
	    edge_kind(edge_rpc(g, "ingress", "ingress.resolve", params, &err)), "run");
	assert_string_equal(edge_kind(edge_rpc(g, "ingress", "ingress.resolve",
				"{\"name\":\"no/body\"}", &err)),
	    "not_found");
	assert_string_equal(
	    edge_kind(edge_rpc(g, "ingress", "ingress.createProject",
		"{\"ownerSlug\":\"ctl-user\",\"projectSlug\":\"two\",\"name\":\"Two\","
		"\"repoUrl\":\"https://example.com/a/b\",\"defaultBranch\":\"main\","
		"\"repoToken\":\"t\"}",
		&err)),
	    "created");
	assert_string_equal(
	    edge_kind(edge_rpc(g, "ingress", "ingress.createProject",
		"{\"ownerSlug\":\"ctl-user\",\"projectSlug\":\"two\",\"name\":\"Two\","
		"\"repoUrl\":\"https://example.com/a/b\",\"defaultBranch\":\"main\"}",
		&err)),
	    "slug_taken");
	assert_string_equal(
	    edge_kind(edge_rpc(g, "ingress", "ingress.createProject",
		"{\"ownerSlug\":\"nobody\",\"projectSlug\":\"two\",\"name\":\"Two\","
		"\"repoUrl\":\"https://example.com/a/b\",\"defaultBranch\":\"main\"}",
		&err)),
	    "owner_not_found");
	res = edge_rpc(g, "ingress", "ingress.listProjects",
	    "{\"ownerSlug\":\"ctl-user\",\"limit\":1}", &err);
	assert_int_equal(json_array_size(json_object_get(res, "projects")), 1);
	assert_true(json_is_string(json_object_get(res, "next")));
	(void)snprintf(
	    params, sizeof(params), "{\"projectId\":\"%s\"}", strrchr(path, '/') + 1);
	assert_string_equal(
	    edge_kind(edge_rpc(g, "ingress", "ingress.triggerRun", params, &err)), "accepted");
	(void)edge_ask(g, 200, "GET", edge_fmt("%s%s", path, "/runs"), NULL);
	res = edge_rpc(g, "ingress", "ingress.listRuns", params, &err);
	assert_int_equal(json_array_size(json_object_get(res, "runs")), 2);
	res = edge_rpc(g, "ingress", "user.list", "{}", &err);
	assert_true(json_array_size(json_object_get(res, "users")) > 1);
	/* The index is told by shards alone. */
	assert_null(edge_rpc(g, "ingress", "index.removeProject", params, &err));
	assert_int_equal(err, E_DENIED);
}

static const char *
give(const char *project_path, const char *user)
{
	const json_t *res;
	char params[160];
	int err;

	(void)snprintf(params, sizeof(params), "{\"projectId\":\"%s\",\"user\":\"%s\"}",
	    strrchr(project_path, '/') + 1, user);
	res = edge_rpc(g, "ingress", "ingress.giveProject", params, &err);
	assert_int_equal(err, 0);
	return edge_kind(res);
}

static void
sign_in_again(const char *slug)
{
	g->session[0] = '\0';
	(void)edge_ask(g, 200, "POST", LOGIN,
	    edge_fmt("{\"email\":\"%s@example.com\",\"password\":\"correct horse\"}", slug));
	(void)snprintf(g->session, sizeof(g->session), "%s", edge_text(g, "sessionId"));
}

static void
a_project_is_given_with_its_runs_and_its_name_is_free(void **state)
{
	char path[96], run[96], other[96];
	int err;

	(void)state;
	edge_sign_in(g, "heir");
	(void)edge_project(g, "both", other);
	edge_sign_in(g, "giver");
	(void)edge_project(g, "both", path);
	assert_string_equal(give(path, "heir"), "slug_taken");
	assert_string_equal(give(path, "nobody"), "user_not_found");
	assert_string_equal(give("/prj_0000000000000000000000", "heir"), "not_found");
	(void)edge_project(g, "given", path);
	(void)edge_trigger(g, path, run);
	assert_string_equal(give(path, "heir@example.com"), "given");
	edge_refused(g, 404, "project_not_found", "GET", path, NULL);
	edge_refused(g, 404, "run_not_found", "GET", run, NULL);
	(void)edge_ask(g, 200, "GET", "/api/private/projects", NULL);
	assert_string_equal(edge_text(g, "projects.1"), "(none)");
	/* There is nothing of that name any more, and it may be had again. */
	assert_string_equal(edge_kind(edge_rpc(g, "ingress", "ingress.resolve",
				"{\"name\":\"giver/given\"}", &err)),
	    "not_found");
	(void)edge_project(g, "given", other);
	sign_in_again("heir");
	(void)edge_ask(g, 200, "GET", path, NULL);
	assert_string_equal(edge_text(g, "project.ownerSlug"), "heir");
	assert_string_equal(edge_text(g, "pendingRuns.0.runId"), strrchr(run, '/') + 1);
	(void)edge_ask(g, 200, "GET", run, NULL);
	(void)edge_trigger(g, path, run);
	edge_refused(g, 404, "project_not_found", "GET", other, NULL);
	/* Once more changes nothing; to somebody who cannot use it is refused. */
	assert_string_equal(give(path, "heir"), "given");
	assert_non_null(edge_rpc(g, "ingress", "user.disable", "{\"user\":\"giver\"}", &err));
	assert_string_equal(give(path, "giver"), "user_disabled");
}

/* ---- who may die ---- */

static void
wait_for_another_pid(const char *address, pid_t before)
{
	struct mono_time end = mono_add_ms(clock_mono(), 20000);
	pid_t now;

	while ((now = edge_pid(g, address)) == before || now == 0) {
		assert_true(mono_diff_ms(clock_mono(), end) > 0);
		(void)poll(NULL, 0, 20);
	}
}

static void
without_shards_lists_go_on_and_a_refused_project_leaves_its_slug_free(void **state)
{
	static const char *const shards[] = { "project/0", "project/1" };
	char path[96], run[96];
	pid_t pids[2];

	(void)state;
	edge_sign_in(g, "leslie");
	(void)edge_project(g, "paxos", path);
	(void)edge_trigger(g, path, run);
	for (size_t i = 0; i < 2; i++)
		pids[i] = edge_pid(g, shards[i]);
	/* Who sleeps restarts nobody. */
	assert_int_equal(kill(g->pid, SIGSTOP), 0);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(kill(pids[i], SIGKILL), 0);
	edge_refused(
	    g, 503, "shard_unavailable", "POST", edge_fmt("%s%s", path, "/runs"), "{}");
	edge_refused(g, 503, "shard_unavailable", "GET", path, NULL);
	edge_refused(g, 503, "shard_unavailable", "PATCH", path, "{\"name\":\"x\"}");
	edge_refused(g, 503, "shard_unavailable", "GET",
	    "/api/private/runs/run_0000000000000000000000", NULL);
	/* By now it is known that nobody has been asked. */
	edge_refused(g, 503, "shard_unavailable", "POST", "/api/private/projects",
	    "{\"projectSlug\":\"late\",\"name\":\"n\",\"repoUrl\":\"https://example.com/a\","
	    "\"defaultBranch\":\"main\"}");
	assert_string_equal(edge_header(g, "Retry-After"), "5");
	(void)edge_ask(g, 200, "GET", "/api/private/me", NULL);
	(void)edge_ask(g, 200, "GET", "/api/private/projects", NULL);
	assert_string_equal(edge_text(g, "projects.0.projectSlug"), "paxos");
	assert_string_equal(edge_text(g, "projects.1"), "(none)");
	(void)edge_ask(g, 200, "GET", edge_fmt("%s%s", path, "/runs"), NULL);
	assert_string_equal(edge_text(g, "runs.0.id"), strrchr(run, '/') + 1);
	assert_int_equal(kill(g->pid, SIGCONT), 0);
	for (size_t i = 0; i < 2; i++)
		wait_for_another_pid(shards[i], pids[i]);
	edge_await(g);
	(void)edge_ask(g, 200, "GET", path, NULL);
	assert_string_equal(edge_text(g, "project.name"), "paxos");
	(void)edge_project(g, "late", path);
}

static void
a_killed_ingress_forgets_nothing_that_it_has_said(void **state)
{
	char path[96], run[96];
	pid_t pid;

	(void)state;
	edge_sign_in(g, "whitfield");
	(void)edge_project(g, "keys", path);
	(void)edge_trigger(g, path, run);
	pid = edge_pid(g, "ingress");
	assert_int_equal(kill(pid, SIGKILL), 0);
	wait_for_another_pid("ingress", pid);
	edge_await(g);
	(void)edge_ask(g, 200, "GET", "/api/private/me", NULL);
	assert_string_equal(edge_text(g, "user.slug"), "whitfield");
	(void)edge_ask(g, 200, "GET", run, NULL);
	assert_string_equal(edge_text(g, "run.status"), "queued");
}

/* ---- the program itself ---- */

static int
check_store(const char *data_dir)
{
	CLEANUP_FREE char *program = scratch_program("anvil-ingress");
	CLEANUP(buf_done) struct buf start = BUF_INIT;
	int fds[2], status;
	pid_t pid;

	buf_printf(&start,
	    "{\"config\":{\"data_dir\":\"%s\",\"runtime_dir\":\"%s\"},\"keys\":null,"
	    "\"supervisorPid\":%d,\"bootId\":\"b\"}",
	    data_dir, data_dir, (int)getpid());
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(io_write_all(fds[1], start.data, start.len), 0);
	close(fds[1]);
	pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_WRONLY);

		(void)dup2(null, 1);
		(void)dup2(null, 2);
		(void)dup2(fds[0], 3);
		(void)execl(program, program, "--check", (char *)NULL);
		_exit(127);
	}
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void
copy_file(const char *from, const char *to)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;

	assert_int_equal(io_read_file(AT_FDCWD, from, 64u << 20, &b), 0);
	assert_int_equal(io_write_file(AT_FDCWD, to, b.data, b.len, 0600), 0);
}

static void
check_finds_a_store_sound_and_damage_in_it(void **state)
{
	static const char junk[8192] = "SQLite format 4";
	char copy[128];

	(void)state;
	(void)snprintf(copy, sizeof(copy), "%s/copy", g->dir);
	assert_int_equal(io_mkdirs(copy, 0700), 0);
	/* Nothing is asked of it meanwhile, so that the two belong together. */
	copy_file(edge_fmt("%s/data/ingress.db", g->dir), edge_fmt("%s/ingress.db", copy));
	copy_file(
	    edge_fmt("%s/data/ingress.db-wal", g->dir), edge_fmt("%s/ingress.db-wal", copy));
	assert_int_equal(check_store(copy), 0);
	(void)unlink(edge_fmt("%s/ingress.db-wal", copy)); /* the check may have taken it in */
	assert_int_equal(
	    io_write_file(AT_FDCWD, edge_fmt("%s/ingress.db", copy), junk, sizeof(junk), 0600),
	    0);
	assert_int_equal(check_store(copy), 1);
}

static int
start_all(void **state)
{
	(void)state;
	edge_start(g);
	return 0;
}

static int
stop_all(void **state)
{
	(void)state;
	return edge_stop(g);
}

int
main(void)
{
#define TEST(fn) cmocka_unit_test_setup(fn, begin)
	const struct CMUnitTest tests[] = {
		TEST(a_project_is_made_listed_and_shown),
		TEST(the_fields_of_a_project_are_judged_in_two_passes),
		TEST(an_update_changes_what_is_given_and_moves_updated_at),
		TEST(what_is_anothers_looks_as_if_it_were_not_there),
		TEST(pages_of_runs_have_each_once_from_the_newest_on),
		TEST(a_queued_run_is_shown_whole),
		TEST(the_twenty_first_run_finds_the_queue_full),
		TEST(a_text_log_is_empty_before_the_start_and_ends_with_its_run),
		TEST(anvilctl_finds_makes_and_lists),
		TEST(a_project_is_given_with_its_runs_and_its_name_is_free),
		TEST(without_shards_lists_go_on_and_a_refused_project_leaves_its_slug_free),
		TEST(a_killed_ingress_forgets_nothing_that_it_has_said),
		TEST(check_finds_a_store_sound_and_damage_in_it),
	};

	return cmocka_run_group_tests(tests, start_all, stop_all);
}
