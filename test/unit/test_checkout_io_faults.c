/* A checkout, with calls of the kernel failing in turn: said, and well again at the next try. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "test/support/checkout_run.h"
#include "test/support/io_fault.h"
#include "test/support/unit.h"

#define ONE_BY_ONE 40 /* calls; those of libgit2 behind them are tried in strides */
#define STRIDE     23

static struct checkout_run r;

static int
make_place(void **state)
{
	struct checkout_place *p = calloc(1, sizeof(*p));

	must(p != NULL);
	checkout_place_make(p);
	checkout_sh(p,
	    "printf 'version: 1\\n' >.anvil.yml; mkdir d; echo one >d/f; git add -A; "
	    "git commit -qm one");
	*state = p;
	return 0;
}

static int
remove_place(void **state)
{
	io_fault_arm(-1, 0);
	checkout_run_done(&r);
	memset(&r, 0, sizeof(r));
	checkout_place_remove(*state);
	free(*state);
	return 0;
}

/* One word at the end, whatever failed: done, failed with a reason, or the pipe itself is gone. */
static void
judge(long n)
{
	assert_true(WIFEXITED(r.status));
	if (r.done + r.failed > 1)
		fail_msg("call %ld: said %d times that it is over", n, r.done + r.failed);
	if (r.failed)
		assert_true(r.text.len > 0);
	if (r.done == 0)
		assert_int_not_equal(WEXITSTATUS(r.status), 0);
}

static long
go_with_each_failing(struct checkout_place *p, int code)
{
	for (long n = 0;; n += n < ONE_BY_ONE ? 1 : STRIDE) {
		int came;

		checkout_run_init(&r, p);
		r.ends_at_once = 1;
		io_fault_arm_children(n, code);
		checkout_run_go(&r, p);
		came = io_fault_hit();
		io_fault_arm(-1, 0);
		judge(n);
		if (!came) {
			assert_int_equal(r.done, 1);
			return n;
		}
		if (n % 8 != 0)
			continue;
		checkout_run_init(&r, p);
		r.ends_at_once = 1;
		checkout_run_go(&r, p);
		assert_int_equal(r.done, 1); /* nothing that was left stands in its way */
		checkout_sh(p, "rm -rf %s/cache", p->base);
	}
}

static void
a_checkout_says_what_failed_and_the_next_one_works(void **state)
{
	assert_true(go_with_each_failing(*state, EIO) > 10);
}

static void
a_full_disk_is_no_other_thing(void **state)
{
	assert_true(go_with_each_failing(*state, ENOSPC) > 10);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, make_place, remove_place)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_checkout_says_what_failed_and_the_next_one_works),
		TEST(a_full_disk_is_no_other_thing),
	};

	(void)signal(SIGPIPE, SIG_IGN); /* the child may be gone before it was asked */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
