/*
 * cmd/anvilctl/deliveries.h -- deliveries and refused attempts as rows of one table.
 */
#ifndef CMD_ANVILCTL_DELIVERIES_H
#define CMD_ANVILCTL_DELIVERIES_H

#include "cmd/anvilctl/table.h"
#include "gen/project.h"

/* NULL: no memory. */
struct table *deliveries_table(void);
/* Both lists of ${page} begin with the newest, and so do the ${max} rows that this adds. */
void deliveries_fill(struct table *t, const struct webhook_deliveries_page *page, size_t max);

#endif
