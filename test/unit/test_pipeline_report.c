#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/pipeline/pipeline.h"

static struct arena *arena;
static const struct pipeline_terms terms = { .max_timeout_seconds = 60 };

static int
make_arena(void **state)
{
	(void)state;
	arena = arena_new();
	return arena == NULL ? -1 : 0;
}

static int
free_arena(void **state)
{
	(void)state;
	arena = arena_free(arena);
	return 0;
}

static void
says(const struct pipeline_report *report, const char *code, const char *want)
{
	CLEANUP(buf_done) struct buf message = BUF_INIT;

	assert_non_null(report);
	assert_string_equal(pipeline_failure_code(report), code);
	assert_int_equal(pipeline_report_message(report, &message), 0);
	assert_string_equal(buf_cstr(&message), want);
}

static void
what_the_checkout_finds_has_its_texts(void **state)
{
	static const struct pipeline p = {
		.working_directory = "no/such", .directory_line = 5, .directory_column = 21
	};

	(void)state;
	says(pipeline_too_big(arena, ".anvil.yml", 70112), "config_invalid",
	    "Repository config failed size validation\n"
	    ".anvil.yml: 70112 bytes, 65536 are allowed");
	says(pipeline_not_found(arena, "ci/x.yml"), "config_not_found",
	    "Repository config not found: ci/x.yml");
	says(pipeline_not_regular(arena, "ci"), "config_not_found",
	    "Repository config not found: ci (not a regular file)");
	says(pipeline_no_directory(arena, ".anvil.yml", &p, &terms), "config_invalid",
	    "Repository config failed validation\n"
	    ".anvil.yml:5:21: run.workingDirectory: expected RepoRelativePath, got \"no/such\", "
	    "which is no directory of the repository");
}

static void
lines_can_be_had_one_by_one(void **state)
{
	static const char text[] = "version: 1\nrun: {steps: []}\na: 1\nb: 1\n";
	const struct pipeline *p;
	const struct pipeline_report *report = NULL;
	CLEANUP(buf_done) struct buf line = BUF_INIT;

	(void)state;
	assert_int_equal(
	    pipeline_parse(arena, "f", text, strlen(text), &terms, &p, &report), E_INVAL);
	assert_int_equal(pipeline_report_nlines(report), 3);
	assert_int_equal(pipeline_report_line(report, 0, &line), 0);
	assert_string_equal(buf_cstr(&line), "Repository config failed validation");
	buf_reset(&line);
	assert_int_equal(pipeline_report_line(report, 2, &line), 0);
	assert_string_equal(buf_cstr(&line), "f:4:1: b: unknown key \"b\"");
}

static void
a_long_message_is_whole(void **state)
{
	char file[1025];
	const struct pipeline *p;
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	CLEANUP(buf_done) struct buf message = BUF_INIT;
	const struct pipeline_report *report = NULL;

	(void)state;
	for (size_t i = 0; i < 1024; i += 2)
		memcpy(file + i, "\xc3\xbc", 2);
	file[1024] = '\0';
	for (int i = 0; i < 20; i++)
		buf_printf(&text, "k%d: 1\n", i);
	assert_int_equal(
	    pipeline_parse(arena, file, buf_cstr(&text), text.len, &terms, &p, &report),
	    E_INVAL);
	assert_int_equal(pipeline_report_message(report, &message), 0);
	assert_true(message.len > (size_t)PIPELINE_ISSUES_MAX * 1024);
	assert_non_null(strstr(buf_cstr(&message), "k17: unknown key \"k17\"\nand 2 more"));
}

/* ---- what must not be seen --------------------------------------------------------------- */

/* Longer than any quotation, as the base64 form of a token is. */
#define LONG_SECRET                                                \
	"b2F1dGgyOmdscGF0LUtvcWFuN1ZzVGJ1c0xlM1hqUW1FZnlQZ1owaERp" \
	"UnpDdkFuTWtXcDJhWXg0OWZISnRTZEdCbDFPSVVLcnFoTnc4RWM1VjZt"

