/*
 * test/support/starve.h -- fails each allocation of an operation in turn.
 */
#ifndef TEST_SUPPORT_STARVE_H
#define TEST_SUPPORT_STARVE_H

/*
 * Runs ${fn} with its first allocation failing, then with its second, until one pass has met no
 * failure.  ${fn} returns 0 or a negative error; it must fail when an allocation failed, with
 * E_NOMEM, and succeed in the last pass.  Returns how many allocations there were, at least
 * one: a test that saw none has tested nothing.
 */
long starve(int (*fn)(void *arg), void *arg);

/* As starve() for an operation that may succeed though an allocation failed, such as one that
 * only caches. */
long starve_lenient(int (*fn)(void *arg), void *arg);

#endif
