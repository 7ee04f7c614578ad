/*
 * test/unit/test_anvil-ingress_message.c -- what viewers are sent, to the letter.
 */
#include <string.h>

#include "cmd/anvil-ingress/message.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/http/http.h"
#include "test/support/starve.h"
#include "test/support/unit.h"

static const struct log_row line = { .id = "run_0000000000000000000001:log:7",
	.run_id = "run_0000000000000000000001",
	.seq = 7,
	.stream = LOG_STREAM_STDERR,
	.chunk = { "caf\xc3\xa9 \"\0\033[1m\n", 13 },
	.created_at = INT64_C(1769850307042) };

static const char *
text_of(struct buf *b)
{
	const char *text = buf_cstr(b);

	assert_non_null(text);
	return text;
}

static void
a_line_has_its_time_as_text_and_every_character(void **state)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;

	(void)state;
	message_log(&b, &line);
	assert_string_equal(text_of(&b),
	    "{\"type\":\"log\",\"event\":{\"id\":\"run_0000000000000000000001:log:7\","
	    "\"runId\":\"run_0000000000000000000001\",\"seq\":7,\"stream\":\"stderr\","
	    "\"chunk\":\"caf\xc3\xa9 \\\"\\u0000\\u001b[1m\\n\","
	    "\"createdAt\":\"2026-01-31T09:05:07.042Z\"}}");
}

static void
a_state_tells_run_and_steps_with_nulls_for_what_is_not_there(void **state)
{
	static const struct step_row step = { .id = "r:step:1",
		.run_id = "r",
		.position = 1,
		.name = "build",
		.command = "make\n",
		.status = STEP_STATUS_FAILED,
		.has_started_at = 1,
		.started_at = 1000,
		.has_finished_at = 1,
		.finished_at = 2000,
		.has_exit_code = 1,
		.exit_code = 2 };
	static const struct run_live live = { .status = RUN_STATUS_FAILED,
		.has_finished_at = 1,
		.finished_at = 2000,
		.has_exit_code = 1,
		.exit_code = 2,
		.error_message = "a \"quoted\" one",
		.has_failure_code = 1,
		.failure_code = FAILURE_CODE_STEP_FAILED };
	static const struct run_live queued = { .status = RUN_STATUS_QUEUED };
	CLEANUP(buf_done) struct buf b = BUF_INIT;

	(void)state;
	message_state(&b, &live, &step, 1);
	assert_string_equal(text_of(&b),
	    "{\"type\":\"state\",\"run\":{\"status\":\"failed\",\"currentStep\":null,"
	    "\"startedAt\":null,\"finishedAt\":\"1970-01-01T00:00:02.000Z\",\"exitCode\":2,"
	    "\"errorMessage\":\"a \\\"quoted\\\" one\",\"failureCode\":\"step_failed\"},"
	    "\"steps\":[{\"id\":\"r:step:1\",\"runId\":\"r\",\"position\":1,\"name\":\"build\","
	    "\"command\":\"make\\n\",\"status\":\"failed\","
	    "\"startedAt\":\"1970-01-01T00:00:01.000Z\","
	    "\"finishedAt\":\"1970-01-01T00:00:02.000Z\",\"exitCode\":2}]}");
	buf_reset(&b);
	message_state(&b, &queued, NULL, 0);
	assert_string_equal(text_of(&b),
	    "{\"type\":\"state\",\"run\":{\"status\":\"queued\",\"currentStep\":null,"
	    "\"startedAt\":null,\"finishedAt\":null,\"exitCode\":null,\"errorMessage\":null,"
	    "\"failureCode\":null},\"steps\":[]}");
}

static void
frames_have_the_size_of_their_transport(void **state)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	struct http_blob *blob;

	(void)state;
	message_gap(&b, 3, 9);
	assert_string_equal(text_of(&b), "{\"type\":\"gap\",\"fromSeq\":3,\"toSeq\":9}");
	blob = message_frame(MESSAGE_WS, "gap", 0, &b);
	assert_int_equal(http_blob_len(blob), b.len + 2);
	(void)http_blob_unref(blob);
	blob = message_frame(MESSAGE_SSE, "gap", 0, &b);
	assert_int_equal(http_blob_len(blob), b.len + strlen("event: gap\ndata: \n\n"));
	(void)http_blob_unref(blob);
	buf_reset(&b);
	message_end(&b, "restarting");
	assert_string_equal(text_of(&b), "{\"type\":\"end\",\"reason\":\"restarting\"}");
	buf_reset(&b);
	message_log(&b, &line);
	blob = message_log_frame(MESSAGE_SSE, &line);
	assert_int_equal(http_blob_len(blob), b.len + strlen("id: 7\nevent: log\ndata: \n\n"));
	(void)http_blob_unref(blob);
	blob = message_log_frame(MESSAGE_TEXT, &line);
	assert_int_equal(http_blob_len(blob), line.chunk.n);
	(void)http_blob_unref(blob);
}

static int
frame_all(void *arg)
{
	(void)arg;
	for (int f = 0; f < MESSAGE_FORMATS; f++) {
		struct http_blob *b = message_log_frame((enum message_format)f, &line);

		if (b == NULL)
			return E_NOMEM;
		(void)http_blob_unref(b);
	}
	return 0;
}

static void
framing_survives_every_failed_allocation(void **state)
{
	(void)state;
	assert_true(starve(frame_all, NULL) >= 5);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_has_its_time_as_text_and_every_character),
		cmocka_unit_test(a_state_tells_run_and_steps_with_nulls_for_what_is_not_there),
		cmocka_unit_test(frames_have_the_size_of_their_transport),
		cmocka_unit_test(framing_survives_every_failed_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
