/*
 * What a sandbox shows: the command line of bwrap for a run on this host.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/arena.h"
#include "lib/sandbox/box.h"

#define ARGS_MAX 256

struct bwrap_args {
	struct arena *arena; /* Owned: the words. */
	const char *argv[ARGS_MAX];
	size_t n;
	int failed; /* No memory, or too many. */
};

/* Shown read-only where they are directories; where they are symlinks, these are made. */
static const char *const shown[] = { "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64",
	"/libx32", "/etc", "/opt" };

static void
add(struct bwrap_args *a, const char *word)
{
	char *copy = a->failed || a->n + 1 >= ARGS_MAX ? NULL : arena_strdup(a->arena, word);

	if (copy == NULL)
		a->failed = 1;
	else
		a->argv[a->n++] = copy;
}

static void
add3(struct bwrap_args *a, const char *option, const char *from, const char *to)
{
	add(a, option);
	add(a, from);
	add(a, to);
}

static int
is_beneath(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

static int
is_shown(const char *path)
{
	for (size_t i = 0; i < ARRAY_LEN(shown); i++)
		if (is_beneath(path, shown[i]))
			return 1;
	return 0;
}

static void
add_system(struct bwrap_args *a)
{
	char target[PATH_MAX];
	struct stat st;

	for (size_t i = 0; i < ARRAY_LEN(shown); i++) {
		ssize_t n;

		if (lstat(shown[i], &st) < 0)
			continue;
		if (!S_ISLNK(st.st_mode)) {
			add3(a, "--ro-bind", shown[i], shown[i]);
			continue;
		}
		n = readlink(shown[i], target, sizeof(target) - 1);
		if (n <= 0)
			continue;
		target[n] = '\0';
		add3(a, "--symlink", target, shown[i]);
	}
}

/* Name resolution: /etc/resolv.conf is often a link to a file that a service keeps in /run. */
static void
add_resolver(struct bwrap_args *a)
{
	char real[PATH_MAX];

	if (realpath("/etc/resolv.conf", real) != NULL && !is_shown(real))
		add3(a, "--ro-bind", real, real);
}

static void
hide(struct bwrap_args *a, const char *path)
{
	char real[PATH_MAX];
	struct stat st;

	if (realpath(path, real) == NULL || !is_shown(real) || stat(real, &st) < 0)
		return;
	if (S_ISDIR(st.st_mode)) {
		add(a, "--tmpfs");
		add(a, real);
		add(a, "--remount-ro");
		add(a, real);
	} else {
		add3(a, "--ro-bind", "/dev/null", real);
	}
}

static void
add_all(struct bwrap_args *a, const char *bwrap, const struct sandbox_paths *paths)
{
	static const char *const head[] = { "--unshare-user", "--unshare-pid", "--unshare-ipc",
		"--unshare-uts", "--hostname", "anvil", "--die-with-parent", "--as-pid-1",
		"--cap-drop", "ALL" };
	static const char *const tail[] = { "--remount-ro", "/", "--chdir", "/", "--",
		"/proc/self/fd/4", SANDBOX_INIT_NAME, "pid1" };
	const struct sandbox_driver *d = &sandbox_driver_bwrap;

	_Static_assert(BOX_INIT_FD == 4, "the program's path above names it");
	add(a, bwrap);
	for (size_t i = 0; i < ARRAY_LEN(head); i++)
		add(a, head[i]);
	add_system(a);
	add_resolver(a);
	hide(a, "/etc/anvil");
	for (size_t i = 0; paths->hide != NULL && paths->hide[i] != NULL; i++)
		hide(a, paths->hide[i]);
	add(a, "--proc");
	add(a, "/proc");
	add(a, "--dev");
	add(a, "/dev");
	add3(a, "--bind", paths->workspace, d->workspace_at);
	add3(a, "--bind", paths->tmp, d->tmp_at);
	add3(a, "--bind", paths->home, d->home_at);
	if (paths->objects != NULL)
		add3(a, "--ro-bind", paths->objects, d->objects_at);
	for (size_t i = 0; i < ARRAY_LEN(tail); i++)
		add(a, tail[i]);
}

struct bwrap_args *
bwrap_args_new(const char *bwrap, const struct sandbox_paths *paths)
{
	struct arena *arena = arena_new();
	struct bwrap_args *a = arena == NULL ? NULL : arena_calloc(arena, 1, sizeof(*a));

	if (a == NULL) {
		(void)arena_free(arena);
		return NULL;
	}
	a->arena = arena;
	add_all(a, bwrap, paths);
	return a->failed ? bwrap_args_free(a) : a;
}

struct bwrap_args *
bwrap_args_free(struct bwrap_args *a)
{
	if (a != NULL)
		(void)arena_free(a->arena);
	return NULL;
}

const char *const *
bwrap_args_argv(const struct bwrap_args *a)
{
	return a->argv;
}
