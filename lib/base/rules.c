#include "lib/base/rules.h"

#include <string.h>

#include "lib/base/ascii.h"
#include "lib/base/base.h"
#include "lib/base/err.h"
#include "lib/base/refname.h"
#include "lib/base/repourl.h"
#include "lib/base/utf8.h"

#define EMAIL_MIN         3
#define EMAIL_MAX         254
#define SLUG_MAX          64
#define DISPLAY_NAME_MAX  128 /* characters */
#define PROJECT_NAME_MAX  64  /* characters */
#define PASSWORD_MIN      8
#define PASSWORD_MAX      1024
#define CONFIG_PATH_MAX   1024
#define REPO_TOKEN_MAX    4096
#define WEBHOOK_TOKEN_MAX 1024
#define COMMIT_MIN        7
#define COMMIT_MAX        64

static const struct {
	const char *name;
	rule_fn *fn;
} rules[] = {
	{ "Slug", rule_slug },
	{ "Email", rule_email },
	{ "DisplayName", rule_display_name },
	{ "ProjectName", rule_project_name },
	{ "Password", rule_password },
	{ "BranchName", rule_branch_name },
	{ "ConfigPath", rule_config_path },
	{ "RepoToken", rule_repo_token },
	{ "WebhookSecret", rule_webhook_secret },
	{ "RepositoryUrl", rule_repository_url },
	{ "InstanceUrl", rule_instance_url },
	{ "CommitSha", rule_commit_sha },
};

static rule_fn *
rule_find(const char *rule)
{
	for (size_t i = 0; i < ARRAY_LEN(rules); i++)
		if (strcmp(rules[i].name, rule) == 0)
			return rules[i].fn;
	return NULL;
}

int
rule_known(const char *rule)
{
	return rule_find(rule) != NULL;
}

int
rule_apply(const char *rule, const struct rule_ctx *ctx, struct arena *arena, const char *in,
    size_t n, const char **ret_out, const char **ret_message)
{
	rule_fn *fn = rule_find(rule);

	must(fn != NULL);
	return fn(ctx, arena, in, n, ret_out, ret_message);
}

/* ---- pieces ------------------------------------------------------------------------- */

static void
trim(const char **p, size_t *n)
{
	while (*n > 0 && ascii_is_space(**p)) {
		(*p)++;
		(*n)--;
	}
	while (*n > 0 && ascii_is_space((*p)[*n - 1]))
		(*n)--;
}

int
rule_is_blank(const char *in, size_t n)
{
	trim(&in, &n);
	return n == 0;
}

static int
refuse(const char **ret_message, const char *message)
{
	*ret_message = message;
	return E_INVAL;
}

/* Hands out ${n} bytes at ${p}, copied only when no NUL stands behind them. */
static int
keep(struct arena *arena, const char *p, size_t n, const char **ret_out)
{
	const char *kept = p[n] == '\0' ? p : arena_strndup(arena, p, n);

	if (kept == NULL)
		return E_NOMEM;
	*ret_out = kept;
	return 0;
}

/* As keep(), with ASCII letters in lower case. */
static int
keep_lower(struct arena *arena, const char *p, size_t n, const char **ret_out)
{
	char *copy = arena_strndup(arena, p, n);

	if (copy == NULL)
		return E_NOMEM;
	for (size_t i = 0; i < n; i++)
		copy[i] = ascii_lower(copy[i]);
	*ret_out = copy;
	return 0;
}

static int
has_space(const char *p, size_t n)
{
	uint32_t cp;

	for (size_t at = 0, len; at < n; at += len) {
		len = utf8_decode(p + at, n - at, &cp);
		if (len == 0 || utf8_is_space(cp))
			return 1;
	}
	return 0;
}

