/*
 * test/unit/test_anvilctl_args.c -- command lines, help, and parameters of calls.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/anvilctl/args.h"
#include "cmd/anvilctl/commands.h"
#include "cmd/anvilctl/params.h"
#include "cmd/anvilctl/show.h"
#include "gen/project.h"
#include "gen/supervisor.h"
#include "lib/base/err.h"
#include "lib/wire/wire.h"
#include "test/support/unit.h"

#define LINE_MAX_WORDS 12

static char why[ARGS_WHY_SIZE];

/* Parses ${line}, words apart by one blank; `_` stands for an empty word. */
static int
parse(struct args *ret, const char *line)
{
	static char copy[256];
	char *argv[LINE_MAX_WORDS], *at = copy, *word;
	int argc = 0;

	(void)snprintf(copy, sizeof(copy), "%s", line);
	while ((word = strsep(&at, " ")) != NULL) {
		assert_true(argc < LINE_MAX_WORDS);
		argv[argc++] = strcmp(word, "_") == 0 ? word + 1 : word;
	}
	return args_parse(ret, commands, argc, argv, why);
}

static void
options_stand_before_and_behind(void **state)
{
	struct args a;

	(void)state;
	assert_int_equal(parse(&a, "-d /x run --branch=b me/it --json -w"), 0);
	assert_ptr_equal(a.command, &command_run);
	assert_string_equal(a.globals[GLOBAL_DIR], "/x");
	assert_non_null(a.globals[GLOBAL_JSON]);
	assert_null(a.globals[GLOBAL_CONFIG]);
	assert_string_equal(args_value(&a, "--branch"), "b");
	assert_string_equal(args_value(&a, "--watch"), "");
	assert_int_equal(a.nwords, 1);
	assert_string_equal(a.words[0], "me/it");
}

static void
commands_of_two_words_are_found(void **state)
{
	struct args a;

	(void)state;
	assert_int_equal(parse(&a, "user list"), 0);
	assert_ptr_equal(a.command, &command_user_list);
	assert_null(a.group);
	assert_int_equal(parse(&a, "user --help"), 0);
	assert_null(a.command);
	assert_string_equal(a.group, "user");
	assert_int_equal(parse(&a, "user nonsense"), E_INVAL);
	assert_string_equal(why, "user has no command \"nonsense\"");
	assert_int_equal(parse(&a, "use"), E_INVAL);
	assert_string_equal(why, "there is no command \"use\"");
	assert_int_equal(parse(&a, "list"), E_INVAL);
}

static void
mistakes_name_the_thing(void **state)
{
	static const struct {
		const char *line, *says;
	} rows[] = {
		{ "run", "run needs more: PROJECT" },
		{ "run a b", "unexpected word \"b\"" },
		{ "run --brunch x a", "run: unknown option --brunch" },
		{ "run a --branch", "--branch needs a value: BRANCH" },
		{ "run a --watch=yes", "--watch takes no value" },
		{ "ps -x", "ps: unknown option -x" },
		{ "ps -dX", "ps: unknown option -dX" },
		{ "ps -d", "--dir needs a value: DIR" },
		{ "--branch b run a", "unknown option --branch" },
		{ "_", "there is no command \"\"" },
	};
	struct args a;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(parse(&a, rows[i].line), E_INVAL);
		assert_string_equal(why, rows[i].says);
	}
}

static void
two_dashes_end_the_options(void **state)
{
	struct args a;

	(void)state;
	assert_int_equal(parse(&a, "lint -- -f"), 0);
	assert_string_equal(a.words[0], "-f");
	assert_int_equal(parse(&a, "lint -"), 0);
	assert_string_equal(a.words[0], "-");
}

static void
help_needs_no_words(void **state)
{
	struct args a;

	(void)state;
	assert_int_equal(parse(&a, "run --help"), 0);
	assert_ptr_equal(a.command, &command_run);
	assert_non_null(a.globals[GLOBAL_HELP]);
}

