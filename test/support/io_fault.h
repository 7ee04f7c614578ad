/*
 * test/support/io_fault.h -- fails each call of the kernel for files in turn.
 *
 * A program that links this has its own open(), openat(), read(), pread(), write(), pwrite(),
 * fsync(), fdatasync(), ftruncate(), rename(), renameat(), mkdir(), mkdirat(), unlinkat(),
 * flock() and fstat() in front of those of the C library: what a library of anvil calls can be
 * ordered to fail, and nothing else has to know of it.
 */
#ifndef TEST_SUPPORT_IO_FAULT_H
#define TEST_SUPPORT_IO_FAULT_H

/* The ${n}-th such call of this thread from now (0: the next) fails once, with ${code} as its
 * errno.  -1: none. */
void io_fault_arm(long n, int code);
/* 1 when the ordered fault has come since io_fault_arm(). */
int io_fault_hit(void);

/* The same for the children that are forked from now on, and for none of this process's own
 * calls; io_fault_hit() then tells of them.  io_fault_arm() ends it. */
void io_fault_arm_children(long n, int code);

/*
 * Runs ${fn} with its first call failing with EIO, then with its second, until one pass has met
 * no failure; all again with ENOSPC.  ${fn} returns 0 or a negative error; a pass that met a
 * failure may succeed only when ${lenient}.  ${after}, when not NULL, runs behind each pass with
 * nothing armed and is told the verdict: there must be no half state.  Returns how many calls
 * there were, at least one.
 */
long io_starve(int (*fn)(void *arg), void *arg, int lenient, void (*after)(void *arg, int r));

#endif
