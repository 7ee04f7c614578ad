/*
 * test/actor/test_ingress_hooks_late.c -- deliveries that meet a change of their webhook or the death
 * of its shard, and what owners see of those that were refused.  The real anvild, ingress and two
 * shards.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "test/support/edge_rig.h"
#include "test/support/sender.h"
#include "test/support/unit.h"

#define PATIENCE_MS 30000
#define LOOK_MS     20

static struct edge_rig rig;
static struct edge_rig *const g = &rig;
static char project[96], path[96];

/* A project of its own for each test, with the webhook of that forge. */
static void
begin(enum provider provider)
{
	static int n;
	const char *slug = edge_fmt("p%d", n++);

	edge_move(g);
	(void)sender_project(g, provider, slug, project);
	(void)snprintf(path, sizeof(path), "%s", sender_path(provider, "late", slug));
}

static int
nruns(void)
{
	(void)edge_ask(g, 200, "GET", edge_fmt("%s/runs?limit=100", project), NULL);
	return (int)json_array_size(json_object_get(g->json, "runs"));
}

/* ---- changes while a body is on its way ---- */

enum change { RENAME, MOVE_BRANCH, ROTATE, DISABLE, REMOVE, REPLACE };

static void
make_change(enum change what, const char *provider)
{
	const char *hook = edge_fmt("%s/webhooks/%s", project, provider);

	switch (what) {
	case RENAME: (void)edge_ask(g, 200, "PATCH", project, "{\"name\":\"other\"}"); break;
	case MOVE_BRANCH:
		(void)edge_ask(g, 200, "PATCH", project, "{\"defaultBranch\":\"trunk\"}");
		break;
	case ROTATE:
		(void)edge_ask(g, 200, "POST", edge_fmt("%s/rotate-secret", hook), NULL);
		break;
	case DISABLE: (void)edge_ask(g, 200, "PUT", hook, "{\"enabled\":false}"); break;
	case REMOVE: (void)edge_ask(g, 204, "DELETE", hook, NULL); break;
	case REPLACE:
		(void)edge_ask(g, 204, "DELETE", hook, NULL);
		(void)edge_ask(
		    g, 201, "PUT", hook, "{\"enabled\":true,\"secret\":\"another secret\"}");
		break;
	}
}

/* Delivers, and the change happens before the last byte. */
static void
deliver_across(enum change what, const struct sender_delivery *d)
{
	CLEANUP(buf_done) struct buf rest = BUF_INIT;
	int fd;

	/* What it is verified against is known by then. */
	(void)sender_deliver(g, 200,
	    &(struct sender_delivery) { .provider = d->provider,
		.path = path,
		.body = sender_push(d->provider, "topic", SENDER_SHA) });
	fd = sender_begin(g, d, 20, &rest);
	make_change(what, provider_name(d->provider));
	sender_finish(g, fd, &rest);
}

static void
a_delivery_meets_a_change_of_its_webhook_as_if_it_came_after(void **state)
{
	static const struct {
		enum change what;
		int status;
		const char *secret, *path, *text;
	} rows[] = {
		{ RENAME, 202, NULL, "outcome", "accepted" },
		{ MOVE_BRANCH, 200, NULL, "outcome", "ignored_branch" },
		{ ROTATE, 401, NULL, "error.code", "invalid_webhook_signature" },
		{ DISABLE, 404, NULL, "error.code", "webhook_not_found" },
		{ REMOVE, 404, NULL, "error.code", "webhook_not_found" },
		{ REPLACE, 401, NULL, "error.code", "invalid_webhook_signature" },
		{ REPLACE, 202, "another secret", "outcome", "accepted" },
	};

	(void)state;
	for (int p = PROVIDER_GITHUB; p <= PROVIDER_GITLAB; p++)
		for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
			struct sender_delivery d = { .provider = (enum provider)p,
				.path = path,
				.secret = rows[i].secret };

			begin(d.provider);
			deliver_across(rows[i].what, &d);
			if (g->status != rows[i].status)
				fail_msg("%s, row %zu: %d: %s", provider_name(d.provider), i,
				    g->status, buf_cstr(&g->body));
			assert_string_equal(edge_text(g, rows[i].path), rows[i].text);
		}
}

static void
what_is_too_long_to_be_kept_has_to_come_again(void **state)
{
	static char body[300000];
	struct sender_delivery d = { .path = path, .body = body };
	size_t n;

	(void)state;
	begin(PROVIDER_GITHUB);
	memset(body, ' ', sizeof(body) - 1);
	n = (size_t)snprintf(
	    body, sizeof(body), "%s", sender_push(PROVIDER_GITHUB, "main", SENDER_SHA));
	body[n] = ' ';
	d.id = "long";
	deliver_across(MOVE_BRANCH, &d);
	assert_int_equal(g->status, 503);
	assert_string_equal(edge_text(g, "error.code"), "shard_unavailable");
	assert_string_equal(edge_header(g, "Retry-After"), "5");
	(void)sender_deliver(g, 200, &d);
	assert_string_equal(edge_text(g, "outcome"), "ignored_branch");
}

