/*
 * lib/base/arena.h -- memory that dies all at once, such as everything made in one turn.
 */
#ifndef LIB_BASE_ARENA_H
#define LIB_BASE_ARENA_H

#include <stddef.h>

#include "lib/base/base.h"

struct arena;

struct arena *arena_new(void);
struct arena *arena_free(struct arena *a);
DEFINE_CLEANUP(struct arena *, arena_free)

/* Everything handed out before is gone; up to one block is kept for the next turn. */
void arena_reset(struct arena *a);

/* Zeroed, aligned for any type; NULL: out of memory. */
void *arena_alloc(struct arena *a, size_t size) WARN_UNUSED;
void *arena_calloc(struct arena *a, size_t n, size_t size) WARN_UNUSED;
char *arena_strdup(struct arena *a, const char *s) WARN_UNUSED;
char *arena_strndup(struct arena *a, const char *s, size_t n) WARN_UNUSED;
/* Room in the list ${rows} of ${n} elements for one more; a larger copy when it is full.
 * Starts with *cap 0.  0 or E_NOMEM. */
int arena_list_grow(struct arena *a, void **rows, size_t n, size_t *cap, size_t row_size);
char *arena_format(struct arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3) WARN_UNUSED;

#endif
