/*
 * test/unit/test_anvilctl_webhooks.c -- forges' forms, deliveries in a table, the chain of a run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/anvilctl/ctl.h"
#include "cmd/anvilctl/deliveries.h"
#include "cmd/anvilctl/forge.h"
#include "cmd/anvilctl/why.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "test/support/unit.h"

#define NOW INT64_C(1769850307042) /* 2026-01-31 09:05:07 */
#define RUN "run_0123456789abcdefghijAB"
#define SHA "0123456789abcdef0123456789abcdef01234567"

/* ---- forms ---- */

static char *
form_of(enum provider p, const char *secret)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	assert_non_null(f);
	forge_tell_form(f, p, "https://ci/hooks", secret);
	assert_int_equal(fclose(f), 0);
	return text;
}

static void
a_form_has_the_words_of_its_forge(void **state)
{
	CLEANUP_FREE char *github = form_of(PROVIDER_GITHUB, "s3cret");
	CLEANUP_FREE char *gitlab = form_of(PROVIDER_GITLAB, NULL);
	CLEANUP_FREE char *gitea = form_of(PROVIDER_GITEA, "x");

	(void)state;
	assert_string_equal(github,
	    "Enter this in GitHub, in the repository's Settings > Webhooks > Add webhook:\n"
	    "  Payload URL:         https://ci/hooks\n"
	    "  Content type:        application/json\n"
	    "  Secret:              s3cret\n"
	    "  Events:              just the push event\n");
	assert_null(strstr(gitlab, "application/json"));
	assert_non_null(strstr(gitlab, "  Secret token:        the one that you gave\n"));
	assert_non_null(strstr(gitea, "  POST content type:   application/json\n"));
}

static void
only_three_forges_are_known(void **state)
{
	enum provider p;

	(void)state;
	assert_int_equal(forge_parse("gitea", &p), 0);
	assert_int_equal(p, PROVIDER_GITEA);
	assert_int_equal(forge_parse("GitHub", &p), CTL_USAGE);
	assert_int_equal(forge_parse("", &p), CTL_USAGE);
}

/* ---- deliveries ---- */

static struct delivery_row
delivery(const char *id, int64_t at, enum outcome outcome)
{
	return (struct delivery_row) { .payload = { .provider = PROVIDER_GITHUB,
					   .delivery_id = id,
					   .event_kind = EVENT_KIND_PUSH,
					   .event_name = "push",
					   .ref = "refs/heads/main",
					   .branch = "main",
					   .commit_sha = SHA },
		.outcome = outcome,
		.reason = "because",
		.run_id = outcome == OUTCOME_ACCEPTED ? RUN : NULL,
		.received_at = at };
}

static struct provider_refusal
refusal(int64_t at, int64_t count)
{
	return (struct provider_refusal) { .provider = PROVIDER_GITEA,
		.refusal = { .at = at,
		    .reason = REFUSAL_REASON_SIGNATURE_MISMATCH,
		    .hint = "the secret differs",
		    .client_address = "192.0.2.1",
		    .count = count } };
}

static char *
table_text(struct table *t)
{
	struct buf b = BUF_INIT;

	assert_non_null(t);
	assert_int_equal(table_render(t, 0, &b), 0);
	(void)table_free(t);
	return buf_take_cstr(&b);
}

static void
deliveries_and_refusals_are_merged_newest_first(void **state)
{
	const struct delivery_row d[] = { delivery("d3", NOW, OUTCOME_ACCEPTED),
		delivery("d1", NOW - 5000, OUTCOME_QUEUE_FULL) };
	const struct provider_refusal r[] = { refusal(NOW + 1000, 1), refusal(NOW - 1000, 12) };
	const struct webhook_deliveries_page page = { d, 2, r, 2, NULL };
	struct table *t = deliveries_table();
	CLEANUP_FREE char *text = NULL;

	(void)state;
	assert_non_null(t);
	deliveries_fill(t, &page, 100);
	text = table_text(t);
	assert_string_equal(text,
	    "TIME                 PROVIDER  EVENT  BRANCH  COMMIT        OUTCOME     RUN"
	    "                         DELIVERY  REASON\n"
	    "2026-01-31 09:05:08  gitea     -      -       -             refused     -"
	    "                           -         signature_mismatch (from 192.0.2.1): "
	    "the secret differs\n"
	    "2026-01-31 09:05:07  github    push   main    0123456789ab  accepted    " RUN
	    "  d3        because\n"
	    "2026-01-31 09:05:06  gitea     -      -       -             refused     -"
	    "                           -         signature_mismatch (from 192.0.2.1, 12 "
	    "times): the secret differs\n"
	    "2026-01-31 09:05:02  github    push   main    0123456789ab  queue_full  -"
	    "                           d1        because\n");
}

