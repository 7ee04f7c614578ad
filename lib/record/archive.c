#include "lib/record/archive.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zstd.h>

#include "lib/base/crash.h"
#include "lib/base/err.h"
#include "lib/base/fault.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"

/* Measured on build logs: a third of the size at 300 MB/s; three quarters at 900 MB/s. */
#define LEVEL_USUAL (1)
#define LEVEL_HURRY (-20)

#define PIECE_BYTES ((int64_t)256 << 10) /* of what is written anew */

struct archive {
	uint32_t magic;
#define ARCHIVE_MAGIC 0x61f4c208
	int fd;
	int hurry;
	int64_t first_byte;  /* Position of the open frame's text. */
	int64_t file_offset; /* Where the open frame will lie. */
	struct buf text;     /* Text of the open frame. */
	char last_char;      /* Of the text before; '\n' when unknown. */
	struct buf packed;   /* Kept from frame to frame. */
	ZSTD_CCtx *zstd;     /* NULL until the first frame. */
	int64_t synced;      /* What lies before it is on disk. */
	int in_doubt;        /* ... but what lies behind: a sync has failed. */
	int torn;            /* A write has failed behind file_offset. */
};

/* Whatever ails the disk, the same call may succeed later. */
static int
error_of(int errnum)
{
	int r = err_from_errno(errnum);

	return r == E_FULL || r == E_NOMEM ? r : E_STORAGE;
}

/* Cuts what a killed process has written and not recorded.  A file that power loss has left
 * too short keeps its hole: frames there read as damaged. */
static int
cut_after(int fd, int64_t end)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return error_of(errno);
	return st.st_size > end && fault_file_cut(fd, end) < 0 ? error_of(errno) : 0;
}

static int64_t
end_of(const struct archive_frame *last)
{
	return last != NULL ? last->file_offset + last->file_size : 0;
}

int
archive_open(int dirfd, const char *name, const struct archive_frame *last, int64_t next_byte,
    struct archive **ret)
{
	CLEANUP(archive_freep) struct archive *a = mem_calloc(1, sizeof(*a));
	int r;

