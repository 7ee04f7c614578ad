#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/base.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/rules.h"

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

static void
expect_n(const char *rule, const char *in, size_t n, const char *want)
{
	const char *out = NULL, *why = NULL;
	int r = rule_apply(rule, NULL, arena, in, n, &out, &why);

	if (want == NULL) {
		if (r != E_INVAL)
			fail_msg("%s accepted \"%s\"", rule, in);
		assert_non_null(why);
		assert_null(out);
		return;
	}
	if (r != 0)
		fail_msg("%s refused \"%s\": %s", rule, in, why);
	assert_string_equal(out, want);
}

static void
kept(const char *rule, const char *in, const char *want)
{
	expect_n(rule, in, strlen(in), want);
}

static void
refused(const char *rule, const char *in)
{
	expect_n(rule, in, strlen(in), NULL);
}

/* ${n} characters ${unit} are kept, n + 1 are refused. */
static void
limited(const char *rule, const char *unit, size_t n)
{
	static char text[8192];
	size_t len = strlen(unit);

	for (size_t i = 0; i <= n; i++)
		memcpy(text + i * len, unit, len);
	text[n * len] = '\0';
	kept(rule, text, text);
	text[n * len] = unit[0];
	text[(n + 1) * len] = '\0';
	refused(rule, text);
}

static void
slugs_have_64_of_their_alphabet_and_are_not_trimmed(void **state)
{
	(void)state;
	kept("Slug", "aZ0_-", "aZ0_-");
	kept("Slug", "-", "-");
	limited("Slug", "x", 64);
	refused("Slug", "");
	refused("Slug", " a");
	refused("Slug", "a.b");
	refused("Slug", "\xc3\xbc");
	expect_n("Slug", "a\0b", 3, NULL);
}

static void
addresses_are_trimmed_and_lowered(void **state)
{
	(void)state;
	kept("Email", " \tAda@Example.COM\r\n", "ada@example.com");
	kept("Email", "a@b", "a@b");
	kept("Email", "\xc3\x84@b.de", "\xc3\x84@b.de");
	refused("Email", "");
	refused("Email", "ab");
	refused("Email", "@b.de");
	refused("Email", "a@@");
	refused("Email", "abc@");
	refused("Email", "a@b@c");
	refused("Email", "a b@c.de");
	refused("Email", "a\xc2\xa0@c.de");
	refused("Email", "a@c\x01.de");
	refused("Email", "a@c\xc2\x85.de");
	refused("Email", "abc.de");
}

static void
an_address_has_at_most_254_bytes(void **state)
{
	char text[256];

	(void)state;
	memset(text, 'a', sizeof(text));
	text[1] = '@';
	text[254] = '\0';
	kept("Email", text, text);
	text[254] = 'a';
	text[255] = '\0';
	refused("Email", text);
}

static void
names_are_counted_in_characters(void **state)
{
	(void)state;
	kept("DisplayName", "  Ada L.  ", "Ada L.");
	limited("DisplayName", "\xc3\xbc", 128);
	limited("ProjectName", "\xe6\x97\xa5", 64);
	refused("DisplayName", " \t ");
	refused("ProjectName", "");
	refused("ProjectName", "a\nb");
	refused("DisplayName", "a\xc2\x9f");
	kept("ProjectName", "a b", "a b");
}

static void
passwords_are_counted_in_bytes_and_taken_as_sent(void **state)
{
	(void)state;
	kept("Password", "  spaced  ", "  spaced  ");
	kept("Password", "12345678", "12345678");
	refused("Password", "1234567");
	kept(
	    "Password", "\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc", "\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc");
	limited("Password", "x", 1024);
}

static void
branches_are_trimmed(void **state)
{
	(void)state;
	kept("BranchName", " main\n", "main");
	limited("BranchName", "x", 244);
	refused("BranchName", "a b");
	refused("BranchName", " ");
	refused("BranchName", "HEAD");
}

static void
config_paths_stay_inside_the_repository(void **state)
{
	(void)state;
	kept("ConfigPath", " .anvil.yml ", ".anvil.yml");
	kept("ConfigPath", "ci/a b/x..yml", "ci/a b/x..yml");
	kept("ConfigPath", "...", "...");
	limited("ConfigPath", "x", 1024);
	refused("ConfigPath", "");
	refused("ConfigPath", "/a");
	refused("ConfigPath", "a/");
	refused("ConfigPath", "a//b");
	refused("ConfigPath", ".");
	refused("ConfigPath", "a/./b");
	refused("ConfigPath", "../a");
	refused("ConfigPath", "a/..");
	refused("ConfigPath", "a\\b");
	refused("ConfigPath", "a\tb");
}

