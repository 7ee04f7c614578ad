#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/pipeline/pipeline.h"

#define FILE_NAME ".anvil.yml"
#define MAX_S     3600
#define FAILED    "Repository config failed validation\n"

#define WITH_RUN(lines)     "version: 1\nrun:\n" lines
#define WITH_STEPS(lines)   WITH_RUN("  steps:\n" lines)
#define WITH_CHECKOUT(line) "version: 1\ncheckout:\n" line "run: {steps: []}\n"

static struct arena *arena;
static const struct pipeline_terms terms = { .max_timeout_seconds = MAX_S };

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

static const struct pipeline *
accepted(const char *text)
{
	const struct pipeline *p = NULL;
	const struct pipeline_report *report = NULL;
	CLEANUP(buf_done) struct buf why = BUF_INIT;
	int r = pipeline_parse(arena, FILE_NAME, text, strlen(text), &terms, &p, &report);

	if (r != 0) {
		assert_int_equal(pipeline_report_message(report, &why), 0);
		fail_msg("%s\nrefused: %s", text, buf_cstr(&why));
	}
	return p;
}

/* The errorMessage is the title of validation and then ${issues}. */
static void
refused(const char *text, const char *issues)
{
	const struct pipeline *p = NULL;
	const struct pipeline_report *report = NULL;
	CLEANUP(buf_done) struct buf message = BUF_INIT;

	if (pipeline_parse(arena, FILE_NAME, text, strlen(text), &terms, &p, &report) !=
	    E_INVAL)
		fail_msg("accepted: %s", text);
	assert_null(p);
	assert_int_equal(report->class, PIPELINE_VALIDATION);
	assert_string_equal(pipeline_failure_code(report), "config_invalid");
	assert_int_equal(pipeline_report_message(report, &message), 0);
	assert_memory_equal(buf_cstr(&message), FAILED, strlen(FAILED));
	assert_string_equal(buf_cstr(&message) + strlen(FAILED), issues);
}

static void
what_is_absent_has_its_default(void **state)
{
	const struct pipeline *p = accepted("version: 1\nrun:\n  steps: []\n");
	const struct pipeline_report *report;

	(void)state;
	assert_int_equal(p->depth, 1);
	assert_string_equal(p->working_directory, ".");
	assert_int_equal(p->directory_line, 0);
	assert_int_equal(p->timeout_seconds, 720);
	assert_int_equal(p->nsteps, 0);
	assert_int_equal(
	    pipeline_parse(arena, FILE_NAME, "version: 1\nrun: {steps: []}", 27,
		&(struct pipeline_terms) { .max_timeout_seconds = 60 }, &p, &report),
	    0);
	assert_int_equal(p->timeout_seconds, 60);
}

static void
everything_that_is_given_counts(void **state)
{
	const struct pipeline *p = accepted(
	    "version: 1\ncheckout:\n  depth: 0\nrun:\n  workingDirectory: ./a/b\n"
	    "  timeoutSeconds: 3600\n  steps:\n    - name: one\n      run: make\n"
	    "    - {name: one, run: \"a\\tb\"}\n    - name: yes\n      run: |\n"
	    "        set -e\n        echo $X\n");

	(void)state;
	assert_int_equal(p->depth, 0);
	assert_string_equal(p->working_directory, "./a/b");
	assert_int_equal(p->directory_line, 5);
	assert_int_equal(p->directory_column, 21);
	assert_int_equal(p->timeout_seconds, 3600);
	assert_int_equal(p->nsteps, 3);
	assert_string_equal(p->steps[0].name, "one");
	assert_string_equal(p->steps[0].command, "make");
	assert_string_equal(p->steps[1].command, "a\tb");
	assert_string_equal(p->steps[2].name, "yes");
	assert_string_equal(p->steps[2].command, "set -e\necho $X\n");
}

static void
plain_scalars_are_text_as_written(void **state)
{
	static const char *const words[] = { "yes", "on", "1.0", "~", "0x10", "true", "null",
		"2026-01-31" };
	char text[128];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		(void)snprintf(
		    text, sizeof(text), WITH_STEPS("  - {name: %s, run: x}\n"), words[i]);
		assert_string_equal(accepted(text)->steps[0].name, words[i]);
	}
}

