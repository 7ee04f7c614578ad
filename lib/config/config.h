/*
 * lib/config/config.h -- `anvil.yml`: every setting, its default and its range (spec
 * operations 2).
 *
 * The supervisor reads the file; everybody else gets the same values as JSON by descriptor.
 */
#ifndef LIB_CONFIG_CONFIG_H
#define LIB_CONFIG_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/base.h"
#include "lib/base/buf.h"

#define CONFIG_BYTES_MAX  65536 /* Of the file.                       */
#define CONFIG_LISTEN_MAX 16    /* Addresses in `listen`.             */
#define CONFIG_PROXY_MAX  64    /* Addresses in `trusted_proxies`.    */

struct config_list {
	size_t n;
	const char *const *at;
};

/* Members are named <section>_<key>.  No string is NULL; all live as long as the config. */
struct config {
	struct arena *arena; /* Owned: every string and list below.               */

	int64_t version;
	const char *user;     /* "": stay who we are.                           */
	const char *data_dir; /* The folders and the file are absolute paths.   */
	const char *runtime_dir;
	const char *keys_file;
	struct config_list listen; /* 127.0.0.1:8470, [::1]:8470, unix:/path; >= 1. */
	const char *public_url;    /* Normalised; no slash at its end.              */
	int64_t shards;
	struct config_list trusted_proxies; /* IP addresses in their usual form.    */
	const char *log_level;              /* A word that log_level_parse() knows. */

	int64_t runs_max_concurrent;
	const char *runs_sandbox; /* "bwrap" or "none".                            */
	int64_t runs_max_timeout_seconds;
	int64_t runs_max_log_bytes;
	int64_t runs_keep_days;
	int64_t runs_step_memory_bytes; /* 0: no limit. */
	int64_t runs_step_max_processes;
	int64_t runs_min_free_bytes;

	const char *repositories_ca_file; /* "": the system's certificates. */
	int repositories_allow_http;
	int repositories_allow_private_hosts;
	int repositories_allow_local;

	int64_t http_max_json_bytes;
	int64_t webhooks_max_body_bytes;
	int64_t sessions_ttl_seconds;
	int64_t sessions_refresh_below_seconds; /* At most the lifetime. */
	int64_t limits_login_per_minute;
	int64_t limits_invite_accept_per_minute;
	int64_t limits_public_per_minute_per_address; /* 0: no limit.               */
	const char *metrics_token;                    /* "": loopback only; secret. */
};

/*
 * config_load(path, problems, &config):
 * Reads ${path}.  NULL: no file, so the defaults for whoever starts it, with data_dir below
 * $XDG_STATE_HOME (else ~/.local/state) and the rest beneath it or below $XDG_RUNTIME_DIR.
 * 0, or E_INVAL with ${problems} all that is wrong, a line each, without a newline at its end:
 * `file:line:column: path: what would be right`; or E_NOMEM.
 */
int config_load(const char *path, struct buf *problems, struct config **ret_config);
/* The same for ${n} bytes that were read from ${name}. */
int config_parse(const char *name, const char *text, size_t n, struct buf *problems,
    struct config **ret_config);
struct config *config_free(struct config *c);
DEFINE_CLEANUP(struct config *, config_free)

/* Adds the effective configuration as YAML that config_parse() would read, secrets masked.
 * 0 or E_NOMEM. */
int config_print(const struct config *c, struct buf *out);

/* All of it, secrets too, as one JSON object for a child.  0 or E_NOMEM. */
int config_to_json(const struct config *c, struct buf *out);
/* Unknown members are left out of account and missing ones have their defaults, since the two
 * sides may be of different releases.  0, E_INVAL, E_NOMEM. */
int config_from_json(const char *text, size_t n, struct config **ret_config);

/* Calls ${fn} for each setting that differs, with its path (such as "runs.keep_days"); ${live}:
 * a running system takes the new value over. */
void config_diff(const struct config *before, const struct config *after,
    void (*fn)(void *arg, const char *path, int live), void *arg);

#endif
