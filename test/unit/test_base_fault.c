/* Faults that a file of rules orders while a process runs. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/fault.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "test/support/scratch.h"
#include "test/support/unit.h"

#ifndef ANVIL_FAULTS

int
main(void)
{
	return 0;
}

#else

#define SIZE 100000

struct rig {
	char *dir, *rules, *folder, *path;
	int fd; /* of FOLDER/log.zst */
};

static struct rig rig = { .fd = -1 };
static char zeros[SIZE];

/* They are looked at every few milliseconds. */
static void
order(const char *text, const char *target, unsigned what)
{
	assert_int_equal(io_write_file(AT_FDCWD, rig.rules, text, strlen(text), 0600), 0);
	while (fault_rule_of(target).what != what)
		;
}

static off_t
size_now(void)
{
	struct stat st;

	assert_int_equal(fstat(rig.fd, &st), 0);
	return st.st_size;
}

static void
a_pattern_fits_the_run_and_its_log_or_the_log_alone(void **state)
{
	(void)state;
	order("run_* full sync\nproject-? slow_us=5\n*/log.zst short slow_us=7\n", "run_a",
	    FAULT_FULL | FAULT_SYNC);
	assert_int_equal(
	    fault_rule_of("run_a/log.zst").what, FAULT_FULL | FAULT_SYNC | FAULT_SHORT);
	assert_int_equal(fault_rule_of("run_a/log.zst").slow_us, 7);
	assert_int_equal(fault_rule_of("project-1").what, 0);
	assert_int_equal(fault_rule_of("project-1").slow_us, 5);
	assert_int_equal(fault_rule_of("project-10").slow_us, 0);
}

static void
without_a_rule_all_is_written(void **state)
{
	(void)state;
	order("run_b full\n", "run_b", FAULT_FULL);
	assert_int_equal(fault_file_write(rig.fd, zeros, SIZE, 0), SIZE);
	assert_int_equal(fault_file_sync(rig.fd), 0);
	assert_int_equal(fault_file_cut(rig.fd, 0), 0);
}

static void
a_disk_that_fills_takes_a_part_first(void **state)
{
	ssize_t n, taken = 0;

	(void)state;
	order("run_a* full\n", "run_a/log.zst", FAULT_FULL);
	while ((n = fault_file_write(rig.fd, zeros, (size_t)(SIZE - taken), taken)) > 0)
		taken += n;
	assert_int_equal(n, -1);
	assert_int_equal(errno, ENOSPC);
	assert_true(taken > SIZE / 2 && taken < SIZE);
	assert_int_equal(size_now(), taken);
	/* Room is made of what is given back. */
	assert_int_equal(fault_file_cut(rig.fd, 0), 0);
}

static void
a_write_may_take_no_more_than_half(void **state)
{
	ssize_t n, taken = 0;

	(void)state;
	order("run_a/* short\n", "run_a/log.zst", FAULT_SHORT);
	assert_int_equal(fault_file_write(rig.fd, zeros, SIZE, 0), SIZE / 2);
	while (taken < SIZE &&
	    (n = fault_file_write(rig.fd, zeros, (size_t)(SIZE - taken), taken)) > 0)
		taken += n;
	assert_int_equal(taken, SIZE);
}

static void
each_call_fails_as_it_is_ordered(void **state)
{
	(void)state;
	order("* sync\n", "run_a/log.zst", FAULT_SYNC);
	assert_int_equal(fault_file_write(rig.fd, zeros, 1, 0), 1);
	assert_int_equal(fault_file_sync(rig.fd), -1);
	assert_int_equal(errno, EIO);
	order("* write\n", "run_a/log.zst", FAULT_WRITE);
	assert_int_equal(fault_file_write(rig.fd, zeros, 1, 0), -1);
	assert_int_equal(errno, EIO);
	assert_int_equal(fault_file_cut(rig.fd, 0), -1);
	assert_int_equal(errno, EIO);
	assert_int_equal(fault_file_sync(rig.fd), 0);
	order("* readonly\n", "run_a/log.zst", FAULT_READONLY);
	assert_int_equal(fault_file_write(rig.fd, zeros, 1, 0), -1);
	assert_int_equal(errno, EROFS);
	assert_int_equal(fault_file_cut(rig.fd, 0), -1);
	order("* slow_us=1\n", "run_a/log.zst", 0);
	assert_int_equal(fault_file_sync(rig.fd), 0);
}

static int
set_up(void **state)
{
	(void)state;
	rig.dir = scratch_new();
	rig.rules = mem_format("%s/rules", rig.dir);
	rig.folder = mem_format("%s/run_a", rig.dir);
	rig.path = mem_format("%s/log.zst", rig.folder);
	if (mkdir(rig.folder, 0700) < 0 || setenv("ANVIL_FAULT_FILE", rig.rules, 1) < 0)
		return -1;
	rig.fd = open(rig.path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	return rig.fd < 0 ? -1 : 0;
}

static int
tear_down(void **state)
{
	(void)state;
	io_close(&rig.fd);
	scratch_free(rig.dir);
	free(rig.rules);
	free(rig.folder);
	free(rig.path);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pattern_fits_the_run_and_its_log_or_the_log_alone),
		cmocka_unit_test(without_a_rule_all_is_written),
		cmocka_unit_test(a_disk_that_fills_takes_a_part_first),
		cmocka_unit_test(a_write_may_take_no_more_than_half),
		cmocka_unit_test(each_call_fails_as_it_is_ordered),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}

#endif
