/*
 * test/support/member.h -- a quick look into an answer, where nothing has to be checked.
 */
#ifndef TEST_SUPPORT_MEMBER_H
#define TEST_SUPPORT_MEMBER_H

#include <stddef.h>

struct buf;

/* The text of member ${name}, wherever it stands first in the JSON of ${body}, which ends with a
 * NUL behind its length; 0, or -1 when there is none or ${out} is too small. */
int member_of(const struct buf *body, const char *name, char *out, size_t size);

#endif
