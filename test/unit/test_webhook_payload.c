#include <string.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/repourl.h"
#include "lib/base/rules.h"
#include "test/support/forge_rig.h"
#include "test/support/starve.h"
#include "test/support/unit.h"

#define SHA     "da1560886d4f094c3e6c9ef40349f7d38b5d27d7"
#define PROJECT "https://github.com/octo/hello"
#define REPO    "'repository':{'full_name':'octo/hello'}"

/* One delivery and what was said of it. */
struct said {
	struct arena *arena;
	struct webhook_scan *scan;
	struct codec c;
	struct verified_payload v;
	int r;
};

static void
said_done(struct said *s)
{
	arena_free(s->arena);
	webhook_scan_free(s->scan);
}

static void
say_with(struct said *s, enum provider provider, const char *event, const char *body,
    const struct rule_ctx *rules)
{
	CLEANUP_FREE char *json = rig_json(body);
	struct webhook_fault fault = { 0 };

	memset(s, 0, sizeof(*s));
	s->arena = arena_new();
	codec_init(&s->c, s->arena, rules);
	if (rig_scan(webhook_forge_of(provider), json, strlen(json), 0, &s->scan, &fault) != 0)
		fail_msg("%s: %s %s", body, fault.path, fault.message);
	s->r = rig_make(&s->c, webhook_forge_of(provider), s->scan, event, PROJECT, &s->v);
}

/* ${paths}: those of the issues, each with a space behind it; "": none are wanted. */
static void
expect(enum provider provider, const char *event, const char *body, int r, const char *paths)
{
	CLEANUP(said_done) struct said s;
	CLEANUP(buf_done) struct buf got = BUF_INIT;

	say_with(&s, provider, event, body, NULL);
	for (size_t i = 0; i < s.c.nissues; i++) {
		const struct codec_issue *is = &s.c.issues[i];

		buf_printf(&got, "%s ", is->path);
		assert_non_null(is->expected);
		assert_non_null(is->message);
		assert_non_null(is->code);
	}
	assert_int_equal(s.c.nbad, s.c.nissues);
	if (s.r != r || strcmp(buf_cstr(&got), paths) != 0)
		fail_msg("%s: %s, %s", body, err_symbol(s.r), buf_cstr(&got));
	if (r < 0)
		assert_string_equal(
		    s.c.issues[0].code, r == E_INVAL ? "invalid_repo_url" : "invalid_request");
}

static void
ref_of(const char *event, const char *ref, int good)
{
	CLEANUP_FREE char *body = mem_format("{" REPO ",'ref':%s}", ref);

	expect(PROVIDER_GITHUB, event, body, good ? 0 : E_PARAMS, good ? "" : "ref ");
}

