#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/base.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/repourl.h"

static const struct repourl_flags strict = { 0, 0, 0 };
static const struct repourl_flags relaxed = { 1, 1, 1 };

struct row {
	const char *in;
	const char *out; /* NULL: refused */
};

static void
expect(const struct repourl_flags *f, int instance, const char *in, const char *want)
{
	char out[REPOURL_SIZE] = "";
	const char *why = NULL;
	int r = instance ? repourl_normalise_instance(in, strlen(in), f, out, &why)
			 : repourl_normalise(in, strlen(in), f, out, &why);

	if (want == NULL) {
		if (r != E_INVAL)
			fail_msg("%s was not refused: %s", in, out);
		assert_non_null(why);
		return;
	}
	if (r != 0)
		fail_msg("%s was refused: %s", in, why);
	assert_string_equal(out, want);
}

static void
refused_with(const struct repourl_flags *f, const char *in, const char *words)
{
	char out[REPOURL_SIZE];
	const char *why = NULL;

	if (repourl_normalise(in, strlen(in), f, out, &why) != E_INVAL)
		fail_msg("%s was not refused", in);
	if (strstr(why, words) == NULL)
		fail_msg("%s: \"%s\" does not say \"%s\"", in, why, words);
}

static void
every_row_of_the_table_holds(void **state)
{
	static const struct row rows[] = {
		{ "https://GitHub.com/Example/Repo.git", "https://github.com/Example/Repo" },
		{ "https://github.com/a/b.git/", "https://github.com/a/b" },
		{ "https://github.com/a/b.git.git", "https://github.com/a/b.git" },
		{ " https://github.com/a/b ", "https://github.com/a/b" },
		{ "HTTPS://github.com/a/b", "https://github.com/a/b" },
		{ "https://git.example.com:443/a/b", "https://git.example.com/a/b" },
		{ "https://git.example.com:0443/a/b", "https://git.example.com/a/b" },
		{ "https://git.example.com:8443/a/b", "https://git.example.com:8443/a/b" },
		{ "https://github.com/a/b.GIT", "https://github.com/a/b.GIT" },
		{ "https://github.com/a/b?", "https://github.com/a/b" },
		{ "https://github.com/a/b#", "https://github.com/a/b" },
		{ "https://@github.com/a/b", "https://github.com/a/b" },
		{ "https://example.com/a/../b", "https://example.com/b" },
		{ "https://example.com/a/%2e%2e/b", "https://example.com/b" },
		{ "https://example.com/a b", "https://example.com/a%20b" },
		{ "https://example.com/\xc3\xbc", "https://example.com/%C3%BC" },
		{ "https://m\xc3\xbcnchen.de/a", NULL },
		{ "https:github.com/a/b", NULL },
		{ "https:///github.com/a/b", NULL },
		{ "https://example.com\\b", NULL },
		{ "https://github.com//a//b//", "https://github.com//a//b" },
		{ "https://github.com", NULL },
		{ "https://github.com/", NULL },
		{ "https://github.com/.git", NULL },
		{ "https://github.com/a/.git", NULL },
		{ "http://github.com/a/b", NULL },
		{ "ssh://git@github.com/a/b", NULL },
		{ "git@github.com:a/b", NULL },
		{ "github.com/a/b", NULL },
		{ "", NULL },
		{ "https://u:p@github.com/a/b", NULL },
		{ "https://github.com/a/b?x=1", NULL },
		{ "https://github.com/a/b#f", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		expect(&strict, 0, rows[i].in, rows[i].out);
}

static void
hosts_that_are_not_public_names_are_refused(void **state)
{
	static const char *const bad[] = { "foo", "localhost", "x.localhost", "127.0.0.1",
		"0x7f.1", "2130706433", "1.2.3", "[::1]", "example.com.", "ex_ample.com",
		"-ex.com", "ex-.com", "a..b.com", "example.com:99999", "example.com:65536",
		"example.com:8x", "example.com:-1", "example.com:80:80", "a.0x", "a.0xff",
		"a.12", "%67ithub.com", "exa mple.com", "*.example.com", "LOCALHOST",
		"x.LocalHost", "[::1", "[]", "[::1]x", ".example.com", "." };
	char url[128];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		memcpy(url, "https://", 8);
		strcpy(url + 8, bad[i]);
		strcat(url, "/a/b");
		expect(&strict, 0, url, NULL);
	}
}

static void
names_that_only_look_odd_are_public(void **state)
{
	(void)state;
	expect(&strict, 0, "https://a.0xg/x", "https://a.0xg/x");
	expect(&strict, 0, "https://1.2.3.com/x", "https://1.2.3.com/x");
	expect(&strict, 0, "https://a--b.x-y/x", "https://a--b.x-y/x");
	expect(&strict, 0, "https://XN--MNCHEN-3YA.de/x", "https://xn--mnchen-3ya.de/x");
	expect(
	    &strict, 0, "https://localhost.example.com/x", "https://localhost.example.com/x");
	expect(&strict, 0, "https://h.io:/x", "https://h.io/x");
	expect(&strict, 0, "https://h.io:0/x", "https://h.io:0/x");
	expect(&strict, 0, "https://h.io:00000000000065535/x", "https://h.io:65535/x");
	expect(&strict, 0, "https://h.io:80/x", "https://h.io:80/x");
}

static void
lengths_of_hosts_and_labels_are_limited(void **state)
{
	char url[400];
	size_t at;

	(void)state;
	strcpy(url, "https://");
	at = strlen(url);
	memset(url + at, 'a', 63);
	strcpy(url + at + 63, ".io/x");
	expect(&strict, 0, url, url);
	memset(url + at, 'a', 64);
	strcpy(url + at + 64, ".io/x");
	expect(&strict, 0, url, NULL);
	for (size_t i = 0; i < 253; i++)
		url[at + i] = i % 2 == 0 ? 'a' : '.';
	strcpy(url + at + 253, "/x");
	expect(&strict, 0, url, url);
	for (size_t i = 0; i < 255; i++)
		url[at + i] = i % 2 == 0 ? 'a' : '.';
	strcpy(url + at + 255, "/x");
	expect(&strict, 0, url, NULL);
}

static void
white_space_inside_goes_and_controls_refuse(void **state)
{
	(void)state;
	expect(&strict, 0, "\r\n\thttps://git\thub.com/a\n/b\r\n", "https://github.com/a/b");
	expect(&strict, 0, "https://h.io/x/.\n./y", "https://h.io/y");
	expect(&strict, 0, "https://h.io/a\x01", NULL);
	expect(&strict, 0, "https://h.io/a\x7f", NULL);
	expect(&strict, 0, "https://h.io/a\xc2\x85", NULL);
	expect(&strict, 0, "https://h.io/a\x0b/b", NULL);
	expect(&strict, 0, "https://h.io/a\xff", NULL);
	expect(&strict, 0, "https://h.io/a\\b", NULL);
	expect(&strict, 0, " ", NULL);
	assert_int_equal(repourl_normalise("https://h.io/a\0b", 16, &strict,
			     (char[REPOURL_SIZE]) { 0 }, NULL),
	    E_INVAL);
}

static void
dot_segments_are_resolved_from_either_spelling(void **state)
{
	static const struct row rows[] = {
		{ "https://h.io/./a/./b/.", "https://h.io/a/b" },
		{ "https://h.io/a/b/..", "https://h.io/a" },
		{ "https://h.io/../../a", "https://h.io/a" },
		{ "https://h.io/a/b/../../c", "https://h.io/c" },
		{ "https://h.io/a/.%2E/b", "https://h.io/b" },
		{ "https://h.io/a/%2e./b", "https://h.io/b" },
		{ "https://h.io/%2e/b", "https://h.io/b" },
		{ "https://h.io/a/.../b", "https://h.io/a/.../b" },
		{ "https://h.io/a//../b", "https://h.io/a/b" },
		{ "https://h.io/a/b//..", "https://h.io/a/b" },
		{ "https://h.io/a/..", NULL },
		{ "https://h.io/a/..b", "https://h.io/a/..b" },
		{ "https://h.io/x/../.git", NULL },
		{ "https://h.io/a%2Fb/%zz", "https://h.io/a%2Fb/%zz" },
		{ "https://h.io/a\"<>`{}|^'b", "https://h.io/a%22%3C%3E%60%7B%7D|^'b" },
		{ "https://h.io/a@b:c", "https://h.io/a@b:c" },
		{ "https://h.io//", NULL },
		{ "https://h.io/a//.git", NULL },
		{ "https://h.io/a/..git", NULL },
		{ "https://h.io/a/...git", NULL },
		{ "https://h.io/a/%2e.git", NULL },
		{ "https://h.io/a/....git", "https://h.io/a/..." },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		expect(&strict, 0, rows[i].in, rows[i].out);
}

static void
only_empty_extras_are_dropped(void **state)
{
	(void)state;
	expect(&strict, 0, "https://h.io/a?#", "https://h.io/a");
	expect(&strict, 0, "https://h.io/a##", NULL);
	expect(&strict, 0, "https://h.io/a??", NULL);
	expect(&strict, 0, "https://h.io/a#?", NULL);
	expect(&strict, 0, "https://h.io/a?#x", NULL);
	expect(&strict, 0, "https://h.io?/a", NULL);
	expect(&strict, 0, "https://u@h.io/a", NULL);
	expect(&strict, 0, "https://:p@h.io/a", NULL);
	expect(&strict, 0, "https://@@h.io/a", NULL);
	expect(&strict, 0, "https://@/a", NULL);
}

static void
the_result_has_at_most_2048_bytes(void **state)
{
	static char in[70000];
	char out[REPOURL_SIZE];
	size_t head = strlen("https://h.io/");
	const char *why = NULL;

	(void)state;
	strcpy(in, "https://h.io/");
	memset(in + head, 'a', sizeof(in) - head);
	assert_int_equal(repourl_normalise(in, 2048, &strict, out, &why), 0);
	assert_int_equal(strlen(out), 2048);
	assert_int_equal(repourl_normalise(in, 2049, &strict, out, &why), E_INVAL);
	memcpy(in + 2048, ".git////", 8);
	assert_int_equal(repourl_normalise(in, 2056, &strict, out, &why), 0);
	assert_int_equal(strlen(out), 2048);
	assert_int_equal(repourl_normalise_instance(in, 2056, &strict, out, &why), E_INVAL);
	/* What ".." takes away may have been of any length. */
	memset(in + 2048, 'a', 9);
	memcpy(in + sizeof(in) - 5, "/../b", 5);
	assert_int_equal(repourl_normalise(in, sizeof(in), &strict, out, &why), 0);
	assert_string_equal(out, "https://h.io/b");
}

static void
settings_relax_what_they_name(void **state)
{
	static const struct row rows[] = {
		{ "http://github.com/a/b.git", "http://github.com/a/b" },
		{ "http://h.io:80/a", "http://h.io/a" },
		{ "http://h.io:443/a", "http://h.io:443/a" },
		{ "https://foo/a", "https://foo/a" },
		{ "https://LOCALHOST:3000/a", "https://localhost:3000/a" },
		{ "https://x.localhost/a", "https://x.localhost/a" },
		{ "https://127.0.0.1/a", "https://127.0.0.1/a" },
		{ "https://[::1]:3000/a", "https://[::1]:3000/a" },
		{ "https://[2001:DB8:0:0:0:0:0:1]/a", "https://[2001:db8::1]/a" },
		{ "https://0x7f.1/a", NULL },
		{ "https://2130706433/a", NULL },
		{ "https://1.2.3/a", NULL },
		{ "https://1.2.3.4.5/a", NULL },
		{ "https://127.0.0.01/a", NULL },
		{ "https://256.0.0.1/a", NULL },
		{ "https://[::1%25lo]/a", NULL },
		{ "https://[::g]/a", NULL },
		{ "https://[::1]x/a", NULL },
		{ "https://example.com./a", NULL },
		{ "https://ex_ample.com/a", NULL },
		{ "file:///srv/git/a.git", "file:///srv/git/a.git" },
		{ "FILE:///srv/x/../git/a//", "file:///srv/git/a" },
		{ "file:///srv/a b", "file:///srv/a%20b" },
		{ "file:///", NULL },
		{ "file:///..", NULL },
		{ "file://host/a", NULL },
		{ "file://localhost/a", NULL },
		{ "file:///a?", NULL },
		{ "file:///a#f", NULL },
		{ "file:/a", NULL },
		{ "ssh://h.io/a", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		expect(&relaxed, 0, rows[i].in, rows[i].out);
}

static void
a_refusal_names_the_setting_that_would_lift_it(void **state)
{
	(void)state;
	refused_with(&strict, "http://h.io/a", "repositories.allow_http");
	refused_with(&strict, "file:///srv/a", "repositories.allow_local");
	refused_with(&strict, "https://foo/a", "repositories.allow_private_hosts");
	refused_with(&strict, "https://localhost/a", "repositories.allow_private_hosts");
	refused_with(&strict, "https://x.localhost/a", "repositories.allow_private_hosts");
	refused_with(&strict, "https://10.0.0.1/a", "repositories.allow_private_hosts");
	refused_with(&strict, "https://[::1]/a", "repositories.allow_private_hosts");
	refused_with(&strict, "https://m\xc3\xbcnchen.de/a", "xn--");
	refused_with(&strict, "https://h.io", "path of a repository");
	refused_with(&strict, "git@h.io:a/b", "https://");
	refused_with(&relaxed, "git@h.io:a/b", "file://");
	refused_with(&relaxed, "https://1.2.3/a", "four decimals");
}

static void
an_instance_needs_no_path_and_keeps_git(void **state)
{
	static const struct row rows[] = {
		{ "https://gitea.example.com:8443/git/", "https://gitea.example.com:8443/git" },
		{ "https://gitlab.com/", "https://gitlab.com" },
		{ "https://GitLab.com", "https://gitlab.com" },
		{ "https://gitlab.com?#", "https://gitlab.com" },
		{ "https://h.io/x.git", "https://h.io/x.git" },
		{ "https://h.io/.git", "https://h.io/.git" },
		{ "https://h.io/a/..", "https://h.io" },
		{ "https://h.io//", "https://h.io" },
		{ "file:///srv/git", NULL },
		{ "https://u@h.io", NULL },
		{ "https://", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		expect(&relaxed, 1, rows[i].in, rows[i].out);
	expect(&strict, 1, "http://h.io", NULL);
	expect(&relaxed, 1, "http://localhost:3000/", "http://localhost:3000");
}

static void
a_failed_allocation_is_told(void **state)
{
	char out[REPOURL_SIZE];

	(void)state;
	mem_fault_arm(0);
	assert_int_equal(repourl_normalise("https://h.io/a", 14, &strict, out, NULL), E_NOMEM);
	assert_true(mem_fault_hit());
	mem_fault_arm(-1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_of_the_table_holds),
		cmocka_unit_test(hosts_that_are_not_public_names_are_refused),
		cmocka_unit_test(names_that_only_look_odd_are_public),
		cmocka_unit_test(lengths_of_hosts_and_labels_are_limited),
		cmocka_unit_test(white_space_inside_goes_and_controls_refuse),
		cmocka_unit_test(dot_segments_are_resolved_from_either_spelling),
		cmocka_unit_test(only_empty_extras_are_dropped),
		cmocka_unit_test(the_result_has_at_most_2048_bytes),
		cmocka_unit_test(settings_relax_what_they_name),
		cmocka_unit_test(a_refusal_names_the_setting_that_would_lift_it),
		cmocka_unit_test(an_instance_needs_no_path_and_keeps_git),
		cmocka_unit_test(a_failed_allocation_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
