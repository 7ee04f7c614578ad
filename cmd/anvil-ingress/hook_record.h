/*
 * cmd/anvil-ingress/hook_record.h -- has a shard record a verified delivery (webhooks 7).
 *
 * The run's id stays the same over all tries, so that an answer that got lost makes no second
 * run.
 */
#ifndef CMD_ANVIL_INGRESS_HOOK_RECORD_H
#define CMD_ANVIL_INGRESS_HOOK_RECORD_H

#include "cmd/anvil-ingress/hook_cache.h"
#include "cmd/anvil-ingress/links.h"
#include "gen/project.h"

/* Lives until `done`, which runs once and may run from inside hook_record_start(). */
struct hook_record {
	/* Filled by the owner; everything stays until `done`. */
	struct ingress *in;
	const struct hook_material *material;
	const struct verified_payload *payload;
	const struct delivery_candidate *candidate;
	const char *run_id;
	int64_t deadline_ms;
	const char *request_id;
	/* ${res}: borrowed until it returns; NULL: no usable answer, `why`. */
	void (*done)(struct hook_record *r, const struct webhook_record_result *res);
	enum http_code why;
	/* Private. */
	struct shard_call call;
};

/* An accepted run is on its way into the index before `done`. */
void hook_record_start(struct hook_record *r);

#endif
