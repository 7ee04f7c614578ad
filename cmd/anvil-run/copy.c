#include "cmd/anvil-run/copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/anvil-run/run.h"
#include "lib/base/crash.h"
#include "lib/base/err.h"
#include "lib/base/id.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/wire/wire.h"

#define NAMES_MAX_BYTES ((size_t)64 << 20)

struct copies {
	char *runs;         /* data_dir/runs */
	const char *folder; /* where the copies go */
	int folder_fd;
	struct buf names; /* NUL-terminated ids, one after the other */
	long long total, ncopied, ngone;
	off_t report_end;
};

/* ---- the report ---- */

static void
tell_head(const struct copies *c)
{
	char text[COPY_HEAD_SIZE + 1];
	int n = snprintf(text, sizeof(text), COPY_HEAD, c->total, c->ncopied, c->ngone);

	must(n == COPY_HEAD_SIZE);
	(void)!pwrite(COPY_FD_REPORT, text, COPY_HEAD_SIZE, 0);
}

/* One line: whoever reads it meanwhile sees all of it or nothing. */
static void PRINTF_LIKE(2, 3) tell(struct copies *c, const char *fmt, ...)
{
	char text[1024];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text) - 1, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	n = (int)min_size((size_t)n, sizeof(text) - 2);
	for (char *at = text; (at = strchr(at, '\n')) != NULL;)
		*at = ' ';
	text[n++] = '\n';
	if (pwrite(COPY_FD_REPORT, text, (size_t)n, c->report_end) == n)
		c->report_end += n;
}

static int
failed(struct copies *c, int r, const char *why)
{
	tell(c, "failed %s", why != NULL ? why : err_text(r));
	return r;
}

/* ---- which runs ---- */

static int
add_name(struct copies *c, const char *name)
{
	if (!id_check(ID_RUN, name))
		return 0;
	c->total++;
	return buf_add(&c->names, name, strlen(name) + 1);
}

static int
list_all(struct copies *c)
{
	DIR *d = opendir(c->runs);
	const struct dirent *e;
	int r = 0;

	if (d == NULL)
		return errno == ENOENT ? 0 : err_from_errno(errno);
	while (r == 0 && (errno = 0, e = readdir(d)) != NULL)
		/* Where a link leads is no place of ours. */
		r = io_is_dir(dirfd(d), e->d_name) ? add_name(c, e->d_name) : 0;
	if (r == 0 && errno != 0)
		r = err_from_errno(errno);
	(void)closedir(d);
	return r;
}

static int
list_runs(struct copies *c)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	char *at, *line;
	int r = io_read_all(COPY_FD_RUNS, NAMES_MAX_BYTES, &text);

	if (r < 0 || text.len == 0)
		return r < 0 ? r : list_all(c);
	if (buf_cstr(&text) == NULL)
		return E_NOMEM;
	at = (char *)text.data;
	while (r == 0 && (line = strsep(&at, "\n")) != NULL)
		r = add_name(c, line);
	return r;
}

/* ---- one run ---- */

