/*
 * cmd/anvil-project/broken.h -- rows that a damaged store holds and nobody can be told of.
 *
 * They are passed over wherever rows are gone through, so that none keeps the others waiting;
 * `anvilctl check --fix` mends them.
 */
#ifndef CMD_ANVIL_PROJECT_BROKEN_H
#define CMD_ANVIL_PROJECT_BROKEN_H

struct broken;
struct shard;

#define BROKEN_TOLD_MAX 1000 /* rows that each get a line in the log */

/* NULL: out of memory. */
struct broken *broken_new(void);
struct broken *broken_free(struct broken *b);

/* One line at error for a row, once in the life of this process.  ${id}: of a run, or of a
 * project, and then the same as ${project_id}. */
void broken_tell(struct broken *b, const char *id, const char *project_id);

#endif