/* Changes the webhook until it is ended. */
static pid_t
keep_changing(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid != 0)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		(void)edge_ask(
		    g, 0, "PUT", edge_fmt("%s/webhooks/gitlab", project), "{\"enabled\":true}");
}

static void
a_webhook_that_changes_all_the_time_still_makes_one_run_of_a_delivery(void **state)
{
	struct sender_delivery d = { .provider = PROVIDER_GITLAB, .path = path };
	int naccepted = 0;
	pid_t pid;

	(void)state;
	begin(PROVIDER_GITLAB);
	pid = keep_changing();
	for (int i = 0; i < 12; i++) {
		char id[32];

		(void)snprintf(id, sizeof(id), "changing-%d", i);
		d.id = id;
		/* Stale twice is the sender's business; nothing else may happen. */
		while (sender_deliver(g, 0, &d) == 409)
			assert_string_equal(
			    edge_text(g, "error.code"), "stale_webhook_verification");
		assert_int_equal(g->status, 202);
		naccepted++;
	}
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	assert_int_equal(nruns(), naccepted);
}

/* ---- a shard that dies ---- */

/* Address of the shard that knows the project; it may be on its way up. */
static const char *
shard_of_project(void)
{
	const char *id = strrchr(project, '/') + 1;
	struct mono_time end = mono_add_ms(clock_mono(), PATIENCE_MS);

	for (int i = 0; mono_diff_ms(clock_mono(), end) > 0; i = !i) {
		const char *address = edge_fmt("project/%d", i);
		int err;

		if (strcmp(edge_kind(edge_rpc(g, address, "webhook.list",
			       edge_fmt("{\"projectId\":\"%s\",\"provider\":null}", id), &err)),
			"list") == 0)
			return address;
		(void)poll(NULL, 0, LOOK_MS);
	}
	fail_msg("no shard has the project");
	return NULL;
}

/* Delivers until it is taken; the run. */
static void
deliver_until_taken(const struct sender_delivery *d, char run[32])
{
	struct mono_time end = mono_add_ms(clock_mono(), PATIENCE_MS);

	while (sender_deliver(g, 0, d) == 503 && mono_diff_ms(clock_mono(), end) > 0) {
		assert_non_null(edge_header(g, "Retry-After"));
		(void)poll(NULL, 0, LOOK_MS);
	}
	assert_true(g->status == 200 || g->status == 202);
	assert_string_equal(edge_text(g, "outcome"), "accepted");
	(void)snprintf(run, 32, "%s", edge_text(g, "runId"));
}

static void
a_shard_that_is_killed_in_between_makes_one_run(void **state)
{
	struct sender_delivery d = { .path = path };

	(void)state;
	begin(PROVIDER_GITHUB);
	for (int i = 0; i < 5; i++) {
		CLEANUP(buf_done) struct buf rest = BUF_INIT;
		char run[32], again[32], id[32];
		pid_t pid = edge_pid(g, shard_of_project());
		int fd, before = nruns();

		(void)snprintf(id, sizeof(id), "killed-%d", i);
		d.id = id;
		(void)sender_deliver(g, 200,
		    &(struct sender_delivery) { .path = path, .body = "{}", .event = "ping" });
		/* It has the call, and dies of it before or after it has read it. */
		if (i % 2 == 0)
			(void)kill(pid, SIGSTOP);
		fd = sender_begin(g, &d, 20, &rest);
		sender_send(fd, &rest);
		(void)kill(pid, SIGKILL);
		edge_receive(g, fd);
		assert_true(g->status == 202 || g->status == 503);
		deliver_until_taken(&d, run);
		deliver_until_taken(&d, again);
		assert_string_equal(run, again);
		assert_int_equal(nruns(), before + 1);
		edge_await(g);
	}
}

static void
a_shard_that_hangs_is_answered_for_and_the_others_go_on(void **state)
{
	struct sender_delivery d = { .path = path, .id = "hanging" }, other = d;
	CLEANUP(buf_done) struct buf rest = BUF_INIT;
	char project_of_other[96], path_of_other[96], run[32];
	const char *address;
	pid_t pid;
	int fd;

	(void)state;
	begin(PROVIDER_GITHUB);
	(void)snprintf(project_of_other, sizeof(project_of_other), "%s", project);
	(void)snprintf(path_of_other, sizeof(path_of_other), "%s", path);
	other.path = path_of_other;
	address = shard_of_project();
	do
		begin(PROVIDER_GITHUB);
	while (strcmp(shard_of_project(), address) == 0);
	pid = edge_pid(g, shard_of_project());
	(void)kill(pid, SIGSTOP);
	fd = sender_begin(g, &d, 20, &rest);
	sender_send(fd, &rest);
	(void)sender_deliver(g, 202, &other);
	edge_receive(g, fd);
	assert_int_equal(g->status, 503);
	assert_string_equal(edge_text(g, "error.code"), "shard_unavailable");
	assert_string_equal(edge_header(g, "Retry-After"), "5");
	(void)kill(pid, SIGCONT);
	deliver_until_taken(&d, run);
	assert_int_equal(nruns(), 1);
	assert_string_equal(edge_text(g, "runs.0.id"), run);
}

