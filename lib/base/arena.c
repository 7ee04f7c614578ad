#include "lib/base/arena.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"

#define ARENA_BLOCK_BYTES 4064
#define LIST_FIRST        16

struct block {
	struct block *next;
	size_t used;
	size_t cap;
	max_align_t data[];
};

struct arena {
	struct block *first; /* The block being filled; full ones behind it. */
};

struct arena *
arena_new(void)
{
	return mem_calloc(1, sizeof(struct arena));
}

static void
blocks_free(struct block *b)
{
	while (b != NULL) {
		struct block *next = b->next;

		free(b);
		b = next;
	}
}

struct arena *
arena_free(struct arena *a)
{
	if (a != NULL)
		blocks_free(a->first);
	free(a);
	return NULL;
}

void
arena_reset(struct arena *a)
{
	struct block *keep = a->first;

	if (keep == NULL)
		return;
	blocks_free(keep->next);
	keep->next = NULL;
	keep->used = 0;
	if (keep->cap > ARENA_BLOCK_BYTES) {
		blocks_free(keep);
		a->first = NULL;
	}
}

static struct block *
block_new(size_t cap)
{
	struct block *b;
	size_t size;

	if (__builtin_add_overflow(sizeof(struct block), cap, &size))
		return NULL;
	b = mem_alloc(size);
	if (b != NULL)
		*b = (struct block) { .next = NULL, .used = 0, .cap = cap };
	return b;
}

void *
arena_alloc(struct arena *a, size_t size)
{
	struct block *b = a->first;
	void *p;

	if (__builtin_add_overflow(size, sizeof(max_align_t) - 1, &size))
		return NULL;
	size -= size % sizeof(max_align_t);
	if (b == NULL || b->cap - b->used < size) {
		b = block_new(size > ARENA_BLOCK_BYTES ? size : ARENA_BLOCK_BYTES);
		if (b == NULL)
			return NULL;
		b->next = a->first;
		a->first = b;
	}
	p = (unsigned char *)b->data + b->used;
	b->used += size;
	memset(p, 0, size);
	return p;
}

void *
arena_calloc(struct arena *a, size_t n, size_t size)
{
	size_t total;

	return __builtin_mul_overflow(n, size, &total) ? NULL : arena_alloc(a, total);
}

char *
arena_strndup(struct arena *a, const char *s, size_t n)
{
	size_t len = strnlen(s, n);
	char *copy = arena_alloc(a, len + 1);

	if (copy != NULL)
		memcpy(copy, s, len);
	return copy;
}

char *
arena_strdup(struct arena *a, const char *s)
{
	return arena_strndup(a, s, strlen(s));
}

int
arena_list_grow(struct arena *a, void **rows, size_t n, size_t *cap, size_t row_size)
{
	size_t wanted = *cap == 0 ? LIST_FIRST : *cap * 2;
	void *more;

	if (n < *cap)
		return 0;
	more = arena_calloc(a, wanted, row_size);
	if (more == NULL)
		return E_NOMEM;
	if (n != 0)
		memcpy(more, *rows, n * row_size);
	*rows = more;
	*cap = wanted;
	return 0;
}

char *
arena_format(struct arena *a, const char *fmt, ...)
{
	va_list ap;
	char *text;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0 || (text = arena_alloc(a, (size_t)n + 1)) == NULL)
		return NULL;
	va_start(ap, fmt);
	(void)vsnprintf(text, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return text;
}
