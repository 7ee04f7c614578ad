#include "cmd/anvil-run/weight.h"

#include <fts.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"

#define SHARE       4
#define BLOCK_BYTES 512 /* Of st_blocks. */

int64_t
weight_free(const char *dir)
{
	struct statvfs vfs;

	return statvfs(dir, &vfs) < 0 ? 0 : (int64_t)(vfs.f_bavail * vfs.f_frsize);
}

/* Stops at ${enough}. */
static int64_t
weigh(char *const trees[], int64_t enough)
{
	struct mono_time until = mono_add_ms(clock_mono(), WEIGHT_LOOK_MS);
	FTS *fts = fts_open(trees, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
	int64_t bytes = 0;
	FTSENT *e;

	while (fts != NULL && bytes < enough && mono_diff_us(clock_mono(), until) > 0 &&
	    (e = fts_read(fts)) != NULL)
		if (e->fts_info != FTS_DP && e->fts_info != FTS_NS && e->fts_info != FTS_ERR)
			bytes += (int64_t)e->fts_statp->st_blocks * BLOCK_BYTES;
	if (fts != NULL)
		(void)fts_close(fts);
	return bytes;
}

int
weight_is_heavy(const char *dir, int64_t free_before)
{
	CLEANUP_FREE char *ws = mem_format("%s/ws", dir);
	CLEANUP_FREE char *tmp = mem_format("%s/tmp", dir);
	CLEANUP_FREE char *home = mem_format("%s/home", dir);
	char *const trees[] = { ws, tmp, home, NULL };
	int64_t enough = free_before / SHARE;

	if (ws == NULL || tmp == NULL || home == NULL || enough == 0)
		return 0;
	return weigh(trees, enough) >= enough;
}
