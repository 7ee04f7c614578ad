/*
 * cmd/anvil-project/intake.h -- projects that come from another shard: their parts become rows, or
 * a copy that was given up goes, a piece a turn, while others are served (spec project 17).
 *
 * How far that is stands in the rows; what is here drives it on for those who wait.  Nobody
 * drives it after a restart until the old shard asks again, as it does until it is answered.
 */
#ifndef CMD_ANVIL_PROJECT_INTAKE_H
#define CMD_ANVIL_PROJECT_INTAKE_H

#include <stdint.h>

struct intakes;
struct shard;
struct turn;

struct intakes *intakes_new(struct shard *s);
struct intakes *intakes_free(struct intakes *m);

/* Goes on with the copy of that move, or begins it with ${nparts} parts that are there; ${t} is
 * parked until it is whole, for a result of project.importPart.  What a handler returns. */
int intakes_import(struct intakes *m, struct turn *t, const char *project_id,
    const char *move_id, int64_t nparts);
/* The same for project.discardImport; nobody goes on with the copy then. */
int
intakes_discard(struct intakes *m, struct turn *t, const char *project_id, const char *move_id);
/* Those who wait are told that this process ends. */
void intakes_leave(struct intakes *m);

#endif
