/*
 * lib/record/forms.h -- the spellings in which a repository token may show up.
 */
#ifndef LIB_RECORD_FORMS_H
#define LIB_RECORD_FORMS_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

/* Patterns laid end to end in one block; the caller wipes both buffers. */
struct forms {
	struct buf bytes;
	struct buf ends; /* uint32_t each: where pattern i ends in ${bytes}. */
};

/* All spellings of ${token} that have REDACT_MIN_BYTES or more; some may be there twice.
 * 0 or E_NOMEM. */
int forms_make(const char *token, size_t n, struct forms *f);

#endif
