/*
 * lib/ledger/export.h -- all that a shard has, page by page, for the index (spec project 18).
 */
#ifndef LIB_LEDGER_EXPORT_H
#define LIB_LEDGER_EXPORT_H

#include <stddef.h>

#include "lib/ledger/project.h"
#include "lib/ledger/run.h"

/* What is on a page, as it is at one moment.  Projects come first, then runs, each by id. */
struct ledger_export {
	struct ledger_project *projects;
	size_t nprojects;
	struct ledger_run *runs;
	size_t nruns;
	const char *next; /* Where the next one begins; NULL: this was the last. */
	int64_t moves;    /* Another number when a project has been given away meanwhile. */
};

/* The page behind ${cursor}, which is of the page before, or "" for the first.  ${limit}: rows of
 * both kinds together.  E_INVAL: not a cursor.  Projects that were given away are not among
 * them, those that are on their way to here are. */
int ledger_export(struct store *s, struct arena *a, const char *cursor, size_t limit,
    struct ledger_export *ret);

#endif
