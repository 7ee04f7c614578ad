/*
 * cmd/anvilctl/why.h -- the chain of a run in words: from the delivery to who ended it.
 */
#ifndef CMD_ANVILCTL_WHY_H
#define CMD_ANVILCTL_WHY_H

#include "cmd/anvilctl/table.h"
#include "gen/project.h"
#include "gen/run.h"

/* What is known of a run. */
struct why {
	const struct project_why_history *history;
	const struct run_get_detail_detail *detail; /* NULL: its store cannot be asked. */
};

/* The chain in the order of time.  NULL: no memory. */
struct table *why_table(const struct why *w);
/* One sentence: who or what ended it, or what it waits for.  0 or E_NOMEM. */
int why_end(const struct why *w, struct buf *out);

#endif
