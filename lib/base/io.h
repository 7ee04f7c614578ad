/*
 * lib/base/io.h -- files, directories and processes, where the C library leaves gaps.
 */
#ifndef LIB_BASE_IO_H
#define LIB_BASE_IO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/base.h"
#include "lib/base/buf.h"

/* Closes and forgets; -1 is fine.  CLEANUP(io_closep) int fd = -1; */
void io_close(int *fd);
static inline void
io_closep(int *fd)
{
	io_close(fd);
}

/* All ${n} bytes, over EINTR and short writes (blocking descriptors).  0, E_FULL, E_SYS. */
int io_write_all(int fd, const void *p, size_t n);
/* Reads to the end, at most ${max} bytes.  0, E_TOO_BIG, E_NOMEM, E_SYS. */
int io_read_all(int fd, size_t max, struct buf *out);
/* As io_read_all() for a file beneath ${dirfd} (AT_FDCWD: the working directory). */
int io_read_file(int dirfd, const char *path, size_t max, struct buf *out);
/* Makes the file whole or not at all: temporary name, fsync, rename, fsync of the folder. */
int io_write_file(int dirfd, const char *path, const void *p, size_t n, mode_t mode);

/* Makes ${path} and what is missing above it, each with ${mode}, each synced with its
 * parent.  0, E_FULL, E_SYS. */
int io_mkdirs(const char *path, mode_t mode);
/* fsync of a folder by descriptor. */
int io_sync_dir(int dirfd);

/* Descriptor of ${path}'s directory... opened with O_PATH | O_DIRECTORY; -1 with errno. */
int io_open_dir(int dirfd, const char *path);
/* 1 for a folder; 0 for all else, a symbolic link to one too. */
int io_is_dir(int dirfd, const char *name);
int io_set_nonblocking(int fd);
int io_set_cloexec(int fd, int on);

/* Exclusive flock of ${name} beneath ${dirfd}, made 0600 when absent.
 * ${ret_fd} holds the lock until it is closed.  0, E_LOCKED, E_FULL, E_SYS. */
int io_lock_file(int dirfd, const char *name, int *ret_fd);

/* pidfd_open(2) and pidfd_send_signal(2); -1 with errno. */
int io_pidfd_open(pid_t pid);
int io_pidfd_signal(int pidfd, int sig);
/* SIGKILL to a child of this process, dead ones included; whoever else has that pid is left
 * alone.  0, or -1 with errno: ESRCH or ECHILD, it is no child. */
int io_kill_child(pid_t pid);
/* Start time of a process in clock ticks since boot (/proc/PID/stat, field 22).  0;
 * E_NOENT: there is no such process; E_SYS, E_NOMEM: it cannot be told. */
int io_proc_start_time(pid_t pid, uint64_t *ret_ticks);
/* The kernel's boot id, 36 characters and a NUL.  0 or E_SYS. */
int io_boot_id(char out[37]);

#endif