/* 1 when the first or the last character is white space. */
static int
has_outer_space(const char *p, size_t n)
{
	size_t last = n;
	uint32_t cp;

	if (utf8_decode(p, n, &cp) == 0 || utf8_is_space(cp))
		return 1;
	while (last > 0 && ((unsigned char)p[--last] & 0xc0) == 0x80)
		;
	return utf8_decode(p + last, n - last, &cp) == 0 || utf8_is_space(cp);
}

/* ---- people ------------------------------------------------------------------------- */

int
rule_slug(const struct rule_ctx *ctx, struct arena *arena, const char *in, size_t n,
    const char **ret_out, const char **ret_message)
{
	int good = n >= 1 && n <= SLUG_MAX;

	(void)ctx;
	for (size_t i = 0; good && i < n; i++)
		good = ascii_is_digit(in[i]) || ascii_is_alpha(in[i]) || in[i] == '_' ||
		    in[i] == '-';
	if (!good)
		return refuse(
		    ret_message, "A slug must have 1 to 64 letters, digits, \"-\" or \"_\".");
	return keep(arena, in, n, ret_out);
}

int
rule_email(const struct rule_ctx *ctx, struct arena *arena, const char *in, size_t n,
    const char **ret_out, const char **ret_message)
{
	const char *at;

	(void)ctx;
	trim(&in, &n);
	if (n < EMAIL_MIN || n > EMAIL_MAX)
		return refuse(ret_message, "An e-mail address must have 3 to 254 bytes.");
	if (utf8_has_control(in, n) || has_space(in, n))
		return refuse(ret_message,
		    "An e-mail address must not contain white space or control characters.");
	at = memchr(in, '@', n);
	if (at == NULL || at == in || at == in + n - 1 || memrchr(in, '@', n) != at)
		return refuse(ret_message,
		    "An e-mail address must have exactly one \"@\" with text on both sides.");
	return keep_lower(arena, in, n, ret_out);
}

int
rule_display_name(const struct rule_ctx *ctx, struct arena *arena, const char *in, size_t n,
    const char **ret_out, const char **ret_message)
{
	(void)ctx;
	trim(&in, &n);
	if (n == 0 || utf8_count(in, n) > DISPLAY_NAME_MAX || utf8_has_control(in, n))
		return refuse(ret_message,
		    "A display name must have 1 to 128 characters, none of them a control.");
	return keep(arena, in, n, ret_out);
}

int
rule_password(const struct rule_ctx *ctx, struct arena *arena, const char *in, size_t n,
    const char **ret_out, const char **ret_message)
{
	(void)ctx;
	if (n < PASSWORD_MIN || n > PASSWORD_MAX)
		return refuse(ret_message, "A password must have 8 to 1,024 bytes.");
	return keep(arena, in, n, ret_out);
}

/* ---- projects ------------------------------------------------------------------------- */

int
rule_project_name(const struct rule_ctx *ctx, struct arena *arena, const char *in, size_t n,
    const char **ret_out, const char **ret_message)
{
	(void)ctx;
	trim(&in, &n);
	if (n == 0 || utf8_count(in, n) > PROJECT_NAME_MAX || utf8_has_control(in, n))
		return refuse(ret_message,
		    "A project name must have 1 to 64 characters, none of them a control.");
	return keep(arena, in, n, ret_out);
}

int
rule_branch_name(const struct rule_ctx *ctx, struct arena *arena, const char *in, size_t n,
    const char **ret_out, const char **ret_message)
{
	int r;

	(void)ctx;
	trim(&in, &n);
	r = refname_check_branch(in, n, ret_message);
	return r < 0 ? r : keep(arena, in, n, ret_out);
}

