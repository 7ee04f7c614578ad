/*
 * lib/base/refname.h -- names of branches and refs (spec http-api 11, webhooks 4).
 *
 * The rules are those of `git check-ref-format`, with C1 controls refused as well.  Nothing
 * is trimmed here.
 */
#ifndef LIB_BASE_REFNAME_H
#define LIB_BASE_REFNAME_H

#include <stddef.h>

#define REFNAME_BRANCH_MAX 244 /* Bytes of a branch without refs/heads/. */
#define REFNAME_FULL_MAX   255 /* Bytes of a full ref.                   */

/* Both judge ${n} bytes of valid UTF-8.  0, or E_INVAL with *ret_message a sentence that says
 * what would be right (static; ${ret_message} may be NULL). */

/* A branch, such as "release/1.2": not "@", not "HEAD", no leading "-". */
int refname_check_branch(const char *p, size_t n, const char **ret_message);
/* A full ref of two components or more, such as "refs/tags/v1". */
int refname_check_full(const char *p, size_t n, const char **ret_message);

/* The branch of a full ref: what stands behind "refs/heads/", borrowed from ${p}; NULL for
 * any other ref. */
const char *refname_branch_of(const char *p, size_t n, size_t *ret_n);

#endif