static void
the_ref_of_a_push_is_a_full_name_by_the_rules_of_git(void **state)
{
	static const char *const good[] = { "null", "'refs/heads/main'", "'refs/tags/v1'",
		"'refs/heads/\xc3\xbc'", "'refs/heads/-x'", "'refs/heads/a.b'", "'a/b'" };
	static const char *const bad[] = { "''", "'main'", "'refs/heads/'", "'refs/heads/a..b'",
		"'refs/heads/a b'", "'refs/heads/a.lock'", "'refs/heads/.a'",
		"'refs/heads/a\\u0000'", "'refs/heads/a\\n'", "'refs/heads/\\u0085'",
		"'/refs/heads/a'", "1", "true", "{}", "['refs/heads/main']" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		ref_of("push", good[i], 1);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ref_of("push", bad[i], 0);
}

static void
the_ref_of_other_events_is_any_text_without_controls(void **state)
{
	static const char *const good[] = { "null", "''", "'main'", "'v1.0.0'", "'a b..c~'",
		"'/'" };
	static const char *const bad[] = { "'a\\u0000'", "'\\u007f'", "'\\u009f'", "'a\\n'",
		"0", "[]", "false" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		ref_of("create", good[i], 1);
		ref_of("ping", good[i], 1);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		ref_of("create", bad[i], 0);
		ref_of("ping", bad[i], 0);
	}
}

static void
refs_have_at_most_255_bytes(void **state)
{
	char ref[300];

	(void)state;
	memset(ref, 'a', sizeof(ref));
	memcpy(ref, "'refs/heads/", 12);
	memcpy(ref + 256, "'", 2);
	ref_of("push", ref, 1);
	ref_of("create", ref, 1);
	memcpy(ref + 256, "a'", 3);
	ref_of("push", ref, 0);
	ref_of("create", ref, 0);
}

static void
the_branch_is_what_stands_behind_refs_heads(void **state)
{
	CLEANUP(said_done) struct said push, other, bare;

	(void)state;
	say_with(&push, PROVIDER_GITHUB, "push", "{" REPO ",'ref':'refs/heads/a/b'}", NULL);
	assert_string_equal(push.v.ref, "refs/heads/a/b");
	assert_string_equal(push.v.branch, "a/b");
	say_with(&other, PROVIDER_GITHUB, "x", "{" REPO ",'ref':'refs/heads/a b'}", NULL);
	assert_string_equal(other.v.branch, "a b");
	say_with(&bare, PROVIDER_GITHUB, "x", "{" REPO ",'ref':'refs/heads/'}", NULL);
	assert_string_equal(bare.v.ref, "refs/heads/");
	assert_null(bare.v.branch);
}

/* ---- commits ---- */

static void
sha_is(const char *member, const char *value, const char *want)
{
	CLEANUP_FREE char *body = mem_format(
	    "{" REPO ",'ref':'refs/heads/main','%s':%s}", member, value);
	CLEANUP(said_done) struct said s;
	const char *got;

	say_with(&s, PROVIDER_GITHUB, "push", body, NULL);
	assert_int_equal(s.r, 0);
	got = strcmp(member, "after") == 0 ? s.v.commit_sha : s.v.before_sha;
	if (want == NULL)
		assert_null(got);
	else
		assert_string_equal(got, want);
}

static void
commits_are_lower_cased_and_zeros_are_none(void **state)
{
	static const char *const members[] = { "after", "before" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		sha_is(members[i], "'" SHA "'", SHA);
		sha_is(members[i], "'ABCDEF0'", "abcdef0");
		sha_is(members[i], "'" SHA "0123456789ABCDEFabcdef00'",
		    SHA "0123456789abcdefabcdef00");
		sha_is(members[i], "null", NULL);
		sha_is(members[i], "'0'", NULL);
		sha_is(members[i], "'0000000'", NULL);
		sha_is(members[i], "'0000000000000000000000000000000000000000'", NULL);
		sha_is(members[i],
		    "'000000000000000000000000000000000000000000000000000000000000000000'",
		    NULL);
		sha_is(members[i], "'0000001'", "0000001");
	}
}

static void
other_text_is_no_commit(void **state)
{
	static const char *const bad[] = { "''", "'abcdef'", "'abcdefg'", "'" SHA " '",
		"'0x12345678'", "'" SHA SHA "'", "'HEAD'", "'abcdef0\\u0000'", "1234567", "{}",
		"[]", "true" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		CLEANUP_FREE char *after = mem_format("{" REPO ",'after':%s}", bad[i]);
		CLEANUP_FREE char *before = mem_format("{" REPO ",'before':%s}", bad[i]);

		expect(PROVIDER_GITHUB, "push", after, E_PARAMS, "after ");
		expect(PROVIDER_GITHUB, "push", before, E_PARAMS, "before ");
		expect(PROVIDER_GITHUB, "create", after, 0, "");
		expect(PROVIDER_GITHUB, "ping", before, 0, "");
	}
}

static void
gitlabs_checkout_counts_before_after(void **state)
{
	static const char project[] = "'project':{'http_url':'https://gitlab.com/a/b'}";
	CLEANUP_FREE char *zeros = mem_format(
	    "{%s,'checkout_sha':'000','after':'" SHA "'}", project);
	CLEANUP_FREE char *odd = mem_format("{%s,'checkout_sha':1,'after':'" SHA "'}", project);
	CLEANUP_FREE char *bad = mem_format("{%s,'checkout_sha':'x','after':'y'}", project);
	CLEANUP_FREE char *unused = mem_format(
	    "{%s,'checkout_sha':'" SHA "','after':7}", project);
	CLEANUP_FREE char *after = mem_format("{%s,'checkout_sha':null,'after':'x'}", project);
	CLEANUP(said_done) struct said s;

	(void)state;
	say_with(&s, PROVIDER_GITLAB, "Push Hook", zeros, NULL);
	assert_int_equal(s.r, 0);
	assert_null(s.v.commit_sha);
	expect(PROVIDER_GITLAB, "Push Hook", odd, E_PARAMS, "checkout_sha ");
	expect(PROVIDER_GITLAB, "Push Hook", bad, E_PARAMS, "checkout_sha ");
	expect(PROVIDER_GITLAB, "Push Hook", unused, 0, "");
	expect(PROVIDER_GITLAB, "Push Hook", after, E_PARAMS, "after ");
	expect(PROVIDER_GITLAB, "Tag Push Hook", bad, 0, "");
}

/* ---- the repository ---- */

static void
full_name(const char *name, int r, const char *url)
{
	CLEANUP_FREE char *body = mem_format("{'repository':{'full_name':%s}}", name);
	CLEANUP(said_done) struct said s;

	say_with(&s, PROVIDER_GITHUB, "push", body, NULL);
	if (s.r != r || (r == 0 && strcmp(s.v.repository_url, url) != 0))
		fail_msg("%s: %s", name, s.r == 0 ? s.v.repository_url : err_symbol(s.r));
	if (r < 0)
		assert_string_equal(s.c.issues[0].path, "repository.full_name");
}

static void
githubs_repository_is_a_name_of_two_segments(void **state)
{
	static const char *const names[] = { "''", "'a'", "'/'", "'a/'", "'/b'", "'a/b/'",
		"'a/b/c'", "'//'", "'a//b'", "'./b'", "'a/.'", "'https://github.com/a/b'",
		"null", "1", "{}", "[]" };

	(void)state;
	full_name("'octo/hello'", 0, PROJECT);
	full_name("'Octo/Hello.git'", 0, "https://github.com/Octo/Hello");
	full_name("'octo/hello.git.git'", 0, "https://github.com/octo/hello.git");
	full_name("'a b/c'", 0, "https://github.com/a%20b/c");
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		full_name(names[i], E_PARAMS, NULL);
	full_name("'a/..'", E_INVAL, NULL);
	full_name("'../b'", E_PARAMS, NULL);
	full_name("'a/.git'", E_INVAL, NULL);
	full_name("'a/b?x'", E_INVAL, NULL);
	full_name("'a/b#x'", E_INVAL, NULL);
	full_name("'a\\\\b/c'", E_INVAL, NULL);
	full_name("'a/b\\u0000'", E_INVAL, NULL);
	full_name("'\\u0000a/b'", E_INVAL, NULL);
}

static void
clone_url(const char *url, const struct rule_ctx *rules, int r, const char *want)
{
	CLEANUP_FREE char *body = mem_format("{'repository':{'clone_url':'%s'}}", url);
	CLEANUP(said_done) struct said s;

	say_with(&s, PROVIDER_GITEA, "push", body, rules);
	assert_int_equal(s.r, r);
	if (r == 0)
		assert_string_equal(s.v.repository_url, want);
	else
		assert_string_equal(s.c.issues[0].path, "repository.clone_url");
}

static void
urls_are_normalised_by_what_the_operator_allows(void **state)
{
	static const struct rule_ctx all = { 1, 1, 1 };

	(void)state;
	clone_url(
	    " HTTPS://Git.Example.com:443/a/../B.git/ ", NULL, 0, "https://git.example.com/B");
	clone_url("http://git.example.com/a", NULL, E_INVAL, NULL);
	clone_url("http://git.example.com/a", &all, 0, "http://git.example.com/a");
	clone_url("https://127.0.0.1:3000/a", NULL, E_INVAL, NULL);
	clone_url("https://127.0.0.1:3000/a", &all, 0, "https://127.0.0.1:3000/a");
	clone_url("file:///srv/a.git", NULL, E_INVAL, NULL);
	clone_url("file:///srv/a.git", &all, 0, "file:///srv/a.git");
	clone_url("git@git.example.com:a/b", &all, E_INVAL, NULL);
	clone_url("https://git.example.com", NULL, E_INVAL, NULL);
	clone_url("https://git.example.com/\\u0000", NULL, E_INVAL, NULL);
	clone_url("", NULL, E_INVAL, NULL);
}

static void
a_url_of_any_length_is_judged(void **state)
{
	static const size_t lengths[] = { REPOURL_MAX - 24, REPOURL_MAX, 2 * REPOURL_MAX - 24,
		2 * REPOURL_MAX, 100000 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		char *path = mem_calloc(1, lengths[i] + 1);
		CLEANUP_FREE char *url = NULL;

		assert_non_null(path);
		memset(path, 'a', lengths[i]);
		url = mem_format("https://git.example.com/%s", path);
		free(path);
		clone_url(url, NULL, strlen(url) <= REPOURL_MAX ? 0 : E_INVAL, url);
	}
}

static void
a_push_needs_its_repository_and_other_events_may_lack_it(void **state)
{
	static const char *const without[] = { "{}", "{'repository':null}", "{'repository':{}}",
		"{'repository':{'full_name':null,'clone_url':null}}" };
	static const char *const odd[] = { "{'repository':1}", "{'repository':'octo/hello'}",
		"{'repository':[]}" };
	CLEANUP(said_done) struct said s;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(without); i++) {
		expect(PROVIDER_GITHUB, "push", without[i], E_PARAMS, "repository.full_name ");
		expect(PROVIDER_GITEA, "push", without[i], E_PARAMS, "repository.clone_url ");
		expect(PROVIDER_GITLAB, "Push Hook", without[i], E_PARAMS,
		    "project.git_http_url ");
		expect(PROVIDER_GITHUB, "star", without[i], 0, "");
		expect(PROVIDER_GITEA, "ping", without[i], 0, "");
		expect(PROVIDER_GITLAB, "Note Hook", without[i], 0, "");
	}
	for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
		expect(PROVIDER_GITHUB, "push", odd[i], E_PARAMS, "repository.full_name ");
		expect(PROVIDER_GITHUB, "star", odd[i], E_PARAMS, "repository ");
		expect(PROVIDER_GITLAB, "Note Hook", odd[i], 0, "");
	}
	expect(PROVIDER_GITHUB, "star", "{'repository':{'full_name':1}}", E_PARAMS,
	    "repository.full_name ");
	expect(PROVIDER_GITEA, "star", "{'repository':{'clone_url':'x'}}", E_INVAL,
	    "repository.clone_url ");
	say_with(&s, PROVIDER_GITEA, "star", "{}", NULL);
	assert_string_equal(s.v.repository_url, PROJECT);
}

