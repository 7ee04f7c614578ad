/*
 * test/support/forge_rig.h -- deliveries for tests of lib/webhook: scans in pieces, headers from a
 * table, and the whole way from a body to a verified payload.
 */
#ifndef TEST_SUPPORT_FORGE_RIG_H
#define TEST_SUPPORT_FORGE_RIG_H

#include <stddef.h>

#include "lib/webhook/webhook.h"

#define RIG_SHA256 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

/* JSON that is written with ' for every "; the caller frees. */
char *rig_json(const char *text);

/* Scans ${n} bytes in pieces of ${piece} (0: at once).  What webhook_scan_end() says, or
 * E_NOMEM; *ret is the caller's in any case, and NULL when there was no memory for it. */
int rig_scan(const struct webhook_forge *f, const void *text, size_t n, size_t piece,
    struct webhook_scan **ret, struct webhook_fault *ret_fault);
/* 1 when two scans that ended well have kept the same. */
int rig_scans_equal(const struct webhook_scan *a, const struct webhook_scan *b);

/* What webhook_payload_make() says of a scan, for the project at ${project_url}. */
int rig_make(struct codec *c, const struct webhook_forge *f, const struct webhook_scan *s,
    const char *event_name, const char *project_url, struct verified_payload *ret);

/* Headers for webhook_claim_read(): name, value, name, value, NULL.  The argument of
 * rig_header() is such a list. */
const char *rig_header(void *arg, const char *name);

#endif
