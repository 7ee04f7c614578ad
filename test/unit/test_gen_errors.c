/*
 * test/unit/test_gen_errors.c -- contracts that say what nobody would keep: the generator names
 * file, place and reason, and writes nothing.
 */
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/io.h"
#include "lib/base/mem.h"

#define GENERATOR "build/host/anvil-protogen"

#define TYPES                                                                           \
	"{\"$defs\":{\"Id\":{\"type\":\"string\",\"x-id\":\"run_\"},"                   \
	"\"Gone\":{\"type\":\"object\",\"properties\":{\"kind\":{\"const\":\"gone\"}}," \
	"\"required\":[\"kind\"]}}}"
#define ACTOR "{\"openrpc\":\"1.2.6\",\"x-context\":\"actor\",\"methods\":[]}"
#define HEAD  "{\"openrpc\":\"1.2.6\",\"x-context\":\"thing\",\"methods\":["
#define GIVEN(params, result)                                                                \
	"{\"name\":\"a.b\",\"summary\":\"s\",\"x-from\":[\"run\"],\"x-turn\":\"read\","      \
	"\"paramStructure\":\"by-name\",\"params\":[" params "],\"result\":{\"name\":\"r\"," \
	"\"schema\":" result "}}"
#define PARAM(schema) "{\"name\":\"p\",\"required\":true,\"schema\":" schema "}"
#define OK                                                                               \
	"{\"oneOf\":[{\"type\":\"object\",\"properties\":{\"kind\":{\"const\":\"ok\"}}," \
	"\"required\":[\"kind\"]}]}"

struct fix {
	char dir[64];
	char said[4096]; /* What it printed. */
};

static void
put(const struct fix *f, const char *name, const char *text)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s.json", f->dir, name);
	assert_int_equal(io_write_file(AT_FDCWD, path, text, strlen(text), 0600), 0);
}

