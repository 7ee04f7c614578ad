/*
 * test/actor/test_ingress_hooks.c -- deliveries of forges: the order of checks, bodies, what becomes
 * of them.  The real anvild, ingress and two shards.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "test/support/edge_rig.h"
#include "test/support/sender.h"
#include "test/support/unit.h"

#define OTHER_SHA "89abcdef0123456789abcdef0123456789abcdef"
#define MAX_BODY  (25u << 20)

static struct edge_rig rig;
static struct edge_rig *const g = &rig;
static char paths[PROVIDER_COUNT][96], projects[PROVIDER_COUNT][96];

/* ---- what becomes of deliveries ---- */

static int
nruns(const char *project)
{
	(void)edge_ask(g, 200, "GET", edge_fmt("%s/runs?limit=100", project), NULL);
	return (int)json_array_size(json_object_get(g->json, "runs"));
}

static void
a_signed_push_of_each_forge_becomes_a_run(void **state)
{
	(void)state;
	for (int p = 0; p < PROVIDER_COUNT; p++) {
		struct sender_delivery d = { .provider = (enum provider)p, .path = paths[p] };
		int before = nruns(projects[p]);
		char run[32];

		(void)sender_deliver(g, 202, &d);
		assert_string_equal(edge_text(g, "outcome"), "accepted");
		assert_int_equal(json_object_size(g->json), 2);
		(void)snprintf(run, sizeof(run), "%s", edge_text(g, "runId"));
		/* The list has it at once, the commit of the event with it. */
		assert_int_equal(nruns(projects[p]), before + 1);
		assert_string_equal(edge_text(g, "runs.0.id"), run);
		assert_string_equal(edge_text(g, "runs.0.triggerType"), "webhook");
		assert_string_equal(edge_text(g, "runs.0.triggeredByUserId"), "(null)");
		assert_string_equal(edge_text(g, "runs.0.branch"), "main");
		assert_string_equal(edge_text(g, "runs.0.commitSha"), SENDER_SHA);
	}
}

static void
what_starts_no_run_is_recorded_and_says_so(void **state)
{
	static const struct {
		const char *event, *body, *outcome;
	} rows[] = {
		{ "ping", "{\"zen\":\"x\"}", "ignored_ping" },
		{ "issues", "{\"ref\":null}", "ignored_event" },
		{ "push",
		    "{\"ref\":\"refs/tags/v1\",\"after\":\"" SENDER_SHA
		    "\",\"repository\":{\"full_name\":\"Example/Hello\"}}",
		    "ignored_event" },
		{ "push",
		    "{\"ref\":\"refs/heads/topic\",\"after\":\"" SENDER_SHA
		    "\",\"repository\":{\"full_name\":\"Example/Hello\"}}",
		    "ignored_branch" },
		{ "push",
		    "{\"ref\":\"refs/heads/main\",\"after\":\"0000000\","
		    "\"repository\":{\"full_name\":\"Example/Hello\"}}",
		    "ignored_event" },
	};
	int before = nruns(projects[PROVIDER_GITHUB]);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct sender_delivery d = { .path = paths[PROVIDER_GITHUB],
			.event = rows[i].event,
			.body = rows[i].body,
			.id = edge_fmt("ignored-%zu", i) };

		for (int again = 0; again < 2; again++) {
			(void)sender_deliver(g, 200, &d);
			assert_string_equal(edge_text(g, "outcome"), rows[i].outcome);
			assert_string_equal(
			    edge_value(g, "duplicate"), again ? "true" : "false");
			assert_string_equal(edge_text(g, "runId"), "(null)");
		}
	}
	assert_int_equal(nruns(projects[PROVIDER_GITHUB]), before);
}

