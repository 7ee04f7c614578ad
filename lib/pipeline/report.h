/* lib/pipeline/report.h -- making a report from the issues of a tree; private to the folder. */
#ifndef LIB_PIPELINE_REPORT_H
#define LIB_PIPELINE_REPORT_H

#include "lib/pipeline/pipeline.h"
#include "lib/ytree/ytree.h"

/* Borrows the texts of ${issues}, which live in ${arena}.  NULL: out of memory. */
const struct pipeline_report *
report_of_issues(struct arena *arena, const char *file, const struct ytree_issues *issues);

#endif
