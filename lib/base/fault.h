/*
 * lib/base/fault.h -- faults of files that a test orders while processes run.
 *
 * The environment variable ANVIL_FAULT_FILE names a file of rules, looked at anew every few
 * milliseconds, so that whoever writes it opens and shuts windows of faults in processes that
 * run (written to another name and renamed).  A line is PATTERN WORD..., and every line whose
 * pattern (of the shell's kind) fits the target counts.  Targets are the stores (supervisor,
 * ingress, project-0; for a run's store the run's id) and the archive of a run's log, which is
 * the run's id with /log.zst behind it: a pattern that ends in a star may mean both.
 *
 * Words: full (no room to write), write, sync, read (each fails with EIO), io (all three),
 * readonly (as a file system that has become so), short (a write takes half of it), corrupt
 * (pages are read damaged), slow_us=N (each sync takes so much longer).  An archive is written,
 * cut and synced with faults, and read without; short is for archives alone.  No file: no
 * faults.
 *
 * For tests only: without ANVIL_FAULTS nothing of it is compiled in.
 */
#ifndef LIB_BASE_FAULT_H
#define LIB_BASE_FAULT_H

#include <sys/types.h>

#ifdef ANVIL_FAULTS

enum fault_word {
	FAULT_FULL = 1,
	FAULT_WRITE = 2,
	FAULT_SYNC = 4,
	FAULT_READ = 8,
	FAULT_READONLY = 16,
	FAULT_CORRUPT = 32,
	FAULT_SHORT = 64
};

struct fault_rule {
	unsigned what; /* of fault_word */
	long slow_us;
};

/* What holds for the target now.  For any thread; allocates nothing. */
struct fault_rule fault_rule_of(const char *target);
/* The slow disk itself. */
void fault_dawdle(long us);

/* pwrite(2), ftruncate(2) and fdatasync(2) with the faults of the file, whose target are the last
 * two parts of its path.  A full disk takes a part of a large write first, as real ones do. */
ssize_t fault_file_write(int fd, const void *p, size_t n, off_t at);
int fault_file_cut(int fd, off_t size);
int fault_file_sync(int fd);

#else

#include <unistd.h>

#define fault_file_write(fd, p, n, at) pwrite((fd), (p), (n), (at))
#define fault_file_cut(fd, size)       ftruncate((fd), (size))
#define fault_file_sync(fd)            fdatasync(fd)

#endif

#endif
