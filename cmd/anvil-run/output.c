#include "cmd/anvil-run/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <unistd.h>

#include "cmd/anvil-run/feed.h"
#include "cmd/anvil-run/recorder.h"
#include "lib/actor/actor.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"

struct source {
	struct output *owner;
	enum log_stream stream;
	int64_t step;
	int fd; /* -1: closed. */
	struct actor_watch *watch;
	size_t unstored; /* Read and not stored. */
	int paused;
};

struct output {
	uint32_t magic;
#define OUTPUT_MAGIC 0x58b1e60d
	struct actor *actor;
	struct recorder *rec;
	struct output_ops ops;
	void *arg;
	struct source sources[LOG_STREAM_COUNT];
	struct feed *next;       /* Owned: gathers what is read; NULL: nothing. */
	size_t nfeeds;           /* Posted and not done. */
	int flushing;            /* `next` is to go as soon as it may. */
	int in_burst;            /* The last one was a large one. */
	struct block_list spare; /* Blocks for reads to come, of OUTPUT_READ_BYTES each. */
	struct actor_timer *flush, *archive, *limit;
	void (*drained)(void *arg);
	void *drained_arg;
	int capped, stopped;
};

/* ---- jobs ---- */

static void
resume(struct output *o)
{
	for (size_t i = 0; i < LOG_STREAM_COUNT; i++) {
		struct source *s = &o->sources[i];

		if (!s->paused || o->stopped || s->unstored >= OUTPUT_UNSTORED_BYTES ||
		    !recorder_has_room(o->rec))
			continue;
		if (actor_watch_resume(s->watch) == 0)
			s->paused = 0;
	}
}

/* While the thread works on one half of what may be unstored, the other half is read; in a
 * burst it is not bothered with less than pays for a transaction. */
static void
push_if_due(struct output *o)
{
	size_t n = o->next != NULL ? feed_bytes(o->next) : 0;

	if (o->next == NULL || o->nfeeds > 1)
		return;
	if (o->nfeeds == 1 ? n >= OUTPUT_UNSTORED_BYTES / 2
			   : o->flushing || !o->in_burst || n >= FEED_BURST_BYTES)
		output_push(o);
}

/* Memory that has been written to is dear to get again. */
static void
keep_blocks(struct output *o, struct block_list *l)
{
	struct block *b;

	while ((b = STAILQ_FIRST(l)) != NULL) {
		STAILQ_REMOVE_HEAD(l, entry);
		if (b->size == OUTPUT_READ_BYTES)
			STAILQ_INSERT_HEAD(&o->spare, b, entry);
		else
			free(b);
	}
}

static struct block *
block_for_read(struct output *o)
{
	struct block *b = STAILQ_FIRST(&o->spare);

	if (b == NULL)
		return block_new(OUTPUT_READ_BYTES);
	STAILQ_REMOVE_HEAD(&o->spare, entry);
	b->end = 0;
	return b;
}

static void
on_fed(void *arg, struct feed_result *res)
{
	struct output *o = arg;

	OBJ_CHECK(o, OUTPUT_MAGIC);
	o->nfeeds--;
	keep_blocks(o, &res->blocks);
	for (size_t i = 0; i < LOG_STREAM_COUNT; i++)
		o->sources[i].unstored -= res->bytes[i];
	if (res->err == E_CANCELED)
		return;
	if (res->err < 0 && o->ops.on_lost != NULL)
		o->ops.on_lost(o->arg, res->err);
	if (res->capped && !o->capped && o->ops.on_capped != NULL)
		o->ops.on_capped(o->arg);
	o->capped |= res->capped;
	if (!actor_timer_is_set(o->archive))
		(void)actor_timer_set(o->archive, OUTPUT_ARCHIVE_MS);
	resume(o);
	push_if_due(o);
}

static struct feed *
gathering(struct output *o)
{
	if (o->next == NULL)
		o->next = feed_new(on_fed, o);
	return o->next;
}

void
output_push(struct output *o)
{
	OBJ_CHECK(o, OUTPUT_MAGIC);
	if (o->next == NULL)
		return;
	o->nfeeds++;
	o->flushing = 0;
	o->in_burst = feed_bytes(o->next) >= FEED_BURST_BYTES;
	feed_post(TAKE_PTR(o->next), o->rec);
}

static void
on_flush(void *arg)
{
	struct output *o = arg;
	struct feed *f;

	OBJ_CHECK(o, OUTPUT_MAGIC);
	f = gathering(o);
	if (f == NULL) {
		(void)actor_timer_set(o->flush, OUTPUT_FLUSH_MS);
		return;
	}
	feed_set_flush(f);
	o->flushing = 1;
	push_if_due(o);
}

static void
on_archive(void *arg)
{
	struct output *o = arg;

	OBJ_CHECK(o, OUTPUT_MAGIC);
	block_list_free(&o->spare);
	if (feed_post_archive(o->rec) < 0)
		(void)actor_timer_set(o->archive, OUTPUT_ARCHIVE_MS);
}

/* ---- pipes ---- */

static void
drain_is_over(struct output *o)
{
	void (*fn)(void *arg) = o->drained;

	o->drained = NULL;
	actor_timer_stop(o->limit);
	actor_timer_stop(o->flush);
	output_push(o);
	fn(o->drained_arg);
}

static int
is_open(const struct output *o, enum log_stream stream)
{
	return o->sources[stream].fd >= 0;
}

static void
fill(const struct source *s, struct block *b)
{
	b->stream = s->stream;
	b->step = s->step;
	b->now_ms = clock_wall_ms();
}

