#include "test/bench/hand.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/base.h"
#include "test/bench/report.h"
#include "test/bench/system.h"

#define ARGS_MAX  64
#define WIDTH_MAX 64

static void
run_boxed(const char *ws)
{
	static const char *const shown[] = { "/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc",
		"/opt" };
	static const char *const head[] = { "bwrap", "--unshare-user", "--unshare-pid",
		"--unshare-ipc", "--unshare-uts", "--die-with-parent", "--cap-drop", "ALL",
		"--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--bind", NULL,
		"/workspace", "--chdir", "/workspace" };
	static char targets[ARRAY_LEN(shown)][64];
	const char *argv[ARGS_MAX];
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(head); i++)
		argv[n++] = head[i] != NULL ? head[i] : ws;
	for (size_t i = 0; i < ARRAY_LEN(shown); i++) {
		char target[64];
		ssize_t len = readlink(shown[i], target, sizeof(target) - 1);

		if (access(shown[i], F_OK) < 0)
			continue;
		argv[n++] = len > 0 ? "--symlink" : "--ro-bind";
		if (len > 0)
			(void)snprintf(
			    targets[i], sizeof(targets[i]), "%.*s", (int)len, target);
		argv[n++] = len > 0 ? targets[i] : shown[i];
		argv[n++] = shown[i];
	}
	argv[n++] = "sh";
	argv[n++] = "-c";
	argv[n++] = "true";
	argv[n] = NULL;
	if (system_run(argv, NULL) != 0)
		bench_die("bwrap by hand failed");
}

double
hand_run(const char *url, const char *dir, int boxed)
{
	char ws[160];
	const char *const clone[] = { "git", "clone", "-q", url, ws, NULL };
	const char *const step[] = { "sh", "-c", "true", NULL };
	const char *const clean[] = { "rm", "-rf", ws, NULL };
	double begin, us;

	(void)snprintf(ws, sizeof(ws), "%s/ws", dir);
	begin = bench_now_us();
	if (system_run(clone, NULL) != 0)
		bench_die("git clone by hand failed");
	if (boxed)
		run_boxed(ws);
	else if (system_run(step, ws) != 0)
		bench_die("sh by hand failed");
	us = bench_now_us() - begin;
	(void)system_run(clean, NULL);
	return us;
}

struct hands {
	const char *url, *dir;
	int boxed, n;
	_Atomic int next, name;
};

static void *
hand_loop(void *arg)
{
	struct hands *h = arg;
	char dir[128];

	(void)snprintf(dir, sizeof(dir), "%s/hand%d", h->dir, atomic_fetch_add(&h->name, 1));
	(void)mkdir(dir, 0700);
	while (atomic_fetch_add(&h->next, 1) < h->n)
		(void)hand_run(h->url, dir, h->boxed);
	(void)rmdir(dir);
	return NULL;
}

double
hand_rate(const char *url, const char *dir, int boxed, int n, int width)
{
	struct hands h = { .url = url, .dir = dir, .boxed = boxed, .n = n };
	pthread_t threads[WIDTH_MAX];
	double begin = bench_now_us();

	width = width > WIDTH_MAX ? WIDTH_MAX : width;
	for (int i = 0; i < width; i++)
		must(pthread_create(&threads[i], NULL, hand_loop, &h) == 0);
	for (int i = 0; i < width; i++)
		(void)pthread_join(threads[i], NULL);
	return n / ((bench_now_us() - begin) / 1e6);
}
