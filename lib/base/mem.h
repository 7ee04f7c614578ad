/*
 * lib/base/mem.h -- memory, with failures that a test can order.
 *
 * All of anvil allocates here.  NULL means out of memory (or, in a test, that the fault
 * ordered by mem_fault_arm() has come); callers return E_NOMEM.
 */
#ifndef LIB_BASE_MEM_H
#define LIB_BASE_MEM_H

#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include "lib/base/base.h"

void *mem_alloc(size_t size) WARN_UNUSED;
/* Zeroed; the product is checked for overflow. */
void *mem_calloc(size_t n, size_t size) WARN_UNUSED;
/* Like realloc(); the old block stays valid on NULL. */
void *mem_realloc(void *p, size_t size) WARN_UNUSED;
void *mem_dup(const void *p, size_t size) WARN_UNUSED;
char *mem_strdup(const char *s) WARN_UNUSED;
char *mem_strndup(const char *s, size_t n) WARN_UNUSED;
/* Formatted copy; the caller frees. */
char *mem_format(const char *fmt, ...) PRINTF_LIKE(1, 2) WARN_UNUSED;
char *mem_vformat(const char *fmt, va_list ap) PRINTF_LIKE(1, 0) WARN_UNUSED;
/* free() that returns NULL, for destructors that do. */
void *mem_free(void *p);
/* Overwrites ${size} bytes in a way that no compiler removes. */
void mem_wipe(void *p, size_t size);

/* Tests: the ${n}-th allocation from now (0 = the next) returns NULL, once.  -1: none. */
void mem_fault_arm(long n);
/* Tests: 1 when the ordered fault has come since mem_fault_arm(). */
int mem_fault_hit(void);

static inline void
mem_freep(void *pp)
{
	free(*(void **)pp);
}

/* CLEANUP_FREE char *s = mem_strdup(...); */
#define CLEANUP_FREE CLEANUP(mem_freep)

#endif
