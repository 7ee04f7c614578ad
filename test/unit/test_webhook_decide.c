#include <string.h>

#include "lib/base/base.h"
#include "lib/base/err.h"
#include "lib/base/utf8.h"
#include "lib/webhook/webhook.h"
#include "test/support/starve.h"
#include "test/support/unit.h"

static void
a_repository_is_the_same_but_for_the_case_of_its_path(void **state)
{
	static const struct {
		const char *a, *b;
		int same;
	} rows[] = {
		{ "https://github.com/a/b", "https://github.com/a/b", 1 },
		{ "https://github.com/Octo/Hello", "https://github.com/octo/hELLO", 1 },
		{ "https://github.com/a/%c3%bc", "https://github.com/a/%C3%BC", 1 },
		{ "https://git.example.com:8443/a", "https://git.example.com:8443/A", 1 },
		{ "file:///srv/Git/a", "file:///srv/git/a", 1 },
		{ "https://[2001:db8::1]:8443/a/b", "https://[2001:db8::1]:8443/a/B", 1 },
		{ "https://github.com/a/b", "https://github.com/a/bc", 0 },
		{ "https://github.com/a/bc", "https://github.com/a/b", 0 },
		{ "https://github.com/a/b", "https://github.com/a/b.git", 0 },
		{ "https://github.com/a/b", "http://github.com/a/b", 0 },
		{ "https://github.com/a/b", "https://github.com:8443/a/b", 0 },
		{ "https://git.example.com:8443/a", "https://git.example.com:8444/a", 0 },
		{ "https://git.example.com/a", "https://gitb.example.com/a", 0 },
		{ "https://a.example.com/b", "https://a.example.co/mb", 0 },
		{ "https://github.com/a/\xc3\x84", "https://github.com/a/\xc3\xa4", 0 },
		{ "https://github.com/a[b", "https://github.com/a{b", 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (webhook_same_repository(rows[i].a, rows[i].b) != rows[i].same ||
		    webhook_same_repository(rows[i].b, rows[i].a) != rows[i].same)
			fail_msg("%s and %s", rows[i].a, rows[i].b);
}

static void
a_configuration_fits_the_repositories_under_it(void **state)
{
	static const struct {
		enum provider provider;
		int fits;
		const char *instance, *url;
	} rows[] = {
		{ PROVIDER_GITHUB, 1, NULL, "https://github.com/a/b" },
		{ PROVIDER_GITHUB, 0, NULL, "https://github.com.evil.example/a/b" },
		{ PROVIDER_GITHUB, 0, NULL, "https://github.com:8443/a/b" },
		{ PROVIDER_GITHUB, 0, NULL, "http://github.com/a/b" },
		{ PROVIDER_GITHUB, 0, NULL, "https://gitlab.com/a/b" },
		{ PROVIDER_GITHUB, 0, "https://github.com", "https://github.com/a/b" },
		{ PROVIDER_GITLAB, 1, NULL, "https://gitlab.com/g/s/p" },
		{ PROVIDER_GITLAB, 0, NULL, "https://gitlab.example.com/g/p" },
		{ PROVIDER_GITLAB, 1, "https://gitlab.com", "https://gitlab.com/g/p" },
		{ PROVIDER_GITLAB, 0, "https://gitlab.example.com", "https://gitlab.com/g/p" },
		{ PROVIDER_GITLAB, 1, "https://git.example.com/lab",
		    "https://git.example.com/lab/p" },
		{ PROVIDER_GITLAB, 0, "https://git.example.com/lab",
		    "https://git.example.com/labs/p" },
		{ PROVIDER_GITLAB, 0, "https://git.example.com/lab",
		    "https://git.example.com/lab" },
		{ PROVIDER_GITLAB, 0, "https://git.example.com/lab",
		    "https://git.example.com/Lab/p" },
		{ PROVIDER_GITEA, 0, NULL, "https://gitea.example.com/a/b" },
		{ PROVIDER_GITEA, 1, "https://gitea.example.com:8443/git",
		    "https://gitea.example.com:8443/git/a/b" },
		{ PROVIDER_GITEA, 0, "https://gitea.example.com",
		    "https://gitea.example.com:8443/a/b" },
		{ PROVIDER_GITEA, 1, "https://github.com", "https://github.com/a/b" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (webhook_config_fits(rows[i].provider, rows[i].instance, rows[i].url) !=
		    rows[i].fits)
			fail_msg("%s under %s", rows[i].url,
			    rows[i].instance != NULL ? rows[i].instance : "nothing");
}

/* ---- classification ---- */

static struct verified_payload
payload_of(enum event_kind kind, const char *ref, const char *branch, const char *commit)
{
	return (struct verified_payload) { .event_kind = kind,
		.event_name = "deployment_status",
		.ref = ref,
		.branch = branch,
		.commit_sha = commit };
}

#define SHA  "da1560886d4f094c3e6c9ef40349f7d38b5d27d7"
#define MAIN "refs/heads/main"

static void
the_first_match_of_the_table_decides(void **state)
{
	const struct {
		struct verified_payload v;
		enum outcome outcome;
		const char *reason;
	} rows[] = {
		{ payload_of(EVENT_KIND_PING, MAIN, "main", SHA), OUTCOME_IGNORED_PING,
		    "ping" },
		{ payload_of(EVENT_KIND_OTHER, MAIN, "main", SHA), OUTCOME_IGNORED_EVENT,
		    "event \"deployment_status\" starts no run" },
		{ payload_of(EVENT_KIND_OTHER, NULL, NULL, NULL), OUTCOME_IGNORED_EVENT,
		    "event \"deployment_status\" starts no run" },
		{ payload_of(EVENT_KIND_PUSH, "refs/tags/v1", NULL, SHA), OUTCOME_IGNORED_EVENT,
		    "ref \"refs/tags/v1\" is not a branch" },
		{ payload_of(EVENT_KIND_PUSH, NULL, NULL, SHA), OUTCOME_IGNORED_EVENT,
		    "the push names no ref" },
		{ payload_of(EVENT_KIND_PUSH, "refs/heads/x", "x", SHA), OUTCOME_IGNORED_BRANCH,
		    "branch \"x\" is not the default branch \"main\"" },
		{ payload_of(EVENT_KIND_PUSH, "refs/heads/Main", "Main", SHA),
		    OUTCOME_IGNORED_BRANCH,
		    "branch \"Main\" is not the default branch \"main\"" },
		{ payload_of(EVENT_KIND_PUSH, "refs/heads/x", "x", NULL),
		    OUTCOME_IGNORED_BRANCH, "branch \"x\" is not the default branch \"main\"" },
		{ payload_of(EVENT_KIND_PUSH, MAIN, "main", NULL), OUTCOME_IGNORED_EVENT,
		    "branch was deleted" },
		{ payload_of(EVENT_KIND_PUSH, MAIN, "main", SHA), OUTCOME_ACCEPTED,
		    "run created" },
	};
	CLEANUP(arena_freep) struct arena *arena = arena_new();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct delivery_candidate c;

		assert_int_equal(webhook_classify(arena, &rows[i].v, "main", &c), 0);
		assert_string_equal(c.reason, rows[i].reason);
		assert_int_equal(c.outcome, rows[i].outcome);
	}
}

static void
long_reasons_are_cut_at_a_character(void **state)
{
	CLEANUP(arena_freep) struct arena *arena = arena_new();
	char branch[245], usual[245];
	struct verified_payload v = payload_of(EVENT_KIND_PUSH, "refs/heads/x", branch, SHA);
	struct delivery_candidate c;

	(void)state;
	for (size_t i = 0; i + 1 < sizeof(branch); i += 2) {
		memcpy(branch + i, "\xc3\xbc", 2);
		memcpy(usual + i, "\xc3\xa4", 2);
	}
	branch[244] = usual[244] = '\0';
	assert_int_equal(webhook_classify(arena, &v, usual, &c), 0);
	assert_int_equal(c.outcome, OUTCOME_IGNORED_BRANCH);
	assert_true(strlen(c.reason) > WEBHOOK_REASON_MAX - 4);
	assert_true(strlen(c.reason) <= WEBHOOK_REASON_MAX);
	assert_true(utf8_valid(c.reason, strlen(c.reason)));
}

static int
classify_once(void *arg)
{
	CLEANUP(arena_freep) struct arena *arena = arena_new();
	struct delivery_candidate c;

	return arena != NULL ? webhook_classify(arena, arg, "main", &c) : E_NOMEM;
}

static void
every_failed_allocation_is_told(void **state)
{
	struct verified_payload v = payload_of(EVENT_KIND_PUSH, "refs/heads/x", "x", SHA);

	(void)state;
	assert_true(starve(classify_once, &v) >= 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_repository_is_the_same_but_for_the_case_of_its_path),
		cmocka_unit_test(a_configuration_fits_the_repositories_under_it),
		cmocka_unit_test(the_first_match_of_the_table_decides),
		cmocka_unit_test(long_reasons_are_cut_at_a_character),
		cmocka_unit_test(every_failed_allocation_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
