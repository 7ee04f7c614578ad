#include "lib/config/settings.h"

#include <sched.h>
#include <unistd.h>

#include "lib/base/mem.h"

#define KIB            (INT64_C(1) << 10)
#define MIB            (INT64_C(1) << 20)
#define PIB            (INT64_C(1) << 50)
#define DAY_S          86400
#define RUNS_MAX       1024
#define PER_MINUTE_MAX 1000000

#define AT(member) offsetof(struct config, member)

#define INT(section, key, member, low, high, def, text, takes_over)                \
	{                                                                          \
		section, key, SETTING_INT, AT(member), low, high, def, NULL, NULL, \
		    "integer " text, takes_over, 0                                 \
	}
#define BOOL(section, key, member)                                                            \
	{                                                                                     \
		section, key, SETTING_BOOL, AT(member), 0, 1, 0, NULL, NULL, "true or false", \
		    0, 0                                                                      \
	}
#define TEXT(section, key, member, def, check, text, takes_over, hide)                         \
	{                                                                                      \
		section, key, SETTING_TEXT, AT(member), 0, 0, 0, def, check, text, takes_over, \
		    hide                                                                       \
	}
#define LIST(section, key, member, low, high, def, check, text)                              \
	{                                                                                    \
		section, key, SETTING_LIST, AT(member), low, high, 0, def, check, text, 0, 0 \
	}

/* The rows of a section stand together, in the order in which they are printed. */
const struct setting settings[] = {
	INT("", "version", version, 1, 1, 1, "1", 0),
	TEXT("", "user", user, "", value_user, "user name", 0, 0),
	TEXT("", "data_dir", data_dir, "/var/lib/anvil", value_path, "absolute path", 0, 0),
	TEXT("", "runtime_dir", runtime_dir, "/run/anvil", value_path, "absolute path", 0, 0),
	TEXT("", "keys_file", keys_file, "/etc/anvil/keys.json", value_path, "absolute path", 0,
	    0),
	LIST("", "listen", listen, 1, CONFIG_LISTEN_MAX, "127.0.0.1:8470", value_listen,
	    "127.0.0.1:8470, \"[::1]:8470\" or unix:/path"),
	TEXT("", "public_url", public_url, "http://127.0.0.1:8470", value_url,
	    "http or https URL", 0, 0),
	INT("", "shards", shards, 1, 64, 2, "1..64", 1),
	LIST("", "trusted_proxies", trusted_proxies, 0, CONFIG_PROXY_MAX, NULL, value_address,
	    "IP address"),
	TEXT(
	    "log", "level", log_level, "info", value_level, "debug, info, warn or error", 1, 0),
	INT("runs", "max_concurrent", runs_max_concurrent, 1, RUNS_MAX, 1, "1..1024", 1),
	TEXT("runs", "sandbox", runs_sandbox, "bwrap", value_sandbox, "bwrap or none", 0, 0),
	INT("runs", "max_timeout_seconds", runs_max_timeout_seconds, 1, 30 * DAY_S, 3600,
	    "1..2592000", 0),
	INT("runs", "max_log_bytes", runs_max_log_bytes, 64 * KIB, PIB, 256 * MIB,
	    "65536..1125899906842624", 0),
	INT("runs", "keep_days", runs_keep_days, 1, 36500, 7, "1..36500", 0),
	INT("runs", "step_memory_bytes", runs_step_memory_bytes, 0, PIB, 0,
	    "0..1125899906842624", 0),
	INT("runs", "step_max_processes", runs_step_max_processes, 1, 4194304, 4096,
	    "1..4194304", 0),
	INT("runs", "min_free_bytes", runs_min_free_bytes, 0, PIB, KIB *MIB,
	    "0..1125899906842624", 0),
	TEXT("repositories", "ca_file", repositories_ca_file, "", value_optional_path,
	    "absolute path or \"\"", 0, 0),
	BOOL("repositories", "allow_http", repositories_allow_http),
	BOOL("repositories", "allow_private_hosts", repositories_allow_private_hosts),
	BOOL("repositories", "allow_local", repositories_allow_local),
	INT("http", "max_json_bytes", http_max_json_bytes, KIB, 4 * MIB, 64 * KIB,
	    "1024..4194304", 0),
	INT("webhooks", "max_body_bytes", webhooks_max_body_bytes, KIB, 256 * MIB, 25 * MIB,
	    "1024..268435456", 0),
	INT("sessions", "ttl_seconds", sessions_ttl_seconds, 1, 366 * DAY_S, 21600,
	    "1..31622400", 0),
	INT("sessions", "refresh_below_seconds", sessions_refresh_below_seconds, 0, 366 * DAY_S,
	    3600, "0..31622400", 0),
	INT("limits", "login_per_minute", limits_login_per_minute, 1, PER_MINUTE_MAX, 10,
	    "1..1000000", 1),
	INT("limits", "invite_accept_per_minute", limits_invite_accept_per_minute, 1,
	    PER_MINUTE_MAX, 5, "1..1000000", 1),
	INT("limits", "public_per_minute_per_address", limits_public_per_minute_per_address, 0,
	    PER_MINUTE_MAX, 600, "0..1000000", 1),
	TEXT("metrics", "token", metrics_token, "", value_token,
	    "at most 1,024 printable ASCII characters without spaces", 0, 1),
};
const size_t nsettings = ARRAY_LEN(settings);

