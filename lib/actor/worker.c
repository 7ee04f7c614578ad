#include "lib/actor/worker.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <unistd.h>

#include "lib/actor/inside.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

/* The sanitizers' frames are larger. */
#ifdef ANVIL_SANITIZED
#define STACK_BYTES (8 * WORKER_STACK_BYTES)
#else
#define STACK_BYTES WORKER_STACK_BYTES
#endif

struct job {
	STAILQ_ENTRY(job) entry;
	void (*work)(void *arg);
	void (*done)(void *arg, int err);
	void *arg;
	char request_id[RPC_REQUEST_ID_SIZE];
};

STAILQ_HEAD(job_list, job);

struct worker {
	/* Of the loop alone. */
	struct event ev_done;
	int wake_fd;
	pthread_t threads[WORKER_THREADS_MAX];
	size_t nthreads, nthreads_max;
	size_t njobs; /* Not told yet. */
	/* Shared. */
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct job_list waiting, finished;
	size_t nwaiting, nidle;
	int ending;
};

static struct job *
job_next(struct worker *w)
{
	struct job *j;

	w->nidle++;
	while ((j = STAILQ_FIRST(&w->waiting)) == NULL && !w->ending)
		pthread_cond_wait(&w->more, &w->lock);
	w->nidle--;
	if (w->ending)
		return NULL;
	STAILQ_REMOVE_HEAD(&w->waiting, entry);
	w->nwaiting--;
	return j;
}

static void *
thread_main(void *arg)
{
	static const uint64_t one = 1;
	struct worker *w = arg;
	struct job *j;

	pthread_mutex_lock(&w->lock);
	while ((j = job_next(w)) != NULL) {
		pthread_mutex_unlock(&w->lock);
		log_set_request(j->request_id);
		j->work(j->arg);
		log_set_request("");
		pthread_mutex_lock(&w->lock);
		STAILQ_INSERT_TAIL(&w->finished, j, entry);
		/* Cannot fail but by a counter that is full, which wakes as well. */
		if (write(w->wake_fd, &one, sizeof(one)) < 0)
			continue;
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

static void
tell(struct worker *w, struct job *j, int err)
{
	w->njobs--;
	log_set_request(j->request_id);
	j->done(j->arg, err);
	log_set_request("");
	free(j);
}

static void
tell_all(struct worker *w, int err)
{
	struct job_list list = STAILQ_HEAD_INITIALIZER(list);
	struct job *j;

	pthread_mutex_lock(&w->lock);
	STAILQ_CONCAT(&list, err == 0 ? &w->finished : &w->waiting);
	pthread_mutex_unlock(&w->lock);
	while ((j = STAILQ_FIRST(&list)) != NULL) {
		STAILQ_REMOVE_HEAD(&list, entry);
		tell(w, j, err);
	}
}

static void
worker_on_done(evutil_socket_t fd, short what, void *arg)
{
	uint64_t n;

	(void)what;
	if (read(fd, &n, sizeof(n)) < 0)
		return;
	tell_all(arg, 0);
}

static struct worker *
worker_new(struct actor *a, size_t nthreads_max)
{
	struct worker *w = mem_calloc(1, sizeof(*w));

	if (w == NULL)
		return NULL;
	w->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	w->nthreads_max = min_size(nthreads_max == 0 ? 1 : nthreads_max, WORKER_THREADS_MAX);
	STAILQ_INIT(&w->waiting);
	STAILQ_INIT(&w->finished);
	event_assign(&w->ev_done, a->base, w->wake_fd, EV_READ | EV_PERSIST, worker_on_done, w);
	if (w->wake_fd < 0 || event_add(&w->ev_done, NULL) < 0) {
		io_close(&w->wake_fd);
		free(w);
		return NULL;
	}
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->more, NULL);
	return w;
}

/* Signals are the loop's alone. */
static int
thread_start(struct worker *w)
{
	pthread_attr_t attr;
	sigset_t all, old;
	int r;

	if (pthread_attr_init(&attr) != 0)
		return E_NOMEM;
	sigfillset(&all);
	(void)pthread_attr_setstacksize(&attr, STACK_BYTES);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&w->threads[w->nthreads], &attr, thread_main, w);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (r != 0)
		return E_SYS;
	w->nthreads++;
	return 0;
}

struct worker *
worker_free(struct worker *w)
{
	if (w == NULL)
		return NULL;
	pthread_mutex_lock(&w->lock);
	w->ending = 1;
	pthread_cond_broadcast(&w->more);
	pthread_mutex_unlock(&w->lock);
	for (size_t i = 0; i < w->nthreads; i++)
		pthread_join(w->threads[i], NULL);
	tell_all(w, 0);
	tell_all(w, E_CANCELED);
	must(w->njobs == 0);
	(void)event_del(&w->ev_done);
	io_close(&w->wake_fd);
	pthread_cond_destroy(&w->more);
	pthread_mutex_destroy(&w->lock);
	free(w);
	return NULL;
}

static int
enqueue(struct worker *w, struct job *j)
{
	int idle, r = 0;

	pthread_mutex_lock(&w->lock);
	idle = w->nidle > w->nwaiting;
	if (w->nwaiting >= WORKER_QUEUE_MAX || w->ending)
		r = E_OVERLOADED;
	pthread_mutex_unlock(&w->lock);
	if (r == 0 && !idle && w->nthreads < w->nthreads_max) {
		r = thread_start(w);
		if (r < 0 && w->nthreads > 0)
			r = 0;
	}
	if (r < 0)
		return r;
	w->njobs++;
	pthread_mutex_lock(&w->lock);
	STAILQ_INSERT_TAIL(&w->waiting, j, entry);
	w->nwaiting++;
	pthread_cond_signal(&w->more);
	pthread_mutex_unlock(&w->lock);
	return 0;
}

static int
post(struct actor *a, struct worker *w, void (*work)(void *arg),
    void (*done)(void *arg, int err), void *arg)
{
	struct job *j = w != NULL ? mem_calloc(1, sizeof(*j)) : NULL;
	int r;

	if (j == NULL)
		return E_NOMEM;
	j->work = work;
	j->done = done;
	j->arg = arg;
	if (a->turn != NULL)
		memcpy(j->request_id, a->turn->request_id, strlen(a->turn->request_id) + 1);
	r = enqueue(w, j);
	if (r < 0)
		free(j);
	return r;
}

int
actor_work(
    struct actor *a, void (*work)(void *arg), void (*done)(void *arg, int err), void *arg)
{
	OBJ_CHECK(a, ACTOR_MAGIC);
	if (a->ended)
		return E_DRAINING;
	if (a->worker == NULL)
		a->worker = worker_new(a, a->desc->nworkers);
	return post(a, a->worker, work, done, arg);
}

int
actor_work_aside(
    struct actor *a, void (*work)(void *arg), void (*done)(void *arg, int err), void *arg)
{
	OBJ_CHECK(a, ACTOR_MAGIC);
	if (a->ended)
		return E_DRAINING;
	if (a->aside == NULL)
		a->aside = worker_new(a, 1);
	return post(a, a->aside, work, done, arg);
}

size_t
actor_nwork(const struct actor *a)
{
	return (a->worker != NULL ? a->worker->njobs : 0) +
	    (a->aside != NULL ? a->aside->njobs : 0);
}
