/* The configuration, with each call of the kernel failing in turn. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/config/config.h"
#include "test/support/io_fault.h"
#include "test/support/scratch.h"
#include "test/support/unit.h"

static int
load(void *arg)
{
	CLEANUP(config_freep) struct config *c = NULL;
	CLEANUP(buf_done) struct buf problems = BUF_INIT;
	int r = config_load(arg, &problems, &c);

	if (r == E_INVAL) {
		assert_non_null(buf_cstr(&problems));
		assert_non_null(strstr((const char *)problems.data, arg));
	}
	return r;
}

/* Never the defaults in place of what the operator has written. */
static void
a_file_that_cannot_be_read_is_said_by_name(void **state)
{
	static const char text[] = "version: 1\nshards: 3\n";
	char *dir = scratch_new();
	CLEANUP_FREE char *path = mem_format("%s/anvil.yml", dir);
	int fds = scratch_open_fds();

	(void)state;
	assert_int_equal(io_write_file(AT_FDCWD, path, text, strlen(text), 0600), 0);
	assert_true(io_starve(load, path, 0, NULL) >= 2);
	assert_int_equal(scratch_open_fds(), fds);
	scratch_free(dir);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_that_cannot_be_read_is_said_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
