/*
 * lib/base/rules.h -- the rules of text fields (spec http-api 11), by name.
 *
 * Contracts name them in their types; generated decoders, ingress and the shards call them.
 */
#ifndef LIB_BASE_RULES_H
#define LIB_BASE_RULES_H

#include <stddef.h>

#include "lib/base/arena.h"

/* repositories.* of the configuration: what a URL may be besides https to a public host. */
struct rule_ctx {
	int allow_http, allow_private_hosts, allow_local;
};

/*
 * rule_apply(rule, ctx, arena, in, n, &out, &message):
 * Judges ${n} bytes of valid UTF-8 at ${in}, behind which stands a NUL.  On success *ret_out is
 * the value as it is kept (trimmed, lower-cased or normalised), NUL-terminated: either ${in}
 * itself or memory of ${arena}.  0, E_INVAL with *ret_message a static sentence that says what
 * would be right and never repeats the value, or E_NOMEM.  ${ctx} may be NULL: nothing is
 * relaxed.  A ${rule} that rule_known() does not know is a bug.
 */
int rule_apply(const char *rule, const struct rule_ctx *ctx, struct arena *arena,
    const char *in, size_t n, const char **ret_out, const char **ret_message);

/* 1 when rule_apply() has a rule of this name. */
int rule_known(const char *rule);

/* 1 when nothing but white space of ASCII is there. */
int rule_is_blank(const char *in, size_t n);

/* Each rule alone, with the same contract. */
typedef int rule_fn(const struct rule_ctx *ctx, struct arena *arena, const char *in, size_t n,
    const char **ret_out, const char **ret_message);

rule_fn rule_slug;           /* "Slug"          */
rule_fn rule_email;          /* "Email"         */
rule_fn rule_display_name;   /* "DisplayName"   */
rule_fn rule_project_name;   /* "ProjectName"   */
rule_fn rule_password;       /* "Password"      */
rule_fn rule_branch_name;    /* "BranchName"    */
rule_fn rule_config_path;    /* "ConfigPath"    */
rule_fn rule_repo_token;     /* "RepoToken"     */
rule_fn rule_webhook_secret; /* "WebhookSecret" */
rule_fn rule_repository_url; /* "RepositoryUrl" */
rule_fn rule_instance_url;   /* "InstanceUrl"   */
rule_fn rule_commit_sha;     /* "CommitSha"     */

#endif
