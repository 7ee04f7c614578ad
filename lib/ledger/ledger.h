/*
 * lib/ledger/ledger.h -- what ProjectDO decides (spec project).
 *
 * Plain functions over project-<n>.db and over values: no loop, no clock, no message.  Each is
 * part of the caller's transaction and is told the time; what has to be told to others after
 * the commit comes back as a result.  Texts that come back live in the arena given.  Each
 * function returns 0 or a storage error (E_STORAGE, E_FULL, E_CORRUPT, E_NOMEM; E_ILLEGAL when
 * a trigger refused, which is a bug here); more is said where there is more.
 *
 *   run.h       a row of the ledger and its words
 *   project.h   configuration and phase of a project
 *   queue.h     accept, cancel, promotion
 *   lease.h     claim, heartbeat, commit, release, settlement, takeover
 *   dispatch.h  on the way to the supervisor
 *   sync.h      the index
 *   export.h    all of it, for an index that is filled anew
 *   upkeep.h    deadlines, repairs, retention, history
 *   webhook.h   webhooks and attempts that were refused
 *   delivery.h  deliveries and what became of them
 *   check.h     what holds at any moment
 *   mend.h      what is done about a breach
 *   sealed.h    secrets, when keys are rotated
 *   move.h      a project that goes to another shard
 *   import.h    a project that comes from one
 */
#ifndef LIB_LEDGER_LEDGER_H
#define LIB_LEDGER_LEDGER_H

#include "lib/ledger/check.h"
#include "lib/ledger/delivery.h"
#include "lib/ledger/dispatch.h"
#include "lib/ledger/export.h"
#include "lib/ledger/import.h"
#include "lib/ledger/lease.h"
#include "lib/ledger/mend.h"
#include "lib/ledger/move.h"
#include "lib/ledger/project.h"
#include "lib/ledger/queue.h"
#include "lib/ledger/run.h"
#include "lib/ledger/sealed.h"
#include "lib/ledger/sync.h"
#include "lib/ledger/upkeep.h"
#include "lib/ledger/webhook.h"

struct store_desc;

/* project-<n>.db, for store_open(). */
extern const struct store_desc ledger_store;

#endif
