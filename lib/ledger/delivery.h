/*
 * lib/ledger/delivery.h -- verified deliveries, each recorded once with what became of it
 * (spec webhooks 7, 10).
 */
#ifndef LIB_LEDGER_DELIVERY_H
#define LIB_LEDGER_DELIVERY_H

#include <stddef.h>
#include <stdint.h>

#include "lib/ledger/run.h"

#define LEDGER_DELIVERY_KEPT_MS    (72 * INT64_C(3600000)) /* after it was received */
#define LEDGER_DELIVERY_PRUNE_ROWS 100                     /* of one turn           */

#define LEDGER_OUTCOME_ACCEPTED   "accepted"
#define LEDGER_OUTCOME_QUEUE_FULL "queue_full"

struct ledger_delivery {
	const char *project_id, *provider, *delivery_id;
	const char *event_kind, *event_name, *repository_url;
	const char *ref, *branch, *commit_sha, *before_sha; /* may be NULL          */
	const char *body_sha256;                            /* 64 lower-case digits */
	int64_t body_bytes;
	const char *outcome, *reason;
	const char *run_id; /* NULL unless accepted */
	int64_t received_at;
	int64_t row; /* orders those of one moment; not read */
};

/* A delivery that was verified against ${version} of ${webhook_id}.  Its outcome (any but
 * queue_full) and reason are a candidate; run_id is the run that it may become. */
struct ledger_offer {
	struct ledger_delivery delivery; /* received_at is not read */
	const char *webhook_id;
	int64_t version;
};

enum ledger_record {
	LEDGER_RECORD_ACCEPTED,
	LEDGER_RECORD_STALE,      /* the webhook is not what it was verified against        */
	LEDGER_RECORD_CONFLICT,   /* the id stands for another body                         */
	LEDGER_RECORD_REPLAYED,   /* decided before                                         */
	LEDGER_RECORD_QUEUE_FULL, /* now or before                                          */
	LEDGER_RECORD_RECORDED,   /* and starts no run                                      */
};

struct ledger_recorded {
	enum ledger_record kind;
	int again;             /* accepted by an earlier try of the same request  */
	struct ledger_run run; /* accepted                                        */
	const char *outcome;   /* replayed, recorded                              */
	const char *run_id;    /* replayed; NULL: none                            */
};

/* Decides and writes it down.  E_NOENT: no live project of that id here; E_INVAL: what is to be
 * accepted is no push with branch and commit, or the run id stands for something else. */
int ledger_record(
    const struct ledger_at *at, const struct ledger_offer *o, struct ledger_recorded *ret);

/* One that is kept still.  E_NOENT. */
int ledger_delivery_get(const struct ledger_at *at, const char *project_id,
    const char *provider, const char *delivery_id, struct ledger_delivery *ret);

struct ledger_delivery_query {
	const char *project_id;
	const char *provider; /* NULL: of all             */
	const char *cursor;   /* NULL: from the newest on */
	size_t limit;
};

struct ledger_delivery_page {
	struct ledger_delivery *rows;
	size_t n;
	const char *next; /* cursor of the page that follows; NULL: there is none */
};

/* Those that are kept still, newest first.  E_INVAL: the cursor is none of an earlier page. */
int ledger_deliveries(const struct ledger_at *at, const struct ledger_delivery_query *q,
    struct ledger_delivery_page *ret);

/* Removes the oldest that are kept no longer; *ret_n of them, unless ${ret_n} is NULL. */
int ledger_prune_deliveries(struct store *s, int64_t now_ms, int64_t *ret_n);

#endif
