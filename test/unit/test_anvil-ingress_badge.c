/* The status badge: a word for each status, that everybody can read. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/anvil-ingress/badge.h"
#include "gen/types.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "test/support/starve.h"
#include "test/support/unit.h"

static const struct {
	const char *status, *word;
} words[] = { { NULL, "Idle" }, { "queued", "Queued" }, { "starting", "Starting" },
	{ "running", "Running" }, { "cancel_requested", "Cancel Requested" },
	{ "canceling", "Canceling" }, { "canceled", "Canceled" }, { "passed", "Passed" },
	{ "failed", "Failed" } };

/* The light of a colour of six digits, from 0 to 1 (WCAG 2). */
static double
luminance(const char *digits)
{
	static const double weights[] = { 0.2126, 0.7152, 0.0722 };
	unsigned long all = strtoul(digits, NULL, 16);
	double sum = 0;

	for (int i = 0; i < 3; i++) {
		double c = (double)(all >> (16 - 8 * i) & 0xff) / 255;

		sum += weights[i] * (c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4));
	}
	return sum;
}

static void
every_status_has_its_word_and_no_other(void **state)
{
	(void)state;
	assert_int_equal(ARRAY_LEN(words), RUN_STATUS_COUNT + 1);
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		CLEANUP(buf_done) struct buf out = BUF_INIT;
		char part[120];

		badge_draw(&out, words[i].status);
		assert_non_null(buf_cstr(&out));
		(void)snprintf(part, sizeof(part),
		    "role=\"img\" aria-label=\"anvil: %s\"><title>anvil: %s</title>",
		    words[i].word, words[i].word);
		assert_non_null(strstr(buf_cstr(&out), part));
		(void)snprintf(part, sizeof(part), ">%s</text></g></svg>\n", words[i].word);
		assert_non_null(strstr(buf_cstr(&out), part));
		assert_non_null(strstr(buf_cstr(&out), "textLength=\"26\">anvil</text>"));
	}
}

static void
it_holds_nothing_that_runs_or_comes_from_elsewhere(void **state)
{
	static const char *const parts[] = { "script", "href", "url(", "style", "<!", "<?",
		"on=" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		CLEANUP(buf_done) struct buf out = BUF_INIT;

		badge_draw(&out, words[i].status);
		for (size_t k = 0; k < ARRAY_LEN(parts); k++)
			assert_null(strstr(buf_cstr(&out), parts[k]));
		/* But for the name of the language, which nobody fetches. */
		assert_null(strstr(strstr(buf_cstr(&out), "//") + 2, "//"));
	}
}

static void
white_can_be_read_on_every_colour(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		CLEANUP(buf_done) struct buf out = BUF_INIT;
		const char *at;
		int n = 0;

		badge_draw(&out, words[i].status);
		for (at = buf_cstr(&out); (at = strstr(at, "<path fill=\"#")) != NULL; n++) {
			char digits[7];

			at += strlen("<path fill=\"#");
			(void)snprintf(digits, sizeof(digits), "%.6s", at);
			assert_true(1.05 / (luminance(digits) + 0.05) >= 4.5);
		}
		assert_int_equal(n, 2);
	}
}

static void
only_its_own_paths_are_taken(void **state)
{
	(void)state;
	assert_true(badge_is_path("/badge/a/b.svg"));
	assert_true(badge_is_path("/badge/"));
	assert_false(badge_is_path("/badge"));
	assert_false(badge_is_path("/Badge/a/b.svg"));
	assert_false(badge_is_path("/badges/a/b.svg"));
	assert_false(badge_is_path("/app/badge/a/b.svg"));
}

static int
draw(void *arg)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;

	(void)arg;
	badge_draw(&out, "passed");
	return out.failed ? E_NOMEM : 0;
}

static void
it_survives_every_failed_allocation(void **state)
{
	(void)state;
	assert_true(starve(draw, NULL) > 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_status_has_its_word_and_no_other),
		cmocka_unit_test(it_holds_nothing_that_runs_or_comes_from_elsewhere),
		cmocka_unit_test(white_can_be_read_on_every_colour),
		cmocka_unit_test(only_its_own_paths_are_taken),
		cmocka_unit_test(it_survives_every_failed_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
