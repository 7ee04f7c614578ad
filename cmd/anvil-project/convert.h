/*
 * cmd/anvil-project/convert.h -- rows of the ledger as structs of the contract.
 */
#ifndef CMD_ANVIL_PROJECT_CONVERT_H
#define CMD_ANVIL_PROJECT_CONVERT_H

#include <stddef.h>

#include "gen/project.h"
#include "lib/ledger/ledger.h"

/* 1: the row is as the contract has it.  What a damaged store holds may be no text, too long,
 * before all time; sent with others, it would have them all refused. */
int convert_fits_run(const struct ledger_run *r);
int convert_fits_project(const struct ledger_project *p, struct arena *a);

/* Texts are borrowed from ${r}.  0, or E_CORRUPT: it does not fit, or a word that the contract
 * does not have. */
int convert_run(const struct ledger_run *r, struct run_row *ret);
int convert_queue_run(const struct ledger_run *r, struct queue_run *ret);
void convert_project(const struct ledger_project *p, struct project_config *ret);
int convert_snapshot(
    const struct ledger_run *r, const struct ledger_project *p, struct run_snapshot *ret);
/* ${config} is filled when there is one. */
int convert_webhook(
    const struct ledger_webhook *w, struct webhook_config *config, struct webhook_row *ret);
int convert_delivery(const struct ledger_delivery *d, struct delivery_row *ret);
int convert_refusal(const struct ledger_refusal *f, struct refusal_row *ret);
int convert_lost(enum ledger_lost reason, struct lost *ret);

/* "signal 9 (SIGKILL)", "exit status 70", … for people. */
void convert_how_text(const struct runner_how *how, char *out, size_t size);

#endif