static void
the_version_is_the_integer_one(void **state)
{
	static const char *const bad[] = { "2", "0", "01", "+1", "-1", "0x1", "1.0", "1_0",
		"1e0", "one", "11111111111111111111111" };
	char text[128], issue[128];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		const char *quote = strlen(bad[i]) == 1 ? "" : "\"";

		(void)snprintf(text, sizeof(text), "version: %s\nrun: {steps: []}\n", bad[i]);
		(void)snprintf(issue, sizeof(issue),
		    ".anvil.yml:1:10: version: expected integer 1, got %s%s%s", quote, bad[i],
		    quote);
		refused(text, issue);
	}
	refused("version: \"1\"\nrun: {steps: []}\n",
	    ".anvil.yml:1:10: version: expected integer 1, got \"1\"");
	refused("version: [1]\nrun: {steps: []}\n",
	    ".anvil.yml:1:10: version: expected integer 1, got a list of 1");
}

static void
depth_is_0_to_2147483647(void **state)
{
	(void)state;
	assert_int_equal(accepted(WITH_CHECKOUT("  depth: 2147483647\n"))->depth, 2147483647);
	assert_int_equal(accepted(WITH_CHECKOUT("  {}\n"))->depth, 1);
	refused(WITH_CHECKOUT("  depth: 2147483648\n"),
	    ".anvil.yml:3:10: checkout.depth: expected CheckoutDepth, got 2147483648");
	refused(WITH_CHECKOUT("  depth: -1\n"),
	    ".anvil.yml:3:10: checkout.depth: expected CheckoutDepth, got \"-1\"");
	refused(WITH_CHECKOUT("  depth: full\n"),
	    ".anvil.yml:3:10: checkout.depth: expected CheckoutDepth, got \"full\"");
	refused(WITH_CHECKOUT("  depth:\n"),
	    ".anvil.yml:3:9: checkout.depth: expected CheckoutDepth, got null");
}

static void
an_explicit_null_is_a_wrong_type(void **state)
{
	(void)state;
	refused("version: 1\ncheckout:\nrun: {steps: []}\n",
	    ".anvil.yml:2:10: checkout: expected map, got null");
	refused("version: 1\nrun:\n", ".anvil.yml:2:5: run: expected map, got null");
	refused("version: 1\nrun: ~\n", ".anvil.yml:2:6: run: expected map, got \"~\"");
	refused(WITH_STEPS("  - name:\n    run: x\n"),
	    ".anvil.yml:4:10: run.steps[0].name: expected RepoConfigStepName, got null");
	refused(WITH_STEPS("  -\n"), ".anvil.yml:4:4: run.steps[0]: expected map, got null");
}

static void
the_working_directory_stays_in_the_repository(void **state)
{
	static const char *const good[] = { ".", "./a", "a/b", "a b", "...", "..a", "a..",
		"a/./b", "ab:c", "1:" };
	static const char *const bad[] = { "", "/a", "/", "a/", "a//b", "..", "../x", "a/..",
		"a/../b", "C:", "c:/x", "a\\\\b", "a\\tb", "a\\x7f", "a\\0b", "a\\x85" };
	static const char head[] = WITH_RUN("  steps: []\n  workingDirectory: \"");
	char text[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		(void)snprintf(text, sizeof(text), "%s%s\"\n", head, good[i]);
		assert_string_equal(accepted(text)->working_directory, good[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		const struct pipeline *p;
		const struct pipeline_report *report = NULL;

		(void)snprintf(text, sizeof(text), "%s%s\"\n", head, bad[i]);
		assert_int_equal(
		    pipeline_parse(arena, FILE_NAME, text, strlen(text), &terms, &p, &report),
		    E_INVAL);
		assert_string_equal(report->issues[0].path, "run.workingDirectory");
		assert_int_equal(report->issues[0].line, 4);
		assert_int_equal(report->issues[0].column, 21);
	}
	refused(WITH_RUN("  steps: []\n  workingDirectory: ../x\n"),
	    ".anvil.yml:4:21: run.workingDirectory: expected RepoRelativePath, got \"../x\"");
}

static void
the_timeout_is_1_to_the_servers_maximum(void **state)
{
	(void)state;
	assert_int_equal(
	    accepted(WITH_RUN("  steps: []\n  timeoutSeconds: 1\n"))->timeout_seconds, 1);
	refused(WITH_RUN("  steps: []\n  timeoutSeconds: 0\n"),
	    ".anvil.yml:4:19: run.timeoutSeconds: expected RunTimeoutSeconds, got 0");
	refused(WITH_RUN("  steps: []\n  timeoutSeconds: 3601\n"),
	    ".anvil.yml:4:19: run.timeoutSeconds: expected RunTimeoutSeconds, got 3601");
	refused(WITH_RUN("  steps: []\n  timeoutSeconds: '60'\n"),
	    ".anvil.yml:4:19: run.timeoutSeconds: expected RunTimeoutSeconds, got \"60\"");
}

static void
steps_are_at_most_20_maps(void **state)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;

	(void)state;
	buf_add_str(&text, WITH_RUN("  steps:\n"));
	for (int i = 0; i < PIPELINE_STEPS_MAX; i++)
		buf_add_str(&text, "  - {name: n, run: r}\n");
	assert_int_equal(accepted(buf_cstr(&text))->nsteps, PIPELINE_STEPS_MAX);
	buf_add_str(&text, "  - {name: n, run: ''}\n");
	refused(buf_cstr(&text),
	    ".anvil.yml:4:3: run.steps: expected RepoConfigSteps, got a list of 21\n"
	    ".anvil.yml:24:20: run.steps[20].run: expected RepoConfigStepCommand, got \"\"");
	refused(WITH_RUN("  steps: make\n"),
	    ".anvil.yml:3:10: run.steps: expected RepoConfigSteps, got \"make\"");
	refused(WITH_RUN("  steps: {}\n"),
	    ".anvil.yml:3:10: run.steps: expected RepoConfigSteps, got a map");
	refused(WITH_RUN("  steps: [make]\n"),
	    ".anvil.yml:3:11: run.steps[0]: expected map, got \"make\"");
}

/* A step whose ${key} has ${n} times ${unit}. */
static const char *
step_text(const char *key, const char *unit, size_t n)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	const char *other = strcmp(key, "name") == 0 ? "run" : "name";

	buf_printf(&text, WITH_STEPS("  - %s: x\n    %s: \""), other, key);
	while (n-- > 0)
		buf_add_str(&text, unit);
	buf_add_str(&text, "\"\n");
	return arena_strdup(arena, buf_cstr(&text));
}