static void
no_more_rows_than_asked_for_are_shown(void **state)
{
	const struct delivery_row d[] = { delivery("d3", NOW, OUTCOME_ACCEPTED) };
	const struct provider_refusal r[] = { refusal(NOW + 1, 1), refusal(NOW - 1, 1) };
	const struct webhook_deliveries_page page = { d, 1, r, 2, NULL };

	(void)state;
	for (size_t max = 0; max < 5; max++) {
		CLEANUP(table_freep) struct table *t = deliveries_table();

		assert_non_null(t);
		deliveries_fill(t, &page, max);
		assert_int_equal(table_nrows(t), max < 3 ? max : 3);
	}
}

/* ---- why ---- */

static struct why_event
event(int64_t at, const char *name, const char *detail, json_t **ret_owned)
{
	assert_int_equal(json_text_parse(detail, strlen(detail), 8, ret_owned), 0);
	return (struct why_event) { .seq = 1, .at = at, .event = name, .detail = *ret_owned };
}

static void
the_chain_is_in_the_order_of_time(void **state)
{
	static const struct step_row steps[] = {
		{ .id = RUN ":step:1",
		    .run_id = RUN,
		    .position = 1,
		    .name = "build",
		    .status = STEP_STATUS_FAILED,
		    .has_started_at = 1,
		    .started_at = NOW + 3000,
		    .has_finished_at = 1,
		    .finished_at = NOW + 5000,
		    .has_exit_code = 1,
		    .exit_code = 2 },
		{ .id = RUN ":step:2", .run_id = RUN, .position = 2, .name = "test" },
	};
	const struct delivery_row d = delivery("d1", NOW, OUTCOME_ACCEPTED);
	const struct run_get_detail_detail detail = { .steps = steps, .nsteps = 2 };
	json_t *owned[5] = { NULL };
	const struct why_event events[] = {
		event(NOW, "accepted", "{\"position\":7}", &owned[0]),
		event(NOW + 1000, "dispatch_failed", "{\"error\":\"no fork\"}", &owned[1]),
		event(NOW + 2000, "claimed", "{\"spawnId\":\"ab\"}", &owned[2]),
		event(NOW + 5000, "settled", "{\"status\":\"failed\"}", &owned[3]),
		event(NOW + 6000, "later_word", "{\"x\":1}", &owned[4]),
	};
	const struct project_why_history h = {
		.delivery = &d, .events = events, .nevents = ARRAY_LEN(events)
	};
	const struct why w = { &h, &detail };
	CLEANUP_FREE char *text = table_text(why_table(&w));

	(void)state;
	assert_string_equal(text,
	    "TIME                 AFTER  EVENT            DETAIL\n"
	    "2026-01-31 09:05:07      -  delivered        GitHub push d1, refs/heads/main at "
	    "0123456789ab\n"
	    "2026-01-31 09:05:07    0ms  accepted         position 7\n"
	    "2026-01-31 09:05:08   1.0s  dispatch_failed  could not be started: no fork\n"
	    "2026-01-31 09:05:09   1.0s  claimed          the lease is with process ab\n"
	    "2026-01-31 09:05:10   1.0s  step_begun       1 \"build\"\n"
	    "2026-01-31 09:05:12   2.0s  step_ended       1 \"build\" has failed, exit code 2\n"
	    "2026-01-31 09:05:12    0ms  settled          the run says failed\n"
	    "2026-01-31 09:05:13   1.0s  later_word       {\"x\":1}\n");
	for (size_t i = 0; i < ARRAY_LEN(owned); i++)
		json_decref(owned[i]);
}

static void
expect_end(const struct project_why_history *h, const struct run_get_detail_detail *detail,
    const char *want)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	const struct why w = { h, detail };

	assert_int_equal(why_end(&w, &out), 0);
	assert_string_equal(buf_cstr(&out), want);
}