/* ---- what owners see of those that were refused ---- */

/* Waits until the webhook shows ${n} refused attempts, with ${total} in all. */
static void
await_refusals(size_t n, int total)
{
	struct mono_time end = mono_add_ms(clock_mono(), PATIENCE_MS);

	do {
		const json_t *list, *row;
		int count = 0;
		size_t i;

		(void)edge_ask(g, 200, "GET", edge_fmt("%s/webhooks", project), NULL);
		list = json_object_get(
		    json_array_get(json_object_get(g->json, "webhooks"), 0), "recentRefusals");
		json_array_foreach (list, i, row)
			count += (int)json_integer_value(json_object_get(row, "count"));
		if (json_array_size(list) == n && count == total)
			return;
		(void)poll(NULL, 0, LOOK_MS);
	} while (mono_diff_ms(clock_mono(), end) > 0);
	fail_msg("%s", buf_cstr(&g->body));
}

/* The row with that reason, its member ${name}; as JSON text. */
static const char *
refusal(const char *reason, const char *name)
{
	for (int i = 0; i < 20; i++) {
		const char *at = edge_fmt("webhooks.0.recentRefusals.%d", i);

		if (strcmp(edge_text(g, edge_fmt("%s.reason", at)), reason) == 0)
			return edge_value(g, edge_fmt("%s.%s", at, name));
	}
	return "(none)";
}

static void
owners_see_what_was_refused_and_why(void **state)
{
	static const char from[] = "X-Forwarded-For: 203.0.113.7\r\n";
	struct sender_delivery d = { .path = path, .more = from };
	static const struct sender_delivery bad[] = {
		{ .content_type = "text/plain" },
		{ .proof = "" },
		{ .event = "smuggled\xff" },
		{ .secret = "wrong", .id = "the wrong one" },
		{ .body = "[]" },
		{ .body = "{\"ref\":7}" },
		{ .body = "{\"ref\":\"refs/heads/main\",\"after\":null,"
			  "\"repository\":{\"full_name\":\"some/where\"}}" },
	};

	(void)state;
	begin(PROVIDER_GITHUB);
	for (int again = 0; again < 3; again++)
		for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
			d = bad[i];
			d.path = path;
			d.more = from;
			(void)sender_deliver(g, 0, &d);
			assert_true(g->status >= 400 && g->status < 500);
		}
	/* Two are of one kind: a header is missing, or not usable. */
	await_refusals(ARRAY_LEN(bad) - 1, 3 * (int)ARRAY_LEN(bad));
	assert_string_equal(refusal("missing_header", "count"), "6");
	assert_string_equal(refusal("signature_mismatch", "count"), "3");
	assert_string_equal(refusal("signature_mismatch", "clientAddress"), "\"203.0.113.7\"");
	assert_string_equal(refusal("signature_mismatch", "deliveryId"), "\"the wrong one\"");
	assert_string_equal(refusal("signature_mismatch", "eventName"), "\"push\"");
	assert_string_equal(refusal("bad_json", "bodyBytes"), "2");
	assert_string_equal(refusal("missing_header", "eventName"), "\"smuggled\\\\xff\"");
	assert_non_null(strstr(refusal("bad_payload", "hint"), "repository.full_name: "));
	assert_non_null(
	    strstr(refusal("repo_mismatch", "hint"), "https://github.com/some/where"));
	assert_non_null(strstr(refusal("unsupported_media_type", "hint"), "application/json"));
	assert_null(strstr((const char *)g->body.data, SENDER_SECRET));
	/* Nothing of them is a delivery. */
	assert_string_equal(edge_value(g, "webhooks.0.recentDeliveries"), "[]");
}

static void
a_flood_of_bad_deliveries_is_one_line_with_a_count(void **state)
{
	struct sender_delivery d = {
		.path = path, .more = "X-Forwarded-For: 203.0.113.8\r\n", .secret = "wrong"
	};

	(void)state;
	begin(PROVIDER_GITHUB);
	for (int i = 0; i < EDGE_PUBLIC_LIMIT + 20; i++)
		(void)sender_deliver(g, i < EDGE_PUBLIC_LIMIT ? 401 : 429, &d);
	await_refusals(1, EDGE_PUBLIC_LIMIT);
}

/* ---- the rig ---- */

static int
setup(void **state)
{
	(void)state;
	edge_start(g);
	edge_sign_in(g, "late");
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	return edge_stop(g);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_delivery_meets_a_change_of_its_webhook_as_if_it_came_after),
		cmocka_unit_test(what_is_too_long_to_be_kept_has_to_come_again),
		cmocka_unit_test(
		    a_webhook_that_changes_all_the_time_still_makes_one_run_of_a_delivery),
		cmocka_unit_test(a_shard_that_is_killed_in_between_makes_one_run),
		cmocka_unit_test(a_shard_that_hangs_is_answered_for_and_the_others_go_on),
		cmocka_unit_test(owners_see_what_was_refused_and_why),
		cmocka_unit_test(a_flood_of_bad_deliveries_is_one_line_with_a_count),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
