/*
 * lib/webhook/forge.h -- a row for each forge, and the headers of a delivery (spec webhooks 2,
 * 3).  Included by webhook.h.
 */
#ifndef LIB_WEBHOOK_FORGE_H
#define LIB_WEBHOOK_FORGE_H

#include <stddef.h>
#include <stdint.h>

#include "gen/types.h"
#include "lib/wire/wire.h"

#define WEBHOOK_DIGEST_BYTES   32
#define WEBHOOK_EVENT_NAME_MAX 128 /* Bytes.                       */
#define WEBHOOK_ID_MAX         256 /* Bytes of a delivery id.      */
#define WEBHOOK_CLAIM_SIZE     129 /* Of a claimed name, with NUL. */
#define WEBHOOK_URLS_MAX       3

/* Members of a payload that some forge uses; the order is that of their names. */
enum webhook_member {
	WEBHOOK_MEMBER_AFTER,
	WEBHOOK_MEMBER_BEFORE,
	WEBHOOK_MEMBER_CHECKOUT_SHA,
	WEBHOOK_MEMBER_EVENT_NAME,
	WEBHOOK_MEMBER_OBJECT_KIND,
	WEBHOOK_MEMBER_PROJECT, /* Only that it is there, and what it is. */
	WEBHOOK_MEMBER_PROJECT_GIT_HTTP_URL,
	WEBHOOK_MEMBER_PROJECT_HTTP_URL,
	WEBHOOK_MEMBER_REF,
	WEBHOOK_MEMBER_REPOSITORY, /* Like WEBHOOK_MEMBER_PROJECT. */
	WEBHOOK_MEMBER_REPOSITORY_CLONE_URL,
	WEBHOOK_MEMBER_REPOSITORY_FULL_NAME,
	WEBHOOK_MEMBER_REPOSITORY_GIT_HTTP_URL,
	WEBHOOK_MEMBER_COUNT
};

enum webhook_proof {
	WEBHOOK_PROOF_HMAC, /* HMAC-SHA-256, written in hexadecimal digits. */
	WEBHOOK_PROOF_TOKEN /* The secret itself.                           */
};

enum webhook_forms {
	WEBHOOK_FORMS_NONE,   /* Unsupported.                        */
	WEBHOOK_FORMS_BODY,   /* The raw body is what is signed.     */
	WEBHOOK_FORMS_PAYLOAD /* The decoded `payload` is, instead.  */
};

enum webhook_instance {
	WEBHOOK_INSTANCE_NONE,
	WEBHOOK_INSTANCE_OPTIONAL,
	WEBHOOK_INSTANCE_REQUIRED
};

struct webhook_forge {
	enum provider provider;
	enum webhook_proof proof;
	const char *proof_header;
	const char *proof_prefix; /* In this case, before the digits; may be "".           */
	const char *event_header;
	const char *id_headers[2]; /* In order of choice; NULL: there is no second.         */
	enum webhook_forms forms;
	const char *media_hint; /* Sentence: the content type to choose in the forge.       */
	enum webhook_instance instance;
	const char *base; /* URL without an instance configured; NULL: there is none.       */
	const char *push; /* Event name of a push.                                          */
	const char *ping; /* ... of a ping; NULL: none.                                     */
	unsigned members; /* Bits of enum webhook_member that it uses.                      */
	enum webhook_member urls[WEBHOOK_URLS_MAX]; /* Of the repository, in order of choice. */
	size_t nurls;
};

/* Never NULL; static. */
const struct webhook_forge *webhook_forge_of(enum provider provider);

enum webhook_media { WEBHOOK_MEDIA_UNSUPPORTED, WEBHOOK_MEDIA_JSON, WEBHOOK_MEDIA_FORM };

/* Step 4, for the value of Content-Type (NULL: missing, or given twice). */
enum webhook_media webhook_media_of(const struct webhook_forge *f, const char *content_type);

/* What the headers claim: trimmed, borrowed from them.  p is NULL for a header that is absent,
 * given twice or blank. */
struct webhook_claim {
	struct str_view proof;
	struct str_view event_name;
	struct str_view delivery_id;
	/* Name of the first header that is missing or (event name, delivery id) not usable, for
	 * the hint; static.  NULL: step 9 is passed. */
	const char *bad_header;
};

/* Value of the header ${name} when it is there exactly once, else NULL.  The text has to live
 * as long as the claim. */
typedef const char *webhook_header_fn(void *arg, const char *name);

/* Step 9.  Event names are 1..128 bytes of UTF-8 without controls, delivery ids 1..256 bytes
 * of printable ASCII.  ${ret} is filled in any case. */
void webhook_claim_read(const struct webhook_forge *f, webhook_header_fn *header, void *arg,
    struct webhook_claim *ret);

/* The digest that an HMAC forge's proof tells.  0, or E_INVAL: it is malformed, which counts as
 * one that differs. */
int webhook_proof_digest(
    const struct webhook_forge *f, struct str_view proof, uint8_t out[WEBHOOK_DIGEST_BYTES]);

/* A claimed name for section 9: each byte that is not printable ASCII as `\xNN`, as much as
 * fits 128 bytes.  Returns ${out}, or NULL when v.p is NULL. */
const char *webhook_claim_text(struct str_view v, char out[WEBHOOK_CLAIM_SIZE]);

#endif
