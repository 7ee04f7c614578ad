#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/ytree/ytree.h"

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

static const struct ytree_node *
tree(const char *text, struct ytree_issues *issues)
{
	struct ytree_node *root = NULL;

	*issues = (struct ytree_issues) { .arena = arena };
	assert_int_equal(ytree_parse(arena, text, strlen(text), issues, &root), 0);
	assert_non_null(root);
	return root;
}

static void
at(const struct ytree_node *node, size_t line, size_t column)
{
	assert_non_null(node);
	assert_int_equal(node->line, line);
	assert_int_equal(node->column, column);
}

static void
values_keep_their_place_and_style(void **state)
{
	struct ytree_issues issues;
	const struct ytree_node *root = tree(
	    "a: 1\nb:\n  - x\n  - 'y'\n\xc3\xbc: {c: \"a\\0b\", d: }\n", &issues);
	const struct ytree_node *b = ytree_get(root, "b"), *u = ytree_get(root, "\xc3\xbc");

	(void)state;
	assert_int_equal(issues.n, 0);
	at(root, 1, 1);
	assert_int_equal(root->nchildren, 3);
	at(ytree_get(root, "a"), 1, 4);
	at(b, 3, 3);
	assert_int_equal(b->kind, YTREE_LIST);
	assert_true(b->first->plain);
	assert_false(b->first->next->plain);
	assert_int_equal(b->first->next->index, 1);
	at(u, 5, 4);
	at(u->key, 5, 1);
	assert_int_equal(ytree_get(u, "c")->len, 3);
	assert_memory_equal(ytree_get(u, "c")->text, "a\0b", 4);
	assert_true(ytree_is_null(ytree_get(u, "d")));
	assert_null(ytree_get(u, "e"));
}

static void
no_document_is_an_empty_map(void **state)
{
	struct ytree_issues issues;
	const struct ytree_node *root = tree("# nothing\n", &issues);

	(void)state;
	assert_int_equal(root->kind, YTREE_MAP);
	assert_int_equal(root->nchildren, 0);
	at(root, 1, 1);
}