static void
secrets_are_kept_byte_for_byte(void **state)
{
	static const char *const rules[] = { "RepoToken", "WebhookSecret" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		kept(rules[i], "user:to ken", "user:to ken");
		kept(rules[i], "\xc3\xbc", "\xc3\xbc");
		refused(rules[i], "");
		refused(rules[i], " a");
		refused(rules[i], "a ");
		refused(rules[i], "a\n");
		refused(rules[i], "\xc2\xa0x");
		refused(rules[i], "x\xe3\x80\x80");
		refused(rules[i], "a\x7f");
		refused(rules[i], "a\xc2\x80z");
	}
	limited("RepoToken", "x", 4096);
	limited("WebhookSecret", "x", 1024);
}

static void
urls_are_normalised_with_the_settings_of_the_context(void **state)
{
	struct rule_ctx ctx = { .allow_http = 1, .allow_private_hosts = 1, .allow_local = 1 };
	const char *out, *why;

	(void)state;
	kept("RepositoryUrl", " https://GitHub.com/A/b.git", "https://github.com/A/b");
	kept("InstanceUrl", "https://GitLab.com/", "https://gitlab.com");
	refused("RepositoryUrl", "http://localhost/a");
	refused("RepositoryUrl", "file:///srv/a");
	refused("InstanceUrl", "http://foo");
	assert_int_equal(
	    rule_apply("RepositoryUrl", &ctx, arena, "file:///srv/a", 13, &out, &why), 0);
	assert_string_equal(out, "file:///srv/a");
	assert_int_equal(
	    rule_apply("InstanceUrl", &ctx, arena, "http://foo/", 11, &out, &why), 0);
	assert_string_equal(out, "http://foo");
}

static void
commits_are_lowered(void **state)
{
	(void)state;
	kept("CommitSha", "0123ABC", "0123abc");
	limited("CommitSha", "f", 64);
	refused("CommitSha", "012345");
	refused("CommitSha", "012345g");
	refused("CommitSha", " 0123abc");
}

static void
only_listed_rules_are_known(void **state)
{
	(void)state;
	assert_true(rule_known("Slug"));
	assert_true(rule_known("CommitSha"));
	assert_false(rule_known("slug"));
	assert_false(rule_known(""));
}

static void
blank_is_ascii_white_space_alone(void **state)
{
	(void)state;
	assert_true(rule_is_blank("", 0));
	assert_true(rule_is_blank(" \t\r\n\v\f", 6));
	assert_false(rule_is_blank(" a", 2));
	assert_false(rule_is_blank("\xc2\xa0", 2));
}

static void
a_trimmed_value_ends_where_it_ends(void **state)
{
	const char *in = "  main", *out = NULL, *why;

	(void)state;
	assert_int_equal(rule_branch_name(NULL, arena, in, 6, &out, &why), 0);
	assert_ptr_equal(out, in + 2);
	assert_int_equal(rule_branch_name(NULL, arena, "main  ", 6, &out, &why), 0);
	assert_string_equal(out, "main");
}

static void
every_failed_allocation_is_told(void **state)
{
	static const struct {
		const char *rule, *in;
	} rows[] = { { "Email", "A@b.de" }, { "BranchName", "main " },
		{ "CommitSha", "0123abc" }, { "RepositoryUrl", "https://h.io/a" },
		{ "InstanceUrl", "https://h.io" } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		long n;

		for (n = 0;; n++) {
			CLEANUP(arena_freep) struct arena *a = arena_new();
			const char *out = NULL, *why = NULL;
			int r;

			mem_fault_arm(n);
			r = rule_apply(
			    rows[i].rule, NULL, a, rows[i].in, strlen(rows[i].in), &out, &why);
			if (!mem_fault_hit())
				break;
			assert_int_equal(r, E_NOMEM);
			assert_null(out);
		}
		mem_fault_arm(-1);
		assert_true(n > 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slugs_have_64_of_their_alphabet_and_are_not_trimmed),
		cmocka_unit_test(addresses_are_trimmed_and_lowered),
		cmocka_unit_test(an_address_has_at_most_254_bytes),
		cmocka_unit_test(names_are_counted_in_characters),
		cmocka_unit_test(passwords_are_counted_in_bytes_and_taken_as_sent),
		cmocka_unit_test(branches_are_trimmed),
		cmocka_unit_test(config_paths_stay_inside_the_repository),
		cmocka_unit_test(secrets_are_kept_byte_for_byte),
		cmocka_unit_test(urls_are_normalised_with_the_settings_of_the_context),
		cmocka_unit_test(commits_are_lowered),
		cmocka_unit_test(only_listed_rules_are_known),
		cmocka_unit_test(blank_is_ascii_white_space_alone),
		cmocka_unit_test(a_trimmed_value_ends_where_it_ends),
		cmocka_unit_test(every_failed_allocation_is_told),
	};

	return cmocka_run_group_tests(tests, make_arena, free_arena);
}
