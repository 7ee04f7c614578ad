#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/config/config.h"

static struct config *
loaded(const char *text)
{
	CLEANUP(buf_done) struct buf problems = BUF_INIT;
	struct config *c = NULL;

	if (config_parse("anvil.yml", text, strlen(text), &problems, &c) != 0)
		fail_msg("%s\nrefused: %s", text, buf_cstr(&problems));
	return c;
}

static void
refused(const char *text, const char *want)
{
	CLEANUP(buf_done) struct buf problems = BUF_INIT;
	struct config *c = NULL;

	if (config_parse("anvil.yml", text, strlen(text), &problems, &c) != E_INVAL)
		fail_msg("accepted: %s", text);
	assert_null(c);
	assert_string_equal(buf_cstr(&problems), want);
}

static void
all_of_it_is_optional(void **state)
{
	CLEANUP(config_freep) struct config *c = loaded("");

	(void)state;
	assert_int_equal(c->version, 1);
	assert_string_equal(c->user, "");
	assert_string_equal(c->data_dir, "/var/lib/anvil");
	assert_string_equal(c->runtime_dir, "/run/anvil");
	assert_string_equal(c->keys_file, "/etc/anvil/keys.json");
	assert_int_equal(c->listen.n, 1);
	assert_string_equal(c->listen.at[0], "127.0.0.1:8470");
	assert_string_equal(c->public_url, "http://127.0.0.1:8470");
	assert_int_equal(c->shards, 2);
	assert_int_equal(c->trusted_proxies.n, 0);
	assert_string_equal(c->log_level, "info");
	assert_true(c->runs_max_concurrent >= 1);
	assert_string_equal(c->runs_sandbox, "bwrap");
	assert_int_equal(c->runs_max_timeout_seconds, 3600);
	assert_int_equal(c->runs_max_log_bytes, 268435456);
	assert_int_equal(c->runs_keep_days, 7);
	assert_int_equal(c->runs_step_memory_bytes, 0);
	assert_int_equal(c->runs_step_max_processes, 4096);
	assert_int_equal(c->runs_min_free_bytes, 1073741824);
	assert_string_equal(c->repositories_ca_file, "");
	assert_false(c->repositories_allow_http);
	assert_false(c->repositories_allow_private_hosts);
	assert_false(c->repositories_allow_local);
	assert_int_equal(c->http_max_json_bytes, 65536);
	assert_int_equal(c->webhooks_max_body_bytes, 26214400);
	assert_int_equal(c->sessions_ttl_seconds, 21600);
	assert_int_equal(c->sessions_refresh_below_seconds, 3600);
	assert_int_equal(c->limits_login_per_minute, 10);
	assert_int_equal(c->limits_invite_accept_per_minute, 5);
	assert_int_equal(c->limits_public_per_minute_per_address, 600);
	assert_string_equal(c->metrics_token, "");
}