static void
integers_are_plain_decimals_that_fit(void **state)
{
	static const char *const bad[] = { "a: 01", "a: -1", "a: +1", "a: 1.0", "a: 1_0",
		"a: 0x1", "a: '1'", "a: ", "a: []", "a: 9223372036854775808", "a: 1 2" };
	struct ytree_issues issues;
	int64_t n = 5;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(ytree_int(ytree_get(tree(bad[i], &issues), "a"), &n), E_INVAL);
	assert_int_equal(n, 5);
	assert_int_equal(ytree_int(ytree_get(tree("a: 0", &issues), "a"), &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(
	    ytree_int(ytree_get(tree("a: 9223372036854775807", &issues), "a"), &n), 0);
	assert_int_equal(n, INT64_MAX);
}

static void
the_first_of_equal_keys_stays(void **state)
{
	struct ytree_issues issues;
	const struct ytree_node *root = tree("a: 1\nb: 2\na: 3\n'a': 4\n", &issues);

	(void)state;
	assert_int_equal(issues.n, 2);
	assert_int_equal(issues.nyaml, 2);
	assert_int_equal(issues.at[0].line, 3);
	assert_string_equal(issues.at[0].text, "duplicate key \"a\"");
	assert_int_equal(root->nchildren, 2);
	assert_string_equal(ytree_get(root, "a")->text, "1");
	/* Keys that differ behind a NUL are two keys. */
	assert_int_equal(tree("\"a\\0b\": 1\n\"a\\0c\": 2\n", &issues)->nchildren, 2);
	assert_int_equal(issues.n, 0);
}

static void
what_is_refused_is_left_to_no_other_check(void **state)
{
	struct ytree_issues issues;
	const struct ytree_node *root = tree("a: *x\nb: !t v\n", &issues);

	(void)state;
	assert_int_equal(ytree_get(root, "a")->kind, YTREE_REFUSED);
	assert_int_equal(ytree_get(root, "b")->kind, YTREE_REFUSED);
	assert_int_equal(issues.n, 2);
	ytree_expected(&issues, ytree_get(root, "a"), "map");
	assert_int_equal(issues.n, 2);
}

static void
the_first_twenty_by_position_are_kept(void **state)
{
	struct ytree_issues issues = { .arena = arena };

	(void)state;
	for (size_t i = 50; i > 0; i--) {
		struct ytree_node node = { .kind = YTREE_SCALAR, .line = i, .column = 1 };

		ytree_report(&issues, YTREE_RULE, &node, "line %zu", i);
	}
	assert_int_equal(issues.n, YTREE_ISSUES_MAX);
	assert_int_equal(issues.nmore, 30);
	assert_int_equal(issues.nyaml, 0);
	for (size_t i = 0; i < issues.n; i++)
		assert_int_equal(issues.at[i].line, i + 1);
	assert_string_equal(issues.at[19].text, "line 20");
}

static void
near_keys_are_suggested_and_others_are_not(void **state)
{
	static const char *const known[] = { "steps", "run", "timeoutSeconds", "a" };
	static const char *const rows[][2] = {
		{ "step", "steps" },
		{ "Steps", "steps" },
		{ "stpes", "steps" },
		{ "runs", "run" },
		{ "urn", "run" },
		{ "timeoutseconds", "timeoutSeconds" },
		{ "timeout", NULL },
		{ "b", NULL },
		{ "xy", NULL },
		{ "", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct ytree_issues issues;
		const char *text = arena_format(arena, "\"%s\": 1", rows[i][0]);
		const char *want = rows[i][1] == NULL
		    ? arena_format(arena, "unknown key \"%s\"", rows[i][0])
		    : arena_format(arena, "unknown key \"%s\" (did you mean \"%s\"?)",
			  rows[i][0], rows[i][1]);

		ytree_check_keys(&issues, tree(text, &issues), known, ARRAY_LEN(known));
		assert_int_equal(issues.n, 1);
		assert_string_equal(issues.at[0].text, want);
	}
}

static void
cut_texts_stay_on_one_line(void **state)
{
	static const struct ytree_cleaner none;
	CLEANUP(buf_done) struct buf out = BUF_INIT;

	(void)state;
	assert_int_equal(
	    ytree_put_cut(&out, &none, "a\n\t\x7f\xc2\x85\xe2\x80\xa8z", 10, 64), 0);
	assert_string_equal(buf_cstr(&out), "a\\n\\t\\u007f\\u0085\\u2028z");
	buf_reset(&out);
	assert_int_equal(ytree_put_cut(&out, &none, "\xc3\xbc\xc3\xbc", 4, 3), 0);
	assert_string_equal(buf_cstr(&out), "\xc3\xbc…");
	buf_reset(&out);
	assert_int_equal(ytree_put_cut(&out, &none, "a\xff", 2, 64), 0);
	assert_string_equal(buf_cstr(&out), "a\xef\xbf\xbd");
}

static void
every_failed_allocation_is_told(void **state)
{
	static const char text[] = "a: &x 1\nb: [*x, !t {c: d}]\na: 2\nb: 3\n";
	long n;

	(void)state;
	for (n = 0;; n++) {
		CLEANUP(arena_freep) struct arena *a = arena_new();
		struct ytree_issues issues = { .arena = a };
		struct ytree_node *root = NULL;
		int r;

		mem_fault_arm(n);
		r = ytree_parse(a, text, strlen(text), &issues, &root);
		if (!mem_fault_hit())
			break;
		assert_int_equal(r, E_NOMEM);
		assert_null(root);
	}
	mem_fault_arm(-1);
	assert_true(n > 5);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_keep_their_place_and_style),
		cmocka_unit_test(no_document_is_an_empty_map),
		cmocka_unit_test(integers_are_plain_decimals_that_fit),
		cmocka_unit_test(the_first_of_equal_keys_stays),
		cmocka_unit_test(what_is_refused_is_left_to_no_other_check),
		cmocka_unit_test(the_first_twenty_by_position_are_kept),
		cmocka_unit_test(near_keys_are_suggested_and_others_are_not),
		cmocka_unit_test(cut_texts_stay_on_one_line),
		cmocka_unit_test(every_failed_allocation_is_told),
	};

	return cmocka_run_group_tests(tests, make_arena, free_arena);
}
