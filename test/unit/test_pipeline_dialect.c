#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/err.h"
#include "lib/pipeline/pipeline.h"

#define FILE_NAME "ci.yml"
#define NOT_YAML  "Repository config is not valid YAML\n"
#define GOOD      "version: 1\nrun: {steps: []}\n"

static struct arena *arena;

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

static int
parse(const char *text, size_t n, const struct pipeline_report **ret_report)
{
	static const struct pipeline_terms terms = { .max_timeout_seconds = 3600 };
	const struct pipeline *p;

	return pipeline_parse(arena, FILE_NAME, text, n, &terms, &p, ret_report);
}

static void
accepted_n(const char *text, size_t n)
{
	const struct pipeline_report *report;

	if (parse(text, n, &report) != 0)
		fail_msg("%s: %s", text, report->issues[0].text);
}

static void
accepted(const char *text)
{
	accepted_n(text, strlen(text));
}

static void
refused_n(const char *text, size_t n, const char *issues)
{
	const struct pipeline_report *report = NULL;
	CLEANUP(buf_done) struct buf message = BUF_INIT;

	if (parse(text, n, &report) != E_INVAL)
		fail_msg("accepted: %s", text);
	assert_int_equal(pipeline_report_message(report, &message), 0);
	assert_non_null(buf_cstr(&message));
	if (strncmp(buf_cstr(&message), NOT_YAML, strlen(NOT_YAML)) != 0)
		fail_msg("%s", buf_cstr(&message));
	assert_string_equal(buf_cstr(&message) + strlen(NOT_YAML), issues);
	assert_int_equal(report->class, PIPELINE_YAML);
}

static void
refused(const char *text, const char *issues)
{
	refused_n(text, strlen(text), issues);
}

static void
marks_breaks_styles_and_a_version_directive_are_accepted(void **state)
{
	(void)state;
	accepted("\xef\xbb\xbf" GOOD);
	accepted("version: 1\r\nrun:\r\n  steps: []\r\n");
	accepted("{version: 1, run: {steps: [{name: a, run: b}]}}");
	accepted("%YAML 1.1\n---\n" GOOD);
	accepted("%YAML 1.2\n---\n" GOOD "...\n");
	accepted("--- # first\n" GOOD "# end\n");
	accepted(
	    "version: 1\nrun:\n  steps:\n  - name: >-\n      a\n      b\n    run: |\n      a:\n      \tb\n");
	accepted("version:\t1\nrun: {steps: []}\n");
}

static void
a_duplicate_key_is_named_where_it_stands(void **state)
{
	(void)state;
	refused("version: 1\nrun:\n  steps: []\n  steps: []\n",
	    "ci.yml:4:3: run.steps: duplicate key \"steps\"");
	refused("version: 1\nrun: {steps: []}\n\"version\": 1\nversion: 3\n",
	    "ci.yml:3:1: version: duplicate key \"version\"\n"
	    "ci.yml:4:1: version: duplicate key \"version\"");
}

static void
anchors_aliases_and_tags_are_refused(void **state)
{
	(void)state;
	refused("version: &one 1\nrun: {steps: []}\n",
	    "ci.yml:1:10: version: anchor &one is not allowed");
	refused("version: 1\nrun:\n  steps: &s []\n",
	    "ci.yml:3:10: run.steps: anchor &s is not allowed");
	refused("version: 1\nrun:\n  steps: *s\n",
	    "ci.yml:3:10: run.steps: alias *s is not allowed");
	refused("version: !!int 1\nrun: {steps: []}\n",
	    "ci.yml:1:10: version: tag !!int is not allowed");
	refused("version: 1\nrun:\n  steps: !mine []\n",
	    "ci.yml:3:10: run.steps: tag !mine is not allowed");
	refused(
	    "version: ! 1\nrun: {steps: []}\n", "ci.yml:1:10: version: tag ! is not allowed");
	refused("version: ! \"1\"\nrun: {steps: []}\n",
	    "ci.yml:1:10: version: tag ! is not allowed");
	refused(
	    "version: 1\nrun: {steps: []}\n*a : x\n", "ci.yml:3:1: alias *a is not allowed");
	refused(
	    "!!map\nversion: 1\nrun: {steps: []}\n", "ci.yml:1:1: tag !!map is not allowed");
	refused("version: 1\nrun: !<x%0Ay> {steps: []}\n",
	    "ci.yml:2:6: run: tag x\\ny is not allowed");
}

static void
tag_directives_and_second_documents_are_refused(void **state)
{
	(void)state;
	refused("%TAG ! tag:x.org,2000:\n---\n" GOOD, "ci.yml:1:1: %TAG is not allowed");
	refused(GOOD "---\nversion: 2\n", "ci.yml:3:1: second document is not allowed");
	refused("---\n---\n",
	    "ci.yml:2:1: second document is not allowed\n"
	    "ci.yml:2:1: expected map, got null");
}

static void
tabs_do_not_indent(void **state)
{
	(void)state;
	refused("version: 1\nrun:\n\tsteps: []\n", "ci.yml:3:1: tab in indentation");
	refused("version: 1\nrun:\n  steps:\n  \t- a\n", "ci.yml:4:3: tab in indentation");
	refused("version: 1\nrun:\n  x: |\n\t a\n", "ci.yml:4:1: tab in indentation");
}

