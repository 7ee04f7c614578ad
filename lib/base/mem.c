#include "lib/base/mem.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* Allocations to go until the ordered fault; below zero: none is ordered. */
static _Atomic long fault_in = -1;
static _Atomic int fault_came;

void
mem_fault_arm(long n)
{
	atomic_store(&fault_came, 0);
	atomic_store(&fault_in, n);
}

int
mem_fault_hit(void)
{
	return atomic_load(&fault_came);
}

static int
fault_now(void)
{
	if (__builtin_expect(atomic_load_explicit(&fault_in, memory_order_relaxed) < 0, 1))
		return 0;
	if (atomic_fetch_sub(&fault_in, 1) != 0)
		return 0;
	atomic_store(&fault_came, 1);
	return 1;
}

void *
mem_alloc(size_t size)
{
	return fault_now() ? NULL : malloc(size != 0 ? size : 1);
}

void *
mem_calloc(size_t n, size_t size)
{
	return fault_now() ? NULL : calloc(n != 0 ? n : 1, size != 0 ? size : 1);
}

void *
mem_realloc(void *p, size_t size)
{
	return fault_now() ? NULL : realloc(p, size != 0 ? size : 1);
}

void *
mem_dup(const void *p, size_t size)
{
	void *copy = mem_alloc(size);

	if (copy != NULL && size != 0)
		memcpy(copy, p, size);
	return copy;
}

char *
mem_strndup(const char *s, size_t n)
{
	size_t len = strnlen(s, n);
	char *copy = mem_alloc(len + 1);

	if (copy == NULL)
		return NULL;
	memcpy(copy, s, len);
	copy[len] = '\0';
	return copy;
}

char *
mem_strdup(const char *s)
{
	return mem_strndup(s, strlen(s));
}

char *
mem_format(const char *fmt, ...)
{
	va_list ap;
	char *text;

	va_start(ap, fmt);
	text = mem_vformat(fmt, ap);
	va_end(ap);
	return text;
}

char *
mem_vformat(const char *fmt, va_list ap)
{
	va_list again;
	char *text = NULL;
	int n;

	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, ap);
	if (n >= 0 && (text = mem_alloc((size_t)n + 1)) != NULL)
		(void)vsnprintf(text, (size_t)n + 1, fmt, again);
	va_end(again);
	return text;
}

void *
mem_free(void *p)
{
	free(p);
	return NULL;
}

void
mem_wipe(void *p, size_t size)
{
	if (p != NULL)
		explicit_bzero(p, size);
}
