#include "lib/base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/id.h"

#define IO_CHUNK_BYTES 65536

void
io_close(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
	errno = saved;
}

int
io_write_all(int fd, const void *p, size_t n)
{
	const uint8_t *at = p;

	while (n != 0) {
		ssize_t done = write(fd, at, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return err_from_errno(errno);
		at += done;
		n -= (size_t)done;
	}
	return 0;
}

int
io_read_all(int fd, size_t max, struct buf *out)
{
	for (;;) {
		ssize_t got;
		int r = buf_reserve(out, IO_CHUNK_BYTES);

		if (r < 0)
			return r;
		got = read(fd, out->data + out->len, IO_CHUNK_BYTES);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_from_errno(errno);
		if (got == 0)
			return 0;
		out->len += (size_t)got;
		if (out->len > max)
			return E_TOO_BIG;
	}
}

int
io_read_file(int dirfd, const char *path, size_t max, struct buf *out)
{
	CLEANUP(io_closep) int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? err_from_errno(errno) : io_read_all(fd, max, out);
}

int
io_sync_dir(int dirfd)
{
	return fsync(dirfd) < 0 ? err_from_errno(errno) : 0;
}

/* Opens the folder that holds ${path} and points ${ret_name} at its last part. */
static int
open_parent(int dirfd, const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	char dir[PATH_MAX];

	*ret_name = slash != NULL ? slash + 1 : path;
	if (slash == NULL)
		return openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	(void)snprintf(dir, sizeof(dir), "%.*s", slash == path ? 1 : (int)(slash - path), path);
	return openat(dirfd, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int
io_write_file(int dirfd, const char *path, const void *p, size_t n, mode_t mode)
{
	const char *name;
	CLEANUP(io_closep) int parent = open_parent(dirfd, path, &name);
	CLEANUP(io_closep) int fd = -1;
	char tmp[NAME_MAX + 1], tag[ID_HEX32_SIZE];
	int r;

	if (parent < 0)
		return err_from_errno(errno);
	id_hex32(tag);
	(void)snprintf(tmp, sizeof(tmp), ".%.200s.%.8s", name, tag);
	fd = openat(parent, tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (fd < 0)
		return err_from_errno(errno);
	r = io_write_all(fd, p, n);
	if (r == 0 && (fsync(fd) < 0 || renameat(parent, tmp, parent, name) < 0))
		r = err_from_errno(errno);
	if (r < 0) {
		(void)unlinkat(parent, tmp, 0);
		return r;
	}
	return io_sync_dir(parent);
}

static int
mkdir_synced(const char *path, mode_t mode)
{
	const char *name;
	CLEANUP(io_closep) int parent = -1;

	if (mkdir(path, mode) < 0)
		return errno == EEXIST ? 0 : err_from_errno(errno);
	parent = open_parent(AT_FDCWD, path, &name);
	return parent < 0 ? err_from_errno(errno) : io_sync_dir(parent);
}

int
io_mkdirs(const char *path, mode_t mode)
{
	char part[PATH_MAX];
	size_t len = strlen(path);

	if (len == 0 || len >= sizeof(part))
		return E_INVAL;
	memcpy(part, path, len + 1);
	for (size_t i = 1; i <= len; i++) {
		struct stat st;
		int r = 0;

		if (part[i] != '/' && part[i] != '\0')
			continue;
		part[i] = '\0';
		if (stat(part, &st) < 0)
			r = mkdir_synced(part, mode);
		part[i] = path[i];
		if (r < 0)
			return r;
	}
	return 0;
}

int
io_open_dir(int dirfd, const char *path)
{
	return openat(dirfd, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

int
io_is_dir(int dirfd, const char *name)
{
	struct stat st;

	return fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

int
io_set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? E_SYS : 0;
}

int
io_set_cloexec(int fd, int on)
{
	return fcntl(fd, F_SETFD, on ? FD_CLOEXEC : 0) < 0 ? E_SYS : 0;
}

int
io_lock_file(int dirfd, const char *name, int *ret_fd)
{
	CLEANUP(io_closep) int fd = openat(dirfd, name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_from_errno(errno);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? E_LOCKED : err_from_errno(errno);
	*ret_fd = fd;
	fd = -1;
	return 0;
}

int
io_pidfd_open(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

int
io_pidfd_signal(int pidfd, int sig)
{
	return (int)syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0);
}

int
io_kill_child(pid_t pid)
{
	CLEANUP(io_closep) int fd = io_pidfd_open(pid);
	siginfo_t info;

	/* Asked once its pid cannot become another's any more. */
	if (fd < 0 ||
	    waitid(P_PIDFD, (id_t)fd, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0)
		return -1;
	return io_pidfd_signal(fd, SIGKILL);
}

int
io_proc_start_time(pid_t pid, uint64_t *ret_ticks)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	char path[64];
	const char *p;
	unsigned long long ticks;
	int r;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	r = io_read_file(AT_FDCWD, path, IO_CHUNK_BYTES, &b);
	if (r < 0)
		return r == E_SYS && errno == ESRCH ? E_NOENT : r;
	if (buf_cstr(&b) == NULL)
		return E_NOMEM;
	/* The command, field 2, may hold spaces and parentheses: count from its last one. */
	p = strrchr((const char *)b.data, ')');
	for (int field = 2; p != NULL && field < 22; field++)
		p = strchr(p + 1, ' ');
	if (p == NULL || sscanf(p, " %llu", &ticks) != 1)
		return E_NOENT;
	*ret_ticks = ticks;
	return 0;
}

int
io_boot_id(char out[37])
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;

	if (io_read_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", IO_CHUNK_BYTES, &b) < 0 ||
	    b.len < 36)
		return E_SYS;
	memcpy(out, b.data, 36);
	out[36] = '\0';
	return 0;
}
