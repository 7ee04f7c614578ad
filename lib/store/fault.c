#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/base.h"
#include "lib/base/fault.h"
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

#define VFS_NAME  "anvil-fault"
#define NAME_SIZE 40

static _Atomic int fault_what;
static _Atomic long fault_in;
static _Atomic long fault_count;
static long sync_us;
static sqlite3_vfs vfs;

/* The default's methods with some of our own; a store's log has others than its file. */
struct wrapped {
	sqlite3_io_methods methods; /* First: files point to it. */
	const sqlite3_io_methods *real;
};
static struct wrapped wrapped[4];

/* What is ours of an open file: it lies behind what is the default's. */
struct ours {
	char store[NAME_SIZE];
	int is_log;
};

static const sqlite3_io_methods *
real_of(const sqlite3_file *f)
{
	return ((const struct wrapped *)f->pMethods)->real;
}

static struct ours *
ours_of(sqlite3_file *f)
{
	const sqlite3_vfs *under = vfs.pAppData;

	return (struct ours *)((char *)f + under->szOsFile);
}

/* ---- by order of this process ---- */

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

/* ---- by the file of rules ---- */

/* project-0.db and its log: "project-0"; a run's: the folder, which has the run's id. */
static void
name_store(const char *path, struct ours *o)
{
	const char *name = path != NULL ? strrchr(path, '/') : NULL;
	const char *end;

	name = name != NULL ? name + 1 : "";
	end = strstr(name, ".db");
	if (strncmp(name, "run.db", 6) == 0) {
		end = name - 1;
		name = memrchr(path, '/', (size_t)(end - path));
		name = name != NULL ? name + 1 : path;
	}
	if (end == NULL)
		end = name + strlen(name);
	(void)snprintf(o->store, sizeof(o->store), "%.*s", (int)(end - name), name);
}

/* ---- methods ---- */

static int
fault_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
	struct fault_rule rule = fault_rule_of(ours_of(f)->store);
	int rc = fault_now(SQLITE_IOERR_WRITE);

	if (rc == 0 && (rule.what & FAULT_FULL) != 0)
		rc = SQLITE_FULL;
	/* What a file system says that has become read-only underneath. */
	if (rc == 0 && (rule.what & (FAULT_WRITE | FAULT_READONLY)) != 0)
		rc = SQLITE_IOERR_WRITE;
	return rc != 0 ? rc : real_of(f)->xWrite(f, p, n, at);
}

static int
fault_sync(sqlite3_file *f, int flags)
{
	struct fault_rule rule = fault_rule_of(ours_of(f)->store);
	int rc = fault_now(SQLITE_IOERR_FSYNC);

	if (rc == 0 && (rule.what & FAULT_SYNC) != 0)
		rc = SQLITE_IOERR_FSYNC;
	if (rc != 0)
		return rc;
	fault_dawdle(sync_us + rule.slow_us);
	return real_of(f)->xSync(f, flags);
}

static int
fault_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at)
{
	struct ours *o = ours_of(f);
	struct fault_rule rule = fault_rule_of(o->store);
	int rc;

	if ((rule.what & FAULT_READ) != 0)
		return SQLITE_IOERR_READ;
	rc = real_of(f)->xRead(f, p, n, at);
	/* A page's first bytes say what it is; the first page is left, so that it opens. */
	if ((rule.what & FAULT_CORRUPT) != 0 && !o->is_log && at != 0)
		memset(p, 0x5a, n < 8 ? (size_t)n : 8);
	return rc;
}

static int
fault_truncate(sqlite3_file *f, sqlite3_int64 size)
{
	struct fault_rule rule = fault_rule_of(ours_of(f)->store);

	if ((rule.what & (FAULT_WRITE | FAULT_READONLY)) != 0)
		return SQLITE_IOERR_TRUNCATE;
	return real_of(f)->xTruncate(f, size);
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
		w->methods.xRead = fault_read;
		w->methods.xTruncate = fault_truncate;
		w->real = real;
	}
	must(pthread_mutex_unlock(&lock) == 0);
	return &w->methods;
}

static int
fault_open(sqlite3_vfs *v, const char *name, sqlite3_file *f, int flags, int *ret_flags)
{
	sqlite3_vfs *under = v->pAppData;
	struct ours *o = ours_of(f);
	int rc;

	name_store(name, o);
	o->is_log = (flags & SQLITE_OPEN_MAIN_DB) == 0;
	if ((fault_rule_of(o->store).what & FAULT_READONLY) != 0 &&
	    (flags & SQLITE_OPEN_READWRITE) != 0) {
		flags &= ~(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
		flags |= SQLITE_OPEN_READONLY;
	}
	rc = under->xOpen(under, name, f, flags, ret_flags);
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
	vfs.szOsFile += (int)sizeof(struct ours);
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