static void
one_delivery_makes_one_run_however_often_it_comes(void **state)
{
	struct sender_delivery d = { .provider = PROVIDER_GITLAB,
		.path = paths[PROVIDER_GITLAB],
		.id = "one delivery" };
	struct buf rest[8] = { 0 };
	char run[32] = "";
	int fds[8], naccepted = 0, before = nruns(projects[PROVIDER_GITLAB]);

	(void)state;
	/* Side by side, all but the last byte first. */
	for (int i = 0; i < 8; i++)
		fds[i] = sender_begin(g, &d, 40, &rest[i]);
	for (int i = 0; i < 8; i++) {
		sender_finish(g, fds[i], &rest[i]);
		buf_done(&rest[i]);
		assert_string_equal(edge_text(g, "outcome"), "accepted");
		naccepted += g->status == 202;
		if (run[0] == '\0')
			(void)snprintf(run, sizeof(run), "%s", edge_text(g, "runId"));
		assert_string_equal(edge_text(g, "runId"), run);
		assert_true(
		    g->status == 202 || strcmp(edge_value(g, "duplicate"), "true") == 0);
	}
	assert_int_equal(naccepted, 1);
	assert_int_equal(nruns(projects[PROVIDER_GITLAB]), before + 1);
	d.body = sender_push(PROVIDER_GITLAB, "main", OTHER_SHA);
	sender_refused(g, 409, "delivery_conflict", &d);
}

static void
a_full_queue_says_come_again(void **state)
{
	char project[96], path[96];
	struct sender_delivery d = { .provider = PROVIDER_GITEA, .path = path };
	int n = 0;

	(void)state;
	(void)sender_project(g, PROVIDER_GITEA, "full", project);
	(void)snprintf(path, sizeof(path), "%s", sender_path(PROVIDER_GITEA, "forge", "full"));
	while (n < 100 && sender_deliver(g, 0, &d) == 202)
		n++;
	assert_true(n == 20 || n == 21);
	assert_int_equal(g->status, 503);
	assert_string_equal(edge_text(g, "error.code"), "queue_full");
	assert_string_equal(edge_header(g, "Retry-After"), "60");
	d.id = "late";
	for (int i = 0; i < 2; i++) {
		sender_refused(g, 503, "queue_full", &d);
		assert_string_equal(edge_header(g, "Retry-After"), "60");
	}
}

/* ---- the order ---- */

/* A delivery in which everything is wrong, made right from the front. */
static void
what_fails_first_answers(void **state)
{
	struct sender_delivery d = { .path = "/api/public/hooks/svn/for+ge/..",
		.content_type = "text/smuggled",
		.event = "",
		.id = "",
		.proof = "",
		.body = "smuggled" };
	const char *more = "X-Hub-Signature: smuggled\r\n";

	(void)state;
	d.more = more;
	sender_refused(g, 404, "webhook_not_found", &d);
	d.path = "/api/public/hooks/github/for+ge/x.y";
	sender_refused(g, 400, "invalid_slug", &d);
	d.path = "/api/public/hooks/github/forge/x.y";
	sender_refused(g, 400, "invalid_slug", &d);
	d.path = "/api/public/hooks/github/forge/nothing";
	sender_refused(g, 415, "unsupported_media_type", &d);
	d.content_type = "";
	sender_refused(g, 415, "unsupported_media_type", &d);
	d.content_type = "application/json";
	d.more = "Content-Encoding: gzip\r\n";
	sender_refused(g, 415, "unsupported_media_type", &d);
	d.more = more;
	sender_refused(g, 404, "webhook_not_found", &d);
	d.path = "/api/public/hooks/github/Forge/github";
	sender_refused(g, 404, "webhook_not_found", &d);
	d.path = "/api/public/hooks/gitea/forge/github";
	sender_refused(g, 404, "webhook_not_found", &d);

	d.path = paths[PROVIDER_GITHUB];
	sender_refused(g, 401, "invalid_webhook_signature", &d);
	d.event = "push";
	sender_refused(g, 401, "invalid_webhook_signature", &d);
	d.id = "smuggled-1";
	sender_refused(g, 401, "invalid_webhook_signature", &d);
	d.proof = "sha256=smuggled";
	sender_refused(g, 401, "invalid_webhook_signature", &d);
	d.proof = NULL;
	d.secret = "another";
	sender_refused(g, 401, "invalid_webhook_signature", &d);
	d.secret = NULL;
	sender_refused(g, 400, "invalid_json", &d);
	d.body = "{\"ref\":\"smuggled\",\"repository\":{\"full_name\":\"../smuggled\"}}";
	sender_refused(g, 400, "invalid_request", &d);
	assert_non_null(strstr(edge_issues(g), "ref:"));
	d.body = "{\"ref\":\"refs/heads/smuggled\",\"after\":null,"
		 "\"repository\":{\"full_name\":\"a/smuggled\"}}";
	sender_refused(g, 403, "webhook_repo_mismatch", &d);
	assert_non_null(
	    strstr(edge_text(g, "error.message"), "https://github.com/Example/Hello"));
	/* Nothing of that is a delivery: its id is free. */
	d.body = NULL;
	(void)sender_deliver(g, 202, &d);
}

