/*
 * lib/record/inside.h -- an open record as the files of this folder see it.
 */
#ifndef LIB_RECORD_INSIDE_H
#define LIB_RECORD_INSIDE_H

#include "lib/record/archive.h"
#include "lib/record/record.h"
#include "lib/store/store.h"

enum record_stmt {
#define STMT(name, nparams, sql) STMT_##name,
#include "schema/run.stmt.def"
#undef STMT
	STMT_COUNT
};

extern const struct store_desc record_store_desc;

/* A frame that is in the file and whose row is not committed yet. */
struct record_frame {
	struct archive_frame frame;
	int64_t last_seq; /* Newest chunk that it covers. */
};
#define RECORD_FRAMES_MAX 8

struct record {
	uint32_t magic;
#define RECORD_MAGIC 0x4d8e02b7
	struct store *store;               /* Owned. */
	struct checkpointer *checkpointer; /* Owned; NULL until a claim. */
	const struct redactor *redactor;   /* Borrowed; NULL: none. */
	int dirfd;
	int64_t epoch;        /* Of the claim of this process; 0: none. */
	enum store_sync sync; /* Of the next transaction, unless it is changed. */
	int in_doubt;         /* A commit may have failed: first the store's log begins anew. */

	/* The log. */
	struct record_log log; /* As committed. */
	int log_unknown;       /* A commit failed: read log_state again first. */
	int64_t max_log_bytes;
	int restored;            /* The store came from a backup: its ledger may be older. */
	int hurry;               /* As the caller says. */
	struct archive *archive; /* Owned; NULL until something is archived. */
	int archive_ahead;       /* It was given what is not stored, and has to go back. */
	struct archive_reader *reader; /* Owned; NULL until something is read. */
	int64_t fed_seq;               /* Newest chunk given to the archive. */
	int capped;                    /* The archive takes no more of the head. */
	int tail_begun;                /* The end of a capped log is being archived. */
	int64_t omitted;               /* What was left out then, not committed yet. */
	struct record_frame frames[RECORD_FRAMES_MAX];
	size_t nframes;
	int unsynced; /* Text that is in the archive alone may not be on disk. */
};

/* One transaction: begin, work, then end with the result of the work.  On failure all is
 * undone; 0 or the first error. */
int record_txn_begin(struct record *r, enum store_sync sync);
int record_txn_end(struct record *r, int err);

/* RECORD_RUN(r, STMT_X, "is", number, text) binds and runs.  0 or an error of stmt_run(). */
#define RECORD_RUN(r, id, ...)                                   \
	__extension__({                                          \
		struct stmt *st_ = store_stmt((r)->store, (id)); \
		record_ran(st_, stmt_bind(st_, __VA_ARGS__));    \
	})
/* As RECORD_RUN(), for a statement that must hit a row: E_STALE when it hit none. */
#define RECORD_HIT(r, id, ...) record_hit((r), RECORD_RUN((r), (id), __VA_ARGS__))
int record_ran(struct stmt *st, int err);
int record_hit(struct record *r, int err);

/* What the store spells so. */
enum run_status record_status_of(const char *name);
enum log_stream record_stream_of(const char *name);

/* Redacted, valid UTF-8, at most ${max} bytes with an ellipsis where it was cut.  The caller
 * frees; NULL: out of memory. */
char *record_clean_text(const struct record *r, const char *text, size_t max);

/* Reads log_state into r->log. */
int record_load_log(struct record *r);
/* Inside a transaction, each: stores rows, or one system line as record_note() does, and
 * moves ${log} on; writes ${log} to log_state. */
int
record_put_rows(struct record *r, struct record_row *rows, size_t n, struct record_log *log);
int record_put_note(
    struct record *r, int64_t step, const char *text, int64_t now_ms, struct record_log *log);
int record_put_log(struct record *r, const struct record_log *log);
/* Before a state change that output belongs to: brings to disk what has no rows.  What cannot
 * be is told by record_finish_log(). */
void record_sync_log(struct record *r);

#endif
