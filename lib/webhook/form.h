/*
 * lib/webhook/form.h -- the field `payload` of a form, decoded as it arrives (spec webhooks 2).
 * Included by webhook.h.
 */
#ifndef LIB_WEBHOOK_FORM_H
#define LIB_WEBHOOK_FORM_H

#include <stddef.h>

#include "lib/base/base.h"

struct webhook_form;

/* The next ${n} > 0 decoded bytes of the first field `payload`. */
typedef void webhook_form_fn(void *arg, const void *p, size_t n);

/* NULL: out of memory. */
struct webhook_form *webhook_form_new(webhook_form_fn *fn, void *arg);
struct webhook_form *webhook_form_free(struct webhook_form *f);
DEFINE_CLEANUP(struct webhook_form *, webhook_form_free)

/* The next ${n} bytes of the body, in pieces of any size; runs ${fn} from inside.  All that is
 * decoded of these bytes has been handed out on return. */
void webhook_form_feed(struct webhook_form *f, const void *p, size_t n);

/* 0, or E_PARSE with *ret_message a static sentence: no field `payload`, two of them, or a
 * broken escape anywhere. */
int webhook_form_end(struct webhook_form *f, const char **ret_message);

#endif
