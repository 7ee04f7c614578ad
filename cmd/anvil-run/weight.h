/*
 * cmd/anvil-run/weight.h -- how much of the disk a run has taken (spec run 12).
 *
 * A full disk is felt by all runs at once; who has filled it is to give way before the others.
 */
#ifndef CMD_ANVIL_RUN_WEIGHT_H
#define CMD_ANVIL_RUN_WEIGHT_H

#include <stdint.h>

#define WEIGHT_LOOK_MS 1000 /* A tree that takes longer counts as far as it was seen. */

/* Bytes free on the disk of ${dir}; 0: not known. */
int64_t weight_free(const char *dir);

/* Whether ws, tmp and home of the run's directory ${dir} take a quarter of ${free_before} or
 * more: then the run had a good part in it.  0 when that is not known (0). */
int weight_is_heavy(const char *dir, int64_t free_before);

#endif
