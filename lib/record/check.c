#include "lib/record/check.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/record/inside.h"

static const struct store_rule rules[] = {
#define RULE(code, mendable, text, sql) { code, mendable, text, sql },
#include "schema/run.rules.def"
#undef RULE
};

/* ---- how it stands ---- */

static int
read_standing(struct store *s, struct arena *a, struct record_standing *ret)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, STMT_META_GET);
	int err = 0, r = stmt_step(st);

	if (r <= 0)
		return r;
	*ret = (struct record_standing) { .run_id = stmt_text_dup(st, 0, a, &err),
		.project_id = stmt_text_dup(st, 1, a, &err),
		.status = stmt_text_dup(st, 9, a, &err),
		.started_at = stmt_int(st, 11),
		.finished_at = stmt_int(st, 12),
		.has_exit_code = !stmt_is_null(st, 13),
		.exit_code = stmt_int(st, 13),
		.failure_code = stmt_text_dup(st, 14, a, &err),
		.error_message = stmt_text_dup(st, 15, a, &err),
		.epoch = stmt_int(st, 17) };
	return err;
}

/* ---- the archive ---- */

struct frames {
	struct archive_reader *reader;
	int64_t size; /* of log.zst */
	int64_t unpacked;
	struct store_problems *ret;
};

static int
check_frame(struct frames *f, const struct archive_frame *frame)
{
	char byte;
	int r;

	if (frame->file_offset + frame->file_size > f->size)
		return store_problem_say(f->ret, "log_archive", "log.zst", 0,
		    "ends at %lld, inside or before the frame at %lld", (long long)f->size,
		    (long long)frame->file_offset);
	f->unpacked += frame->text_size;
	if (f->unpacked > RECORD_CHECK_BYTES)
		return 0;
	r = archive_read_exact(f->reader, frame, frame->first_byte, &byte, 1);
	if (r == E_CORRUPT)
		return store_problem_say(f->ret, "log_archive", "log.zst", 0,
		    "has a damaged frame at %lld", (long long)frame->file_offset);
	return r;
}

static int
check_frames(struct store *s, struct frames *f)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, STMT_FRAME_ALL);
	int r = 0;

	while (r == 0 && (r = stmt_step(st)) == 1)
		r = check_frame(f,
		    &(struct archive_frame) {
			stmt_int(st, 0), stmt_int(st, 1), stmt_int(st, 2), stmt_int(st, 3) });
	return r;
}

static int
check_archive(struct store *s, const char *dir, struct store_problems *ret)
{
	CLEANUP(archive_reader_freep) struct archive_reader *reader = NULL;
	CLEANUP(io_closep) int dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct frames f = { .ret = ret };
	struct stat st;
	int r;

	if (dirfd < 0)
		return err_from_errno(errno);
	if (fstatat(dirfd, RECORD_ARCHIVE, &st, AT_SYMLINK_NOFOLLOW) == 0)
		f.size = st.st_size;
	r = archive_reader_open(dirfd, RECORD_ARCHIVE, &reader);
	f.reader = reader;
	return r < 0 ? r : check_frames(s, &f);
}

/* ---- all of it ---- */

struct look {
	const char *dir;
	struct record_standing *standing;
};

static int
find(void *arg, struct store *s, int64_t now_ms, struct store_problems *ret)
{
	const struct look *l = arg;
	int r = store_check_rules(s, rules, ARRAY_LEN(rules), now_ms, ret);

	if (r == 0)
		r = read_standing(s, ret->arena, l->standing);
	return r < 0 ? r : check_archive(s, l->dir, ret);
}

int
record_inspect(const char *dir, int64_t now_ms, struct store_problems *ret,
    struct record_standing *ret_standing)
{
	CLEANUP_FREE char *path = mem_format("%s/" RECORD_DB, dir);
	struct look l = { dir, ret_standing };

	*ret_standing = (struct record_standing) { .run_id = NULL };
	if (path == NULL)
		return E_NOMEM;
	return store_inspect(&record_store_desc, path, find, &l, now_ms, ret);
}
