/*
 * cmd/anvil-ingress/rebuild_page.h -- what one page of a shard changes in the index.
 */
#ifndef CMD_ANVIL_INGRESS_REBUILD_PAGE_H
#define CMD_ANVIL_INGRESS_REBUILD_PAGE_H

#include "cmd/anvil-ingress/ingress.h"
#include "gen/project.h"

struct rebuild_counts {
	int64_t projects, runs;
	int64_t refused; /* projects whose slug another one has in the index */
};

/* In a turn that writes.  Rows go in by the rules of index.upsertRuns and index.upsertProject;
 * one that cannot is logged and passed over.  0 or a storage error. */
int rebuild_page(struct ingress *in, struct turn *t, int64_t shard,
    const struct project_export_index_page *page, struct rebuild_counts *counts);

#endif
