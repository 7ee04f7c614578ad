#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "lib/base/crash.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/store/priv.h"

#define STACK_BYTES    (128 * 1024)
#define RETRY_MS       100 /* between tries to cut the log */
#define CUT_WAIT_TRIES 20  /* of a millisecond each, for the writer's transaction to end */

/* Shared with the thread under `lock`, but for what is constant. */
struct checkpointer {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;       /* of the thread              */
	pthread_cond_t idle;       /* of those who wait for it   */
	const struct store *store; /* For the thread that pokes. */
	char *path;
	int64_t idle_ms;
	int64_t wal_bytes;  /* of the log in use, as of the last poke             */
	int64_t base_bytes; /* ... when it was last written back                  */
	int stop;
	int poked;    /* a commit has been made            */
	int dirty;    /* ... and not been written back     */
	int truncate; /* the log is to be cut              */
	int retry;    /* ... which has failed a moment ago */
	int hurry;    /* somebody waits in settle()        */
	int busy;
};

/* ---- one checkpoint ---- */

static int
wait_for_writer(void *arg, int tries)
{
	static const struct timespec ms = { 0, 1000000 };

	(void)arg;
	return tries < CUT_WAIT_TRIES && nanosleep(&ms, NULL) == 0;
}

/* Cuts a log that is written back.  Cutting takes the lock of the writer, and all that it then
 * waits for keeps the writer waiting; hence the short patience.  1 when the log is empty. */
static int
cut(sqlite3 *db)
{
	int rc;

	(void)sqlite3_busy_handler(db, wait_for_writer, NULL);
	rc = sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
	(void)sqlite3_busy_handler(db, NULL, NULL);
	return rc == SQLITE_OK;
}

/* What is done without the lock.  The connection is opened when it is first needed: most
 * stores are idle most of the time.  Readers in the way or a full disk: the log only grows on,
 * and a later poke tries again. */
static int
write_back(const struct checkpointer *c, sqlite3 **db, int truncate)
{
	int nlog = 0, ndone = 0, rc, is_cut = 0;

	if (*db == NULL &&
	    (store_connect(c->path, SQLITE_OPEN_READWRITE, db) < 0 || store_set_up(*db) < 0)) {
		(void)sqlite3_close(*db);
		*db = NULL;
		return 0;
	}
	rc = sqlite3_wal_checkpoint_v2(*db, NULL, SQLITE_CHECKPOINT_PASSIVE, &nlog, &ndone);
	CRASH_POINT_OF(c->store->desc->name, "log_written_back");
	if (truncate && rc == SQLITE_OK && nlog == ndone) {
		is_cut = cut(*db);
		CRASH_POINT_OF(c->store->desc->name, "log_cut");
	}
	(void)sqlite3_db_release_memory(*db);
	return is_cut;
}

/* ---- when ---- */

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

/* A log that has been written back begins anew, with the file as long as it was: what counts
 * is what is in use. */
static int
is_long(struct checkpointer *c)
{
	if (c->wal_bytes < c->base_bytes)
		c->base_bytes = 0;
	return c->wal_bytes - c->base_bytes > STORE_WAL_PASSIVE_BYTES;
}

/* Returns when the log is long, or when commits have come and then paused for idle_ms, or when
 * the log is to be cut. */
static void
wait_for_work(struct checkpointer *c)
{
	struct timespec until = { 0 }, again = from_now(RETRY_MS);
	int rc = 0;

	while (!c->stop && rc == 0) {
		if (c->poked) {
			c->poked = 0;
			c->dirty = 1;
			until = from_now(c->idle_ms);
			if (is_long(c))
				return;
		}
		if ((c->truncate && !c->retry) || (c->dirty && c->hurry))
			return;
		if (c->truncate)
			rc = pthread_cond_timedwait(&c->wake, &c->lock, &again);
		else if (c->dirty)
			rc = pthread_cond_timedwait(&c->wake, &c->lock, &until);
		else
			rc = pthread_cond_wait(&c->wake, &c->lock);
	}
}

static void *
run(void *arg)
{
	struct checkpointer *c = arg;
	sqlite3 *db = NULL;

	must(pthread_mutex_lock(&c->lock) == 0);
	for (;;) {
		int truncate, is_cut;

		c->busy = 0;
		(void)pthread_cond_broadcast(&c->idle);
		wait_for_work(c);
		if (c->stop)
			break;
		truncate = c->truncate || c->wal_bytes > STORE_WAL_TRUNCATE_BYTES;
		c->busy = 1;
		c->dirty = c->truncate = 0;
		c->base_bytes = c->wal_bytes;
		must(pthread_mutex_unlock(&c->lock) == 0);
		is_cut = write_back(c, &db, truncate);
		must(pthread_mutex_lock(&c->lock) == 0);
		c->retry = truncate && !is_cut;
		c->truncate |= c->retry;
	}
	must(pthread_mutex_unlock(&c->lock) == 0);
	(void)sqlite3_close(db);
	return NULL;
}

static void
done(struct checkpointer *c)
{
	(void)pthread_cond_destroy(&c->wake);
	(void)pthread_cond_destroy(&c->idle);
	(void)pthread_mutex_destroy(&c->lock);
	free(c->path);
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
	c->store = s;
	c->idle_ms = idle_ms;
	must(pthread_mutex_init(&c->lock, NULL) == 0);
	must(pthread_condattr_init(&attr) == 0);
	must(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0);
	must(pthread_cond_init(&c->wake, &attr) == 0);
	must(pthread_cond_init(&c->idle, &attr) == 0);
	(void)pthread_condattr_destroy(&attr);
	c->path = mem_strdup(s->path);
	r = c->path != NULL ? start_thread(c) : E_NOMEM;
	if (r < 0) {
		done(c);
		return r;
	}
	*ret = c;
	return 0;
}

struct checkpointer *
checkpointer_stop(struct checkpointer *c)
{
	if (c == NULL)
		return NULL;
	must(pthread_mutex_lock(&c->lock) == 0);
	c->stop = 1;
	(void)pthread_cond_signal(&c->wake);
	must(pthread_mutex_unlock(&c->lock) == 0);
	must(pthread_join(c->thread, NULL) == 0);
	done(c);
	return NULL;
}

void
checkpointer_poke(struct checkpointer *c)
{
	must(pthread_mutex_lock(&c->lock) == 0);
	c->wal_bytes = c->store->wal_bytes;
	c->poked = 1;
	(void)pthread_cond_signal(&c->wake);
	must(pthread_mutex_unlock(&c->lock) == 0);
}

void
checkpointer_truncate(struct checkpointer *c)
{
	must(pthread_mutex_lock(&c->lock) == 0);
	c->truncate = 1;
	c->retry = 0;
	(void)pthread_cond_signal(&c->wake);
	must(pthread_mutex_unlock(&c->lock) == 0);
}

void
checkpointer_settle(struct checkpointer *c)
{
	must(pthread_mutex_lock(&c->lock) == 0);
	c->hurry = 1;
	(void)pthread_cond_signal(&c->wake);
	while (c->busy || c->poked || c->dirty || (c->truncate && !c->retry))
		(void)pthread_cond_wait(&c->idle, &c->lock);
	c->hurry = 0;
	must(pthread_mutex_unlock(&c->lock) == 0);
}