/* What is wrong with a path inside a repository, or NULL. */
static const char *
config_path_fault(const char *p, size_t n)
{
	size_t from = 0;

	if (n == 0 || n > CONFIG_PATH_MAX)
		return "A config path must have 1 to 1,024 bytes.";
	if (p[0] == '/')
		return "A config path is relative to the repository; it must not begin with \"/\".";
	if (memchr(p, '\\', n) != NULL)
		return "A config path must be written with \"/\", without a backslash.";
	if (utf8_has_control(p, n))
		return "A config path must not contain control characters.";
	for (size_t i = 0; i <= n; i++) {
		if (i < n && p[i] != '/')
			continue;
		if (i == from || (i - from == 1 && p[from] == '.') ||
		    (i - from == 2 && p[from] == '.' && p[from + 1] == '.'))
			return "No part of a config path may be empty, \".\" or \"..\".";
		from = i + 1;
	}
	return NULL;
}

int
rule_config_path(const struct rule_ctx *ctx, struct arena *arena, const char *in, size_t n,
    const char **ret_out, const char **ret_message)
{
	const char *why;

	(void)ctx;
	trim(&in, &n);
	why = config_path_fault(in, n);
	return why != NULL ? refuse(ret_message, why) : keep(arena, in, n, ret_out);
}

int
rule_commit_sha(const struct rule_ctx *ctx, struct arena *arena, const char *in, size_t n,
    const char **ret_out, const char **ret_message)
{
	int good = n >= COMMIT_MIN && n <= COMMIT_MAX;

	(void)ctx;
	for (size_t i = 0; good && i < n; i++)
		good = ascii_is_hex(in[i]);
	if (!good)
		return refuse(ret_message, "A commit must be 7 to 64 hexadecimal digits.");
	return keep_lower(arena, in, n, ret_out);
}

/* ---- secrets: kept byte for byte ---------------------------------------------------------- */

int
rule_repo_token(const struct rule_ctx *ctx, struct arena *arena, const char *in, size_t n,
    const char **ret_out, const char **ret_message)
{
	(void)ctx;
	if (n == 0 || n > REPO_TOKEN_MAX || utf8_has_control(in, n) || has_outer_space(in, n))
		return refuse(ret_message,
		    "A repository token must have 1 to 4,096 bytes, no control "
		    "characters and no white space at either end.");
	return keep(arena, in, n, ret_out);
}

int
rule_webhook_secret(const struct rule_ctx *ctx, struct arena *arena, const char *in, size_t n,
    const char **ret_out, const char **ret_message)
{
	(void)ctx;
	if (n == 0 || n > WEBHOOK_TOKEN_MAX || utf8_has_control(in, n) ||
	    has_outer_space(in, n))
		return refuse(ret_message,
		    "A webhook secret must have 1 to 1,024 bytes, no control "
		    "characters and no white space at either end.");
	return keep(arena, in, n, ret_out);
}

/* ---- URLs ---------------------------------------------------------------------------- */

static struct repourl_flags
flags_of(const struct rule_ctx *ctx)
{
	struct repourl_flags flags = { 0 };

	if (ctx != NULL) {
		flags.allow_http = ctx->allow_http;
		flags.allow_private_hosts = ctx->allow_private_hosts;
		flags.allow_local = ctx->allow_local;
	}
	return flags;
}

static int
keep_copy(struct arena *arena, const char *text, const char **ret_out)
{
	const char *copy = arena_strdup(arena, text);

	if (copy == NULL)
		return E_NOMEM;
	*ret_out = copy;
	return 0;
}

int
rule_repository_url(const struct rule_ctx *ctx, struct arena *arena, const char *in, size_t n,
    const char **ret_out, const char **ret_message)
{
	struct repourl_flags flags = flags_of(ctx);
	char url[REPOURL_SIZE];
	int r = repourl_normalise(in, n, &flags, url, ret_message);

	return r < 0 ? r : keep_copy(arena, url, ret_out);
}

int
rule_instance_url(const struct rule_ctx *ctx, struct arena *arena, const char *in, size_t n,
    const char **ret_out, const char **ret_message)
{
	struct repourl_flags flags = flags_of(ctx);
	char url[REPOURL_SIZE];
	int r = repourl_normalise_instance(in, n, &flags, url, ret_message);

	return r < 0 ? r : keep_copy(arena, url, ret_out);
}