static void
the_end_names_who_or_what(void **state)
{
	static const struct step_row step = {
		.position = 2, .name = "test", .status = STEP_STATUS_FAILED
	};
	static const struct why_event taken = { .event = "taken_over" };
	const struct run_get_detail_detail detail = { .steps = &step, .nsteps = 1 };
	struct project_why_history h = { .run.status = RUN_STATUS_PASSED };

	(void)state;
	expect_end(&h, NULL, "ended by itself, with all steps done");
	h.run.status = RUN_STATUS_CANCELED;
	h.ledger.cancel_by = "operator";
	expect_end(&h, NULL, "ended by operator, who canceled it");
	h.run.status = RUN_STATUS_FAILED;
	h.run.has_failure_code = 1;
	h.run.failure_code = FAILURE_CODE_STEP_FAILED;
	h.run.error_message = "Step 2 failed.";
	expect_end(&h, &detail, "ended by its step 2, \"test\": step_failed, Step 2 failed.");
	expect_end(&h, NULL, "ended by itself: step_failed, Step 2 failed.");
	h.run.failure_code = FAILURE_CODE_DISPATCH_FAILED;
	h.run.error_message = NULL;
	expect_end(
	    &h, NULL, "ended by its shard, since it could not be started: dispatch_failed");
	h.run.failure_code = FAILURE_CODE_RUNNER_LOST;
	h.events = &taken;
	h.nevents = 1;
	expect_end(&h, NULL, "ended by its shard, since its process was gone: runner_lost");
}

static void
a_run_that_goes_on_says_what_it_waits_for(void **state)
{
	struct project_why_history h = { .run.status = RUN_STATUS_QUEUED };

	(void)state;
	h.ledger.status = LEDGER_STATUS_PENDING;
	expect_end(&h, NULL, "waits for the runs of its project that are before it");
	h.ledger.status = LEDGER_STATUS_EXECUTABLE;
	h.ledger.dispatch_status = DISPATCH_STATUS_QUEUED;
	expect_end(&h, NULL, "waits for a process of the supervisor");
	h.ledger.dispatch_status = DISPATCH_STATUS_PENDING;
	expect_end(&h, NULL, "waits to be started");
	h.ledger.has_dispatch_retry_at = 1;
	h.ledger.dispatch_retry_at = NOW;
	h.ledger.last_error = "no fork";
	expect_end(&h, NULL,
	    "waits to be started, next at 2026-01-31 09:05:07; the last attempt: no fork");
	h.run.status = RUN_STATUS_RUNNING;
	h.ledger = (struct queue_run) { .status = LEDGER_STATUS_ACTIVE };
	expect_end(&h, NULL, "is being worked on");
	h.ledger = (struct queue_run) { .status = LEDGER_STATUS_CANCEL_REQUESTED,
		.cancel_by = "usr_x" };
	expect_end(&h, NULL, "is being canceled, by usr_x");
}

static void
the_chain_survives_every_failed_allocation(void **state)
{
	static const struct step_row step = {
		.position = 1, .name = "one", .has_started_at = 1, .has_finished_at = 1
	};
	static const struct why_event e = { .event = "promoted" };
	const struct delivery_row d = delivery("d1", NOW, OUTCOME_ACCEPTED);
	const struct project_why_history h = { .delivery = &d, .events = &e, .nevents = 1 };
	const struct run_get_detail_detail detail = { .steps = &step, .nsteps = 1 };
	const struct why w = { &h, &detail };
	long n;

	(void)state;
	for (n = 0;; n++) {
		CLEANUP(buf_done) struct buf out = BUF_INIT;
		struct table *t;
		int hit, r = E_NOMEM;

		mem_fault_arm(n);
		t = why_table(&w);
		if (t != NULL)
			r = table_render(t, 0, &out);
		hit = mem_fault_hit();
		mem_fault_arm(-1);
		(void)table_free(t);
		/* A detail alone may be missing. */
		assert_true(r == 0 || (r == E_NOMEM && hit));
		if (!hit)
			break;
	}
	assert_true(n > 10);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_form_has_the_words_of_its_forge),
		cmocka_unit_test(only_three_forges_are_known),
		cmocka_unit_test(deliveries_and_refusals_are_merged_newest_first),
		cmocka_unit_test(no_more_rows_than_asked_for_are_shown),
		cmocka_unit_test(the_chain_is_in_the_order_of_time),
		cmocka_unit_test(the_end_names_who_or_what),
		cmocka_unit_test(a_run_that_goes_on_says_what_it_waits_for),
		cmocka_unit_test(the_chain_survives_every_failed_allocation),
	};

	return cmocka_run_group_tests_name("anvilctl webhooks", tests, NULL, NULL);
}
