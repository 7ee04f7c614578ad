/*
 * lib/record/check.h -- what holds in the record of a run, and how the run stands there.
 *
 * Reads run.db by a connection of its own, and log.zst; changes nothing.  For any thread of
 * the process that holds the lock of the directory.
 */
#ifndef LIB_RECORD_CHECK_H
#define LIB_RECORD_CHECK_H

#include <stdint.h>

struct store_problems;

/* Text that is unpacked of one log; frames behind it are only measured. */
#define RECORD_CHECK_BYTES ((int64_t)8 << 20)

/* How the run stands.  Texts live in the arena of the problems. */
struct record_standing {
	const char *run_id,
	    *project_id; /* NULL: no claim has got so far, or it is unreadable. */
	const char *status;
	int64_t epoch;
	int64_t started_at, finished_at; /* 0: null */
	int has_exit_code;
	int64_t exit_code;
	const char *failure_code, *error_message;
};

/* The record in the directory ${dir}: every rule of schema/run.rules.def, the file, the frames
 * in log.zst.  A directory without a record has nothing wrong.  0 or E_NOMEM. */
int record_inspect(const char *dir, int64_t now_ms, struct store_problems *ret,
    struct record_standing *ret_standing);

#endif
