#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

/* Standard error while a test runs: a pipe, whose other end is read here. */
static int saved_stderr = -1, reader = -1;

static int
catch_stderr(void **state)
{
	int fds[2];

	(void)state;
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return -1;
	saved_stderr = dup(STDERR_FILENO);
	if (saved_stderr < 0 || dup2(fds[1], STDERR_FILENO) < 0)
		return -1;
	io_close(&fds[1]);
	reader = fds[0];
	log_set_level(LOG_LEVEL_INFO);
	log_set_component("project/3");
	log_set_request("");
	return 0;
}

static int
release_stderr(void **state)
{
	(void)state;
	(void)dup2(saved_stderr, STDERR_FILENO);
	io_close(&saved_stderr);
	io_close(&reader);
	return 0;
}

/* What was written since; "" when nothing. */
static const char *
caught(void)
{
	static char text[4096];
	ssize_t n = read(reader, text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	return text;
}

static void
a_line_is_one_json_object(void **state)
{
	char want[512], now[CLOCK_TEXT_SIZE];
	const char *line;

	(void)state;
	log_event(LOG_LEVEL_WARN, "run_accepted", LOG_STR("runId", "a\"b"),
	    LOG_INT("position", -3), LOG_STR("absent", NULL));
	line = caught();
	assert_memory_equal(line, "{\"ts\":\"", 7);
	memcpy(now, line + 7, CLOCK_TEXT_SIZE - 1);
	now[CLOCK_TEXT_SIZE - 1] = '\0';
	assert_int_equal(clock_parse(now, &(int64_t) { 0 }), 0);
	(void)snprintf(want, sizeof(want),
	    "{\"ts\":\"%s\",\"level\":\"warn\",\"event\":\"run_accepted\",\"component\":"
	    "\"project/3\",\"pid\":%d,\"runId\":\"a\\\"b\",\"position\":-3}\n",
	    now, (int)getpid());
	assert_string_equal(line, want);
}

static void
the_request_stands_in_its_lines(void **state)
{
	(void)state;
	log_set_request("0123456789ABCDEFGHIJKL");
	log_plain(LOG_LEVEL_INFO, "one");
	assert_non_null(strstr(caught(), ",\"requestId\":\"0123456789ABCDEFGHIJKL\"}\n"));
	log_set_request("");
	log_plain(LOG_LEVEL_INFO, "two");
	assert_null(strstr(caught(), "requestId"));
}

static void
lines_below_the_level_are_left_out(void **state)
{
	enum log_level level;

	(void)state;
	log_plain(LOG_LEVEL_DEBUG, "quiet");
	assert_string_equal(caught(), "");
	assert_int_equal(log_level_parse("debug", &level), 0);
	log_set_level(level);
	assert_int_equal(log_get_level(), LOG_LEVEL_DEBUG);
	log_plain(LOG_LEVEL_DEBUG, "loud");
	assert_non_null(strstr(caught(), "\"event\":\"loud\""));
	assert_int_equal(log_level_parse("Debug", &level), E_INVAL);
	assert_int_equal(log_level_parse("", &level), E_INVAL);
	assert_string_equal(log_level_name(LOG_LEVEL_ERROR), "error");
}

static void
a_full_pipe_drops_the_line_and_counts_it(void **state)
{
	static const char filler[4096];
	uint64_t before = log_dropped();

	(void)state;
	while (write(STDERR_FILENO, filler, sizeof(filler)) > 0)
		;
	errno = 0;
	log_plain(LOG_LEVEL_ERROR, "lost");
	assert_int_equal(log_dropped(), before + 1);
	assert_int_equal(errno, 0);
	while (read(reader, (char[4096]) { 0 }, 4096) > 0)
		;
	log_plain(LOG_LEVEL_ERROR, "kept");
	assert_int_equal(log_dropped(), before + 1);
	assert_non_null(strstr(caught(), "\"event\":\"kept\""));
}

static void
a_line_without_memory_is_dropped_and_counted(void **state)
{
	uint64_t before = log_dropped();
	uint64_t n;

	(void)state;
	for (n = 0;; n++) {
		mem_fault_arm((long)n);
		log_event(LOG_LEVEL_INFO, "x", LOG_STR("k", "v"));
		if (!mem_fault_hit())
			break;
		assert_string_equal(caught(), "");
	}
	mem_fault_arm(-1);
	assert_true(n > 0);
	assert_int_equal(log_dropped(), before + n);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    a_line_is_one_json_object, catch_stderr, release_stderr),
		cmocka_unit_test_setup_teardown(
		    the_request_stands_in_its_lines, catch_stderr, release_stderr),
		cmocka_unit_test_setup_teardown(
		    lines_below_the_level_are_left_out, catch_stderr, release_stderr),
		cmocka_unit_test_setup_teardown(
		    a_full_pipe_drops_the_line_and_counts_it, catch_stderr, release_stderr),
		cmocka_unit_test_setup_teardown(
		    a_line_without_memory_is_dropped_and_counted, catch_stderr, release_stderr),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