static void
numbers_are_plain_and_in_range(void **state)
{
	long n;

	(void)state;
	assert_int_equal(args_number("1", 1, 500, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(args_number("500", 1, 500, &n), 0);
	assert_int_equal(args_number("501", 1, 500, &n), E_INVAL);
	assert_int_equal(args_number("0", 1, 500, &n), E_INVAL);
	assert_int_equal(args_number("", 0, 500, &n), E_INVAL);
	assert_int_equal(args_number("-1", -5, 500, &n), E_INVAL);
	assert_int_equal(args_number(" 1", 0, 500, &n), E_INVAL);
	assert_int_equal(args_number("99999999999999999999", 0, 500, &n), E_INVAL);
}

static void
every_command_has_a_help_that_fits(void **state)
{
	(void)state;
	for (size_t i = 0; commands[i] != NULL; i++) {
		const struct command *c = commands[i];
		char *text = NULL;
		size_t n = 0;
		FILE *f = open_memstream(&text, &n);

		assert_non_null(f);
		assert_true(c->noptions <= ARGS_OPTIONS_MAX);
		assert_true(c->min_words <= c->max_words && c->max_words <= ARGS_WORDS_MAX);
		assert_non_null(c->run);
		help_command(f, c);
		assert_int_equal(fclose(f), 0);
		for (char *line = text, *end; (end = strchr(line, '\n')) != NULL;
		     line = end + 1)
			assert_true(end - line <= 96);
		assert_non_null(strstr(text, c->name));
		for (size_t k = 0; k < c->noptions; k++)
			assert_non_null(strstr(text, c->options[k].name));
		free(text);
	}
}

/* ---- parameters of a call ---- */

static int
read_params(const char *document, const char *method, const char *const *words, size_t nwords,
    char *out)
{
	CLEANUP(json_unrefp) json_t *doc = NULL;
	CLEANUP(json_unrefp) json_t *params = NULL;
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct params_of of;
	int r;

	assert_int_equal(json_text_parse(document, strlen(document), 64, &doc), 0);
	of = (struct params_of) { doc, params_method(doc, method) };
	assert_non_null(of.method);
	r = params_read(&of, words, nwords, &params, out);
	if (r == 0) {
		assert_int_equal(json_text_dump(&text, params), 0);
		(void)snprintf(out, PARAMS_WHY_SIZE, "%s", buf_cstr(&text));
	}
	return r;
}

#define READ(doc, method, ...)                                              \
	read_params((doc), (method), (const char *const[]) { __VA_ARGS__ }, \
	    sizeof((const char *const[]) { __VA_ARGS__ }) / sizeof(char *), out)

static void
values_are_typed_by_the_contract(void **state)
{
	char out[PARAMS_WHY_SIZE];

	(void)state;
	assert_int_equal(READ(supervisor_document(), "supervisor.history", "limit=5"), 0);
	assert_string_equal(out, "{\"limit\":5}");
	assert_int_equal(
	    READ(project_document(), "project.queue", "projectId=null", "cursor=42"), 0);
	assert_string_equal(out, "{\"projectId\":null,\"cursor\":\"42\"}");
	assert_int_equal(READ(supervisor_document(), "supervisor.history", "{\"limit\":7}"), 0);
	assert_string_equal(out, "{\"limit\":7}");
	assert_int_equal(
	    read_params(supervisor_document(), "supervisor.history", NULL, 0, out), 0);
	assert_string_equal(out, "{}");
}

static void
wrong_names_are_told_with_the_right_ones(void **state)
{
	char out[PARAMS_WHY_SIZE];

	(void)state;
	assert_int_equal(READ(supervisor_document(), "supervisor.history", "x=1"), E_INVAL);
	assert_string_equal(out, "there is no parameter \"x\"; there are: limit:PageLimit?");
	assert_int_equal(READ(project_document(), "project.queue", "projectId=null"), E_INVAL);
	assert_string_equal(out,
	    "parameter \"cursor\" is missing; there are: "
	    "projectId:ProjectId|null cursor:Cursor|null limit:PageLimit?");
	assert_int_equal(READ(supervisor_document(), "supervisor.history", "limit"), E_INVAL);
	assert_int_equal(
	    READ(supervisor_document(), "supervisor.history", "{\"limit\":}"), E_INVAL);
	assert_true(out[0] != '\0');
}

/* ---- values for people ---- */

static void
a_tree_reads_units_off_the_names(void **state)
{
	static const char text[] =
	    "{\"uptimeMs\":61000,\"rssBytes\":2048,\"startedAt\":1769850307042,\"p99Us\":12,"
	    "\"none\":null,\"list\":[1,2],\"rows\":[{\"a\":1,\"b\":\"x\"},{\"a\":2}],\"e\":[]}";
	CLEANUP(json_unrefp) json_t *j = NULL;
	CLEANUP(buf_done) struct buf out = BUF_INIT;

	(void)state;
	assert_int_equal(json_text_parse(text, strlen(text), 64, &j), 0);
	assert_int_equal(show_tree(j, 0, &out), 0);
	assert_string_equal(buf_cstr(&out),
	    "uptimeMs: 1m01s\n"
	    "rssBytes: 2.0 KiB\n"
	    "startedAt: 2026-01-31 09:05:07\n"
	    "p99Us: 12us\n"
	    "none: -\n"
	    "list:\n  - 1\n  - 2\n"
	    "rows:\n  - a: 1\n    b: x\n  - a: 2\n"
	    "e: -\n");
}

static void
indented_json_is_still_json(void **state)
{
	static const char text[] = "{\"a\":[1,{\"b\":\"\\n\"}],\"c\":{},\"d\":[]}";
	CLEANUP(json_unrefp) json_t *j = NULL;
	CLEANUP(json_unrefp) json_t *again = NULL;
	CLEANUP(buf_done) struct buf out = BUF_INIT;

	(void)state;
	assert_int_equal(json_text_parse(text, strlen(text), 64, &j), 0);
	assert_int_equal(show_json(j, &out), 0);
	assert_int_equal(json_text_parse((const char *)out.data, out.len, 64, &again), 0);
	assert_true(json_equal(j, again));
	assert_non_null(strstr(buf_cstr(&out), "\n  \"a\": [\n    1,"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_stand_before_and_behind),
		cmocka_unit_test(commands_of_two_words_are_found),
		cmocka_unit_test(mistakes_name_the_thing),
		cmocka_unit_test(two_dashes_end_the_options),
		cmocka_unit_test(help_needs_no_words),
		cmocka_unit_test(numbers_are_plain_and_in_range),
		cmocka_unit_test(every_command_has_a_help_that_fits),
		cmocka_unit_test(values_are_typed_by_the_contract),
		cmocka_unit_test(wrong_names_are_told_with_the_right_ones),
		cmocka_unit_test(a_tree_reads_units_off_the_names),
		cmocka_unit_test(indented_json_is_still_json),
	};

	return cmocka_run_group_tests_name("anvilctl args", tests, NULL, NULL);
}
