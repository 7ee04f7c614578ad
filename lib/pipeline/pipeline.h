/*
 * lib/pipeline/pipeline.h -- `.anvil.yml`, read and judged (spec run 7).
 *
 * The same code and the same texts serve a run and a check by hand.  Everything handed out
 * lives in the caller's arena.
 */
#ifndef LIB_PIPELINE_PIPELINE_H
#define LIB_PIPELINE_PIPELINE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/base.h"
#include "lib/base/buf.h"
#include "lib/ytree/ytree.h"

#define PIPELINE_BYTES_MAX  65536 /* Of a config.                     */
#define PIPELINE_STEPS_MAX  20
#define PIPELINE_ISSUES_MAX 20  /* That are told one by one.        */
#define PIPELINE_TIMEOUT_S  720 /* Without run.timeoutSeconds.      */

struct pipeline_step {
	const char *name;    /* 1..64 bytes.    */
	const char *command; /* 1..4,096 bytes. */
};

struct pipeline {
	uint32_t depth;                /* Of the history; 0: all of it.                  */
	const char *working_directory; /* Relative to the workspace; "." when not given. */
	size_t directory_line;         /* Where it stands; 0: it was not given.          */
	size_t directory_column;
	int64_t timeout_seconds;
	size_t nsteps; /* 0 is fine. */
	struct pipeline_step steps[PIPELINE_STEPS_MAX];
};

enum pipeline_class {
	PIPELINE_SIZE,
	PIPELINE_YAML,
	PIPELINE_VALIDATION,
	PIPELINE_NOT_FOUND,
	PIPELINE_NOT_REGULAR
};

struct pipeline_issue {
	size_t line, column; /* From 1; 0: the issue is about the whole file. */
	const char *path;    /* Such as run.steps[0].name; may be "".         */
	const char *text;
};

/* Why there is no pipeline: its class, and issues in order of position. */
struct pipeline_report {
	enum pipeline_class class;
	const char *file;
	size_t nissues, nmore; /* `nmore` were found besides those of the list. */
	struct pipeline_issue issues[PIPELINE_ISSUES_MAX];
};

/* How a config is judged, and what of it is told. */
struct pipeline_terms {
	int64_t max_timeout_seconds;  /* >= 1.                                       */
	struct ytree_cleaner cleaner; /* For the values and keys that a report quotes. */
};

/*
 * pipeline_parse(arena, file, text, n, terms, &pipeline, &report):
 * Judges the ${n} bytes of ${file} (its path in the repository, for the texts; copied).  0 with
 * *ret_pipeline; E_INVAL with *ret_report; or E_NOMEM.
 */
int pipeline_parse(struct arena *arena, const char *file, const char *text, size_t n,
    const struct pipeline_terms *terms, const struct pipeline **ret_pipeline,
    const struct pipeline_report **ret_report);

/* Reports for what the checkout finds out; NULL: out of memory. */
const struct pipeline_report *
pipeline_too_big(struct arena *arena, const char *file, uint64_t size);
const struct pipeline_report *pipeline_not_found(struct arena *arena, const char *file);
/* A directory, symlink or submodule. */
const struct pipeline_report *pipeline_not_regular(struct arena *arena, const char *file);
/* The working directory of ${p} is no directory of the workspace. */
const struct pipeline_report *pipeline_no_directory(struct arena *arena, const char *file,
    const struct pipeline *p, const struct pipeline_terms *terms);

/* "config_invalid" or "config_not_found". */
const char *pipeline_failure_code(const struct pipeline_report *report);
/* Lines of a report: the class, the issues, and `and N more` when there are. */
size_t pipeline_report_nlines(const struct pipeline_report *report);
/* Adds line ${i} (0: the class), without a newline.  0 or E_NOMEM. */
int pipeline_report_line(const struct pipeline_report *report, size_t i, struct buf *out);
/* Adds all lines, for an errorMessage; whole, so that it can be redacted before it is cut.
 * 0 or E_NOMEM. */
int pipeline_report_message(const struct pipeline_report *report, struct buf *out);

#endif
