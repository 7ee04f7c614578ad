#include "cmd/anvil-ingress/tail.h"

#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/http/http.h"

#define FIRST_CAP 64 /* a power of two, as all capacities */

struct tail {
	struct tail_entry *ring;
	size_t cap;
	uint64_t begin, end;
	int64_t first_seq, next_seq;
	uint64_t bytes; /* Of all entries that ever were. */
};

struct tail *
tail_new(int64_t seq)
{
	struct tail *t = mem_calloc(1, sizeof(*t));

	if (t != NULL)
		t->first_seq = t->next_seq = seq;
	return t;
}

static struct tail_entry *
slot(const struct tail *t, uint64_t i)
{
	return &t->ring[i & (t->cap - 1)];
}

static void
drop_first(struct tail *t)
{
	struct tail_entry *e = slot(t, t->begin++);

	t->first_seq = e->next;
	(void)http_blob_unref(e->blob);
}

struct tail *
tail_free(struct tail *t)
{
	if (t == NULL)
		return NULL;
	while (t->begin != t->end)
		drop_first(t);
	free(t->ring);
	return mem_free(t);
}

static int
grow(struct tail *t)
{
	size_t cap = t->cap != 0 ? 2 * t->cap : FIRST_CAP;
	struct tail_entry *ring = mem_calloc(cap, sizeof(*ring));

	if (ring == NULL)
		return E_NOMEM;
	for (uint64_t i = t->begin; i != t->end; i++)
		ring[i & (cap - 1)] = *slot(t, i);
	free(t->ring);
	t->ring = ring;
	t->cap = cap;
	return 0;
}

int
tail_add_take(struct tail *t, int64_t next, struct http_blob *blob)
{
	must(next > t->next_seq);
	if (t->end - t->begin == t->cap && grow(t) < 0) {
		(void)http_blob_unref(blob);
		return E_NOMEM;
	}
	*slot(t, t->end++) = (struct tail_entry) {
		.first = t->next_seq, .next = next, .blob = blob, .at = t->bytes
	};
	t->next_seq = next;
	t->bytes += blob != NULL ? http_blob_len(blob) : 0;
	return 0;
}

void
tail_trim(struct tail *t, size_t max)
{
	while (t->begin != t->end && t->bytes - slot(t, t->begin)->at > max)
		drop_first(t);
}

int64_t
tail_first_seq(const struct tail *t)
{
	return t->first_seq;
}

int
tail_is_whole(const struct tail *t)
{
	return t->begin == 0;
}

uint64_t
tail_begin(const struct tail *t)
{
	return t->begin;
}

uint64_t
tail_end(const struct tail *t)
{
	return t->end;
}

const struct tail_entry *
tail_at(const struct tail *t, uint64_t i)
{
	must(i >= t->begin && i < t->end);
	return slot(t, i);
}

uint64_t
tail_find(const struct tail *t, int64_t seq)
{
	uint64_t low = t->begin, high = t->end;

	must(seq >= t->first_seq);
	while (low < high) {
		uint64_t mid = low + (high - low) / 2;

		if (slot(t, mid)->next <= seq)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

size_t
tail_bytes_from(const struct tail *t, uint64_t i)
{
	must(i >= t->begin && i <= t->end);
	return i == t->end ? 0 : (size_t)(t->bytes - slot(t, i)->at);
}
