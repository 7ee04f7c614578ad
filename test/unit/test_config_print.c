#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/config/config.h"

static const char full[] =
    "user: anvil\ndata_dir: \"/srv/a b\"\nlisten: [0.0.0.0:80, \"[::1]:81\", unix:/x]\n"
    "shards: 5\ntrusted_proxies: [10.0.0.1]\nruns: {max_concurrent: 3, sandbox: none}\n"
    "repositories: {allow_local: true}\nmetrics: {token: s3cret}\n";

static struct config *
loaded(const char *text)
{
	CLEANUP(buf_done) struct buf problems = BUF_INIT;
	struct config *c = NULL;

	if (config_parse("f", text, strlen(text), &problems, &c) != 0)
		fail_msg("%s\nrefused: %s", text, buf_cstr(&problems));
	return c;
}

struct seen {
	char text[512];
	size_t n;
};

static void
note(void *arg, const char *path, int live)
{
	struct seen *seen = arg;

	seen->n++;
	(void)snprintf(seen->text + strlen(seen->text), sizeof(seen->text) - strlen(seen->text),
	    "%s%s ", path, live ? "+" : "-");
}

static void
the_effective_configuration_is_yaml_with_masked_secrets(void **state)
{
	CLEANUP(config_freep) struct config *c = loaded(full);
	CLEANUP(buf_done) struct buf out = BUF_INIT;

	(void)state;
	assert_int_equal(config_print(c, &out), 0);
	assert_string_equal(buf_cstr(&out),
	    "version: 1\n"
	    "user: anvil\n"
	    "data_dir: \"/srv/a b\"\n"
	    "runtime_dir: /run/anvil\n"
	    "keys_file: /etc/anvil/keys.json\n"
	    "listen: [\"0.0.0.0:80\", \"[::1]:81\", \"unix:/x\"]\n"
	    "public_url: \"http://127.0.0.1:8470\"\n"
	    "shards: 5\n"
	    "trusted_proxies: [\"10.0.0.1\"]\n"
	    "log:\n  level: info\n"
	    "runs:\n  max_concurrent: 3\n  sandbox: none\n  max_timeout_seconds: 3600\n"
	    "  max_log_bytes: 268435456\n  keep_days: 7\n  step_memory_bytes: 0\n"
	    "  step_max_processes: 4096\n  min_free_bytes: 1073741824\n"
	    "repositories:\n  ca_file: \"\"\n  allow_http: false\n"
	    "  allow_private_hosts: false\n  allow_local: true\n"
	    "http:\n  max_json_bytes: 65536\n"
	    "webhooks:\n  max_body_bytes: 26214400\n"
	    "sessions:\n  ttl_seconds: 21600\n  refresh_below_seconds: 3600\n"
	    "limits:\n  login_per_minute: 10\n  invite_accept_per_minute: 5\n"
	    "  public_per_minute_per_address: 600\n"
	    "metrics:\n  token: \"********\"\n");
}

static void
what_is_printed_can_be_read_again(void **state)
{
	CLEANUP(config_freep) struct config *a = loaded(full);
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	struct seen seen = { "", 0 };

	(void)state;
	assert_int_equal(config_print(a, &out), 0);
	CLEANUP(config_freep) struct config *b = loaded(buf_cstr(&out));
	config_diff(a, b, note, &seen);
	assert_string_equal(seen.text, "metrics.token- ");
}

static void
json_carries_everything_to_a_child(void **state)
{
	CLEANUP(config_freep) struct config *a = loaded(full);
	CLEANUP(config_freep) struct config *b = NULL;
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	struct seen seen = { "", 0 };

	(void)state;
	assert_int_equal(config_to_json(a, &out), 0);
	assert_int_equal(config_from_json(buf_cstr(&out), out.len, &b), 0);
	config_diff(a, b, note, &seen);
	assert_string_equal(seen.text, "");
	assert_string_equal(b->metrics_token, "s3cret");
}

static void
json_of_another_release_is_read_with_defaults(void **state)
{
	static const char text[] = "{\"shards\":9,\"novelty\":[1],\"runs\":{\"novelty\":{}}}";
	CLEANUP(config_freep) struct config *c = NULL;

	(void)state;
	assert_int_equal(config_from_json(text, strlen(text), &c), 0);
	assert_int_equal(c->shards, 9);
	assert_int_equal(c->runs_keep_days, 7);
}

static void
json_with_bad_values_is_refused(void **state)
{
	static const char *const bad[] = { "", "[]", "{", "{\"shards\":\"2\"}",
		"{\"shards\":65}", "{\"listen\":[]}", "{\"listen\":[1]}",
		"{\"listen\":\"127.0.0.1:1\"}", "{\"user\":null}", "{\"user\":\"a\\u0000b\"}",
		"{\"log\":{\"level\":\"loud\"}}", "{\"repositories\":{\"allow_http\":1}}",
		"{\"public_url\":\"x\"}" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct config *c = NULL;

		if (config_from_json(bad[i], strlen(bad[i]), &c) != E_INVAL)
			fail_msg("accepted %s", bad[i]);
		assert_null(c);
	}
}

static void
a_change_is_named_with_whether_it_applies_at_once(void **state)
{
	CLEANUP(config_freep) struct config *a = loaded("shards: 1\n");
	CLEANUP(config_freep)
	struct config *b = loaded("shards: 2\nlog: {level: warn}\nlisten: [1.2.3.4:5]\n"
				  "limits: {login_per_minute: 1}\nruns: {keep_days: 1}\n");
	struct seen seen = { "", 0 };

	(void)state;
	config_diff(a, b, note, &seen);
	assert_string_equal(
	    seen.text, "listen- shards+ log.level+ runs.keep_days- limits.login_per_minute+ ");
}

static void
every_failed_allocation_is_told(void **state)
{
	CLEANUP(config_freep) struct config *a = loaded(full);
	long n;

	(void)state;
	for (n = 0;; n++) {
		CLEANUP(buf_done) struct buf out = BUF_INIT;
		struct config *c = NULL;
		int r;

		mem_fault_arm(n);
		r = config_to_json(a, &out);
		if (r == 0)
			r = config_from_json((const char *)out.data, out.len, &c);
		(void)config_free(c);
		if (!mem_fault_hit())
			break;
		assert_int_equal(r, E_NOMEM);
		assert_null(c);
	}
	mem_fault_arm(-1);
	assert_true(n > 3);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_effective_configuration_is_yaml_with_masked_secrets),
		cmocka_unit_test(what_is_printed_can_be_read_again),
		cmocka_unit_test(json_carries_everything_to_a_child),
		cmocka_unit_test(json_of_another_release_is_read_with_defaults),
		cmocka_unit_test(json_with_bad_values_is_refused),
		cmocka_unit_test(a_change_is_named_with_whether_it_applies_at_once),
		cmocka_unit_test(every_failed_allocation_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