static void
names_and_commands_have_their_lengths(void **state)
{
	(void)state;
	assert_int_equal(
	    strlen(accepted(step_text("name", "\xc3\xbc", 32))->steps[0].name), 64);
	assert_int_equal(strlen(accepted(step_text("run", "y", 4096))->steps[0].command), 4096);
	refused(step_text("name", "y", 65),
	    ".anvil.yml:5:11: run.steps[0].name: expected RepoConfigStepName, got "
	    "\"yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy…\"");
	refused(step_text("run", "y", 4097),
	    ".anvil.yml:5:10: run.steps[0].run: expected RepoConfigStepCommand, got "
	    "\"yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy…\"");
	refused(step_text("name", "", 0),
	    ".anvil.yml:5:11: run.steps[0].name: expected RepoConfigStepName, got \"\"");
	refused(step_text("name", " ", 2),
	    ".anvil.yml:5:11: run.steps[0].name: expected RepoConfigStepName, got \"  \"");
	refused(step_text("name", "a\\n", 1),
	    ".anvil.yml:5:11: run.steps[0].name: expected RepoConfigStepName, got \"a\\n\"");
	refused(step_text("run", "\\n ", 1),
	    ".anvil.yml:5:10: run.steps[0].run: expected RepoConfigStepCommand, got \"\\n \"");
	refused(step_text("run", "a\\0b", 1),
	    ".anvil.yml:5:10: run.steps[0].run: expected RepoConfigStepCommand, got "
	    "\"a\\u0000b\"");
}

static void
missing_keys_stand_at_their_map(void **state)
{
	(void)state;
	refused("", ".anvil.yml:1:1: version: missing\n.anvil.yml:1:1: run: missing");
	refused(
	    "# nothing\n", ".anvil.yml:1:1: version: missing\n.anvil.yml:1:1: run: missing");
	refused("\n  version: 1\n", ".anvil.yml:2:3: run: missing");
	refused(
	    "version: 1\nrun:\n  timeoutSeconds: 5\n", ".anvil.yml:3:3: run.steps: missing");
	refused(WITH_STEPS("  - {}\n"),
	    ".anvil.yml:4:5: run.steps[0].name: missing\n"
	    ".anvil.yml:4:5: run.steps[0].run: missing");
	refused("- a\n", ".anvil.yml:1:1: expected map, got a list of 1");
	refused("text\n", ".anvil.yml:1:1: expected map, got \"text\"");
	refused("---\n...\n", ".anvil.yml:2:1: expected map, got null");
}

