/*
 * lib/ledger/inside.h -- rows from the inside (private).
 */
#ifndef LIB_LEDGER_INSIDE_H
#define LIB_LEDGER_INSIDE_H

#include "lib/base/arena.h"
#include "lib/ledger/ledger.h"
#include "lib/store/store.h"

enum ledger_stmt {
#define STMT(name, nparams, sql) LG_##name,
#include "schema/project.stmt.def"
#undef STMT
	LG_STMT_COUNT
};

/* Binds ('bound' is what stmt_bind() said) and runs. */
int ledger_run_stmt(struct stmt *st, int bound);
/* &v when it is not 0, else NULL: 0 stands for null in our structs. */
static inline const int64_t *
ledger_null0(const int64_t *v)
{
	return *v != 0 ? v : NULL;
}

/* The run that a statement with one parameter, ${key}, selects.  0, E_NOENT or an error. */
int ledger_run_one(struct store *s, struct arena *a, enum ledger_stmt by, const char *key,
    struct ledger_run *ret);
/* All rows of a statement that selects the columns of a run, broken ones marked, or of a
 * project. */
int ledger_run_rows(
    struct stmt *st, int bound, struct arena *a, struct ledger_run **ret, size_t *ret_n);
int ledger_project_rows(
    struct stmt *st, int bound, struct arena *a, struct ledger_project **ret, size_t *ret_n);

/* The versions of all webhooks of a project move. */
int ledger_webhooks_touch(struct store *s, const char *project_id, int64_t now_ms);

/* Writes the columns that may change. */
int ledger_run_save(struct store *s, const struct ledger_run *r);

/* The truth has changed: the index has to hear of it (spec project 4). */
void ledger_touch(struct ledger_run *r, int64_t now_ms);
/* Makes it terminal: position, dispatch, lease expiry, index go with it. */
void ledger_end_row(struct ledger_run *r, const struct ledger_end *e, int64_t now_ms);

int ledger_event_int(struct store *s, const char *run_id, int64_t at, const char *event,
    const char *name, int64_t value);

#endif
