#include "cmd/anvil-run/recorder.h"

#include <stdlib.h>

#include "cmd/anvil-run/weight.h"
#include "lib/actor/actor.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

STAILQ_HEAD(job_list, job);

struct recorder {
	uint32_t magic;
#define RECORDER_MAGIC 0x3c91d7e4
	struct actor *actor;
	struct recorder_ops ops;
	void *arg;
	struct desk desk;
	struct job_list jobs;  /* State and log, in order. */
	struct job_list reads; /* May overtake them. */
	struct job *running;   /* On the thread; NULL: none. */
	int read_last;         /* A read ran last: the others come first now. */
	size_t njobs, bytes;
	/* The head of `jobs` fails. */
	struct actor_timer *retry;
	int failing;
	struct mono_time failing_since;
	int weigh;    /* The thread is to say whether the run is `heavy`. */
	int heavy;    /* The run has filled the disk itself. */
	int given_up; /* The reserve is spent. */
	int drop_reserve;
};

static void go_on(struct recorder *r);

static int
may_pass(int err)
{
	return err == E_FULL || err == E_NOMEM || err == E_STORAGE;
}

/* ---- the thread ---- */

void
desk_tell_set_aside(const struct desk *d, const char *aside)
{
	log_event(LOG_LEVEL_WARN, "foreign_log_set_aside", LOG_STR("file", d->dir),
	    LOG_STR("kept", aside));
}

int
desk_open(struct desk *d)
{
	CLEANUP_FREE char *why = NULL;
	int r;

	if (d->record != NULL)
		return 0;
	d->free_bytes = weight_free(d->dir);
	r = record_open(d->dir, d->max_log_bytes, &d->record, &why);
	if (r < 0) {
		log_event(LOG_LEVEL_ERROR, "store_not_opened", LOG_STR("why", why),
		    LOG_STR("errorCode", err_symbol(r)));
		return r;
	}
	record_set_redactor(d->record, d->redactor);
	if (record_set_aside(d->record) != NULL)
		desk_tell_set_aside(d, record_set_aside(d->record));
	return 0;
}

static void
on_thread(void *arg)
{
	struct recorder *r = arg;
	struct job *j = r->running;

	if (r->drop_reserve)
		(void)record_reserve_drop(r->desk.dir);
	r->drop_reserve = 0;
	if (r->weigh)
		r->heavy = weight_is_heavy(r->desk.dir, r->desk.free_bytes);
	r->weigh = 0;
	j->err = j->work(j, &r->desk);
}

/* ---- the loop ---- */

static void
finish(struct recorder *r, struct job *j, int err)
{
	r->njobs--;
	r->bytes -= j->bytes;
	j->done(j, err);
}

static void
recovered(struct recorder *r)
{
	if (!r->failing)
		return;
	r->failing = r->heavy = 0;
	if (r->ops.on_trouble != NULL)
		r->ops.on_trouble(r->arg, 0);
}

static void
stored(struct recorder *r, enum job_kind kind)
{
	recovered(r);
	if (r->ops.on_stored != NULL)
		r->ops.on_stored(r->arg, kind);
}

/* 1: nobody can wait any longer for room. */
static int
is_out_of_patience(struct recorder *r, int64_t waited_ms)
{
	if (waited_ms < RECORDER_HEAVY_MS)
		return 0;
	/* What the next try finds out counts after it. */
	r->weigh = !r->heavy;
	return r->heavy || waited_ms >= RECORDER_PATIENCE_MS;
}

/* Back to the head of the queue, for another try in a second. */
static void
try_later(struct recorder *r, struct job *j, int err)
{
	struct mono_time now = clock_mono();

	STAILQ_INSERT_HEAD(&r->jobs, j, entry);
	(void)actor_timer_set(r->retry, RECORDER_RETRY_MS);
	if (!r->failing) {
		r->failing = 1;
		r->failing_since = now;
		if (r->ops.on_trouble != NULL)
			r->ops.on_trouble(r->arg, err);
	}
	if (r->given_up || !is_out_of_patience(r, mono_diff_ms(r->failing_since, now)))
		return;
	r->given_up = 1;
	r->drop_reserve = 1;
	r->weigh = 0;
	if (r->ops.on_full != NULL)
		r->ops.on_full(r->arg);
}

