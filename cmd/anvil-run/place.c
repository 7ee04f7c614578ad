#include "cmd/anvil-run/place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/sandbox/sandbox.h"

#define LOCK_AGAIN_MS 20

char *
place_program(const char *name)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	char *slash;

	if (n < 0)
		return NULL;
	path[n] = '\0';
	slash = strrchr(path, '/');
	return slash != NULL ? mem_format("%.*s/%s", (int)(slash - path), path, name) : NULL;
}

int
place_init(struct place *p, const char *data_dir, const char *run_id, const char *project_id)
{
	*p = (struct place) { .name = run_id, .lock_fd = -1 };
	p->runs = mem_format("%s/runs", data_dir);
	p->dir = mem_format("%s/runs/%s", data_dir, run_id);
	p->ws = mem_format("%s/runs/%s/ws", data_dir, run_id);
	p->tmp = mem_format("%s/runs/%s/tmp", data_dir, run_id);
	p->home = mem_format("%s/runs/%s/home", data_dir, run_id);
	p->keyless = mem_format("%s/runs/%s/keyless", data_dir, run_id);
	p->init = place_program("anvil-init");
	if (p->runs == NULL || p->dir == NULL || p->ws == NULL || p->tmp == NULL ||
	    p->home == NULL || p->keyless == NULL || p->init == NULL)
		return E_NOMEM;
	if (project_id == NULL)
		return 0;
	p->mirror = mem_format("%s/cache/%s.git", data_dir, project_id);
	p->mirror_lock = mem_format("%s/cache/%s.lock", data_dir, project_id);
	p->objects = mem_format("%s/cache/%s.git/objects", data_dir, project_id);
	return p->mirror == NULL || p->mirror_lock == NULL || p->objects == NULL ? E_NOMEM : 0;
}

void
place_done(struct place *p)
{
	char *const all[] = { p->runs, p->dir, p->ws, p->tmp, p->home, p->mirror,
		p->mirror_lock, p->objects, p->keyless, p->init };

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		free(all[i]);
	io_close(&p->lock_fd);
	*p = (struct place) { .lock_fd = -1 };
}

int
place_make(const struct place *p)
{
	return io_mkdirs(p->dir, 0700);
}

/* Something is there when an earlier claim was given back and could not clean up. */
static int
make_tree(const struct place *p, const char *path)
{
	int r;

	if (mkdir(path, 0700) == 0)
		return 0;
	if (errno != EEXIST)
		return err_from_errno(errno);
	r = place_remove_trees(p);
	return r == 0 && mkdir(path, 0700) < 0 ? err_from_errno(errno) : r;
}

int
place_make_trees(const struct place *p)
{
	int r = make_tree(p, p->ws);

	if (r == 0)
		r = make_tree(p, p->tmp);
	return r == 0 ? make_tree(p, p->home) : r;
}

/* Over what is there, so that a full disk has room for it. */
static int
write_holder(int lock, const char *what)
{
	char text[128];
	int n = snprintf(text, sizeof(text), "%d %s\n", (int)getpid(), what);
	int r = io_write_all(lock, text, (size_t)n);

	if (r == 0 && ftruncate(lock, n) < 0)
		r = err_from_errno(errno);
	return r;
}

int
place_lock(struct place *p, const char *spawn_id)
{
	CLEANUP(io_closep) int dir = io_open_dir(AT_FDCWD, p->dir);
	struct mono_time until = mono_add_ms(clock_mono(), PLACE_LOCK_MS);
	int r;

	if (dir < 0)
		return err_from_errno(errno);
	while ((r = io_lock_file(dir, "lock", &p->lock_fd)) == E_LOCKED &&
	    mono_diff_us(clock_mono(), until) > 0)
		(void)poll(NULL, 0, LOCK_AGAIN_MS);
	return r < 0 ? r : write_holder(p->lock_fd, spawn_id);
}

int
place_lock_ended(const char *dir, const char *what, int *ret_fd)
{
	CLEANUP(io_closep) int at = io_open_dir(AT_FDCWD, dir);
	int r = at < 0 ? err_from_errno(errno) : io_lock_file(at, "lock", ret_fd);

	/* Only a runner is ever looked for by what it writes there. */
	if (r == 0)
		(void)write_holder(*ret_fd, what);
	return r;
}

int
place_remove_trees(const struct place *p)
{
	static const char *const names[] = { "ws", "tmp", "home" };
	CLEANUP(io_closep) int dir = io_open_dir(AT_FDCWD, p->dir);
	int first = 0;

	if (dir < 0)
		return err_from_errno(errno);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		int r = sandbox_remove_tree(dir, names[i]);

		if (first == 0)
			first = r;
	}
	return first;
}

int
place_remove(const struct place *p)
{
	CLEANUP(io_closep) int runs = io_open_dir(AT_FDCWD, p->runs);

	return runs < 0 ? err_from_errno(errno) : sandbox_remove_tree(runs, p->name);
}

int
place_was_keyless(const struct place *p)
{
	return access(p->keyless, F_OK) == 0;
}

int
place_note_keyless(const struct place *p)
{
	return io_write_file(AT_FDCWD, p->keyless, "", 0, 0600);
}

void
place_forget_keyless(const struct place *p)
{
	(void)unlink(p->keyless);
}