/* A ytree_clean_fn, of the secret ${arg}. */
static int
clean(const void *arg, const char *p, size_t n, struct buf *out)
{
	const char *secret = arg;
	const char *at = memmem(p, n, secret, strlen(secret));

	if (at == NULL)
		return buf_add(out, p, n);
	(void)buf_add(out, p, (size_t)(at - p));
	(void)buf_add_str(out, "[REDACTED]");
	at += strlen(secret);
	return buf_add(out, at, n - (size_t)(at - p));
}

/* 1: the better part of ${secret} can be read in the report on ${text}. */
static int
shows(const char *text, const char *secret, const struct pipeline_terms *t)
{
	CLEANUP(buf_done) struct buf message = BUF_INIT;
	const struct pipeline *p = NULL;
	const struct pipeline_report *report = NULL;
	int r = pipeline_parse(arena, "f", text, strlen(text), t, &p, &report);

	if (r == 0)
		report = pipeline_no_directory(arena, "f", p, t);
	assert_non_null(report);
	assert_int_equal(pipeline_report_message(report, &message), 0);
	return memmem(message.data, message.len, secret + 1, 24) != NULL;
}

static void
of_a_secret_across_a_cut_nothing_is_left(void **state)
{
	static const struct {
		const char *secret, *text;
	} cases[] = {
		{ LONG_SECRET, "version: " LONG_SECRET "\n" },
		{ LONG_SECRET, "version: 'some words before it " LONG_SECRET "'\n" },
		{ LONG_SECRET, LONG_SECRET ": 1\n" },
		{ LONG_SECRET, "run: {" LONG_SECRET ": &a 1}\n" },
		{ LONG_SECRET, "a " LONG_SECRET ": 1\na " LONG_SECRET ": 2\n" },
		{ LONG_SECRET, "run: &" LONG_SECRET " 1\n" },
		{ LONG_SECRET, "run: *" LONG_SECRET "\n" },
		{ LONG_SECRET, "run: !" LONG_SECRET " 1\n" },
		{ "&" LONG_SECRET, "run: &" LONG_SECRET " 1\n" },
		{ "!!" LONG_SECRET, "run: !!" LONG_SECRET " 1\n" },
		{ LONG_SECRET,
		    "version: 1\nrun: {steps: [], workingDirectory: x/" LONG_SECRET "}\n" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct pipeline_terms careful = { 60, { clean, cases[i].secret } };

		if (!shows(cases[i].text, cases[i].secret, &terms))
			fail_msg("not quoted at all: %s", cases[i].text);
		if (shows(cases[i].text, cases[i].secret, &careful))
			fail_msg("shown: %s", cases[i].text);
	}
}

static void
every_failed_allocation_is_told(void **state)
{
	static const struct pipeline p = { .working_directory = "x" };
	static const struct pipeline_terms careful = { 60, { clean, "none" } };
	long n;

	(void)state;
	for (n = 0;; n++) {
		CLEANUP(arena_freep) struct arena *a = arena_new();
		CLEANUP(buf_done) struct buf message = BUF_INIT;
		const struct pipeline_report *report;

		mem_fault_arm(n);
		report = pipeline_no_directory(a, "f", &p, &careful);
		if (report != NULL && !mem_fault_hit() &&
		    pipeline_report_message(report, &message) == 0 && !mem_fault_hit())
			break;
		assert_true(mem_fault_hit());
	}
	mem_fault_arm(-1);
	assert_true(n > 3);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_checkout_finds_has_its_texts),
		cmocka_unit_test(lines_can_be_had_one_by_one),
		cmocka_unit_test(a_long_message_is_whole),
		cmocka_unit_test(of_a_secret_across_a_cut_nothing_is_left),
		cmocka_unit_test(every_failed_allocation_is_told),
	};

	return cmocka_run_group_tests(tests, make_arena, free_arena);
}