static void
a_declared_length_is_refused_before_a_byte_is_read(void **state)
{
	static const char head[] = "POST %s HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: %s\r\n"
				   "Content-Type: %s\r\nContent-Length: %u\r\n\r\n";
	char text[512];

	(void)state;
	edge_move(g);
	(void)snprintf(text, sizeof(text), head, paths[PROVIDER_GITHUB], g->address,
	    "application/json", MAX_BODY + 1);
	edge_raw(g, text, strlen(text));
	assert_int_equal(g->status, 413);
	assert_string_equal(edge_text(g, "error.code"), "payload_too_large");
	(void)snprintf(text, sizeof(text), head, "/api/public/hooks/github/no/no", g->address,
	    "application/json", MAX_BODY + 1);
	edge_raw(g, text, strlen(text));
	assert_int_equal(g->status, 413);
	/* The media type comes before it. */
	(void)snprintf(text, sizeof(text), head, paths[PROVIDER_GITHUB], g->address,
	    "text/plain", MAX_BODY + 1);
	edge_raw(g, text, strlen(text));
	assert_int_equal(g->status, 415);
	assert_non_null(strstr(edge_text(g, "error.message"), "application/json"));
}

static void
the_limit_of_an_address_comes_before_everything(void **state)
{
	char text[256];

	(void)state;
	edge_move(g);
	(void)snprintf(text, sizeof(text),
	    "POST /api/public/hooks/svn/a/b HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: %s\r\n"
	    "Connection: close\r\n\r\n",
	    g->address);
	for (int i = 0; i < EDGE_PUBLIC_LIMIT; i++) {
		edge_raw(g, text, strlen(text));
		assert_int_equal(g->status, 404);
	}
	edge_raw(g, text, strlen(text));
	assert_int_equal(g->status, 429);
	assert_string_equal(edge_header(g, "Retry-After"), "60");
}

/* ---- headers ---- */

static void
headers_count_once_and_not_blank(void **state)
{
	static const char *const names[PROVIDER_COUNT][3] = {
		{ "X-Hub-Signature-256", "X-GitHub-Event", "X-GitHub-Delivery" },
		{ "X-Gitlab-Token", "X-Gitlab-Event", "Idempotency-Key" },
		{ "X-Gitea-Signature", "X-Gitea-Event", "X-Gitea-Delivery" },
	};

	(void)state;
	for (int p = 0; p < PROVIDER_COUNT; p++)
		for (int i = 0; i < 3; i++) {
			struct sender_delivery d = { .provider = (enum provider)p,
				.path = paths[p],
				.more = edge_fmt("%s: x\r\n", names[p][i]) };

			/* With that one twice, then blank. */
			sender_refused(g, 401, "invalid_webhook_signature", &d);
			d.more = NULL;
			*(i == 0 ? &d.proof : i == 1 ? &d.event : &d.id) = " \t ";
			sender_refused(g, 401, "invalid_webhook_signature", &d);
			assert_non_null(strstr(edge_text(g, "error.message"), names[p][i]));
		}
}