	if (a == NULL)
		return E_NOMEM;
	a->magic = ARCHIVE_MAGIC;
	a->first_byte = next_byte;
	a->file_offset = end_of(last);
	a->last_char = '\n';
	a->fd = openat(dirfd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	r = a->fd < 0 ? error_of(errno) : cut_after(a->fd, a->file_offset);
	if (r == 0)
		*ret = TAKE_PTR(a);
	return r;
}

int
archive_go_back(struct archive *a, const struct archive_frame *last, int64_t next_byte)
{
	int r;

	OBJ_CHECK(a, ARCHIVE_MAGIC);
	r = cut_after(a->fd, end_of(last));
	if (r < 0)
		return r;
	buf_reset(&a->text);
	a->first_byte = next_byte;
	a->file_offset = end_of(last);
	a->synced = min_i64(a->synced, a->file_offset);
	a->last_char = '\n';
	a->torn = 0;
	return 0;
}

struct archive *
archive_free(struct archive *a)
{
	if (a == NULL)
		return NULL;
	OBJ_CHECK(a, ARCHIVE_MAGIC);
	a->magic = 0;
	io_close(&a->fd);
	buf_done(&a->text);
	buf_done(&a->packed);
	(void)ZSTD_freeCCtx(a->zstd);
	return mem_free(a);
}

void
archive_set_hurry(struct archive *a, int hurry)
{
	a->hurry = hurry;
}

size_t
archive_waiting(const struct archive *a)
{
	return a->text.len;
}

int64_t
archive_next_byte(const struct archive *a)
{
	return a->first_byte + (int64_t)a->text.len;
}

static int
write_at(int fd, int64_t offset, const void *p, size_t n)
{
	const uint8_t *at = p;

	while (n != 0) {
		ssize_t done = fault_file_write(fd, at, n, offset);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return error_of(errno);
		at += done;
		offset += done;
		n -= (size_t)done;
	}
	return 0;
}

/* The kernel takes what a sync could not write for written: it has to be told of it anew.  What
 * it has forgotten since reads as damaged. */
static int
write_anew(struct archive *a)
{
	CLEANUP_FREE uint8_t *piece = mem_alloc(PIECE_BYTES);

	if (piece == NULL)
		return E_NOMEM;
	for (int64_t at = a->synced; at < a->file_offset;) {
		int64_t n = min_i64(a->file_offset - at, PIECE_BYTES);
		ssize_t got = pread(a->fd, piece, (size_t)n, at);
		int r;

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? error_of(errno) : 0;
		r = write_at(a->fd, at, piece, (size_t)got);
		if (r < 0)
			return r;
		at += got;
	}
	return 0;
}

int
archive_sync(struct archive *a)
{
	int r;

	OBJ_CHECK(a, ARCHIVE_MAGIC);
	r = a->torn ? cut_after(a->fd, a->file_offset) : 0;
	if (r == 0)
		a->torn = 0;
	if (r == 0 && a->in_doubt)
		r = write_anew(a);
	if (r < 0)
		return r;
	a->in_doubt = fault_file_sync(a->fd) < 0;
	if (a->in_doubt)
		return error_of(errno);
	a->synced = a->file_offset;
	return 0;
}

/* Writes ${text} as one frame behind what is there; its size goes to ${ret_size}. */
static int
write_frame(struct archive *a, const void *text, size_t n, size_t *ret_size)
{
	size_t cap = ZSTD_compressBound(n), size;
	int r;

	buf_reset(&a->packed);
	r = buf_reserve(&a->packed, cap);
	if (r < 0 || (a->zstd == NULL && (a->zstd = ZSTD_createCCtx()) == NULL))
		return E_NOMEM;
	(void)ZSTD_CCtx_setParameter(a->zstd, ZSTD_c_checksumFlag, 1);
	(void)ZSTD_CCtx_setParameter(
	    a->zstd, ZSTD_c_compressionLevel, a->hurry ? LEVEL_HURRY : LEVEL_USUAL);
	size = ZSTD_compress2(a->zstd, a->packed.data, cap, text, n);
	if (ZSTD_isError(size))
		return E_NOMEM; /* The bound holds and the parameters are fixed: nothing else. */
	r = write_at(a->fd, a->file_offset, a->packed.data, size);
	a->torn |= r < 0;
	CRASH_POINT("log_frame_written");
	if (r == 0)
		*ret_size = size;
	return r;
}

int
archive_put_frame(struct archive *a, const char *text, size_t n, struct archive_frame *ret)
{
	size_t size = 0;
	int r;

	OBJ_CHECK(a, ARCHIVE_MAGIC);
	must(n != 0 && n <= ARCHIVE_FRAME_BYTES);
	r = write_frame(a, text, n, &size);
	if (r < 0)
		return r;
	*ret = (struct archive_frame) { a->first_byte, (int64_t)n, a->file_offset,
		(int64_t)size };
	a->first_byte += (int64_t)n;
	a->file_offset += (int64_t)size;
	a->last_char = text[n - 1];
	return 0;
}

int
archive_close_frame(struct archive *a, struct archive_frame *ret)
{
	int r;

	if (a->text.len == 0)
		return 0;
	r = archive_put_frame(a, (const char *)a->text.data, a->text.len, ret);
	if (r < 0)
		return r;
	buf_reset(&a->text);
	return 1;
}

int
archive_append(struct archive *a, const char *text, size_t n, struct archive_frame *ret)
{
	int closed = 0;

	OBJ_CHECK(a, ARCHIVE_MAGIC);
	must(n <= ARCHIVE_FRAME_BYTES);
	if (a->text.len + n > ARCHIVE_FRAME_BYTES)
		closed = archive_close_frame(a, ret);
	if (closed < 0)
		return closed;
	if (buf_add(&a->text, text, n) < 0) {
		a->text.failed = 0; /* What was there is still there. */
		return E_NOMEM;
	}
	return closed;
}

int
archive_omit(struct archive *a, int64_t n)
{
	char line[64];
	size_t size = 0;
	int len, r;

	OBJ_CHECK(a, ARCHIVE_MAGIC);
	must(a->text.len == 0 && n > 0);
	len = snprintf(line, sizeof(line), "%s[anvil: %lld bytes omitted]\n",
	    a->last_char == '\n' ? "" : "\n", (long long)n);
	r = write_frame(a, line, (size_t)len, &size);
	if (r < 0)
		return r;
	a->file_offset += (int64_t)size;
	a->first_byte += n;
	a->last_char = '\n';
	return 0;
}
