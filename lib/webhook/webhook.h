/*
 * lib/webhook/webhook.h -- a forge's delivery, as plain functions over bytes and values (spec
 * webhooks): what each forge sends, its body scanned as it arrives, what is kept of it, and
 * what it comes to.
 *
 * No loop, no store, no secret: proofs are read here, and compared by whoever holds the secret.
 */
#ifndef LIB_WEBHOOK_WEBHOOK_H
#define LIB_WEBHOOK_WEBHOOK_H

#include "lib/webhook/decide.h"
#include "lib/webhook/forge.h"
#include "lib/webhook/form.h"
#include "lib/webhook/payload.h"
#include "lib/webhook/scan.h"

#endif
