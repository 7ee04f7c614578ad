/*
 * cmd/anvil-project/notice.h -- what a shard tells ingress, so that it looks again.
 */
#ifndef CMD_ANVIL_PROJECT_NOTICE_H
#define CMD_ANVIL_PROJECT_NOTICE_H

#include "gen/types.h"

struct shard;
struct turn;

/* webhook.changed for the project, once the turn is on disk; ${provider} NULL: any of its
 * webhooks.  One that is lost costs nothing but a `stale` answer.  0 or E_NOMEM. */
int notice_webhook_after(
    struct shard *s, struct turn *t, const char *project_id, const enum provider *provider);

#endif