/* What a copier that was killed has left of it. */
static int
make_part(const char *part)
{
	static const char *const names[] = { RECORD_DB, RECORD_ARCHIVE, RECORD_DB ".part",
		RECORD_DB ".part-wal", RECORD_DB ".part-journal" };
	CLEANUP(io_closep) int fd = -1;

	if (mkdir(part, 0700) < 0 && errno != EEXIST)
		return err_from_errno(errno);
	fd = open(part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_from_errno(errno);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (unlinkat(fd, names[i], 0) < 0 && errno != ENOENT)
			return err_from_errno(errno);
	return 0;
}

/* The lock is held for the store alone: whoever wants to serve the run does not wait for the
 * archive, which nobody writes any more.  Both may be removed meanwhile, when their time is over. */
static int
copy_files(const char *dir, const char *part, char **ret_why)
{
	CLEANUP(io_closep) int lock = -1;
	struct record_copied done;
	int64_t log_end = 0;
	int r = place_lock_ended(dir, "copy", &lock);

	if (r < 0)
		return r;
	r = record_copy_store(dir, part, NULL, NULL, &done, &log_end, ret_why);
	io_close(&lock);
	CRASH_POINT("copier_has_store");
	return r < 0 ? r : record_copy_log(dir, part, log_end, NULL, NULL, &done, ret_why);
}

/* 1: it is there already. */
static int
copy_run(struct copies *c, const char *run_id, char **ret_why)
{
	CLEANUP_FREE char *dir = mem_format("%s/%s", c->runs, run_id);
	CLEANUP_FREE char *part = mem_format("%s/%s.part", c->folder, run_id);
	struct stat st;
	int r;

	if (dir == NULL || part == NULL)
		return E_NOMEM;
	if (fstatat(c->folder_fd, run_id, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return 1;
	r = make_part(part);
	if (r < 0)
		return r;
	r = copy_files(dir, part, ret_why);
	if (r < 0) {
		(void)make_part(part);
		(void)rmdir(part);
		return r;
	}
	CRASH_POINT("copier_has_run");
	return renameat(AT_FDCWD, part, c->folder_fd, run_id) < 0 ? err_from_errno(errno) : 0;
}

/* 0 to go on. */
static int
one(struct copies *c, const char *run_id)
{
	CLEANUP_FREE char *why = NULL;
	int r = copy_run(c, run_id, &why);

	switch (r) {
	case 0:
	case 1: c->ncopied++; break;
	case E_NOENT: c->ngone++; break;
	case E_LOCKED: tell(c, "live %s", run_id); break;
	case E_CORRUPT:
	case E_NEWER:
		/* It stays as it is; the others are not lost for its sake. */
		tell(c, "bad %s %s", run_id, why != NULL ? why : err_text(r));
		break;
	default: return failed(c, r, why);
	}
	tell_head(c);
	return 0;
}

/* ---- all of them ---- */

static int
open_all(struct copies *c, struct proc *p)
{
	CLEANUP(buf_wipe) struct buf text = BUF_INIT;
	CLEANUP(config_freep) struct config *config = NULL;
	int r = json_text_dump(&text, proc_config(p));

	if (r == 0)
		r = config_from_json((const char *)text.data, text.len, &config);
	if (r < 0 || config == NULL)
		return r < 0 ? r : E_NOMEM;
	c->runs = mem_format("%s/runs", config->data_dir);
	c->folder = proc_option(p, "--copy");
	c->folder_fd = open(c->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (c->folder_fd < 0)
		return err_from_errno(errno);
	return c->runs != NULL ? list_runs(c) : E_NOMEM;
}

static int
copy_all(struct copies *c, struct proc *p)
{
	int r = open_all(c, p);

	if (r < 0)
		return failed(c, r, NULL);
	tell_head(c);
	for (size_t at = 0; r == 0 && at < c->names.len;) {
		const char *run_id = (const char *)c->names.data + at;

		at += strlen(run_id) + 1;
		r = one(c, run_id);
	}
	if (r == 0 && (r = io_sync_dir(c->folder_fd)) < 0)
		(void)failed(c, r, NULL);
	return r;
}

int
copy_runs(struct proc *p)
{
	struct copies c = { .folder_fd = -1, .report_end = COPY_HEAD_SIZE };
	int r;

	tell_head(&c);
	/* Without the supervisor nobody waits for it. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)setpriority(PRIO_PROCESS, 0, COPY_NICE);
	r = copy_all(&c, p);
	buf_done(&c.names);
	io_close(&c.folder_fd);
	free(c.runs);
	(void)proc_free(p);
	return r < 0 ? EXIT_INTERNAL : 0;
}

/* ---- a run that lives ---- */

static const char *
place_of(void *ctx)
{
	const struct run_actor *r = ctx;

	OBJ_CHECK(r, RUN_MAGIC);
	return r->place.dir;
}

static int
copy_self(const char *place, const char *folder, store_go_on_fn *go_on, void *arg,
    struct actor_copied *ret, char **ret_why)
{
	struct record_copied done;
	int r = record_copy(place, folder, go_on, arg, &done, ret_why);

	if (r < 0)
		return r;
	*ret = (struct actor_copied) { .version = done.version,
		.nfiles = done.log_bytes > 0 ? 2 : 1,
		.files = { { RECORD_DB, done.db_bytes }, { RECORD_ARCHIVE, done.log_bytes } } };
	return 0;
}

const struct actor_backup run_backup = { place_of, copy_self };