static void
close_source(struct source *s)
{
	struct output *o = s->owner;
	struct feed *f = gathering(o);
	struct block *end = f != NULL ? block_new(0) : NULL;

	s->watch = actor_watch_free(s->watch);
	io_close(&s->fd);
	s->paused = 0;
	/* Without memory the end comes with the stream's next text, or not at all. */
	if (end != NULL) {
		fill(s, end);
		end->end = 1;
		feed_add_take(f, end);
	}
	if (s->stream == LOG_STREAM_SYSTEM)
		output_push(o);
	if (o->drained != NULL && !is_open(o, LOG_STREAM_STDOUT) &&
	    !is_open(o, LOG_STREAM_STDERR))
		drain_is_over(o);
}

static void
on_readable(void *arg, int fd, enum watch_what what)
{
	struct source *s = arg;
	struct output *o = s->owner;
	struct block *block;
	struct feed *f;
	ssize_t n;

	(void)what;
	OBJ_CHECK(o, OUTPUT_MAGIC);
	f = gathering(o);
	block = f != NULL ? block_for_read(o) : NULL;
	if (block == NULL)
		return; /* It is still readable in the next round. */
	n = read(fd, block->data, OUTPUT_READ_BYTES);
	if (n <= 0) {
		int again = n < 0 && (errno == EAGAIN || errno == EINTR);

		STAILQ_INSERT_HEAD(&o->spare, block, entry);
		if (!again)
			close_source(s);
		return;
	}
	fill(s, block);
	block->n = (size_t)n;
	s->unstored += (size_t)n;
	feed_add_take(f, block);
	if (s->unstored >= OUTPUT_UNSTORED_BYTES || !recorder_has_room(o->rec)) {
		actor_watch_pause(s->watch);
		s->paused = 1;
	}
	if (!actor_timer_is_set(o->flush) && actor_timer_set(o->flush, OUTPUT_FLUSH_MS) < 0)
		o->flushing = 1; /* Sooner, then. */
	push_if_due(o);
}

int
output_attach(struct output *o, enum log_stream stream, int64_t step, int fd)
{
	struct source *s = &o->sources[stream];
	CLEANUP(io_closep) int mine = fd;

	OBJ_CHECK(o, OUTPUT_MAGIC);
	must(s->fd < 0);
	if (io_set_nonblocking(mine) < 0)
		return E_SYS;
	/* Less than asked for is enough; it is asked for the sake of fewer switches. */
	(void)fcntl(mine, F_SETPIPE_SZ, OUTPUT_PIPE_BYTES);
	s->step = step;
	s->watch = actor_watch_new(o->actor, mine, WATCH_READ, on_readable, s);
	if (s->watch == NULL)
		return E_NOMEM;
	s->fd = mine;
	mine = -1;
	if (o->stopped) {
		actor_watch_pause(s->watch);
		s->paused = 1;
	}
	return 0;
}

int
output_open(struct output *o, enum log_stream stream, int64_t step, int *ret_write_fd)
{
	int fds[2], r;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return E_SYS;
	r = output_attach(o, stream, step, fds[0]);
	if (r < 0)
		io_close(&fds[1]);
	else
		*ret_write_fd = fds[1];
	return r;
}

/* ---- the end of a step ---- */

static void
close_step(struct output *o)
{
	for (size_t i = 0; i < LOG_STREAM_COUNT; i++)
		if (i != LOG_STREAM_SYSTEM && o->sources[i].fd >= 0)
			close_source(&o->sources[i]);
}

static void
on_limit(void *arg)
{
	struct output *o = arg;

	OBJ_CHECK(o, OUTPUT_MAGIC);
	close_step(o);
}

void
output_drain(struct output *o, void (*fn)(void *arg), void *arg)
{
	OBJ_CHECK(o, OUTPUT_MAGIC);
	must(o->drained == NULL);
	o->drained = fn;
	o->drained_arg = arg;
	if (!is_open(o, LOG_STREAM_STDOUT) && !is_open(o, LOG_STREAM_STDERR))
		drain_is_over(o);
	else if (o->stopped || actor_timer_set(o->limit, OUTPUT_DRAIN_MS) < 0)
		close_step(o);
}

void
output_stop(struct output *o)
{
	o->stopped = 1;
	for (size_t i = 0; i < LOG_STREAM_COUNT; i++) {
		struct source *s = &o->sources[i];

		if (s->fd < 0 || s->paused)
			continue;
		actor_watch_pause(s->watch);
		s->paused = 1;
	}
}

/* ---- life ---- */

struct output *
output_new(struct actor *a, struct recorder *rec, const struct output_ops *ops, void *arg)
{
	struct output *o = mem_calloc(1, sizeof(*o));

	if (o == NULL)
		return NULL;
	o->magic = OUTPUT_MAGIC;
	o->actor = a;
	o->rec = rec;
	o->ops = *ops;
	o->arg = arg;
	STAILQ_INIT(&o->spare);
	for (size_t i = 0; i < LOG_STREAM_COUNT; i++)
		o->sources[i] =
		    (struct source) { .owner = o, .stream = (enum log_stream)i, .fd = -1 };
	o->flush = actor_timer_new(a, on_flush, o);
	o->archive = actor_timer_new(a, on_archive, o);
	o->limit = actor_timer_new(a, on_limit, o);
	return o->flush != NULL && o->archive != NULL && o->limit != NULL ? o : output_free(o);
}

struct output *
output_free(struct output *o)
{
	if (o == NULL)
		return NULL;
	OBJ_CHECK(o, OUTPUT_MAGIC);
	for (size_t i = 0; i < LOG_STREAM_COUNT; i++) {
		actor_watch_free(o->sources[i].watch);
		io_close(&o->sources[i].fd);
	}
	feed_free(o->next);
	block_list_free(&o->spare);
	actor_timer_free(o->flush);
	actor_timer_free(o->archive);
	actor_timer_free(o->limit);
	o->magic = 0;
	return mem_free(o);
}
