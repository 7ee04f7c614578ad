/*
 * cmd/anvil-project/takeover.h -- when a runner is gone: its store's word, or its end without
 * one, becomes the ledger's (spec project 11).
 */
#ifndef CMD_ANVIL_PROJECT_TAKEOVER_H
#define CMD_ANVIL_PROJECT_TAKEOVER_H

#include <stddef.h>

#define TAKEOVER_HOW_SIZE 96

struct shard;
struct takeovers;

struct takeovers *takeovers_new(struct shard *s);
struct takeovers *takeovers_free(struct takeovers *k);
size_t takeovers_count(const struct takeovers *k);
/* 1 while one of a run of that project is under way. */
int takeovers_busy(const struct takeovers *k, const char *project_id);
/* 1 while a takeover of that run is under way. */
int takeovers_has(const struct takeovers *k, const char *run_id);

/* The supervisor has said that the process of this lease has ended, ${how}.  Nothing when a
 * takeover of the run is under way. */
void
takeover_begin(struct takeovers *k, const char *run_id, const char *lease_id, const char *how);

#endif
