#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/config/config.h"
#include "lib/config/settings.h"
#include "lib/ytree/ytree.h"

#define KEYS_MAX    32 /* Keys of one map that the table knows. */
#define PASSWD_SIZE 16384

struct loader {
	struct config *config;
	struct ytree_issues issues;
	int failed; /* E_NOMEM, met in a check. */
};

/* ---- one value ------------------------------------------------------------------------------ */

static void
load_int(struct loader *l, const struct setting *s, const struct ytree_node *node)
{
	int64_t n;

	if (ytree_int(node, &n) < 0 || n < s->min || n > s->max)
		ytree_expected(&l->issues, node, s->expected);
	else
		*setting_int(l->config, s) = n;
}

static int
is_word(const struct ytree_node *node, const char *word)
{
	return node->kind == YTREE_SCALAR && node->plain && node->len == strlen(word) &&
	    strcmp(node->text, word) == 0;
}

static void
load_bool(struct loader *l, const struct setting *s, const struct ytree_node *node)
{
	int yes = is_word(node, "true");

	if (!yes && !is_word(node, "false"))
		ytree_expected(&l->issues, node, s->expected);
	else
		*setting_bool(l->config, s) = yes;
}

/* A wrong secret is not repeated. */
static void
report_text(struct loader *l, const struct setting *s, const struct ytree_node *node)
{
	if (s->secret && node->kind != YTREE_REFUSED)
		ytree_report(&l->issues, YTREE_RULE, node, "expected %s", s->expected);
	else
		ytree_expected(&l->issues, node, s->expected);
}

/* 1 when *ret_text is the checked value. */
static int
text_of(struct loader *l, const struct setting *s, const struct ytree_node *node,
    const char **ret_text)
{
	int r = E_INVAL;

	if (ytree_is_text(node) && memchr(node->text, '\0', node->len) == NULL)
		r = s->check(l->config->arena, node->text, node->len, ret_text);
	if (r == E_NOMEM)
		l->failed = 1;
	else if (r < 0)
		report_text(l, s, node);
	return r == 0;
}

static void
load_text(struct loader *l, const struct setting *s, const struct ytree_node *node)
{
	const char *text;

	if (text_of(l, s, node, &text))
		*setting_text(l->config, s) = text;
}

static int
is_listed(const char *const *items, size_t n, const char *text)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(items[i], text) == 0)
			return 1;
	return 0;
}

static void
load_list(struct loader *l, const struct setting *s, const struct ytree_node *node)
{
	const char **items;
	size_t n = 0;

	if (node->kind != YTREE_LIST) {
		ytree_expected(&l->issues, node, "list");
		return;
	}
	if ((int64_t)node->nchildren < s->min || (int64_t)node->nchildren > s->max) {
		ytree_report(&l->issues, YTREE_RULE, node,
		    "expected a list of %d..%d, got a list of %zu", (int)s->min, (int)s->max,
		    node->nchildren);
		return;
	}
	items = arena_calloc(l->config->arena, node->nchildren, sizeof(*items));
	if (items == NULL) {
		l->failed = 1;
		return;
	}
	for (const struct ytree_node *at = node->first; at != NULL; at = at->next) {
		if (!text_of(l, s, at, &items[n]))
			continue;
		if (is_listed(items, n, items[n]))
			ytree_report(&l->issues, YTREE_RULE, at, "expected each address once");
		else
			n++;
	}
	*setting_list(l->config, s) = (struct config_list) { n, items };
}

static void
load_setting(struct loader *l, const struct setting *s, const struct ytree_node *node)
{
	switch (s->type) {
	case SETTING_INT: load_int(l, s, node); break;
	case SETTING_BOOL: load_bool(l, s, node); break;
	case SETTING_TEXT: load_text(l, s, node); break;
	case SETTING_LIST: load_list(l, s, node); break;
	}
}

/* ---- the maps -------------------------------------------------------------------------------- */

/* 1 when row ${i} is the first of its section. */
static int
begins_section(size_t i)
{
	return settings[i].section[0] != '\0' &&
	    (i == 0 || strcmp(settings[i - 1].section, settings[i].section) != 0);
}

static void
check_keys(struct loader *l, const struct ytree_node *map, const char *section)
{
	const char *known[KEYS_MAX] = { NULL };
	size_t n = 0;

	for (size_t i = 0; i < nsettings; i++) {
		must(n < KEYS_MAX);
		if (strcmp(settings[i].section, section) == 0)
			known[n++] = settings[i].key;
		else if (section[0] == '\0' && begins_section(i))
			known[n++] = settings[i].section;
	}
	ytree_check_keys(&l->issues, map, known, n);
}

static void
load_map(struct loader *l, const struct ytree_node *map, const char *section)
{
	if (map->kind != YTREE_MAP) {
		ytree_expected(&l->issues, map, "map");
		return;
	}
	check_keys(l, map, section);
	for (size_t i = 0; i < nsettings; i++) {
		const struct ytree_node *node;

		if (strcmp(settings[i].section, section) == 0) {
			node = ytree_get(map, settings[i].key);
			if (node != NULL)
				load_setting(l, &settings[i], node);
		} else if (section[0] == '\0' && begins_section(i)) {
			node = ytree_get(map, settings[i].section);
			if (node != NULL)
				load_map(l, node, settings[i].section);
		}
	}
}