static void
every_setting_can_be_given(void **state)
{
	CLEANUP(config_freep)
	struct config *c = loaded(
	    "version: 1\n"
	    "user: anvil\n"
	    "data_dir: /srv/anvil/\n"
	    "runtime_dir: /run/a\n"
	    "keys_file: /etc/k\n"
	    "listen: [0.0.0.0:80, \"[::1]:8470\", unix:/run/x.sock]\n"
	    "public_url: HTTPS://CI.example.com:443/anvil/\n"
	    "shards: 64\n"
	    "trusted_proxies: [10.0.0.1, \"2001:DB8:0::1\"]\n"
	    "log: {level: debug}\n"
	    "runs:\n  max_concurrent: 8\n  sandbox: none\n  max_timeout_seconds: 60\n"
	    "  max_log_bytes: 1048576\n  keep_days: 1\n  step_memory_bytes: 1000000000\n"
	    "  step_max_processes: 100\n  min_free_bytes: 0\n"
	    "repositories: {ca_file: /etc/ca.pem, allow_http: true, allow_private_hosts: true, "
	    "allow_local: true}\n"
	    "http: {max_json_bytes: 2048}\n"
	    "webhooks: {max_body_bytes: 4096}\n"
	    "sessions: {ttl_seconds: 100, refresh_below_seconds: 100}\n"
	    "limits: {login_per_minute: 1, invite_accept_per_minute: 2, "
	    "public_per_minute_per_address: 0}\n"
	    "metrics: {token: 's3cret+/='}\n");

	(void)state;
	assert_string_equal(c->user, "anvil");
	assert_string_equal(c->data_dir, "/srv/anvil");
	assert_string_equal(c->runtime_dir, "/run/a");
	assert_string_equal(c->keys_file, "/etc/k");
	assert_int_equal(c->listen.n, 3);
	assert_string_equal(c->listen.at[0], "0.0.0.0:80");
	assert_string_equal(c->listen.at[1], "[::1]:8470");
	assert_string_equal(c->listen.at[2], "unix:/run/x.sock");
	assert_string_equal(c->public_url, "https://ci.example.com/anvil");
	assert_int_equal(c->shards, 64);
	assert_int_equal(c->trusted_proxies.n, 2);
	assert_string_equal(c->trusted_proxies.at[1], "2001:db8::1");
	assert_string_equal(c->log_level, "debug");
	assert_int_equal(c->runs_max_concurrent, 8);
	assert_string_equal(c->runs_sandbox, "none");
	assert_int_equal(c->runs_min_free_bytes, 0);
	assert_string_equal(c->repositories_ca_file, "/etc/ca.pem");
	assert_true(c->repositories_allow_http);
	assert_true(c->repositories_allow_private_hosts);
	assert_true(c->repositories_allow_local);
	assert_int_equal(c->sessions_refresh_below_seconds, 100);
	assert_int_equal(c->limits_public_per_minute_per_address, 0);
	assert_string_equal(c->metrics_token, "s3cret+/=");
}

