#include "lib/store/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/base.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/store/priv.h"

/* As in https://www.sqlite.org/fileformat.html, section 4. */
#define HEAD_BYTES    32
#define HEAD_SUMMED   24 /* of them are summed up */
#define FRAME_BYTES   24
#define FRAME_SUMMED  8
#define MAGIC_LITTLE  0x377f0682u /* sums read words with the lowest byte first */
#define MAGIC_BIG     0x377f0683u
#define PAGE_MAX      65536
#define LOG_MAX_BYTES ((int64_t)1 << 30)

struct sum {
	uint32_t a, b;
};

struct log {
	int fd;
	int big;
	uint32_t page_bytes;
	uint8_t salt[8];
	struct sum sum; /* of all that was read and was right */
	uint8_t *frame; /* one with its page                  */
};

/* One frame as it was read. */
struct frame {
	int ours;       /* has the salt of this log           */
	int commits;    /* is the last of its transaction     */
	int fits;       /* behind the sum that it was given   */
	struct sum sum; /* as it claims                       */
};

static uint32_t
word(const uint8_t *p, int big)
{
	return big ? (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]
		   : (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

/* Wraps around, as it is defined to. */
static struct sum
add_up(struct sum s, const uint8_t *p, size_t n, int big)
{
	for (size_t i = 0; i < n; i += 8) {
		s.a += word(p + i, big) + s.b;
		s.b += word(p + i + 4, big) + s.a;
	}
	return s;
}

static int
is_sum(struct sum s, const uint8_t *p)
{
	return s.a == word(p, 1) && s.b == word(p + 4, 1);
}

/* 1: a head that SQLite has written. */
static int
read_head(struct log *l)
{
	uint8_t head[HEAD_BYTES];
	uint32_t magic;

	if (pread(l->fd, head, sizeof(head), 0) != (ssize_t)sizeof(head))
		return 0;
	magic = word(head, 1);
	l->big = magic == MAGIC_BIG;
	l->page_bytes = word(head + 8, 1);
	memcpy(l->salt, head + 16, sizeof(l->salt));
	l->sum = add_up((struct sum) { 0, 0 }, head, HEAD_SUMMED, l->big);
	return (magic == MAGIC_LITTLE || l->big) && l->page_bytes >= 512 &&
	    l->page_bytes <= PAGE_MAX && (l->page_bytes & (l->page_bytes - 1)) == 0 &&
	    is_sum(l->sum, head + HEAD_SUMMED);
}

/* 1: there is frame number ${n}, whole. */
static int
read_frame(const struct log *l, int64_t n, struct sum behind, struct frame *ret)
{
	size_t size = FRAME_BYTES + l->page_bytes;
	const uint8_t *f = l->frame;

	if (pread(l->fd, l->frame, size, HEAD_BYTES + n * (int64_t)size) != (ssize_t)size)
		return 0;
	behind = add_up(behind, f, FRAME_SUMMED, l->big);
	behind = add_up(behind, f + FRAME_BYTES, l->page_bytes, l->big);
	ret->ours = memcmp(f + 8, l->salt, sizeof(l->salt)) == 0;
	ret->commits = word(f + 4, 1) != 0;
	ret->fits = ret->ours && is_sum(behind, f + 16);
	ret->sum = (struct sum) { word(f + 16, 1), word(f + 20, 1) };
	return 1;
}

/*
 * What is left of an older log, or of a transaction that was given up, does not fit behind a
 * commit.  What does was begun when that commit was on disk.  Returns the number of the first
 * frame that is damaged, or -1.
 */
static int64_t
find_damage(struct log *l)
{
	struct frame f, before = { .commits = 0 };
	int64_t n = 0, first;

	while (read_frame(l, n, l->sum, &f) && f.fits) {
		l->sum = f.sum;
		n++;
	}
	for (first = n; read_frame(l, n, before.sum, &f); n++) {
		if (n > first && before.ours && before.commits && f.fits)
			return first;
		before = f;
	}
	return -1;
}

int
store_look_at_log(const char *path, char **ret_why)
{
	CLEANUP_FREE char *name = mem_format("%s-wal", path);
	CLEANUP(io_closep) int fd = -1;
	CLEANUP_FREE uint8_t *frame = NULL;
	struct log l = { .fd = -1 };
	struct stat st;
	int64_t at;

	if (name == NULL)
		return E_NOMEM;
	/* It is another's, and will be put aside as it is. */
	if (store_is_fresh(path))
		return 0;
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : E_STORAGE;
	if (fstat(fd, &st) < 0)
		return E_STORAGE;
	/* Less than a frame: it was just being made. */
	if (st.st_size <= HEAD_BYTES || st.st_size > LOG_MAX_BYTES)
		return 0;
	l.fd = fd;
	if (!read_head(&l)) {
		*ret_why = mem_format("%s is no log of a store, or its head is damaged", name);
		return E_CORRUPT;
	}
	l.frame = frame = mem_alloc(FRAME_BYTES + l.page_bytes);
	if (frame == NULL)
		return E_NOMEM;
	at = find_damage(&l);
	if (at < 0)
		return 0;
	*ret_why = mem_format(
	    "%s is damaged in frame %lld: commits that lie behind it cannot be read", name,
	    (long long)at + 1);
	return E_CORRUPT;
}

int
store_mend_log_mode(const char *path)
{
	static const char *const suffixes[] = { "wal", "shm" };

	for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
		CLEANUP_FREE char *name = mem_format("%s-%s", path, suffixes[i]);
		struct stat st;

		if (name == NULL)
			return E_NOMEM;
		/* When that fails, opening it does, and says so. */
		if (lstat(name, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & S_IWUSR) == 0)
			(void)chmod(name, (st.st_mode & 0777) | S_IWUSR);
	}
	return 0;
}
