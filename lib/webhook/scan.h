/*
 * lib/webhook/scan.h -- a payload's JSON, scanned as it arrives (spec webhooks 2, 4).  Included
 * by webhook.h.
 *
 * The whole grammar of RFC 8259 is checked, and only the members that the forge's row names are
 * kept, each up to a bound: memory does not grow with the body.  Text of other members is not
 * looked at beyond the grammar.
 */
#ifndef LIB_WEBHOOK_SCAN_H
#define LIB_WEBHOOK_SCAN_H

#include <stddef.h>

#include "lib/base/base.h"
#include "lib/webhook/forge.h"

#define WEBHOOK_DEPTH_MAX 64 /* Of arrays and objects, the payload itself included. */

struct webhook_scan;

/* For one payload of ${f}; NULL: out of memory. */
struct webhook_scan *webhook_scan_new(const struct webhook_forge *f);
struct webhook_scan *webhook_scan_free(struct webhook_scan *s);
DEFINE_CLEANUP(struct webhook_scan *, webhook_scan_free)

/* The next ${n} bytes, in pieces of any size.  What is wrong is told at the end; the bytes that
 * follow it are not looked at. */
void webhook_scan_feed(struct webhook_scan *s, const void *p, size_t n);

/* Texts are static. */
struct webhook_fault {
	const char *path;    /* Of the member, such as "repository.full_name"; "": the whole. */
	const char *message; /* A sentence.                                                   */
};

/* Step 12: was that one JSON object?  0, E_PARSE with *ret_fault, or E_NOMEM. */
int webhook_scan_end(struct webhook_scan *s, struct webhook_fault *ret_fault);

enum webhook_type {
	WEBHOOK_TYPE_ABSENT,
	WEBHOOK_TYPE_NULL,
	WEBHOOK_TYPE_STRING,
	WEBHOOK_TYPE_OBJECT,
	WEBHOOK_TYPE_OTHER
};

/* What was kept of a member, after webhook_scan_end() returned 0. */
struct webhook_value {
	enum webhook_type type;
	/* Of a string: valid UTF-8, unescaped, not terminated, borrowed from the scan; U+0000
	 * is possible.  When `too_long`, it is longer than any rule allows and cut off. */
	const char *p;
	size_t n;
	int too_long;
	int is_zeros; /* All of it is the digit 0, once at least, however long it is. */
};

struct webhook_value webhook_scan_value(const struct webhook_scan *s, enum webhook_member m);

/* Path of ${m} in a payload; static. */
const char *webhook_member_path(enum webhook_member m);

#endif
