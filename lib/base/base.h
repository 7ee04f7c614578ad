/*
 * lib/base/base.h -- words that every file of anvil may use.
 *
 * Clean-up by attribute, taking ownership, the grades of assertion, magic numbers.
 */
#ifndef LIB_BASE_BASE_H
#define LIB_BASE_BASE_H

#include <stddef.h>
#include <stdint.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
#define NONNULL                __attribute__((nonnull))
#define WARN_UNUSED            __attribute__((warn_unused_result))
#define NORETURN               __attribute__((noreturn))

/* CLEANUP(run_unrefp) struct run *r = NULL;   releases r at the end of its block. */
#define CLEANUP(fn) __attribute__((cleanup(fn)))

/* DEFINE_CLEANUP(struct run *, run_unref) makes run_unrefp for CLEANUP(). */
#define DEFINE_CLEANUP(type, fn)          \
	static inline void fn##p(type *p) \
	{                                 \
		if (*p != NULL)           \
			(void)fn(*p);     \
	}

/* Hands the pointer out and forgets it, so that its CLEANUP has nothing left to do. */
#define TAKE_PTR(p)                         \
	__extension__({                     \
		__typeof__(p) taken_ = (p); \
		(p) = NULL;                 \
		taken_;                     \
	})

/* The object of that type whose member ${member} is at ${p}. */
#define CONTAINER_OF(p, type, member) \
	((type *)(void *)((char *)(uintptr_t)(p)-offsetof(type, member)))

/* A broken promise of our own code ends the process, in release builds too. */
#define must(x) ((x) ? (void)0 : base_bug(__FILE__, __LINE__, #x))

/* Entry check of callbacks: the object is alive and of the type that was meant. */
#define OBJ_CHECK(obj, wanted) must((obj) != NULL && (obj)->magic == (wanted))

/* Prints file, line and expression on standard error and aborts. */
void base_bug(const char *file, int line, const char *expr) NORETURN;

/* Called by base_bug() before it aborts, for a crash note; NULL removes it. */
void base_on_bug(void (*hook)(const char *what));

/* Release version of anvil, such as "0.1.0". */
const char *base_version(void);

static inline int64_t
min_i64(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t
max_i64(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static inline size_t
min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

#endif
