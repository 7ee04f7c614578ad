#include "test/support/io_fault.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "lib/base/base.h"
#include "test/support/unit.h"

static _Thread_local long fault_in = -1;
static _Thread_local int fault_came, fault_code;
static long of_children = -1;
static int *children_came; /* Shared with them; NULL: never asked for. */

void
io_fault_arm(long n, int code)
{
	of_children = -1;
	if (children_came != NULL)
		*children_came = 0;
	fault_came = 0;
	fault_code = code;
	fault_in = n;
}

static void
in_child(void)
{
	if (of_children >= 0)
		fault_in = of_children;
}

void
io_fault_arm_children(long n, int code)
{
	if (children_came == NULL) {
		children_came = mmap(NULL, sizeof(*children_came), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		must(children_came != MAP_FAILED);
		must(pthread_atfork(NULL, NULL, in_child) == 0);
	}
	io_fault_arm(-1, code);
	of_children = n;
}

int
io_fault_hit(void)
{
	return fault_came || (children_came != NULL && *children_came);
}

/* 1, with errno, when this call is to fail. */
static int
fails(void)
{
	if (fault_in < 0 || fault_in-- > 0)
		return 0;
	fault_came = 1;
	if (of_children >= 0)
		*children_came = 1;
	errno = fault_code;
	return 1;
}

/* ---- in front of the C library ---- */

/* Names of our own in this file, since the headers may have made others of theirs. */
#define IN_FRONT_OF(name) __asm__(name)

int fault_open(const char *path, int flags, ...) IN_FRONT_OF("open");
int fault_openat(int dirfd, const char *path, int flags, ...) IN_FRONT_OF("openat");
ssize_t fault_read(int fd, void *p, size_t n) IN_FRONT_OF("read");
ssize_t fault_pread(int fd, void *p, size_t n, off_t at) IN_FRONT_OF("pread");
ssize_t fault_write(int fd, const void *p, size_t n) IN_FRONT_OF("write");
ssize_t fault_pwrite(int fd, const void *p, size_t n, off_t at) IN_FRONT_OF("pwrite");
int fault_fsync(int fd) IN_FRONT_OF("fsync");
int fault_fdatasync(int fd) IN_FRONT_OF("fdatasync");
int fault_ftruncate(int fd, off_t size) IN_FRONT_OF("ftruncate");
int fault_rename(const char *from, const char *to) IN_FRONT_OF("rename");
int
fault_renameat(int fromfd, const char *from, int tofd, const char *to) IN_FRONT_OF("renameat");
int fault_mkdir(const char *path, mode_t mode) IN_FRONT_OF("mkdir");
int fault_mkdirat(int dirfd, const char *path, mode_t mode) IN_FRONT_OF("mkdirat");
int fault_unlinkat(int dirfd, const char *path, int flags) IN_FRONT_OF("unlinkat");
int fault_flock(int fd, int what) IN_FRONT_OF("flock");
int fault_fstat(int fd, struct stat *st) IN_FRONT_OF("fstat");

static void *
real(const char *name)
{
	void *fn = dlsym(RTLD_NEXT, name);

	must(fn != NULL);
	return fn;
}

/* REAL(int (*)(int), "fsync")(fd): a pointer to data is no pointer to a function in C. */
#define REAL(type, name)                         \
	({                                       \
		void *at_ = real(name);          \
		__typeof__(type) fn_;            \
		memcpy(&fn_, &at_, sizeof(fn_)); \
		fn_;                             \
	})

/* A mode is there only when a file may be made; reading one that is not does no harm. */
#define MODE_OF(last, ret)                              \
	do {                                            \
		va_list ap_;                            \
		va_start(ap_, last);                    \
		*(ret) = (mode_t)va_arg(ap_, unsigned); \
		va_end(ap_);                            \
	} while (0)

int
fault_open(const char *path, int flags, ...)
{
	mode_t mode;

	MODE_OF(flags, &mode);
	return fails() ? -1 : REAL(int (*)(const char *, int, ...), "open")(path, flags, mode);
}

int
fault_openat(int dirfd, const char *path, int flags, ...)
{
	mode_t mode;

	MODE_OF(flags, &mode);
	return fails()
	    ? -1
	    : REAL(int (*)(int, const char *, int, ...), "openat")(dirfd, path, flags, mode);
}

ssize_t
fault_read(int fd, void *p, size_t n)
{
	return fails() ? -1 : REAL(ssize_t(*)(int, void *, size_t), "read")(fd, p, n);
}

ssize_t
fault_pread(int fd, void *p, size_t n, off_t at)
{
	return fails() ? -1
		       : REAL(ssize_t(*)(int, void *, size_t, off_t), "pread")(fd, p, n, at);
}

ssize_t
fault_write(int fd, const void *p, size_t n)
{
	return fails() ? -1 : REAL(ssize_t(*)(int, const void *, size_t), "write")(fd, p, n);
}

ssize_t
fault_pwrite(int fd, const void *p, size_t n, off_t at)
{
	return fails()
	    ? -1
	    : REAL(ssize_t(*)(int, const void *, size_t, off_t), "pwrite")(fd, p, n, at);
}

int
fault_fsync(int fd)
{
	return fails() ? -1 : REAL(int (*)(int), "fsync")(fd);
}

int
fault_fdatasync(int fd)
{
	return fails() ? -1 : REAL(int (*)(int), "fdatasync")(fd);
}

int
fault_ftruncate(int fd, off_t size)
{
	return fails() ? -1 : REAL(int (*)(int, off_t), "ftruncate")(fd, size);
}

int
fault_rename(const char *from, const char *to)
{
	return fails() ? -1 : REAL(int (*)(const char *, const char *), "rename")(from, to);
}

int
fault_renameat(int fromfd, const char *from, int tofd, const char *to)
{
	return fails() ? -1
		       : REAL(int (*)(int, const char *, int, const char *), "renameat")(
			     fromfd, from, tofd, to);
}

int
fault_mkdir(const char *path, mode_t mode)
{
	return fails() ? -1 : REAL(int (*)(const char *, mode_t), "mkdir")(path, mode);
}

int
fault_mkdirat(int dirfd, const char *path, mode_t mode)
{
	return fails() ? -1
		       : REAL(int (*)(int, const char *, mode_t), "mkdirat")(dirfd, path, mode);
}

int
fault_unlinkat(int dirfd, const char *path, int flags)
{
	return fails() ? -1
		       : REAL(int (*)(int, const char *, int), "unlinkat")(dirfd, path, flags);
}

int
fault_flock(int fd, int what)
{
	return fails() ? -1 : REAL(int (*)(int, int), "flock")(fd, what);
}

int
fault_fstat(int fd, struct stat *st)
{
	return fails() ? -1 : REAL(int (*)(int, struct stat *), "fstat")(fd, st);
}

/* ---- loops ---- */

static long
starve_with(
    int (*fn)(void *arg), void *arg, int lenient, void (*after)(void *arg, int r), int code)
{
	long n;

	for (n = 0;; n++) {
		int came, r;

		io_fault_arm(n, code);
		r = fn(arg);
		came = io_fault_hit();
		io_fault_arm(-1, 0);
		if (came && !lenient)
			assert_true(r < 0);
		if (after != NULL)
			after(arg, r);
		if (!came) {
			assert_int_equal(r, 0);
			return n;
		}
	}
}

long
io_starve(int (*fn)(void *arg), void *arg, int lenient, void (*after)(void *arg, int r))
{
	long n = starve_with(fn, arg, lenient, after, EIO);

	assert_true(n > 0);
	assert_int_equal(starve_with(fn, arg, lenient, after, ENOSPC), n);
	return n;
}
