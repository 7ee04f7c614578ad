#include "lib/base/map.h"

#include <stdint.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/base/id.h"
#include "lib/base/mem.h"

/* Open addressing, linear probing; a removed entry leaves a tombstone (key == gone). */
struct entry {
	char *key;
	void *value;
	uint64_t hash;
};

struct map {
	struct entry *slots;
	size_t nslots; /* a power of two, or 0 */
	size_t used;   /* live entries         */
	size_t dirty;  /* live and tombstones  */
	uint64_t seed;
};

#define MAP_MIN_SLOTS 16

static char gone[1];

/* FNV-1a from a secret start, finished by a mixer. */
static uint64_t
hash_of(const struct map *m, const char *key)
{
	uint64_t h = m->seed ^ 0xcbf29ce484222325u;

	for (; *key != '\0'; key++)
		h = (h ^ (uint8_t)*key) * 0x100000001b3u;
	h ^= h >> 32;
	h *= 0xd6e8feb86659fd93u;
	return h ^ h >> 29;
}

struct map *
map_new(void)
{
	struct map *m = mem_calloc(1, sizeof(*m));

	if (m != NULL)
		id_random(&m->seed, sizeof(m->seed));
	return m;
}

struct map *
map_free(struct map *m)
{
	if (m == NULL)
		return NULL;
	for (size_t i = 0; i < m->nslots; i++)
		if (m->slots[i].key != gone)
			free(m->slots[i].key);
	free(m->slots);
	free(m);
	return NULL;
}

size_t
map_count(const struct map *m)
{
	return m->used;
}

static struct entry *
find(const struct map *m, const char *key, uint64_t hash)
{
	if (m->nslots == 0)
		return NULL;
	for (size_t i = hash & (m->nslots - 1);; i = (i + 1) & (m->nslots - 1)) {
		struct entry *e = &m->slots[i];

		if (e->key == NULL)
			return NULL;
		if (e->key != gone && e->hash == hash && strcmp(e->key, key) == 0)
			return e;
	}
}

void *
map_get(const struct map *m, const char *key)
{
	const struct entry *e = find(m, key, hash_of(m, key));

	return e != NULL ? e->value : NULL;
}

static void
place(struct entry *slots, size_t nslots, struct entry e)
{
	size_t i = e.hash & (nslots - 1);

	while (slots[i].key != NULL)
		i = (i + 1) & (nslots - 1);
	slots[i] = e;
}

/* Room for one more, at most three quarters full, tombstones counted. */
static int
grow(struct map *m)
{
	size_t nslots = m->nslots == 0 ? MAP_MIN_SLOTS : m->nslots;
	struct entry *slots;

	if (m->nslots != 0 && (m->dirty + 1) * 4 <= m->nslots * 3)
		return 0;
	while ((m->used + 1) * 2 > nslots)
		nslots *= 2;
	slots = mem_calloc(nslots, sizeof(*slots));
	if (slots == NULL)
		return E_NOMEM;
	for (size_t i = 0; i < m->nslots; i++)
		if (m->slots[i].key != NULL && m->slots[i].key != gone)
			place(slots, nslots, m->slots[i]);
	free(m->slots);
	m->slots = slots;
	m->nslots = nslots;
	m->dirty = m->used;
	return 0;
}

int
map_set(struct map *m, const char *key, void *value)
{
	uint64_t hash = hash_of(m, key);
	struct entry *e = find(m, key, hash);
	char *copy;
	int r;

	if (e != NULL) {
		e->value = value;
		return 0;
	}
	r = grow(m);
	if (r < 0)
		return r;
	copy = mem_strdup(key);
	if (copy == NULL)
		return E_NOMEM;
	place(m->slots, m->nslots, (struct entry) { copy, value, hash });
	m->used++;
	m->dirty++;
	return 0;
}

void *
map_remove(struct map *m, const char *key)
{
	struct entry *e = find(m, key, hash_of(m, key));

	if (e == NULL)
		return NULL;
	free(e->key);
	e->key = gone;
	m->used--;
	return e->value;
}

int
map_next(const struct map *m, size_t *at, const char **ret_key, void **ret_value)
{
	for (; *at < m->nslots; (*at)++) {
		const struct entry *e = &m->slots[*at];

		if (e->key == NULL || e->key == gone)
			continue;
		if (ret_key != NULL)
			*ret_key = e->key;
		*ret_value = e->value;
		(*at)++;
		return 1;
	}
	return 0;
}
