/*
 * test/support/ledger_rig.h -- a ledger in a scratch directory, with projects and runs by number.
 *
 * All of a test happens in one transaction that is never committed.  Helpers end the test when
 * what they are asked for does not work; what a test is about it calls itself.
 */
#ifndef TEST_SUPPORT_LEDGER_RIG_H
#define TEST_SUPPORT_LEDGER_RIG_H

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/ledger/ledger.h"
#include "lib/store/store.h"

#define RIG_START_MS INT64_C(1700000000000)

struct ledger_rig {
	char *dir;
	struct store *s;
	struct arena *a;
	int64_t now; /* Moves only when a test moves it. */
};

/* For cmocka: *state becomes the rig. */
int rig_setup(void **state);
int rig_teardown(void **state);

/* Where and when, for the functions that take it. */
struct ledger_at rig_at(const struct ledger_rig *rig);

/* Ids and words by number; from the arena. */
const char *rig_prj(const struct ledger_rig *rig, int n);
const char *rig_run(const struct ledger_rig *rig, int n);
const char *rig_usr(const struct ledger_rig *rig, int n);
const char *rig_hex(const struct ledger_rig *rig, int n);

/* SQL as it is; 0 or the error. */
int rig_exec(const struct ledger_rig *rig, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* A store of an earlier release has, between these two, the columns that the statements of this
 * one name. */
void rig_lend_columns(const struct ledger_rig *rig);
void rig_take_columns(const struct ledger_rig *rig);

/* Project ${n} with branch "main"; its token has the key version ${n}. */
void rig_project(struct ledger_rig *rig, int n);
/* Accepts run ${n} for the project. */
void rig_accept(struct ledger_rig *rig, int project, int n);
/* Its row; E_NOENT ends the test. */
struct ledger_run rig_row(const struct ledger_rig *rig, int n);
/* Claims it with spawn id ${n}, from whatever it takes to be claimed; the lease id. */
const char *rig_claim(struct ledger_rig *rig, int n);
/* Reports a status. */
void rig_report(struct ledger_rig *rig, int n, enum ledger_public status, int64_t started_at);
/* Asks it to end; *ret_promoted may be NULL. */
void rig_cancel(struct ledger_rig *rig, int n);
/* Settles a claimed run; the id of the run promoted, "" for none. */
const char *rig_settle(struct ledger_rig *rig, int n, enum ledger_state state);
/* An end with values that fit the state. */
struct ledger_end rig_end(const struct ledger_rig *rig, enum ledger_state state);
/* Takes over a claimed run. */
void rig_take_over(struct ledger_rig *rig, int n, enum ledger_state state);
/* Gives it back. */
void rig_release(struct ledger_rig *rig, int n);

/* The row is byte for byte ${before}. */
void rig_unchanged(const struct ledger_rig *rig, const struct ledger_run *before);
/* The newest event of the run. */
const char *rig_last_event(const struct ledger_rig *rig, int n);
/* No invariant is broken. */
void rig_sound(const struct ledger_rig *rig);

#endif
