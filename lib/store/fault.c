#include <fcntl.h>
#include <fnmatch.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/base.h"
#include "lib/base/clock.h"
#include "lib/base/io.h"
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

#define VFS_NAME       "anvil-fault"
#define NAME_SIZE      40
#define RULES_MAX      16
#define RULES_MAX_SIZE 4096
#define LOOK_US        5000 /* between looks at the file of rules */

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

/* ---- by the file of rules, which opens and shuts windows of faults while processes run ---- */

enum rule_word {
	RULE_FULL = 1,
	RULE_WRITE = 2,
	RULE_SYNC = 4,
	RULE_READ = 8,
	RULE_READONLY = 16,
	RULE_CORRUPT = 32
};

struct rule {
	char pattern[NAME_SIZE];
	unsigned what; /* of rule_word */
	long slow_us;
};

/* What was read of it, shared by the threads. */
static struct {
	pthread_mutex_t lock;
	const char *path; /* NULL: there is none. */
	struct mono_time looked;
	struct stat seen;
	struct rule rules[RULES_MAX];
	size_t n;
} file = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void
add_word(struct rule *r, const char *word)
{
	static const struct {
		const char *name;
		unsigned what;
	} words[] = { { "full", RULE_FULL }, { "io", RULE_WRITE | RULE_SYNC | RULE_READ },
		{ "write", RULE_WRITE }, { "sync", RULE_SYNC }, { "read", RULE_READ },
		{ "readonly", RULE_READONLY }, { "corrupt", RULE_CORRUPT } };

	if (strncmp(word, "slow_us=", 8) == 0)
		r->slow_us = strtol(word + 8, NULL, 10);
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcmp(word, words[i].name) == 0)
			r->what |= words[i].what;
}

/* Without an allocation, of which a test may have ordered that it fails. */
static void
read_rules(void)
{
	CLEANUP(io_closep) int fd = open(file.path, O_RDONLY | O_CLOEXEC);
	char text[RULES_MAX_SIZE], *rest = text, *line, *word, *within;
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;

	file.n = 0;
	text[n > 0 ? n : 0] = '\0';
	while ((line = strsep(&rest, "\n")) != NULL && file.n < RULES_MAX) {
		struct rule *r = &file.rules[file.n];

		word = strtok_r(line, " \t", &within);
		if (word == NULL || *word == '#')
			continue;
		*r = (struct rule) { .what = 0 };
		(void)snprintf(r->pattern, sizeof(r->pattern), "%s", word);
		while ((word = strtok_r(NULL, " \t", &within)) != NULL)
			add_word(r, word);
		file.n++;
	}
}

static void
look_at_rules(void)
{
	struct mono_time now = clock_mono();
	struct stat st = { .st_ino = 0 };

	if (file.looked.us != 0 && mono_diff_us(file.looked, now) < LOOK_US)
		return;
	file.looked = now;
	if (stat(file.path, &st) == 0 && st.st_ino == file.seen.st_ino &&
	    st.st_size == file.seen.st_size && st.st_mtim.tv_sec == file.seen.st_mtim.tv_sec &&
	    st.st_mtim.tv_nsec == file.seen.st_mtim.tv_nsec)
		return;
	file.seen = st;
	read_rules();
}

/* Every line that fits the store counts. */
static struct rule
rule_of(const char *store)
{
	struct rule all = { .what = 0 };

	if (file.path == NULL)
		return all;
	must(pthread_mutex_lock(&file.lock) == 0);
	look_at_rules();
	for (size_t i = 0; i < file.n; i++) {
		if (fnmatch(file.rules[i].pattern, store, 0) != 0)
			continue;
		all.what |= file.rules[i].what;
		all.slow_us += file.rules[i].slow_us;
	}
	must(pthread_mutex_unlock(&file.lock) == 0);
	return all;
}

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

static void
dawdle(long us)
{
	struct timespec ts = { us / 1000000, us % 1000000 * 1000 };

	if (us > 0)
		(void)nanosleep(&ts, NULL); /* the slow disk itself */
}

static int
fault_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
	struct rule rule = rule_of(ours_of(f)->store);
	int rc = fault_now(SQLITE_IOERR_WRITE);

	if (rc == 0 && (rule.what & RULE_FULL) != 0)
		rc = SQLITE_FULL;
	/* What a file system says that has become read-only underneath. */
	if (rc == 0 && (rule.what & (RULE_WRITE | RULE_READONLY)) != 0)
		rc = SQLITE_IOERR_WRITE;
	return rc != 0 ? rc : real_of(f)->xWrite(f, p, n, at);
}

static int
fault_sync(sqlite3_file *f, int flags)
{
	struct rule rule = rule_of(ours_of(f)->store);
	int rc = fault_now(SQLITE_IOERR_FSYNC);

	if (rc == 0 && (rule.what & RULE_SYNC) != 0)
		rc = SQLITE_IOERR_FSYNC;
	if (rc != 0)
		return rc;
	dawdle(sync_us + rule.slow_us);
	return real_of(f)->xSync(f, flags);
}

static int
fault_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at)
{
	struct ours *o = ours_of(f);
	struct rule rule = rule_of(o->store);
	int rc;

	if ((rule.what & RULE_READ) != 0)
		return SQLITE_IOERR_READ;
	rc = real_of(f)->xRead(f, p, n, at);
	/* A page's first bytes say what it is; the first page is left, so that it opens. */
	if ((rule.what & RULE_CORRUPT) != 0 && !o->is_log && at != 0)
		memset(p, 0x5a, n < 8 ? (size_t)n : 8);
	return rc;
}

static int
fault_truncate(sqlite3_file *f, sqlite3_int64 size)
{
	struct rule rule = rule_of(ours_of(f)->store);

	if ((rule.what & (RULE_WRITE | RULE_READONLY)) != 0)
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
	if ((rule_of(o->store).what & RULE_READONLY) != 0 &&
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
	file.path = getenv("ANVIL_FAULT_FILE");
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
