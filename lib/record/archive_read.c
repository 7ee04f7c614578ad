#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <zstd.h>

#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/base/utf8.h"
#include "lib/record/archive.h"

struct archive_reader {
	uint32_t magic;
#define ARCHIVE_READER_MAGIC 0x2c87d5b3
	int fd; /* -1: there is no file. */
	ZSTD_DCtx *zstd;
	struct buf text;           /* Text of ${held}, for a reader that goes on in it. */
	struct archive_frame held; /* text_size 0: none. */
};

int
archive_reader_open(int dirfd, const char *name, struct archive_reader **ret)
{
	CLEANUP(archive_reader_freep) struct archive_reader *r = mem_calloc(1, sizeof(*r));

	if (r == NULL)
		return E_NOMEM;
	r->magic = ARCHIVE_READER_MAGIC;
	r->fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (r->fd < 0 && errno != ENOENT)
		return err_from_errno(errno);
	r->zstd = ZSTD_createDCtx();
	if (r->zstd == NULL)
		return E_NOMEM;
	*ret = TAKE_PTR(r);
	return 0;
}

struct archive_reader *
archive_reader_free(struct archive_reader *r)
{
	if (r == NULL)
		return NULL;
	OBJ_CHECK(r, ARCHIVE_READER_MAGIC);
	r->magic = 0;
	io_close(&r->fd);
	(void)ZSTD_freeDCtx(r->zstd);
	buf_done(&r->text);
	return mem_free(r);
}

/* Exactly ${n} bytes, or 0 bytes short of them: E_CORRUPT. */
static int
read_at(int fd, int64_t offset, uint8_t *p, size_t n)
{
	while (n != 0) {
		ssize_t got = pread(fd, p, n, offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return E_CORRUPT;
		p += got;
		offset += got;
		n -= (size_t)got;
	}
	return 0;
}

static int
frame_is_sane(const struct archive_frame *f)
{
	return f->text_size > 0 && f->text_size <= (int64_t)ARCHIVE_FRAME_BYTES &&
	    f->file_offset >= 0 && f->file_size > 0 &&
	    f->file_size <= (int64_t)ZSTD_compressBound(ARCHIVE_FRAME_BYTES);
}

/* Text of ${f} into r->text.  0, E_CORRUPT (missing, damaged), E_NOMEM. */
static int
load(struct archive_reader *r, const struct archive_frame *f)
{
	CLEANUP_FREE uint8_t *packed = NULL;
	size_t size = (size_t)f->file_size, want = (size_t)f->text_size;
	int err;

	if (r->held.text_size != 0 && memcmp(&r->held, f, sizeof(*f)) == 0)
		return 0;
	if (r->fd < 0 || !frame_is_sane(f))
		return E_CORRUPT;
	packed = mem_alloc(size);
	if (packed == NULL)
		return E_NOMEM;
	err = read_at(r->fd, f->file_offset, packed, size);
	if (err < 0)
		return err;
	r->held.text_size = 0;
	buf_reset(&r->text);
	err = buf_reserve(&r->text, want);
	if (err < 0)
		return err;
	if (ZSTD_decompressDCtx(r->zstd, r->text.data, want, packed, size) != want)
		return E_CORRUPT;
	r->text.len = want;
	r->held = *f;
	return 0;
}

static void
begin_line(struct buf *out)
{
	if (out->len != 0 && out->data[out->len - 1] != '\n')
		(void)buf_add_byte(out, '\n');
}

/* State of one answer. */
struct answer {
	struct buf *out;
	size_t base, max; /* Where the answer begins in ${out}; how long it may get. */
	int64_t at;       /* Position in the log. */
	int64_t hole;     /* Bytes up to ${at} that could not be read and are not named yet. */
};

static size_t
room(const struct answer *a)
{
	size_t used = a->out->len - a->base;

	return used < a->max ? a->max - used : 0;
}

static void
name_hole(struct answer *a)
{
	if (a->hole == 0)
		return;
	begin_line(a->out);
	(void)buf_printf(a->out, ARCHIVE_HOLE_LINE, (long long)a->hole);
	a->hole = 0;
}

/* Moves on to ${to} over text that no frame holds. */
static void
pass_over(struct answer *a, int64_t to, struct archive_gap gap)
{
	int64_t gap_end = gap.first_byte + gap.n;

	if (gap.n > 0 && a->at < gap_end && to > gap.first_byte) {
		a->hole += max_i64(0, gap.first_byte - a->at);
		name_hole(a);
		begin_line(a->out);
		(void)buf_printf(a->out, "[anvil: %lld bytes omitted]\n", (long long)gap.n);
		a->at = gap_end;
	}
	a->hole += max_i64(0, to - a->at);
	a->at = max_i64(a->at, to);
}

/* Copies from the loaded frame as much as there is room for. */
static void
copy(struct answer *a, const struct archive_frame *f, const struct buf *text)
{
	size_t from = (size_t)(a->at - f->first_byte), n;
	const char *p = (const char *)text->data + from;

	/* A caller may begin anywhere, also inside a character. */
	while (from < text->len && ((uint8_t)*p & 0xc0) == 0x80) {
		from++;
		p++;
	}
	n = utf8_cut(p, text->len - from, room(a));
	if (n == 0 && from < text->len && a->out->len == a->base)
		n = utf8_len(p, text->len - from);
	(void)buf_add(a->out, p, n);
	a->at = f->first_byte + (int64_t)(from + n);
}

/* What comes before the frame, and as much of it as there is room for; all of it as a hole
 * when it cannot be read. */
static int
read_frame(struct archive_reader *r, const struct archive_frame *f, struct archive_gap gap,
    struct answer *a)
{
	int err;

	pass_over(a, f->first_byte, gap);
	err = load(r, f);
	if (err == E_NOMEM)
		return err;
	if (err < 0) {
		pass_over(a, f->first_byte + f->text_size, gap);
		return 0;
	}
	name_hole(a);
	copy(a, f, &r->text);
	return 0;
}

int
archive_read(struct archive_reader *r, const struct archive_range *range, int64_t from,
    size_t max, struct buf *out, int64_t *ret_next)
{
	struct answer a = { .out = out, .base = out->len, .max = max, .at = from };
	int64_t covered = 0;

	OBJ_CHECK(r, ARCHIVE_READER_MAGIC);
	for (size_t i = 0; i < range->nframes; i++) {
		const struct archive_frame *f = &range->frames[i];
		int64_t before = a.at;
		int err;

		covered = f->first_byte + f->text_size;
		if (covered <= a.at)
			continue;
		err = read_frame(r, f, range->gap, &a);
		if (err < 0)
			return err;
		if (a.at < covered || a.at == before)
			break;
	}
	if (range->nframes == 0 || a.at >= covered)
		pass_over(&a, range->end, range->gap);
	name_hole(&a);
	if (out->failed)
		return E_NOMEM;
	*ret_next = a.at;
	return 0;
}

int
archive_read_exact(
    struct archive_reader *r, const struct archive_frame *f, int64_t from, char *p, size_t n)
{
	int err;

	OBJ_CHECK(r, ARCHIVE_READER_MAGIC);
	if (from < f->first_byte || from + (int64_t)n > f->first_byte + f->text_size)
		return E_CORRUPT;
	err = load(r, f);
	if (err == 0)
		memcpy(p, r->text.data + (from - f->first_byte), n);
	return err;
}
