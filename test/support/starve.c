#include "test/support/starve.h"

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "test/support/unit.h"

static long
starve_each(int (*fn)(void *arg), void *arg, int lenient)
{
	long n;
	int r;

	for (n = 0;; n++) {
		mem_fault_arm(n);
		r = fn(arg);
		if (!mem_fault_hit())
			break;
		if (!lenient || r < 0)
			assert_int_equal(r, E_NOMEM);
	}
	mem_fault_arm(-1);
	assert_int_equal(r, 0);
	assert_true(n > 0);
	return n;
}

long
starve(int (*fn)(void *arg), void *arg)
{
	return starve_each(fn, arg, 0);
}

long
starve_lenient(int (*fn)(void *arg), void *arg)
{
	return starve_each(fn, arg, 1);
}