static void
an_empty_secret_or_proof_verifies_nothing(void **state)
{
	static const char empty_key[] =
	    "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad";
	struct sender_delivery d = { .path = paths[PROVIDER_GITHUB], .secret = "" };

	(void)state;
	sender_refused(g, 401, "invalid_webhook_signature", &d);
	d.body = "";
	d.proof = edge_fmt("sha256=%s", empty_key);
	sender_refused(g, 401, "invalid_webhook_signature", &d);
	d.secret = NULL;
	d.body = NULL;
	d.proof = edge_fmt("SHA256=%064d", 0);
	sender_refused(g, 401, "invalid_webhook_signature", &d);
	d.proof = edge_fmt("sha256=%065d", 0);
	sender_refused(g, 401, "invalid_webhook_signature", &d);
	d = (struct sender_delivery) { .provider = PROVIDER_GITLAB,
		.path = paths[PROVIDER_GITLAB],
		.proof = SENDER_SECRET "x" };
	sender_refused(g, 401, "invalid_webhook_signature", &d);
	d.proof = "swordfish and chip";
	sender_refused(g, 401, "invalid_webhook_signature", &d);
}

/* ---- bodies ---- */

static void
a_body_may_come_in_any_pieces(void **state)
{
	(void)state;
	for (int p = 0; p < PROVIDER_COUNT; p++) {
		struct sender_delivery d = { .provider = (enum provider)p,
			.path = paths[p],
			.body = sender_push((enum provider)p, "topic", SENDER_SHA),
			.piece = 1 };

		(void)sender_deliver(g, 200, &d);
		assert_string_equal(edge_text(g, "outcome"), "ignored_branch");
		d.chunk = 1;
		(void)sender_deliver(g, 200, &d);
		d.piece = 0;
		d.chunk = 7;
		(void)sender_deliver(g, 200, &d);
		assert_string_equal(edge_text(g, "outcome"), "ignored_branch");
	}
}

static const char *
form_of(const char *json, int broken)
{
	static char text[2048];
	size_t at = (size_t)snprintf(text, sizeof(text), "x=1&payload=");

	for (; *json != '\0'; json++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%%%02x", *json);
	(void)snprintf(text + at, sizeof(text) - at, "%s", broken ? "&y=%zz" : "&y=+");
	return text;
}

static void
forms_are_signed_as_each_forge_does_it(void **state)
{
	static const char form[] = "Application/X-www-form-urlencoded; charset=UTF-8";
	const char *json = sender_push(PROVIDER_GITHUB, "topic", SENDER_SHA);
	struct sender_delivery d = {
		.path = paths[PROVIDER_GITHUB], .content_type = form, .body = form_of(json, 0)
	};

	(void)state;
	(void)sender_deliver(g, 200, &d);
	d.piece = 1;
	(void)sender_deliver(g, 200, &d);
	d.is_signed = json;
	sender_refused(g, 401, "invalid_webhook_signature", &d);
	d.is_signed = NULL;
	d.body = form_of(json, 1);
	sender_refused(g, 400, "invalid_json", &d);
	d.body = "payloads=1";
	sender_refused(g, 400, "invalid_json", &d);
	d.body = "payload={}&payload={}";
	sender_refused(g, 400, "invalid_json", &d);

	json = sender_push(PROVIDER_GITEA, "topic", SENDER_SHA);
	d = (struct sender_delivery) { .provider = PROVIDER_GITEA,
		.path = paths[PROVIDER_GITEA],
		.content_type = form,
		.body = form_of(json, 0),
		.is_signed = json };
	(void)sender_deliver(g, 200, &d);
	d.is_signed = NULL;
	sender_refused(g, 401, "invalid_webhook_signature", &d);
	d.is_signed = json;
	d.body = form_of(json, 1);
	sender_refused(g, 401, "invalid_webhook_signature", &d);
	d.is_signed = "";
	d.body = "x=1";
	sender_refused(g, 401, "invalid_webhook_signature", &d);

	d = (struct sender_delivery) { .provider = PROVIDER_GITLAB,
		.path = paths[PROVIDER_GITLAB],
		.content_type = form,
		.body = form_of(sender_push(PROVIDER_GITLAB, "topic", SENDER_SHA), 0) };
	sender_refused(g, 415, "unsupported_media_type", &d);
}

/* A push with so many bytes of text in a member that nobody reads. */
static char *
large_push(size_t n)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	const char *push = sender_push(PROVIDER_GITHUB, "topic", SENDER_SHA);

	buf_add(&b, push, strlen(push) - 1);
	buf_add_str(&b, ",\"commits\":[\"");
	while (!b.failed && b.len < n - 3)
		buf_add_byte(&b, 'x');
	buf_add_str(&b, "\"]}");
	assert_int_equal(b.len, n);
	return buf_take_cstr(&b);
}