static void
a_bad_value_is_told_with_what_would_be_right(void **state)
{
	static const char *const rows[][2] = {
		{ "version: 2\n", "1:10: version: expected integer 1, got 2" },
		{ "user: 0day\n", "1:7: user: expected user name, got \"0day\"" },
		{ "data_dir: data\n", "1:11: data_dir: expected absolute path, got \"data\"" },
		{ "runtime_dir: \"/a\\0b\"\n",
		    "1:14: runtime_dir: expected absolute path, got \"/a\\u0000b\"" },
		{ "keys_file:\n", "1:11: keys_file: expected absolute path, got null" },
		{ "listen: 127.0.0.1:80\n",
		    "1:9: listen: expected list, got \"127.0.0.1:80\"" },
		{ "listen: []\n", "1:9: listen: expected a list of 1..16, got a list of 0" },
		{ "listen: ['a:1', 'a:1']\n",
		    "1:10: listen[0]: expected 127.0.0.1:8470, \"[::1]:8470\" or unix:/path, got "
		    "\"a:1\"\nanvil.yml:1:17: listen[1]: expected 127.0.0.1:8470, "
		    "\"[::1]:8470\" or unix:/path, got \"a:1\"" },
		{ "listen: [1.2.3.4:5, 1.2.3.4:5]\n",
		    "1:21: listen[1]: expected each address once" },
		{ "public_url: ftp://x\n",
		    "1:13: public_url: expected http or https URL, got \"ftp://x\"" },
		{ "shards: 0\n", "1:9: shards: expected integer 1..64, got 0" },
		{ "shards: 65\n", "1:9: shards: expected integer 1..64, got 65" },
		{ "shards: \"2\"\n", "1:9: shards: expected integer 1..64, got \"2\"" },
		{ "trusted_proxies: [10.0.0.0/8]\n",
		    "1:19: trusted_proxies[0]: expected IP address, got \"10.0.0.0/8\"" },
		{ "log: {level: loud}\n",
		    "1:14: log.level: expected debug, info, warn or error, got \"loud\"" },
		{ "log: debug\n", "1:6: log: expected map, got \"debug\"" },
		{ "runs: {max_concurrent: 0}\n",
		    "1:24: runs.max_concurrent: expected integer 1..1024, got 0" },
		{ "runs: {sandbox: podman}\n",
		    "1:17: runs.sandbox: expected bwrap or none, got \"podman\"" },
		{ "repositories: {allow_http: yes}\n",
		    "1:28: repositories.allow_http: expected true or false, got \"yes\"" },
		{ "repositories: {ca_file: ca.pem}\n",
		    "1:25: repositories.ca_file: expected absolute path or \"\", got \"ca.pem\"" },
		{ "sessions: {ttl_seconds: 600}\n",
		    "1:25: sessions.ttl_seconds: expected at least refresh_below_seconds (3600), "
		    "got 600" },
		{ "sessions: {refresh_below_seconds: 30000}\n",
		    "1:35: sessions.refresh_below_seconds: expected at most ttl_seconds (21600), "
		    "got 30000" },
		{ "metrics: {token: 'a secret'}\n",
		    "1:18: metrics.token: expected at most 1,024 printable ASCII characters "
		    "without spaces" },
		{ "a\n", "1:1: expected map, got \"a\"" },
		{ "shards: &a 2\n", "1:9: shards: anchor &a is not allowed" },
		{ "shards: [\n",
		    "2:1: did not find expected node content while parsing a flow node" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char want[512];

		(void)snprintf(want, sizeof(want), "anvil.yml:%s", rows[i][1]);
		refused(rows[i][0], want);
	}
}

static void
all_problems_are_told_in_order(void **state)
{
	(void)state;
	refused(
	    "shard: 2\nrun:\n  x: 1\nruns:\n  max_concurent: 2\n  keep_days: -1\nshards: 99\n",
	    "anvil.yml:1:1: shard: unknown key \"shard\" (did you mean \"shards\"?)\n"
	    "anvil.yml:2:1: run: unknown key \"run\" (did you mean \"runs\"?)\n"
	    "anvil.yml:5:3: runs.max_concurent: unknown key \"max_concurent\" (did you mean "
	    "\"max_concurrent\"?)\n"
	    "anvil.yml:6:14: runs.keep_days: expected integer 1..36500, got \"-1\"\n"
	    "anvil.yml:7:9: shards: expected integer 1..64, got 99");
}

static void
addresses_are_strict(void **state)
{
	static const char *const bad[] = { "127.0.0.1", "127.0.0.1:", "127.0.0.1:0",
		"127.0.0.1:65536", "127.0.0.1:080", "127.0.0.1:8x", "::1:80", "[::1]",
		"[::1:80", "[]:80", "[1.2.3.4]:80", ":80", "*:80", "localhost:80", "1.2.3:80",
		"unix:", "unix:x", "unix:/", "[::1]x:80", "" };
	char text[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		CLEANUP(buf_done) struct buf problems = BUF_INIT;
		struct config *c = NULL;

		(void)snprintf(text, sizeof(text), "listen: ['%s']\n", bad[i]);
		if (config_parse("f", text, strlen(text), &problems, &c) != E_INVAL)
			fail_msg("accepted %s", bad[i]);
		assert_non_null(strstr(buf_cstr(&problems), "f:1:10: listen[0]: expected"));
	}
	memset(text, 'x', sizeof(text));
	memcpy(text, "listen: [unix:/", 15);
	memcpy(text + 15 + 107, "]", 2);
	refused(text,
	    "anvil.yml:1:10: listen[0]: expected 127.0.0.1:8470, \"[::1]:8470\" or "
	    "unix:/path, got "
	    "\"unix:/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…\"");
	memcpy(text + 15 + 106, "]", 2);
	config_free(loaded(text));
}

static void
without_a_file_all_lies_below_the_users_folders(void **state)
{
	CLEANUP(buf_done) struct buf problems = BUF_INIT;
	struct config *c = NULL;

	(void)state;
	assert_int_equal(setenv("HOME", "/home/ada", 1), 0);
	assert_int_equal(setenv("XDG_STATE_HOME", "/state", 1), 0);
	assert_int_equal(setenv("XDG_RUNTIME_DIR", "/run/user/7", 1), 0);
	assert_int_equal(config_load(NULL, &problems, &c), 0);
	assert_string_equal(c->data_dir, "/state/anvil");
	assert_string_equal(c->runtime_dir, "/run/user/7/anvil");
	assert_string_equal(c->keys_file, "/state/anvil/keys.json");
	config_free(c);
	/* A relative one does not count, says the XDG specification. */
	assert_int_equal(setenv("XDG_STATE_HOME", "state", 1), 0);
	assert_int_equal(unsetenv("XDG_RUNTIME_DIR"), 0);
	assert_int_equal(config_load(NULL, &problems, &c), 0);
	assert_string_equal(c->data_dir, "/home/ada/.local/state/anvil");
	assert_string_equal(c->runtime_dir, "/home/ada/.local/state/anvil/run");
	assert_string_equal(c->keys_file, "/home/ada/.local/state/anvil/keys.json");
	assert_int_equal(c->shards, 2);
	config_free(c);
	assert_int_equal(unsetenv("HOME"), 0);
	assert_int_equal(config_load(NULL, &problems, &c), 0);
	assert_int_equal(c->data_dir[0], '/');
	config_free(c);
}

static void
a_file_is_read_by_its_path(void **state)
{
	char path[] = "/tmp/anvil-config-XXXXXX";
	int fd = mkstemp(path);
	CLEANUP(buf_done) struct buf problems = BUF_INIT;
	CLEANUP(buf_done) struct buf want = BUF_INIT;
	struct config *c = NULL;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "shards: 3\n", 10), 10);
	assert_int_equal(config_load(path, &problems, &c), 0);
	assert_int_equal(c->shards, 3);
	c = config_free(c);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(config_load(path, &problems, &c), 0);
	c = config_free(c);
	assert_int_equal(ftruncate(fd, CONFIG_BYTES_MAX + 1), 0);
	assert_int_equal(config_load(path, &problems, &c), E_INVAL);
	buf_printf(&want, "%s: a configuration has at most 65536 bytes", path);
	assert_string_equal(buf_cstr(&problems), buf_cstr(&want));
	close(fd);
	assert_int_equal(unlink(path), 0);
	buf_reset(&problems);
	buf_reset(&want);
	assert_int_equal(config_load(path, &problems, &c), E_INVAL);
	buf_printf(&want, "%s: cannot be read: No such file or directory", path);
	assert_string_equal(buf_cstr(&problems), buf_cstr(&want));
	assert_null(c);
}

static void
every_failed_allocation_is_told(void **state)
{
	static const char *const texts[] = {
		"listen: [1.2.3.4:5, unix:/x]\npublic_url: http://h.io\nmetrics: {token: t}\n",
		"shards: 0\nsahrds: 1\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		long n;

		for (n = 0;; n++) {
			CLEANUP(buf_done) struct buf problems = BUF_INIT;
			struct config *c = NULL;
			int r;

			mem_fault_arm(n);
			r = config_parse("f", texts[i], strlen(texts[i]), &problems, &c);
			(void)config_free(c);
			if (!mem_fault_hit())
				break;
			assert_int_equal(r, E_NOMEM);
			assert_null(c);
		}
		mem_fault_arm(-1);
		assert_true(n > 3);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_of_it_is_optional),
		cmocka_unit_test(every_setting_can_be_given),
		cmocka_unit_test(a_bad_value_is_told_with_what_would_be_right),
		cmocka_unit_test(all_problems_are_told_in_order),
		cmocka_unit_test(addresses_are_strict),
		cmocka_unit_test(without_a_file_all_lies_below_the_users_folders),
		cmocka_unit_test(a_file_is_read_by_its_path),
		cmocka_unit_test(every_failed_allocation_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
