/*
 * lib/base/map.h -- strings to pointers, by hash.
 *
 * The seed is random for each process, so that nobody can choose keys that collide.
 */
#ifndef LIB_BASE_MAP_H
#define LIB_BASE_MAP_H

#include <stddef.h>

#include "lib/base/base.h"

struct map;

struct map *map_new(void);
/* The values are the caller's and stay. */
struct map *map_free(struct map *m);
DEFINE_CLEANUP(struct map *, map_free)

size_t map_count(const struct map *m);
/* NULL when there is none. */
void *map_get(const struct map *m, const char *key);
/* Copies ${key}; an earlier value of it is replaced.  0 or E_NOMEM. */
int map_set(struct map *m, const char *key, void *value);
/* Removes it and hands it out; NULL when there was none. */
void *map_remove(struct map *m, const char *key);

/* for (size_t at = 0; map_next(m, &at, &key, &value);) -- no change of the map meanwhile,
 * but map_remove() of the entry just seen.  ${ret_key} may be NULL. */
int map_next(const struct map *m, size_t *at, const char **ret_key, void **ret_value);

#endif