static void
on_done(void *arg, int err)
{
	struct recorder *r = arg;
	struct job *j = r->running;
	int result = err < 0 ? err : j->err;

	OBJ_CHECK(r, RECORDER_MAGIC);
	r->running = NULL;
	if (j->kind == JOB_READ || result == E_CANCELED) {
		finish(r, j, result);
	} else if (may_pass(result) && !(r->given_up && j->kind == JOB_LOG)) {
		try_later(r, j, result);
	} else {
		if (result == 0)
			stored(r, j->kind);
		finish(r, j, result);
	}
	go_on(r);
}

static struct job *
next(struct recorder *r)
{
	struct job *read = STAILQ_FIRST(&r->reads);
	struct job *j = actor_timer_is_set(r->retry) ? NULL : STAILQ_FIRST(&r->jobs);

	if (read != NULL && (j == NULL || !r->read_last)) {
		STAILQ_REMOVE_HEAD(&r->reads, entry);
		r->read_last = 1;
		return read;
	}
	if (j != NULL)
		STAILQ_REMOVE_HEAD(&r->jobs, entry);
	r->read_last = 0;
	return j;
}

static void
go_on(struct recorder *r)
{
	struct job *j;
	int err;

	while (r->running == NULL && (j = next(r)) != NULL) {
		r->running = j;
		err = actor_work(r->actor, on_thread, on_done, r);
		if (err == 0)
			return;
		r->running = NULL;
		if (err == E_DRAINING || j->kind == JOB_READ)
			finish(r, j, err == E_DRAINING ? E_CANCELED : err);
		else
			try_later(r, j, E_NOMEM);
	}
}

static void
on_retry(void *arg)
{
	struct recorder *r = arg;

	OBJ_CHECK(r, RECORDER_MAGIC);
	go_on(r);
}

void
recorder_post(struct recorder *r, struct job *j)
{
	OBJ_CHECK(r, RECORDER_MAGIC);
	r->njobs++;
	r->bytes += j->bytes;
	if (j->kind == JOB_READ)
		STAILQ_INSERT_TAIL(&r->reads, j, entry);
	else
		STAILQ_INSERT_TAIL(&r->jobs, j, entry);
	go_on(r);
}

int
recorder_has_room(const struct recorder *r)
{
	return r->bytes < RECORDER_MAX_BYTES;
}

size_t
recorder_njobs(const struct recorder *r)
{
	return r->njobs;
}

/* ---- life ---- */

struct recorder *
recorder_new(struct actor *a, const char *dir, int64_t max_log_bytes,
    const struct recorder_ops *ops, void *arg)
{
	struct recorder *r = mem_calloc(1, sizeof(*r));

	if (r == NULL)
		return NULL;
	r->magic = RECORDER_MAGIC;
	r->actor = a;
	r->ops = *ops;
	r->arg = arg;
	r->desk.dir = dir;
	r->desk.max_log_bytes = max_log_bytes;
	for (size_t i = 0; i < LOG_STREAM_COUNT; i++)
		record_stream_init(&r->desk.streams[i]);
	STAILQ_INIT(&r->jobs);
	STAILQ_INIT(&r->reads);
	r->retry = actor_timer_new(a, on_retry, r);
	return r->retry != NULL ? r : recorder_free(r);
}

static void
cancel_all(struct recorder *r, struct job_list *list)
{
	struct job *j;

	while ((j = STAILQ_FIRST(list)) != NULL) {
		STAILQ_REMOVE_HEAD(list, entry);
		finish(r, j, E_CANCELED);
	}
}

struct recorder *
recorder_free(struct recorder *r)
{
	if (r == NULL)
		return NULL;
	OBJ_CHECK(r, RECORDER_MAGIC);
	must(r->running == NULL);
	cancel_all(r, &r->jobs);
	cancel_all(r, &r->reads);
	actor_timer_free(r->retry);
	record_free(r->desk.record);
	for (size_t i = 0; i < LOG_STREAM_COUNT; i++)
		record_stream_done(&r->desk.streams[i]);
	free(r->desk.rows);
	r->magic = 0;
	return mem_free(r);
}
