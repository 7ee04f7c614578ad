/* cmd/anvild/process_end.c: how a process ended, for people, for the store, for the contract. */
#include <string.h>

#include "cmd/anvild/methods.h"
#include "cmd/anvild/process.h"
#include "gen/types.h"
#include "lib/base/base.h"
#include "lib/base/err.h"
#include "test/support/starve.h"
#include "test/support/unit.h"

static const struct {
	struct process_end end;
	const char *text, *json;
} ends[] = {
	{ { .exited = 1 }, "exit status 0", "{\"exitStatus\":0}" },
	{ { .exited = 1, .exit_status = 70 }, "exit status 70", "{\"exitStatus\":70}" },
	{ { .signaled = 1, .signal = 9 }, "signal 9 (SIGKILL)", "{\"signal\":9}" },
	{ { .signaled = 1, .signal = 11 }, "signal 11 (SIGSEGV)", "{\"signal\":11}" },
	{ { .signaled = 1, .signal = 63 }, "signal 63 (SIG?)", "{\"signal\":63}" },
	{ { .rebooted = 1 }, "machine restarted", "{\"rebooted\":true}" },
	{ { .abandoned = 1 }, "given up by the operator", "{\"abandoned\":true}" },
	{ { .error = "no \"room\"\n" }, "no \"room\"\n", "{\"error\":\"no \\\"room\\\"\\n\"}" },
	{ { 0 }, "ended while not watched", "{\"unknown\":true}" },
};

static void
each_end_has_its_text_and_its_json(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		CLEANUP(buf_done) struct buf b = BUF_INIT;
		char text[96];

		process_end_text(&ends[i].end, text);
		assert_string_equal(text, ends[i].text);
		assert_int_equal(process_end_json(&ends[i].end, &b), 0);
		assert_string_equal(buf_cstr(&b), ends[i].json);
	}
}

static void
what_was_written_is_read_back(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		struct process_end got;

		assert_int_equal(process_end_parse(ends[i].json, &got), 0);
		assert_memory_equal(&got, &ends[i].end, sizeof(got));
	}
}

static void
what_is_no_end_is_refused_or_unknown(void **state)
{
	struct process_end got = { .exited = 1 };

	(void)state;
	assert_true(process_end_parse("", &got) < 0);
	assert_true(process_end_parse("{\"exitStatus\":", &got) < 0);
	assert_int_equal(got.exited, 1); /* untouched */
	assert_int_equal(process_end_parse("{\"error\":7}", &got), 0);
	assert_string_equal(got.error, "");
	assert_int_equal(process_end_parse("{}", &got), 0);
	assert_int_equal(got.exited, 0);
}

static void
exactly_one_member_of_the_contract_is_set(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		struct runner_how how;

		methods_set_how(&how, &ends[i].end);
		assert_int_equal(how.has_exit_status + how.has_signal + (how.error != NULL) +
			how.has_rebooted + how.has_abandoned + how.has_unknown,
		    1);
	}
}

static void
an_end_that_is_not_known_is_unknown(void **state)
{
	struct runner_how how;

	(void)state;
	methods_set_how(&how, NULL);
	assert_true(how.has_unknown && how.unknown);
}

static int
round_trip(void *arg)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	struct process_end got;
	int r = process_end_json(&ends[7].end, &b);

	(void)arg;
	if (r == 0 && buf_cstr(&b) == NULL)
		r = E_NOMEM;
	return r < 0 ? r : process_end_parse((const char *)b.data, &got);
}

static void
every_failed_allocation_is_told(void **state)
{
	(void)state;
	assert_true(starve(round_trip, NULL) > 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_end_has_its_text_and_its_json),
		cmocka_unit_test(what_was_written_is_read_back),
		cmocka_unit_test(what_is_no_end_is_refused_or_unknown),
		cmocka_unit_test(exactly_one_member_of_the_contract_is_set),
		cmocka_unit_test(an_end_that_is_not_known_is_unknown),
		cmocka_unit_test(every_failed_allocation_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
