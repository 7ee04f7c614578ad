#include "test/support/scratch.h"

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "test/support/unit.h"

char *
scratch_new(void)
{
	const char *tmp = getenv("TMPDIR");
	char *path = mem_format(
	    "%s/anvil-test-XXXXXX", tmp != NULL && *tmp != 0 ? tmp : "/tmp");

	assert_non_null(path);
	assert_non_null(mkdtemp(path));
	return path;
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

/* A test may have taken away the right to look into a directory. */
static int
open_up(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)ftw;
	if ((type == FTW_D || type == FTW_DNR) && (st->st_mode & S_IRWXU) != S_IRWXU)
		(void)chmod(path, S_IRWXU);
	return 0;
}

void
scratch_free(char *path)
{
	if (path == NULL)
		return;
	(void)nftw(path, open_up, 16, FTW_PHYS);
	assert_int_equal(nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
	free(path);
}

char *
scratch_program(const char *name)
{
	const char *build = getenv("ANVIL_BUILD");
	char self[4096], *end, *path;
	ssize_t n;

	if (build == NULL || *build == 0) {
		n = readlink("/proc/self/exe", self, sizeof(self) - 1);
		assert_true(n > 0);
		self[n] = 0;
		/* build/<flavour>/test/<kind>/<test> */
		for (int up = 0; up < 3; up++) {
			end = strrchr(self, '/');
			assert_non_null(end);
			*end = 0;
		}
		build = self;
	}
	path = mem_format("%s/%s", build, name);
	assert_non_null(path);
	return path;
}

int
scratch_open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(dir);
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n - 3; /* ".", ".." and the one that reads them */
}
