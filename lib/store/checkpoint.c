#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/store/priv.h"

#define STACK_BYTES (128 * 1024)

/* Shared with the thread under `lock`, but for what is constant. */
struct checkpointer {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	char *path;
	char *wal_path;
	int64_t idle_ms;
	int stop;
	int poked; /* a commit has been made */
	int dirty; /* ... and not been written back */
	int truncate;
};

static int64_t
wal_bytes(const struct checkpointer *c)
{
	struct stat st;

	return stat(c->wal_path, &st) == 0 ? (int64_t)st.st_size : 0;
}

/* The connection is opened when it is first needed: most stores are idle most of the time. */
static void
checkpoint(struct checkpointer *c, sqlite3 **db, int truncate)
{
	int mode = truncate ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE;

	if (*db == NULL && store_connect(c->path, SQLITE_OPEN_READWRITE, db) < 0)
		return;
	/* Busy readers or a full disk: the log only grows on, and the next poke tries again. */
	(void)sqlite3_wal_checkpoint_v2(*db, NULL, mode, NULL, NULL);
	(void)sqlite3_db_release_memory(*db);
}

static struct timespec
from_now(int64_t ms)
{
	struct timespec t;

	must(clock_gettime(CLOCK_MONOTONIC, &t) == 0);
	t.tv_sec += ms / 1000;
	t.tv_nsec += (ms % 1000) * 1000000;
	if (t.tv_nsec >= 1000000000) {
		t.tv_sec++;
		t.tv_nsec -= 1000000000;
	}
	return t;
}

/* Returns when the log is long, or when commits have come and then paused for idle_ms. */
static void
wait_for_work(struct checkpointer *c)
{
	struct timespec until = { 0 };

	while (!c->stop && !c->truncate) {
		if (c->poked) {
			c->poked = 0;
			c->dirty = 1;
			until = from_now(c->idle_ms);
			if (wal_bytes(c) > STORE_WAL_PASSIVE_BYTES)
				return;
		}
		if (!c->dirty)
			(void)pthread_cond_wait(&c->wake, &c->lock);
		else if (pthread_cond_timedwait(&c->wake, &c->lock, &until) != 0)
			return;
	}
}

static void *
run(void *arg)
{
	struct checkpointer *c = arg;
	sqlite3 *db = NULL;

	must(pthread_mutex_lock(&c->lock) == 0);
	while (!c->stop) {
		int truncate;

		wait_for_work(c);
		truncate = c->truncate || wal_bytes(c) > STORE_WAL_TRUNCATE_BYTES;
		c->dirty = 0;
		c->truncate = 0;
		must(pthread_mutex_unlock(&c->lock) == 0);
		checkpoint(c, &db, truncate);
		must(pthread_mutex_lock(&c->lock) == 0);
	}
	must(pthread_mutex_unlock(&c->lock) == 0);
	(void)sqlite3_close(db);
	return NULL;
}

static void
done(struct checkpointer *c)
{
	(void)pthread_cond_destroy(&c->wake);
	(void)pthread_mutex_destroy(&c->lock);
	free(c->path);
	free(c->wal_path);
	free(c);
}

/* The loop's thread takes the signals. */
static int
start_thread(struct checkpointer *c)
{
	pthread_attr_t attr;
	sigset_t all, old;
	int rc;

	(void)sigfillset(&all);
	if (pthread_attr_init(&attr) != 0)
		return E_NOMEM;
	(void)pthread_attr_setstacksize(&attr, STACK_BYTES);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&c->thread, &attr, run, c);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	(void)pthread_attr_destroy(&attr);
	return rc == 0 ? 0 : E_SYS;
}

int
checkpointer_start(struct store *s, int64_t idle_ms, struct checkpointer **ret)
{
	struct checkpointer *c = mem_calloc(1, sizeof(*c));
	pthread_condattr_t attr;
	int r;

	if (c == NULL)
		return E_NOMEM;
	c->idle_ms = idle_ms;
	must(pthread_mutex_init(&c->lock, NULL) == 0);
	must(pthread_condattr_init(&attr) == 0);
	must(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0);
	must(pthread_cond_init(&c->wake, &attr) == 0);
	(void)pthread_condattr_destroy(&attr);
	c->path = mem_strdup(s->path);
	c->wal_path = mem_format("%s-wal", s->path);
	r = c->path != NULL && c->wal_path != NULL ? start_thread(c) : E_NOMEM;
	if (r < 0) {
		done(c);
		return r;
	}
	*ret = c;
	return 0;
}

static void
signal_thread(struct checkpointer *c, int *flag)
{
	must(pthread_mutex_lock(&c->lock) == 0);
	*flag = 1;
	(void)pthread_cond_signal(&c->wake);
	must(pthread_mutex_unlock(&c->lock) == 0);
}

struct checkpointer *
checkpointer_stop(struct checkpointer *c)
{
	if (c == NULL)
		return NULL;
	signal_thread(c, &c->stop);
	must(pthread_join(c->thread, NULL) == 0);
	done(c);
	return NULL;
}

void
checkpointer_poke(struct checkpointer *c)
{
	signal_thread(c, &c->poked);
}

void
checkpointer_truncate(struct checkpointer *c)
{
	signal_thread(c, &c->truncate);
}
