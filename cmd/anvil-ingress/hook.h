/*
 * cmd/anvil-ingress/hook.h -- one delivery of a forge on its way to its answer (webhooks 1).
 *
 * For the files hook*.c alone.  It lives in the arena of its exchange.
 */
#ifndef CMD_ANVIL_INGRESS_HOOK_H
#define CMD_ANVIL_INGRESS_HOOK_H

#include "cmd/anvil-ingress/exchange.h"
#include "cmd/anvil-ingress/hook_body.h"
#include "cmd/anvil-ingress/hook_cache.h"
#include "cmd/anvil-ingress/hook_record.h"

struct hook {
	uint32_t magic;
#define HOOK_MAGIC 0x40ccd3a7
	struct exchange *x;
	/* What the path names. */
	char project_id[ID_SIZE];
	int64_t shard;
	struct webhook_claim claim; /* Of the headers. */
	/* What it is verified against, and the wait for that. */
	struct hook_material *material; /* A reference. */
	struct hook_wait wait;
	struct hook_body body;
	struct mono_time until; /* An answer has to be there. */
	int is_stale;           /* The shard has said so, ... */
	int is_rechecked;       /* ... or a refusal was not to rest on what was kept. */
	/* Once it is verified. */
	struct verified_payload payload;
	struct delivery_candidate candidate;
	char run_id[ID_SIZE];
	struct hook_record record;
};

/* ---- steps 9 to 13 (hook_verify.c) ---- */

/* How they end. */
struct hook_verdict {
	int is_good;         /* Then h->payload is filled. */
	enum http_code code; /* Of the refusal.            */
	const char *message; /* NULL: the usual one.       */
	int has_issues;      /* The codec of the exchange has them.                       */
	int is_kept;         /* For the eyes of the owner: */
	enum refusal_reason reason;
	const char *hint;
	int rests_on_material; /* Other material might have led to another end.             */
};

/* After the body.  0, or E_NOMEM. */
int hook_verify(struct hook *h, struct hook_verdict *ret);

/* ---- answers (hook_answer.c) ---- */

void hook_refuse(struct hook *h, const struct hook_verdict *v);
/* Into the log; ${project_id} may be NULL. */
void hook_log_refused(const char *project_id, enum provider provider,
    enum refusal_reason reason, enum http_code code);
/* Into the log and for the eyes of the owner, without an answer. */
void hook_note_refusal(struct hook *h, enum refusal_reason reason, enum http_code code,
    const char *hint, int64_t nbytes);
/* Of step 14, but for `stale`; NULL: no usable answer, h->record.why. */
void hook_answer(struct hook *h, const struct webhook_record_result *res);

/* ---- refused before the webhook was looked for (hook_early.c) ---- */

/* Answers; whether the path names a webhook is looked up afterwards.  ${message} is shown to the
 * owner as well; NULL: the usual one. */
void hook_refuse_early(
    struct hook *h, enum refusal_reason reason, enum http_code code, const char *message);

/* Looks for a confirmed project.  0, E_NOENT, or an error of the store. */
int hook_find_project(struct ingress *in, const char *request_id, const char *owner_slug,
    const char *slug, char ret_id[ID_SIZE], int64_t *ret_shard);

#endif
