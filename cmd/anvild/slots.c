#include "cmd/anvild/slots.h"

#include <string.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"

void
slots_init(struct slots *s, int64_t max)
{
	*s = (struct slots) { .max = max };
	TAILQ_INIT(&s->queue);
}

void
slots_done(struct slots *s)
{
	struct slot_request *r;

	while ((r = TAILQ_FIRST(&s->queue)) != NULL) {
		TAILQ_REMOVE(&s->queue, r, entry);
		free(r);
	}
	s->nqueued = 0;
}

int
slots_unhealthy(const struct slots *s)
{
	return s->failures >= SLOTS_UNHEALTHY_AFTER;
}

enum slot_wait
slots_check(const struct slots *s, struct mono_time now)
{
	if (s->draining)
		return SLOT_DRAINING;
	if (s->low_disk)
		return SLOT_LOW_DISK;
	if (slots_unhealthy(s) && (now.us < s->next_try.us || s->trying))
		return SLOT_UNHEALTHY;
	return s->live < s->max ? SLOT_FREE : SLOT_NONE_FREE;
}

static struct slot_request *
slots_find(const struct slots *s, const char *run_id)
{
	struct slot_request *r;

	TAILQ_FOREACH (r, &s->queue, entry)
		if (strcmp(r->run_id, run_id) == 0)
			return r;
	return NULL;
}

int
slots_wait(struct slots *s, const struct slot_request *req, int64_t *ret_ahead)
{
	struct slot_request *r = slots_find(s, req->run_id), *at;
	int64_t ahead = 0;

	if (r != NULL) {
		TAILQ_REMOVE(&s->queue, r, entry);
		s->nqueued--;
	} else {
		r = mem_alloc(sizeof(*r));
		if (r == NULL)
			return E_NOMEM;
	}
	*r = *req;
	/* Most requests are the youngest: look for the place from the end. */
	TAILQ_FOREACH_REVERSE(at, &s->queue, slot_queue, entry)
	if (at->queued_at_ms <= r->queued_at_ms)
		break;
	if (at != NULL)
		TAILQ_INSERT_AFTER(&s->queue, at, r, entry);
	else
		TAILQ_INSERT_HEAD(&s->queue, r, entry);
	s->nqueued++;
	for (at = TAILQ_FIRST(&s->queue); at != r; at = TAILQ_NEXT(at, entry))
		ahead++;
	*ret_ahead = ahead;
	return 0;
}

int
slots_drop(struct slots *s, const char *run_id)
{
	struct slot_request *r = slots_find(s, run_id);

	if (r == NULL)
		return 0;
	TAILQ_REMOVE(&s->queue, r, entry);
	s->nqueued--;
	free(r);
	return 1;
}

struct slot_request *
slots_take(struct slots *s, struct mono_time now)
{
	struct slot_request *r = TAILQ_FIRST(&s->queue);

	if (r == NULL || slots_check(s, now) != SLOT_FREE)
		return NULL;
	TAILQ_REMOVE(&s->queue, r, entry);
	s->nqueued--;
	return r;
}

int
slots_begin_trial(struct slots *s)
{
	if (!slots_unhealthy(s) || s->trying)
		return 0;
	s->trying = 1;
	return 1;
}

void
slots_trial_over(struct slots *s)
{
	s->trying = 0;
}

void
slots_note_success(struct slots *s)
{
	s->failures = 0;
}

int
slots_note_failure(struct slots *s, struct mono_time now)
{
	int64_t wait_ms = 1000;

	s->failures++;
	if (!slots_unhealthy(s))
		return 0;
	for (int i = SLOTS_UNHEALTHY_AFTER; i < s->failures && wait_ms < SLOTS_TRY_MAX_MS; i++)
		wait_ms *= 2;
	s->next_try = mono_add_ms(now, min_i64(wait_ms, SLOTS_TRY_MAX_MS));
	return s->failures == SLOTS_UNHEALTHY_AFTER;
}

const char *
slot_wait_name(enum slot_wait why)
{
	static const char *const names[] = { "free", "no_slot", "draining", "low_disk",
		"pool_unhealthy", "storage" };

	return names[why];
}
