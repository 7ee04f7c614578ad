#include "test/support/sandbox_box.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/base.h"
#include "lib/base/err.h"
#include "lib/base/io.h"

const char *const box_env[] = { "PATH=/usr/bin:/bin", "HOME=/nowhere", "X=a b", NULL };

/* ---- a step ------------------------------------------------------------------------- */

int
box_spawn(struct box *b, const char *const argv[], const char *dir)
{
	struct sandbox_step step;
	int pipe_fds[2], r;

	io_close(&b->out_fd);
	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	b->out_fd = pipe_fds[0];
	step = (struct sandbox_step) { argv, box_env, dir, pipe_fds[1], pipe_fds[1] };
	r = b->driver->spawn(b->sb, &step, &b->process, &b->problem);
	(void)close(pipe_fds[1]);
	return r;
}

void
box_await(struct box *b)
{
	struct pollfd fd = { .fd = sandbox_process_fd(b->process), .events = POLLIN };
	int r;

	assert_int_equal(poll(&fd, 1, -1), 1);
	do
		r = b->driver->wait(b->sb, b->process, &b->result);
	while (r == E_BUSY);
	assert_int_equal(r, 0);
	b->process = NULL;
}

const char *
box_drain(struct box *b)
{
	buf_reset(&b->out);
	assert_int_equal(io_read_all(b->out_fd, 1 << 20, &b->out), 0);
	return buf_cstr(&b->out);
}

const char *
box_run_argv(struct box *b, const char *const argv[], const char *dir)
{
	assert_int_equal(box_spawn(b, argv, dir), 0);
	box_await(b);
	return box_drain(b);
}

int
box_spawn_shell(struct box *b, const char *command)
{
	const char *argv[SANDBOX_SHELL_ARGS];

	assert_int_equal(sandbox_shell_argv(command, argv), 0);
	return box_spawn(b, argv, ".");
}

const char *
box_run_shell(struct box *b, const char *command)
{
	assert_int_equal(box_spawn_shell(b, command), 0);
	box_await(b);
	return box_drain(b);
}

void
box_await_text(struct box *b, const char *text)
{
	buf_reset(&b->out);
	while (buf_cstr(&b->out) == NULL || strstr((char *)b->out.data, text) == NULL) {
		char c;

		assert_int_equal(read(b->out_fd, &c, 1), 1);
		assert_int_equal(buf_add(&b->out, &c, 1), 0);
	}
}

/* ---- place -------------------------------------------------------------------------- */

static void
find_init(struct box *b)
{
#ifdef ANVIL_SANITIZED
	/* This program again, so that the sanitizers look at the init too. */
	(void)snprintf(b->init, sizeof(b->init), "/proc/self/exe");
#else
	ssize_t n = readlink("/proc/self/exe", b->init, sizeof(b->init) - 16);

	must(n > 0);
	b->init[n] = '\0';
	for (int i = 0; i < 3; i++) /* build/<flavour>/test/unit/<this> */
		*strrchr(b->init, '/') = '\0';
	(void)strcat(b->init, "/anvil-init");
#endif
}

void
box_make_file(const char *dir, const char *name, const char *text)
{
	char path[256];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	must(f != NULL);
	(void)fputs(text, f);
	(void)fclose(f);
}

void
box_open(struct box *b)
{
	assert_int_equal(b->driver->open(&b->paths, &b->limits, &b->sb, &b->problem), 0);
}

static int
make_box(void **state, const struct sandbox_driver *driver)
{
	struct box *b = calloc(1, sizeof(*b));

	must(b != NULL);
	b->driver = driver;
	b->out_fd = -1;
	b->limits = (struct sandbox_limits) { 1 << 30, 2345 };
	(void)snprintf(b->base, sizeof(b->base), "/tmp/anvil-sandbox-XXXXXX");
	must(mkdtemp(b->base) != NULL);
	(void)snprintf(b->ws, sizeof(b->ws), "%s/ws", b->base);
	(void)snprintf(b->tmp, sizeof(b->tmp), "%s/tmp", b->base);
	(void)snprintf(b->home, sizeof(b->home), "%s/home", b->base);
	(void)snprintf(b->objects, sizeof(b->objects), "%s/objects", b->base);
	must(mkdir(b->ws, 0700) == 0 && mkdir(b->tmp, 0700) == 0 && mkdir(b->home, 0700) == 0 &&
	    mkdir(b->objects, 0700) == 0);
	box_make_file(b->base, "secret", "s");
	box_make_file(b->objects, "pack", "objects");
	find_init(b);
	b->hide[0] = "/etc/passwd";
	b->hide[1] = "/usr/share/doc";
	b->hide[2] = "/nonexistent";
	b->paths = (struct sandbox_paths) { .workspace = b->ws,
		.tmp = b->tmp,
		.home = b->home,
		.objects = b->objects,
		.init_path = b->init,
		.hide = b->hide };
	box_open(b);
	*state = b;
	return 0;
}

int
box_make_bwrap(void **state)
{
	return make_box(state, &sandbox_driver_bwrap);
}

int
box_make_none(void **state)
{
	return make_box(state, &sandbox_driver_none);
}

int
box_remove(void **state)
{
	struct box *b = *state;
	pid_t pids[4];

	while (b->sb != NULL && b->driver->close(b->sb, pids, ARRAY_LEN(pids)) == E_BUSY)
		continue;
	io_close(&b->out_fd);
	buf_done(&b->out);
	must(sandbox_remove_tree(AT_FDCWD, b->base) == 0);
	free(b);
	return 0;
}

void
box_close(struct box *b)
{
	pid_t pids[4];
	int r;

	do
		r = b->driver->close(b->sb, pids, ARRAY_LEN(pids));
	while (r == E_BUSY);
	assert_int_equal(r, 0);
	b->sb = NULL;
	b->process = NULL;
}

int
box_is_bwrap(const struct box *b)
{
	return b->driver == &sandbox_driver_bwrap;
}