static void
bytes_that_are_no_text_are_refused_at_their_place(void **state)
{
	(void)state;
	refused("version: 1\nrun: \xff\n", "ci.yml:2:6: invalid UTF-8");
	refused("a: \xc3\xbc\xc3\n", "ci.yml:1:5: invalid UTF-8");
	refused("\xef\xbb\xbf\xed\xa0\x80", "ci.yml:1:1: invalid UTF-8");
	refused("\xff\xfev\0e", "ci.yml:1:1: invalid UTF-8");
	refused("version: 1\r\nrun: \x01\n", "ci.yml:2:6: control characters are not allowed");
	refused_n("version: 1\n\0", 12, "ci.yml:2:1: control characters are not allowed");
}

static void
nesting_ends_at_eight(void **state)
{
	static char deep[PIPELINE_BYTES_MAX + 1];

	(void)state;
	/* The root is the first; a list in run.steps[0].name the fifth. */
	refused("version: 1\nrun: {steps: [{name: [[[[[]]]]], run: x}]}\n",
	    "ci.yml:2:22: run.steps[0].name: expected RepoConfigStepName, got a list of 1\n"
	    "ci.yml:2:26: run.steps[0].name[0][0][0][0]: nested deeper than 8");
	refused("[[[[[[[[[[x]], 1]]]]]]]]",
	    "ci.yml:1:1: expected map, got a list of 1\n"
	    "ci.yml:1:9: [0][0][0][0][0][0][0][0]: nested deeper "
	    "than 8");
	memset(deep, '[', sizeof(deep) - 1);
	refused(deep, "ci.yml:1:9: [0][0][0][0][0][0][0][0]: nested deeper than 8");
	for (size_t i = 0; i + 1 < sizeof(deep); i += 2)
		memcpy(deep + i, "- ", 2);
	refused(deep, "ci.yml:1:17: [0][0][0][0][0][0][0][0]: nested deeper than 8");
}

static void
other_faults_have_libyamls_words(void **state)
{
	(void)state;
	refused("version: 1\nrun: [\n",
	    "ci.yml:3:1: did not find expected node content while parsing a flow node");
	refused("version: 1\n run: x\n",
	    "ci.yml:2:5: mapping values are not allowed in this context");
	refused("a: 'x\n",
	    "ci.yml:2:1: found unexpected end of stream while scanning a quoted scalar");
	refused("a: @b\n",
	    "ci.yml:1:4: found character that cannot start any token while scanning "
	    "for the next token");
	refused("%YAML 3.0\n---\n" GOOD, "ci.yml:1:1: found incompatible YAML document");
}

static void
dialect_and_validation_are_told_together(void **state)
{
	(void)state;
	refused("version: 3\nrun:\n  steps: &a x\n",
	    "ci.yml:1:10: version: expected integer 1, got 3\n"
	    "ci.yml:3:10: run.steps: anchor &a is not allowed\n"
	    "ci.yml:3:10: run.steps: expected RepoConfigSteps, got \"x\"");
}

static void
the_largest_file_is_judged_and_one_byte_more_is_not(void **state)
{
	static char text[PIPELINE_BYTES_MAX + 1];
	const struct pipeline_report *report = NULL;
	CLEANUP(buf_done) struct buf message = BUF_INIT;

	(void)state;
	memset(text, '#', sizeof(text));
	memcpy(text, GOOD, strlen(GOOD));
	accepted_n(text, PIPELINE_BYTES_MAX);
	assert_int_equal(parse(text, PIPELINE_BYTES_MAX + 1, &report), E_INVAL);
	assert_int_equal(pipeline_report_message(report, &message), 0);
	assert_string_equal(buf_cstr(&message),
	    "Repository config failed size validation\n"
	    "ci.yml: 65537 bytes, 65536 are allowed");
}

static void
a_file_of_many_keys_is_read_in_one_pass(void **state)
{
	static char text[PIPELINE_BYTES_MAX + 1];
	const struct pipeline_report *report = NULL;
	size_t n = 0, nkeys = 0;

	(void)state;
	while (n + 16 < PIPELINE_BYTES_MAX)
		n += (size_t)snprintf(text + n, 16, "%zx:\n", nkeys++);
	assert_int_equal(parse(text, n, &report), E_INVAL);
	assert_int_equal(report->class, PIPELINE_VALIDATION);
	assert_int_equal(report->nissues, PIPELINE_ISSUES_MAX);
	assert_int_equal(report->nissues + report->nmore, nkeys + 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(marks_breaks_styles_and_a_version_directive_are_accepted),
		cmocka_unit_test(a_duplicate_key_is_named_where_it_stands),
		cmocka_unit_test(anchors_aliases_and_tags_are_refused),
		cmocka_unit_test(tag_directives_and_second_documents_are_refused),
		cmocka_unit_test(tabs_do_not_indent),
		cmocka_unit_test(bytes_that_are_no_text_are_refused_at_their_place),
		cmocka_unit_test(nesting_ends_at_eight),
		cmocka_unit_test(other_faults_have_libyamls_words),
		cmocka_unit_test(dialect_and_validation_are_told_together),
		cmocka_unit_test(the_largest_file_is_judged_and_one_byte_more_is_not),
		cmocka_unit_test(a_file_of_many_keys_is_read_in_one_pass),
	};

	return cmocka_run_group_tests(tests, make_arena, free_arena);
}