/* ---- members by offset ------------------------------------------------------------------ */

static void *
member(struct config *c, const struct setting *s)
{
	return (char *)c + s->offset;
}

static const void *
const_member(const struct config *c, const struct setting *s)
{
	return (const char *)c + s->offset;
}

int64_t *
setting_int(struct config *c, const struct setting *s)
{
	must(s->type == SETTING_INT);
	return member(c, s);
}

int *
setting_bool(struct config *c, const struct setting *s)
{
	must(s->type == SETTING_BOOL);
	return member(c, s);
}

const char **
setting_text(struct config *c, const struct setting *s)
{
	must(s->type == SETTING_TEXT);
	return member(c, s);
}

struct config_list *
setting_list(struct config *c, const struct setting *s)
{
	must(s->type == SETTING_LIST);
	return member(c, s);
}

int64_t
setting_get_int(const struct config *c, const struct setting *s)
{
	must(s->type == SETTING_INT);
	return *(const int64_t *)const_member(c, s);
}

int
setting_get_bool(const struct config *c, const struct setting *s)
{
	must(s->type == SETTING_BOOL);
	return *(const int *)const_member(c, s);
}

const char *
setting_get_text(const struct config *c, const struct setting *s)
{
	must(s->type == SETTING_TEXT);
	return *(const char *const *)const_member(c, s);
}

const struct config_list *
setting_get_list(const struct config *c, const struct setting *s)
{
	must(s->type == SETTING_LIST);
	return const_member(c, s);
}

/* ---- defaults ---------------------------------------------------------------------------- */

/* Processors that this process may use. */
static int64_t
processors(void)
{
	cpu_set_t set;
	int64_t n;

	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		n = CPU_COUNT(&set);
	else
		n = sysconf(_SC_NPROCESSORS_ONLN);
	return max_i64(1, min_i64(n, RUNS_MAX));
}

static void
set_initial(struct config *c, const struct setting *s)
{
	switch (s->type) {
	case SETTING_INT: *setting_int(c, s) = s->initial; break;
	case SETTING_BOOL: *setting_bool(c, s) = s->initial != 0; break;
	case SETTING_TEXT: *setting_text(c, s) = s->initial_text; break;
	case SETTING_LIST:
		*setting_list(c, s) = (struct config_list) { s->initial_text != NULL ? 1 : 0,
			&s->initial_text };
		break;
	}
}

struct config *
settings_new(void)
{
	struct config *c = mem_calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->arena = arena_new();
	if (c->arena == NULL)
		return config_free(c);
	for (size_t i = 0; i < nsettings; i++)
		set_initial(c, &settings[i]);
	c->runs_max_concurrent = processors();
	return c;
}

struct config *
config_free(struct config *c)
{
	if (c != NULL)
		(void)arena_free(c->arena);
	return mem_free(c);
}
