/*
 * cmd/anvilctl/params.h -- parameters of a call, by a method of an OpenRPC document.
 *
 * Checks what a person gets wrong (names, what is missing, kinds of values); ranges and shapes
 * are judged by the actor.
 */
#ifndef CMD_ANVILCTL_PARAMS_H
#define CMD_ANVILCTL_PARAMS_H

#include <stddef.h>

#include <jansson.h>

#include "lib/base/buf.h"

#define PARAMS_WHY_SIZE 512

/* Method of that name; NULL: none.  Borrowed. */
const json_t *params_method(const json_t *document, const char *name);
/* 1 when anvilctl is among its callers, and it has an answer. */
int params_may_call(const json_t *method);
/* Adds `projectId:ProjectId|null limit:PageLimit?`.  0 or E_NOMEM. */
int params_describe(const json_t *method, struct buf *out);
/* A method and the document that it is of. */
struct params_of {
	const json_t *document, *method;
};

/* One JSON object, or NAME=VALUE words, or nothing.  0 and a new object; E_INVAL with what
 * would be right in ${why}; E_NOMEM (also in ${why}). */
int params_read(const struct params_of *of, const char *const *words, size_t nwords,
    json_t **ret, char why[PARAMS_WHY_SIZE]);
/* Member of ${object} as text; "" when it is none. */
const char *params_text(const json_t *object, const char *name);

#endif
