/*
 * cmd/anvil-ingress/hook_refusal.h -- refused attempts on their way to the shards, for the eyes
 * of the owner (webhooks 9).
 *
 * Collected for a second, so that a flood costs one call; lost when there is no room or no
 * answer, since nothing rests on them.
 */
#ifndef CMD_ANVIL_INGRESS_HOOK_REFUSAL_H
#define CMD_ANVIL_INGRESS_HOOK_REFUSAL_H

#include "cmd/anvil-ingress/hook_cache.h"
#include "gen/types.h"

#define HOOK_REFUSAL_EVERY_MS 1000
#define HOOK_REFUSALS_ONE     10   /* Entries of a webhook in one call; more are not stored. */
#define HOOK_REFUSALS_ALL     2048 /* Entries of all webhooks together.                      */
#define HOOK_REFUSAL_CALLS    32   /* Calls a second; other webhooks wait for the next.      */

struct hook_refusals;

/* NULL: no memory. */
struct hook_refusals *hook_refusals_new(struct ingress *in);
/* No call is under way any more. */
struct hook_refusals *hook_refusals_free(struct hook_refusals *c);

/* Copies ${row}, whose time and count are set here; one with the same reason and address as
 * another of that webhook only counts. */
void hook_refusals_add(
    struct hook_refusals *c, const struct hook_material *m, const struct refusal_row *row);
/* Sends everything now: ingress stops. */
void hook_refusals_flush(struct hook_refusals *c);
/* Entries that wait. */
size_t hook_refusals_count(const struct hook_refusals *c);

#endif