/* What depends on two settings stands at the one that is in the file. */
static void
check_together(struct loader *l, const struct ytree_node *root)
{
	const struct config *c = l->config;
	const struct ytree_node *sessions = ytree_get(root, "sessions");
	const struct ytree_node *node;

	if (sessions == NULL || c->sessions_refresh_below_seconds <= c->sessions_ttl_seconds)
		return;
	node = ytree_get(sessions, "refresh_below_seconds");
	if (node != NULL) {
		ytree_report(&l->issues, YTREE_RULE, node,
		    "expected at most ttl_seconds (%" PRId64 "), got %" PRId64,
		    c->sessions_ttl_seconds, c->sessions_refresh_below_seconds);
		return;
	}
	node = ytree_get(sessions, "ttl_seconds");
	if (node != NULL)
		ytree_report(&l->issues, YTREE_RULE, node,
		    "expected at least refresh_below_seconds (%" PRId64 "), got %" PRId64,
		    c->sessions_refresh_below_seconds, c->sessions_ttl_seconds);
}

/* ---- the file -------------------------------------------------------------------------------- */

static int
put_problems(const struct ytree_issues *issues, const char *name, struct buf *out)
{
	for (size_t i = 0; i < issues->n; i++) {
		const struct ytree_issue *at = &issues->at[i];

		buf_printf(out, "%s%s:%zu:%zu: %s%s%s", i > 0 ? "\n" : "", name, at->line,
		    at->column, at->path, at->path[0] != '\0' ? ": " : "", at->text);
	}
	if (issues->nmore > 0)
		buf_printf(out, "\nand %zu more", issues->nmore);
	return out->failed ? E_NOMEM : E_INVAL;
}

int
config_parse(const char *name, const char *text, size_t n, struct buf *problems,
    struct config **ret_config)
{
	CLEANUP(config_freep) struct config *c = settings_new();
	CLEANUP(arena_freep) struct arena *scratch = arena_new();
	struct loader l = { .config = c, .issues = { .arena = scratch } };
	struct ytree_node *root;
	int r;

	if (c == NULL || scratch == NULL)
		return E_NOMEM;
	r = ytree_parse(scratch, text, n, &l.issues, &root);
	if (r == 0) {
		load_map(&l, root, "");
		if (root->kind == YTREE_MAP)
			check_together(&l, root);
	}
	if (r == E_NOMEM || l.failed || l.issues.failed)
		return E_NOMEM;
	if (l.issues.n > 0)
		return put_problems(&l.issues, name, problems);
	*ret_config = TAKE_PTR(c);
	return 0;
}

static int
load_file(const char *path, struct buf *problems, struct config **ret_config)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	int r = io_read_file(AT_FDCWD, path, CONFIG_BYTES_MAX, &text);
	int errnum = errno;

	if (r == 0)
		return config_parse(path, text.len > 0 ? (const char *)text.data : "", text.len,
		    problems, ret_config);
	if (r == E_NOMEM)
		return r;
	if (r == E_TOO_BIG)
		buf_printf(problems, "%s: a configuration has at most %d bytes", path,
		    CONFIG_BYTES_MAX);
	else
		buf_printf(problems, "%s: cannot be read: %s", path, strerror(errnum));
	return problems->failed ? E_NOMEM : E_INVAL;
}

/* ---- no file ----------------------------------------------------------------------------------- */

static const char *
absolute_env(const char *name)
{
	const char *value = getenv(name);

	return value != NULL && value[0] == '/' ? value : NULL;
}

/* ~/.local/state below $HOME, or below what the system knows.  NULL with *ret_failed for out
 * of memory. */
static const char *
state_below_home(struct arena *arena, int *ret_failed)
{
	CLEANUP_FREE char *space = NULL;
	const char *home = absolute_env("HOME"), *state;
	struct passwd pw, *found = NULL;

	if (home == NULL) {
		space = mem_alloc(PASSWD_SIZE);
		if (space == NULL) {
			*ret_failed = 1;
			return NULL;
		}
		if (getpwuid_r(getuid(), &pw, space, PASSWD_SIZE, &found) != 0 ||
		    found == NULL || found->pw_dir[0] != '/')
			return NULL;
		home = found->pw_dir;
	}
	state = arena_format(arena, "%s/.local/state", home);
	*ret_failed = state == NULL;
	return state;
}

static int
load_defaults(struct buf *problems, struct config **ret_config)
{
	CLEANUP(config_freep) struct config *c = settings_new();
	const char *state = absolute_env("XDG_STATE_HOME");
	const char *runtime = absolute_env("XDG_RUNTIME_DIR");
	int failed = 0;

	if (c == NULL)
		return E_NOMEM;
	if (state == NULL)
		state = state_below_home(c->arena, &failed);
	if (failed)
		return E_NOMEM;
	if (state == NULL) {
		buf_add_str(problems,
		    "set HOME or XDG_STATE_HOME, or give a configuration "
		    "with data_dir");
		return problems->failed ? E_NOMEM : E_INVAL;
	}
	c->data_dir = arena_format(c->arena, "%s/anvil", state);
	if (c->data_dir == NULL)
		return E_NOMEM;
	c->runtime_dir = runtime != NULL ? arena_format(c->arena, "%s/anvil", runtime)
					 : arena_format(c->arena, "%s/run", c->data_dir);
	c->keys_file = arena_format(c->arena, "%s/keys.json", c->data_dir);
	if (c->runtime_dir == NULL || c->keys_file == NULL)
		return E_NOMEM;
	*ret_config = TAKE_PTR(c);
	return 0;
}

int
config_load(const char *path, struct buf *problems, struct config **ret_config)
{
	return path != NULL ? load_file(path, problems, ret_config)
			    : load_defaults(problems, ret_config);
}
