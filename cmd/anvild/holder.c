#include "cmd/anvild/holder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"

#define NOTE_MAX      128
#define ARGUMENTS_MAX 4096

/* 1: it is held; 0: it is free, or not there. */
static int
is_held(const char *path, char note[NOTE_MAX])
{
	CLEANUP(io_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n;

	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : err_from_errno(errno);
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (errno != EWOULDBLOCK)
		return err_from_errno(errno);
	n = pread(fd, note, NOTE_MAX - 1, 0);
	note[n > 0 ? n : 0] = '\0';
	return 1;
}

/* What follows the word among the arguments; NULL: nothing does. */
static const char *
argument_after(const struct buf *args, const char *word)
{
	const char *at = (const char *)args->data, *end = at + args->len;

	while (at < end) {
		const char *next = at + strlen(at) + 1;

		if (strcmp(at, word) == 0)
			return next < end ? next : NULL;
		at = next;
	}
	return NULL;
}

static int
is_argument(const struct buf *args, const char *word)
{
	const char *at = (const char *)args->data, *end = at + args->len;

	while (at < end && strcmp(at, word) != 0)
		at += strlen(at) + 1;
	return at < end;
}

/* A note may be older than who holds the lock now; a command line is the process's own.  One that
 * is not meant says that who wrote the note is no more. */
static enum holder_kind
judge(const struct buf *args, const char *run_id, const char *spawn_id, struct process_id *id)
{
	const char *spawn = argument_after(args, "--spawn");
	const char *project = argument_after(args, "--project");
	const char *shard = argument_after(args, "--shard");

	if (!is_argument(args, run_id))
		return HOLDER_NONE;
	if (strcmp(spawn_id, "serve") == 0)
		return is_argument(args, "--serve") ? HOLDER_SERVE : HOLDER_NONE;
	if (spawn == NULL || strcmp(spawn, spawn_id) != 0 || !id_hex32_check(spawn) ||
	    project == NULL || !id_check(ID_PROJECT, project) || shard == NULL)
		return HOLDER_NONE;
	*id = (struct process_id) {
		.kind = PROCESS_RUNNER, .shard = strtoll(shard, NULL, 10), .found = 1
	};
	(void)snprintf(id->spawn_id, sizeof(id->spawn_id), "%s", spawn);
	(void)snprintf(id->project_id, sizeof(id->project_id), "%s", project);
	(void)snprintf(id->run_id, sizeof(id->run_id), "%s", run_id);
	(void)snprintf(id->address, sizeof(id->address), "run/%s", run_id);
	return HOLDER_RUNNER;
}

/* Its start time is read before what it says of itself: who has its pid later has another. */
static int
look_at(pid_t pid, const char *run_id, const char *spawn_id, struct holder *ret)
{
	CLEANUP(buf_done) struct buf args = BUF_INIT;
	char path[64];
	int r = io_proc_start_time(pid, &ret->birth.start_ticks);

	(void)snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	if (r == 0)
		r = io_read_file(AT_FDCWD, path, ARGUMENTS_MAX, &args);
	if (r == 0 && buf_cstr(&args) == NULL)
		r = E_NOMEM;
	/* What anvil starts has short arguments. */
	if (r == E_NOENT || r == E_TOO_BIG)
		ret->kind = HOLDER_NONE;
	if (r < 0)
		return ret->kind == HOLDER_NONE ? 0 : r;
	ret->birth.pid = pid;
	ret->birth.at_ms = clock_wall_ms();
	ret->kind = judge(&args, run_id, spawn_id, &ret->id);
	return 0;
}

int
holder_find(const char *data_dir, const char *run_id, struct holder *ret)
{
	CLEANUP_FREE char *path = mem_format("%s/runs/%s/lock", data_dir, run_id);
	char note[NOTE_MAX], word[64];
	int r, pid;

	*ret = (struct holder) { .kind = HOLDER_NONE };
	if (path == NULL)
		return E_NOMEM;
	r = is_held(path, note);
	if (r <= 0)
		return r;
	ret->kind = HOLDER_OTHER;
	if (sscanf(note, "%d %63s", &pid, word) != 2 || pid <= 1)
		return 0;
	return look_at((pid_t)pid, run_id, word, ret);
}