static void
the_largest_body_is_taken_and_one_byte_more_is_not(void **state)
{
	CLEANUP_FREE char *largest = large_push(MAX_BODY);
	CLEANUP_FREE char *larger = large_push(MAX_BODY + 1);
	struct sender_delivery d = { .path = paths[PROVIDER_GITHUB], .body = largest };

	(void)state;
	(void)sender_deliver(g, 200, &d);
	assert_string_equal(edge_text(g, "outcome"), "ignored_branch");
	d.body = larger;
	d.chunk = 60000;
	sender_refused(g, 413, "payload_too_large", &d);
}

static void
slow_senders_hold_up_nobody(void **state)
{
	char body[512];
	struct sender_delivery d = { .path = paths[PROVIDER_GITHUB], .body = body };
	struct buf rest[16] = { 0 };
	int fds[16];

	(void)state;
	(void)snprintf(
	    body, sizeof(body), "%s", sender_push(PROVIDER_GITHUB, "topic", SENDER_SHA));
	for (int i = 0; i < 16; i++)
		fds[i] = sender_begin(g, &d, (size_t)i * 4, &rest[i]);
	for (int i = 0; i < 16; i++)
		(void)sender_deliver(g, 200, &d);
	for (int i = 0; i < 16; i++) {
		sender_finish(g, fds[i], &rest[i]);
		assert_int_equal(g->status, 200);
		buf_done(&rest[i]);
	}
	/* Those who go away in the middle leave nothing behind. */
	for (int i = 0; i < 16; i++) {
		fds[i] = sender_begin(g, &d, (size_t)i * 4, &rest[i]);
		(void)close(fds[i]);
		buf_done(&rest[i]);
	}
	(void)sender_deliver(g, 200, &d);
}

/* ---- the rig ---- */

static int
setup(void **state)
{
	(void)state;
	edge_start(g);
	edge_sign_in(g, "forge");
	for (int p = 0; p < PROVIDER_COUNT; p++) {
		const char *slug = provider_name((enum provider)p);

		(void)sender_project(g, (enum provider)p, slug, projects[p]);
		(void)snprintf(paths[p], sizeof(paths[p]), "%s",
		    sender_path((enum provider)p, "forge", slug));
	}
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
		cmocka_unit_test(a_signed_push_of_each_forge_becomes_a_run),
		cmocka_unit_test(what_starts_no_run_is_recorded_and_says_so),
		cmocka_unit_test(one_delivery_makes_one_run_however_often_it_comes),
		cmocka_unit_test(a_full_queue_says_come_again),
		cmocka_unit_test(what_fails_first_answers),
		cmocka_unit_test(a_declared_length_is_refused_before_a_byte_is_read),
		cmocka_unit_test(the_limit_of_an_address_comes_before_everything),
		cmocka_unit_test(headers_count_once_and_not_blank),
		cmocka_unit_test(an_empty_secret_or_proof_verifies_nothing),
		cmocka_unit_test(a_body_may_come_in_any_pieces),
		cmocka_unit_test(forms_are_signed_as_each_forge_does_it),
		cmocka_unit_test(the_largest_body_is_taken_and_one_byte_more_is_not),
		cmocka_unit_test(slow_senders_hold_up_nobody),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