static void
gitlabs_first_text_of_three_is_the_repository(void **state)
{
	static const struct {
		const char *first, *second, *want;
	} rows[] = {
		{ "'https://gitlab.com/a/1.git'", "'https://gitlab.com/a/2'",
		    "https://gitlab.com/a/1" },
		{ "null", "'https://gitlab.com/a/2'", "https://gitlab.com/a/2" },
		{ "1", "'https://gitlab.com/a/2'", "https://gitlab.com/a/2" },
		{ "{}", "[]", "https://gitlab.com/a/3" },
		{ "null", "null", "https://gitlab.com/a/3" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP_FREE char *body = mem_format(
		    "{'repository':{'git_http_url':'https://gitlab.com/a/3'},"
		    "'project':{'git_http_url':%s,'http_url':%s}}",
		    rows[i].first, rows[i].second);
		CLEANUP(said_done) struct said s;

		say_with(&s, PROVIDER_GITLAB, "Push Hook", body, NULL);
		assert_int_equal(s.r, 0);
		assert_string_equal(s.v.repository_url, rows[i].want);
	}
	expect(PROVIDER_GITLAB, "Push Hook",
	    "{'project':{'git_http_url':'','http_url':'https://gitlab.com/a/b'}}", E_INVAL,
	    "project.git_http_url ");
}

/* ---- several at once, memory ---- */

static void
shapes_are_judged_before_rules_and_all_are_listed(void **state)
{
	(void)state;
	expect(PROVIDER_GITHUB, "push", "{'ref':1,'after':2,'before':[],'repository':{}}",
	    E_PARAMS, "repository.full_name ref after before ");
	expect(PROVIDER_GITHUB, "push",
	    "{'ref':'x','after':'y','before':3,'repository':{'full_name':'a/..'}}", E_PARAMS,
	    "before ");
	expect(PROVIDER_GITHUB, "push",
	    "{'ref':'x','after':'y','before':'z','repository':{'full_name':'a/..'}}", E_INVAL,
	    "repository.full_name ref after before ");
	expect(PROVIDER_GITHUB, "push",
	    "{'ref':'x','after':'y','before':'z','repository':{'full_name':'a'}}", E_PARAMS,
	    "repository.full_name ref after before ");
}

static void
issues_are_written_like_those_of_every_other_body(void **state)
{
	CLEANUP(said_done) struct said s;
	CLEANUP(buf_done) struct buf text = BUF_INIT;

	(void)state;
	say_with(&s, PROVIDER_GITHUB, "push", "{" REPO ",'after':'nothing'}", NULL);
	assert_int_equal(codec_issues_text(&s.c, &text), 0);
	assert_string_equal(buf_cstr(&text),
	    "{\"issues\":[{\"path\":\"after\",\"expected\":\"CommitSha\",\"message\":"
	    "\"A commit must have 7 to 64 hexadecimal digits.\"}]}");
}

static void
a_failure_leaves_the_payload_untouched(void **state)
{
	CLEANUP(said_done) struct said s;
	struct verified_payload untouched = { 0 };

	(void)state;
	say_with(
	    &s, PROVIDER_GITHUB, "push", "{" REPO ",'ref':'refs/heads/a','after':'x'}", NULL);
	assert_int_equal(s.r, E_PARAMS);
	assert_memory_equal(&s.v, &untouched, sizeof(untouched));
}

struct starved {
	const struct webhook_scan *scan;
	enum provider provider;
	int want;
};

static int
make_once(void *arg)
{
	const struct starved *st = arg;
	CLEANUP(arena_freep) struct arena *arena = arena_new();
	struct verified_payload v;
	struct codec c;
	int r;

	if (arena == NULL)
		return E_NOMEM;
	codec_init(&c, arena, NULL);
	r = rig_make(&c, webhook_forge_of(st->provider), st->scan, "push", PROJECT, &v);
	return r == st->want ? 0 : r;
}

static void
every_failed_allocation_is_told(void **state)
{
	static const struct {
		enum provider provider;
		const char *body;
		int want;
	} rows[] = {
		{ PROVIDER_GITHUB,
		    "{" REPO ",'ref':'refs/heads/a','after':'" SHA "','before':'" SHA "'}", 0 },
		{ PROVIDER_GITHUB, "{" REPO ",'ref':'a','after':'','before':'x'}", E_PARAMS },
		{ PROVIDER_GITEA, "{'repository':{'clone_url':'x'}}", E_INVAL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(said_done) struct said s;
		struct starved st = { .provider = rows[i].provider, .want = rows[i].want };

		say_with(&s, rows[i].provider, "push", rows[i].body, NULL);
		assert_int_equal(s.r, rows[i].want);
		st.scan = s.scan;
		assert_true(starve(make_once, &st) >= 3);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_ref_of_a_push_is_a_full_name_by_the_rules_of_git),
		cmocka_unit_test(the_ref_of_other_events_is_any_text_without_controls),
		cmocka_unit_test(refs_have_at_most_255_bytes),
		cmocka_unit_test(the_branch_is_what_stands_behind_refs_heads),
		cmocka_unit_test(commits_are_lower_cased_and_zeros_are_none),
		cmocka_unit_test(other_text_is_no_commit),
		cmocka_unit_test(gitlabs_checkout_counts_before_after),
		cmocka_unit_test(githubs_repository_is_a_name_of_two_segments),
		cmocka_unit_test(urls_are_normalised_by_what_the_operator_allows),
		cmocka_unit_test(a_url_of_any_length_is_judged),
		cmocka_unit_test(a_push_needs_its_repository_and_other_events_may_lack_it),
		cmocka_unit_test(gitlabs_first_text_of_three_is_the_repository),
		cmocka_unit_test(shapes_are_judged_before_rules_and_all_are_listed),
		cmocka_unit_test(issues_are_written_like_those_of_every_other_body),
		cmocka_unit_test(a_failure_leaves_the_payload_untouched),
		cmocka_unit_test(every_failed_allocation_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
