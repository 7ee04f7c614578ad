/*
 * lib/record/record.h -- the record of one run: its state, its steps, its log.
 *
 * Plain functions over run.db and log.zst, with no loop and no thread inside; each call is
 * one transaction of its own.  State changes are on disk when the call returns, log batches
 * are written and survive the process.  One thread at a time.
 *
 *   redact.h  takes secrets out of bytes and texts
 *   stream.h  bytes of a step become chunks
 *   states.h  claim, steps, cancel, end
 *   log.h     appending and reading the log
 *   copy.h    for a backup, and after one was restored
 *   check.h   what holds in a record at any moment
 *
 * After E_FULL, E_NOMEM or E_STORAGE the same call may be made again; E_STORAGE means that
 * it is unknown whether the change will stand.
 */
#ifndef LIB_RECORD_RECORD_H
#define LIB_RECORD_RECORD_H

#include <stdint.h>

#include "lib/base/base.h"
#include "lib/record/check.h"
#include "lib/record/copy.h"
#include "lib/record/log.h"
#include "lib/record/redact.h"
#include "lib/record/states.h"
#include "lib/record/stream.h"

#define RECORD_DB      "run.db"
#define RECORD_ARCHIVE "log.zst"
#define RECORD_RESERVE "reserve"

/* Opens, or makes, the record in the directory ${dir}, whose lock the caller holds.
 * ${max_log_bytes}: where the archive stops (runs.max_log_bytes).  ${ret_why} gets a text to
 * free on failure, or NULL.  0, E_NEWER, E_CORRUPT, E_FULL, E_NOMEM, E_STORAGE, E_SYS. */
int record_open(const char *dir, int64_t max_log_bytes, struct record **ret, char **ret_why);
/* As store_set_aside(). */
const char *record_set_aside(const struct record *r);
/* 1 when ${dir} has a record that record_open() would find. */
int record_exists(const char *dir);
struct record *record_free(struct record *r);
DEFINE_CLEANUP(struct record *, record_free)

/* Every text that enters through states.h, and every system line, goes through ${redactor},
 * borrowed, NULL for none; chunks of steps come redacted already. */
void record_set_redactor(struct record *r, const struct redactor *redactor);

/* 1 MiB put by beside the store for the day on which the disk is full, and its release.
 * 0, E_FULL, E_NOMEM, E_SYS. */
int record_reserve_make(const char *dir);
int record_reserve_drop(const char *dir);

#endif
