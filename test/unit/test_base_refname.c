#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/base.h"
#include "lib/base/err.h"
#include "lib/base/refname.h"

static void
branch_is(const char *name, int good)
{
	const char *why = NULL;
	int r = refname_check_branch(name, strlen(name), &why);

	if ((r == 0) != good)
		fail_msg("%s: %s", name, why != NULL ? why : "accepted");
	if (r < 0) {
		assert_int_equal(r, E_INVAL);
		assert_non_null(why);
	}
}

static void
good_branches_are_accepted(void **state)
{
	static const char *const good[] = { "main", "release/1.2", "a", "a.b", "a./b", "a@b",
		"@a", "a/@", "a{b", "@/{", "head", "HEAD/x", "x/HEAD", "a.lockx", "a.LOCK",
		"x-", "a\"b", "\xc3\xbc", "feature/\xe6\x97\xa5\xe6\x9c\xac", "lock",
		"a.lock.b", "refs/heads/x", "a%b", "a'b" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		branch_is(good[i], 1);
}

static void
bad_branches_are_refused(void **state)
{
	static const char *const bad[] = { "", "-x", "-", ".a", "a/.b", ".", "a.lock", ".lock",
		"a.lock/b", "b/a.lock", "a..b", "..", "a//b", "//", "a@{b", "@{", "a b", " ",
		"a~b", "a^b", "a:b", "a?b", "a*b", "a[b", "a\\b", "/a", "a/", "/", "a.", "a/b.",
		"@", "HEAD", "a\nb", "a\x7f", "a\x1f", "\xc2\x80", "a\xc2\x9f", "a\xff",
		"\xc3" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		branch_is(bad[i], 0);
}

static void
a_branch_has_at_most_244_bytes(void **state)
{
	char name[REFNAME_BRANCH_MAX + 2];

	(void)state;
	memset(name, 'a', sizeof(name));
	name[REFNAME_BRANCH_MAX] = '\0';
	branch_is(name, 1);
	name[REFNAME_BRANCH_MAX] = 'a';
	name[REFNAME_BRANCH_MAX + 1] = '\0';
	branch_is(name, 0);
}

static void
a_nul_inside_is_a_control_character(void **state)
{
	(void)state;
	assert_int_equal(refname_check_branch("a\0b", 3, NULL), E_INVAL);
	assert_int_equal(refname_check_full("refs/a\0b", 8, NULL), E_INVAL);
}

static void
full_refs_have_two_parts_or_more(void **state)
{
	static const char *const good[] = { "refs/heads/main", "refs/tags/v1.0", "a/b",
		"refs/heads/@", "refs/heads/-x", "refs/heads/HEAD", "-a/b" };
	static const char *const bad[] = { "", "main", "@", "refs/", "/refs", "refs//x",
		"refs/.x", "refs/x.lock", "refs/heads/a b", "refs/heads/a.", "refs/@{",
		"a/.." };
	char longest[REFNAME_FULL_MAX + 2];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		assert_int_equal(refname_check_full(good[i], strlen(good[i]), NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		const char *why = NULL;

		assert_int_equal(refname_check_full(bad[i], strlen(bad[i]), &why), E_INVAL);
		assert_non_null(why);
	}
	memset(longest, 'a', sizeof(longest));
	memcpy(longest, "refs/", 5);
	assert_int_equal(refname_check_full(longest, REFNAME_FULL_MAX, NULL), 0);
	assert_int_equal(refname_check_full(longest, REFNAME_FULL_MAX + 1, NULL), E_INVAL);
}

static void
the_branch_of_a_ref_is_what_stands_behind_refs_heads(void **state)
{
	const char *ref = "refs/heads/a/b";
	size_t n = 0;

	(void)state;
	assert_ptr_equal(refname_branch_of(ref, strlen(ref), &n), ref + 11);
	assert_int_equal(n, 3);
	assert_null(refname_branch_of("refs/tags/v1", 12, &n));
	assert_null(refname_branch_of("refs/heads/", 11, &n));
	assert_null(refname_branch_of("main", 4, &n));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_branches_are_accepted),
		cmocka_unit_test(bad_branches_are_refused),
		cmocka_unit_test(a_branch_has_at_most_244_bytes),
		cmocka_unit_test(a_nul_inside_is_a_control_character),
		cmocka_unit_test(full_refs_have_two_parts_or_more),
		cmocka_unit_test(the_branch_of_a_ref_is_what_stands_behind_refs_heads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