static void
unknown_keys_are_named_with_the_nearest_known_one(void **state)
{
	(void)state;
	refused("version: 1\nrun: {steps: []}\nruns: 1\n",
	    ".anvil.yml:3:1: runs: unknown key \"runs\" (did you mean \"run\"?)");
	refused(WITH_RUN("  stpes: []\n"),
	    ".anvil.yml:3:3: run.stpes: unknown key \"stpes\" (did you mean \"steps\"?)\n"
	    ".anvil.yml:3:3: run.steps: missing");
	refused("version: 1\nrun: {steps: []}\nmatrix: 1\n",
	    ".anvil.yml:3:1: matrix: unknown key \"matrix\"");
	refused("version: 1\nrun: {steps: [], <<: {a: 1}}\n",
	    ".anvil.yml:2:18: run.<<: unknown key \"<<\"");
	refused(WITH_CHECKOUT("  Depth: 1\n"),
	    ".anvil.yml:3:3: checkout.Depth: unknown key \"Depth\" (did you mean \"depth\"?)");
	refused(WITH_STEPS("  - {name: a, run: b, \"x\\ny\": c}\n"),
	    ".anvil.yml:4:23: run.steps[0].x\\ny: unknown key \"x\\ny\"");
	refused("version: 1\nrun: {steps: []}\n? [a]\n: b\n",
	    ".anvil.yml:1:1: expected a text as key, got a list");
}

static void
all_issues_are_told_in_order_of_position(void **state)
{
	(void)state;
	refused(
	    "checkout: 5\nrun:\n  timeoutSeconds: soon\n  steps:\n  - run: ''\n  - name: x\n"
	    "version: 2\n",
	    ".anvil.yml:1:11: checkout: expected map, got 5\n"
	    ".anvil.yml:3:19: run.timeoutSeconds: expected RunTimeoutSeconds, got \"soon\"\n"
	    ".anvil.yml:5:5: run.steps[0].name: missing\n"
	    ".anvil.yml:5:10: run.steps[0].run: expected RepoConfigStepCommand, got \"\"\n"
	    ".anvil.yml:6:5: run.steps[1].run: missing\n"
	    ".anvil.yml:7:10: version: expected integer 1, got 2");
}

static void
of_more_than_20_issues_the_rest_is_counted(void **state)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	CLEANUP(buf_done) struct buf want = BUF_INIT;

	(void)state;
	buf_add_str(&text, "run: {steps: []}\n");
	for (int i = 2; i < 30; i++)
		buf_printf(&text, "key%02d: x\n", i);
	buf_add_str(&text, "version: 1\n");
	for (int i = 2; i < 22; i++)
		buf_printf(
		    &want, ".anvil.yml:%d:1: key%02d: unknown key \"key%02d\"\n", i, i, i);
	buf_add_str(&want, "and 8 more");
	refused(buf_cstr(&text), buf_cstr(&want));
}

static void
every_failed_allocation_is_told(void **state)
{
	static const char *const texts[] = {
		"version: 1\nrun:\n  steps:\n  - {name: a, run: b}\n",
		"version: 2\nrun:\n  stpes: &a []\n  x: 1\n  x: 2\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		long n;

		for (n = 0;; n++) {
			CLEANUP(arena_freep) struct arena *a = arena_new();
			const struct pipeline *p = NULL;
			const struct pipeline_report *report = NULL;
			int r;

			mem_fault_arm(n);
			r = pipeline_parse(
			    a, FILE_NAME, texts[i], strlen(texts[i]), &terms, &p, &report);
			if (!mem_fault_hit())
				break;
			assert_int_equal(r, E_NOMEM);
			assert_null(p);
			assert_null(report);
		}
		mem_fault_arm(-1);
		assert_true(n > 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_absent_has_its_default),
		cmocka_unit_test(everything_that_is_given_counts),
		cmocka_unit_test(plain_scalars_are_text_as_written),
		cmocka_unit_test(the_version_is_the_integer_one),
		cmocka_unit_test(depth_is_0_to_2147483647),
		cmocka_unit_test(an_explicit_null_is_a_wrong_type),
		cmocka_unit_test(the_working_directory_stays_in_the_repository),
		cmocka_unit_test(the_timeout_is_1_to_the_servers_maximum),
		cmocka_unit_test(steps_are_at_most_20_maps),
		cmocka_unit_test(names_and_commands_have_their_lengths),
		cmocka_unit_test(missing_keys_stand_at_their_map),
		cmocka_unit_test(unknown_keys_are_named_with_the_nearest_known_one),
		cmocka_unit_test(all_issues_are_told_in_order_of_position),
		cmocka_unit_test(of_more_than_20_issues_the_rest_is_counted),
		cmocka_unit_test(every_failed_allocation_is_told),
	};

	return cmocka_run_group_tests(tests, make_arena, free_arena);
}
