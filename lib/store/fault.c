#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/base.h"
#include "lib/store/priv.h"

#ifndef ANVIL_FAULTS

void
store_fault_arm(enum store_fault what, long n)
{
	(void)what;
	(void)n;
}

long
store_fault_count(void)
{
	return 0;
}

const char *
store_vfs(void)
{
	return NULL;
}

#else /* a VFS on top of the default one, whose files fail and dawdle as ordered */

#define VFS_NAME "anvil-fault"

static _Atomic int fault_what;
static _Atomic long fault_in;
static _Atomic long fault_count;
static long sync_us;
static sqlite3_vfs vfs;

/* The default's methods with two of our own; a store's log has others than its file. */
struct wrapped {
	sqlite3_io_methods methods; /* First: files point to it. */
	const sqlite3_io_methods *real;
};
static struct wrapped wrapped[4];

static const sqlite3_io_methods *
real_of(const sqlite3_file *f)
{
	return ((const struct wrapped *)f->pMethods)->real;
}

void
store_fault_arm(enum store_fault what, long n)
{
	atomic_store(&fault_count, 0);
	atomic_store(&fault_in, n);
	atomic_store(&fault_what, (int)what);
}

long
store_fault_count(void)
{
	return atomic_load(&fault_count);
}

/* 0, or the result code of a write that fails by order. */
static int
fault_now(int io_code)
{
	int what = atomic_load(&fault_what);

	if (what == STORE_FAULT_NONE ||
	    (what == STORE_FAULT_SYNC && io_code != SQLITE_IOERR_FSYNC) ||
	    atomic_fetch_sub(&fault_in, 1) > 0)
		return 0;
	atomic_fetch_add(&fault_count, 1);
	return what == STORE_FAULT_FULL ? SQLITE_FULL : io_code;
}

static int
fault_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
	int rc = fault_now(SQLITE_IOERR_WRITE);

	return rc != 0 ? rc : real_of(f)->xWrite(f, p, n, at);
}

static int
fault_sync(sqlite3_file *f, int flags)
{
	int rc = fault_now(SQLITE_IOERR_FSYNC);

	if (rc != 0)
		return rc;
	if (sync_us > 0) {
		struct timespec ts = { sync_us / 1000000, sync_us % 1000000 * 1000 };

		(void)nanosleep(&ts, NULL); /* the slow disk itself */
	}
	return real_of(f)->xSync(f, flags);
}

static const sqlite3_io_methods *
wrap(const sqlite3_io_methods *real)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct wrapped *w = wrapped;

	must(pthread_mutex_lock(&lock) == 0);
	while (w->real != NULL && w->real != real)
		must(++w < wrapped + ARRAY_LEN(wrapped));
	if (w->real == NULL) {
		w->methods = *real;
		w->methods.xWrite = fault_write;
		w->methods.xSync = fault_sync;
		w->real = real;
	}
	must(pthread_mutex_unlock(&lock) == 0);
	return &w->methods;
}

static int
fault_open(sqlite3_vfs *v, const char *name, sqlite3_file *f, int flags, int *ret_flags)
{
	sqlite3_vfs *under = v->pAppData;
	int rc = under->xOpen(under, name, f, flags, ret_flags);

	if (rc == SQLITE_OK && f->pMethods != NULL)
		f->pMethods = wrap(f->pMethods);
	return rc;
}

static void
register_vfs(void)
{
	sqlite3_vfs *under = sqlite3_vfs_find(NULL);
	const char *us = getenv("ANVIL_FAULT_FSYNC_US");

	must(under != NULL);
	sync_us = us != NULL ? strtol(us, NULL, 10) : 0;
	vfs = *under;
	vfs.zName = VFS_NAME;
	vfs.pNext = NULL;
	vfs.pAppData = under;
	vfs.xOpen = fault_open;
	must(sqlite3_vfs_register(&vfs, 0) == SQLITE_OK);
}

const char *
store_vfs(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	must(pthread_once(&once, register_vfs) == 0);
	return VFS_NAME;
}

#endif