/* Exit status of the generator over thing.json. */
static int
generate(struct fix *f, const char *name)
{
	CLEANUP(buf_done) struct buf said = BUF_INIT;
	int fds[2], status;
	pid_t pid;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)dup2(fds[1], STDERR_FILENO);
		execl(GENERATOR, GENERATOR, f->dir, name, f->dir, (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	assert_int_equal(io_read_all(fds[0], sizeof(f->said) - 1, &said), 0);
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	(void)snprintf(f->said, sizeof(f->said), "%s", buf_cstr(&said));
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int
setup(void **state)
{
	struct fix *f = mem_calloc(1, sizeof(*f));

	assert_non_null(f);
	strcpy(f->dir, "/tmp/anvil-gen-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	put(f, "types", TYPES);
	put(f, "actor", ACTOR);
	*state = f;
	return 0;
}

static int
drop(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st, (void)type, (void)at;
	return remove(path);
}

static int
teardown(void **state)
{
	struct fix *f = *state;

	(void)nftw(f->dir, drop, 8, FTW_DEPTH | FTW_PHYS);
	mem_free(f);
	return 0;
}

static void
assert_refused(struct fix *f, const char *document, const char *place, const char *reason)
{
	char path[128];

	put(f, "thing", document);
	if (generate(f, "thing") != 1 || strstr(f->said, place) == NULL ||
	    strstr(f->said, reason) == NULL)
		fail_msg("wanted %s: %s, got: %s", place, reason, f->said);
	assert_non_null(strstr(f->said, "thing.json"));
	(void)snprintf(path, sizeof(path), "%s/thing.h", f->dir);
	assert_int_not_equal(access(path, F_OK), 0);
}

static void
a_good_contract_is_written(void **state)
{
	static const char *const made[] = { "thing.h", "thing.c", "thing_methods.h" };
	struct fix *f = *state;

	put(f, "thing", HEAD GIVEN(PARAM("{\"$ref\":\"types.json#/$defs/Id\"}"), OK) "]}");
	assert_int_equal(generate(f, "thing"), 0);
	assert_string_equal(f->said, "");
	for (size_t i = 0; i < ARRAY_LEN(made); i++) {
		char path[128];

		(void)snprintf(path, sizeof(path), "%s/%s", f->dir, made[i]);
		assert_int_equal(access(path, R_OK), 0);
	}
}

static void
schemas_that_are_not_understood_are_refused(void **state)
{
	static const char where[] = "methods[0]<a.b>.params[0].p";
	static const struct {
		const char *schema, *reason;
	} bad[] = {
		{ "{\"type\":\"string\",\"uniqueItems\":true}", "unsupported word" },
		{ "{\"type\":\"thing\"}", "unsupported type" },
		{ "{}", "needs type" },
		{ "{\"$ref\":\"types.json#/$defs/Nobody\"}", "nothing is found" },
		{ "{\"$ref\":\"elsewhere.json#/a\"}", "nothing is found" },
		{ "{\"$ref\":\"types.json#/$defs/Gone\"}", "only stand in oneOf" },
		{ "{\"type\":\"string\",\"pattern\":\"^a$\"}", "a pattern needs" },
		{ "{\"type\":\"string\",\"x-rule\":\"Nothing\"}", "not known" },
		{ "{\"type\":\"string\",\"x-shape\":\"round\"}", "is unknown" },
		{ "{\"type\":\"string\",\"enum\":[\"a\"]}", "needs a name" },
		{ "{\"type\":\"array\"}", "needs items" },
		{ "{\"type\":\"integer\",\"minimum\":1.5}", "must be an integer" },
		{ "{\"type\":[\"integer\",\"string\"]}", "a list of types" },
		{ "{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"integer\"}]}",
		    "anyOf is for" },
		{ "{\"type\":\"object\",\"properties\":{},\"required\":[\"x\"]}",
		    "no property" },
		{ "{\"type\":\"object\",\"additionalProperties\":true}", "only be false" },
		{ "{\"type\":\"integer\",\"default\":1}", "may be absent" },
		{ "{\"const\":\"a\"}", "a constant is for" },
	};
	struct fix *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		CLEANUP_FREE char *text = mem_format(
		    "%s" GIVEN(PARAM("%s"), "%s") "]}", HEAD, bad[i].schema, OK);

		assert_non_null(text);
		assert_refused(f, text, where, bad[i].reason);
	}
}

static void
methods_that_are_not_understood_are_refused(void **state)
{
	struct fix *f = *state;

	assert_refused(f, HEAD GIVEN("", OK) "," GIVEN("", OK) "]}", "methods[1]<a.b>",
	    "the method stands twice");
	assert_refused(f,
	    HEAD GIVEN(
		PARAM("{\"type\":\"boolean\"}") "," PARAM("{\"type\":\"boolean\"}"), OK) "]}",
	    "params[1].p", "the name stands twice");
	assert_refused(f, HEAD GIVEN("", "{\"oneOf\":[]}") "]}", "<a.b>", "oneOf is empty");
	assert_refused(f,
	    HEAD GIVEN("",
		"{\"oneOf\":[{\"type\":\"object\",\"properties\":{},\"required\":[]}]}") "]}",
	    "oneOf[0]", "needs a constant");
	assert_refused(f,
	    HEAD GIVEN("",
		"{\"oneOf\":[{\"$ref\":\"types.json#/$defs/Gone\"},"
		"{\"$ref\":\"types.json#/$defs/Gone\"}]}") "]}",
	    "oneOf[1]", "stands twice");
	assert_refused(f,
	    HEAD
	    "{\"name\":\"a.b\",\"summary\":\"s\",\"x-from\":[\"nobody\"],\"x-turn\":\"read\","
	    "\"paramStructure\":\"by-name\",\"params\":[],\"x-notification\":true}]}",
	    "<a.b>", "is no role");
	assert_refused(f,
	    HEAD "{\"name\":\"a.b\",\"summary\":\"s\",\"x-from\":[\"run\"],\"x-turn\":\"spin\","
		 "\"paramStructure\":\"by-name\",\"params\":[],\"x-notification\":true}]}",
	    "<a.b>", "none, read or write");
	assert_refused(f,
	    HEAD "{\"name\":\"a.b\",\"summary\":\"s\",\"x-from\":[\"run\"],\"x-turn\":\"read\","
		 "\"paramStructure\":\"by-name\",\"params\":[],\"x-kind\":\"odd\"}]}",
	    "<a.b>", "unknown member");
	assert_refused(f,
	    HEAD "{\"name\":\"a.b\",\"summary\":\"s\",\"x-from\":[\"run\"],\"x-turn\":\"read\","
		 "\"paramStructure\":\"by-name\",\"params\":[]}]}",
	    "<a.b>", "a method has a result");
}

static void
types_may_not_contain_themselves_or_shadow_one_another(void **state)
{
	struct fix *f = *state;

	assert_refused(f,
	    HEAD "],\"components\":{\"schemas\":{\"Loop\":{\"type\":\"object\",\"properties\":"
		 "{\"in\":{\"$ref\":\"#/components/schemas/Loop\"}},\"required\":[]}}}}",
	    "<Loop>", "contains itself");
	assert_refused(f, HEAD "],\"components\":{\"schemas\":{\"Id\":{\"type\":\"string\"}}}}",
	    "thing.json", "stands in types.json, too");
	assert_refused(f,
	    HEAD "],\"components\":{\"schemas\":{\"W\":{\"enum\":[\"a\",\"a\"]}}}}", "<W>",
	    "stands twice");
}

static void
broken_files_are_named_with_line_and_column(void **state)
{
	struct fix *f = *state;

	put(f, "thing", "{\n\"a\":1,\n\"a\":2}");
	assert_int_equal(generate(f, "thing"), 1);
	assert_non_null(strstr(f->said, "thing.json:3:"));
	assert_int_equal(generate(f, "nothing"), 1);
	assert_non_null(strstr(f->said, "nothing.json"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_good_contract_is_written, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    schemas_that_are_not_understood_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    methods_that_are_not_understood_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    types_may_not_contain_themselves_or_shadow_one_another, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    broken_files_are_named_with_line_and_column, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
