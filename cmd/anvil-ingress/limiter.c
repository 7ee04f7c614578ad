#include "cmd/anvil-ingress/limiter.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "lib/base/err.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"

struct window {
	TAILQ_ENTRY(window) entry;
	struct mono_time from;
	int64_t count;
	char key[];
};

struct limiter {
	int64_t max;
	size_t max_keys;
	struct map *windows;         /* By key.            */
	TAILQ_HEAD(, window) by_age; /* Oldest window first */
};

struct limiter *
limiter_new(int64_t max, size_t max_keys)
{
	struct limiter *l = mem_calloc(1, sizeof(*l));

	if (l == NULL)
		return NULL;
	l->max = max;
	l->max_keys = max_keys;
	TAILQ_INIT(&l->by_age);
	l->windows = map_new();
	return l->windows != NULL ? l : limiter_free(l);
}

void
limiter_set_max(struct limiter *l, int64_t max)
{
	l->max = max;
}

static void
forget(struct limiter *l, struct window *w)
{
	TAILQ_REMOVE(&l->by_age, w, entry);
	(void)map_remove(l->windows, w->key);
	free(w);
}

struct limiter *
limiter_free(struct limiter *l)
{
	if (l == NULL)
		return NULL;
	while (!TAILQ_EMPTY(&l->by_age))
		forget(l, TAILQ_FIRST(&l->by_age));
	l->windows = map_free(l->windows);
	free(l);
	return NULL;
}

/* Windows never move, so those that are over stand at the head. */
static void
forget_old(struct limiter *l, struct mono_time now)
{
	struct window *w;

	while ((w = TAILQ_FIRST(&l->by_age)) != NULL &&
	    mono_diff_ms(w->from, now) >= LIMITER_WINDOW_MS)
		forget(l, w);
}

static struct window *
window_new(struct limiter *l, const char *key, struct mono_time now)
{
	size_t n = strlen(key) + 1;
	struct window *w = mem_alloc(sizeof(*w) + n);

	if (w == NULL)
		return NULL;
	w->from = now;
	w->count = 0;
	memcpy(w->key, key, n);
	if (map_set(l->windows, key, w) < 0)
		return mem_free(w);
	TAILQ_INSERT_TAIL(&l->by_age, w, entry);
	return w;
}

int
limiter_try(struct limiter *l, const char *key, struct mono_time now)
{
	struct window *w;

	if (l->max == 0)
		return 1;
	forget_old(l, now);
	w = map_get(l->windows, key);
	if (w == NULL) {
		if (map_count(l->windows) >= l->max_keys)
			forget(l, TAILQ_FIRST(&l->by_age));
		w = window_new(l, key, now);
	}
	if (w == NULL)
		return E_NOMEM;
	/* It stops at two too many: that is not the first any more. */
	if (w->count <= l->max + 1)
		w->count++;
	return w->count <= l->max;
}

int
limiter_just_full(const struct limiter *l, const char *key)
{
	const struct window *w = map_get(l->windows, key);

	return w != NULL && w->count == l->max + 1;
}

size_t
limiter_nkeys(const struct limiter *l)
{
	return map_count(l->windows);
}
