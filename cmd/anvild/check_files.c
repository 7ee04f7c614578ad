/* supervisor.listFiles and supervisor.sweep: folders, mirrors and sockets, and whose they are. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/anvild/child.h"
#include "cmd/anvild/process.h"
#include "cmd/anvild/runners.h"
#include "cmd/anvild/serves.h"
#include "cmd/anvild/supervisor.h"
#include "cmd/anvild/sweep.h"
#include "gen/supervisor.h"
#include "lib/base/crash.h"
#include "lib/base/io.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

#define NAMES_MAX 100000 /* of one folder; a page of the next look has the rest */

/* ---- reading folders, on the worker ---- */

struct names {
	const char **rows;
	size_t n, cap;
};

struct listing {
	struct supervisor *sup;
	struct parked *caller; /* NULL: answered. */
	struct arena *arena;   /* Owned. */
	char *data_dir, *runtime_dir;
	char cursor[ID_SIZE]; /* "": the first page */
	size_t limit;
	int err;
	/* Found. */
	struct run_folder *runs;
	size_t nruns;
	int more;
	struct names mirrors, sockets, stores;
};

static struct listing *
listing_free(struct listing *l)
{
	(void)arena_free(l->arena);
	return mem_free(l);
}

static int
names_add(struct names *list, struct arena *a, const char *name)
{
	void *rows = (void *)list->rows;
	int r = arena_list_grow(a, &rows, list->n, &list->cap, sizeof(*list->rows));

	if (r < 0)
		return r;
	list->rows = rows;
	list->rows[list->n] = arena_strdup(a, name);
	return list->rows[list->n++] != NULL ? 0 : E_NOMEM;
}

typedef int want_fn(const char *name);

/* Names of a folder that are wanted; one that is not there has none. */
static int
read_names(const char *path, want_fn *want, struct arena *a, struct names *ret)
{
	DIR *d = opendir(path);
	const struct dirent *e;
	int r = 0;

	if (d == NULL)
		return errno == ENOENT ? 0 : err_from_errno(errno);
	while (r == 0 && ret->n < NAMES_MAX && (errno = 0, e = readdir(d)) != NULL)
		if (want(e->d_name))
			r = names_add(ret, a, e->d_name);
	if (r == 0 && errno != 0)
		r = err_from_errno(errno);
	(void)closedir(d);
	return r;
}

static int
is_run(const char *name)
{
	return id_check(ID_RUN, name);
}

static int
ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n > m && strcmp(name + n - m, end) == 0;
}

static int
is_mirror(const char *name)
{
	return strncmp(name, "prj_", 4) == 0 && ends_with(name, ".git");
}

static int
is_socket(const char *name)
{
	return ends_with(name, ".sock");
}

static int
is_shard_store(const char *name)
{
	return strncmp(name, "project-", 8) == 0 && ends_with(name, ".db");
}

static int
compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int
has(int dir, const char *run_id, const char *part)
{
	char path[ID_SIZE + 16];

	(void)snprintf(path, sizeof(path), "%s/%s", run_id, part);
	return faccessat(dir, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int
has_trees(int dir, const char *run_id)
{
	static const char *const names[] = { "ws", "tmp", "home", "ws.gone", "tmp.gone",
		"home.gone" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (has(dir, run_id, names[i]))
			return 1;
	return 0;
}

static int
list_runs(struct listing *l, const char *path)
{
	CLEANUP(io_closep) int dir = io_open_dir(AT_FDCWD, path);
	struct names all = { .n = 0 };
	int r = read_names(path, is_run, l->arena, &all);

	if (r < 0 || all.n == 0)
		return r;
	qsort((void *)all.rows, all.n, sizeof(*all.rows), compare_names);
	l->runs = arena_calloc(l->arena, min_size(all.n, l->limit), sizeof(*l->runs));
	if (l->runs == NULL)
		return E_NOMEM;
	for (size_t i = 0; i < all.n; i++) {
		const char *id = all.rows[i];

		/* Who puts a link there keeps what it leads to elsewhere, and it is not ours. */
		if (strcmp(id, l->cursor) <= 0 || !io_is_dir(dir, id))
			continue;
		l->more = l->nruns == l->limit;
		if (l->more)
			break;
		l->runs[l->nruns++] = (struct run_folder) { .run_id = id,
			.store = has(dir, id, "run.db"),
			.trees = has_trees(dir, id) };
	}
	return 0;
}

static void
list_work(void *arg)
{
	struct listing *l = arg;
	char *runs = arena_format(l->arena, "%s/runs", l->data_dir);
	char *cache = arena_format(l->arena, "%s/cache", l->data_dir);

	l->err = runs != NULL && cache != NULL ? list_runs(l, runs) : E_NOMEM;
	if (l->err < 0 || l->cursor[0] != '\0')
		return;
	l->err = read_names(cache, is_mirror, l->arena, &l->mirrors);
	if (l->err == 0)
		l->err = read_names(l->runtime_dir, is_socket, l->arena, &l->sockets);
	if (l->err == 0)
		l->err = read_names(l->data_dir, is_shard_store, l->arena, &l->stores);
}

/* ---- whose they are, on the loop ---- */

static int
is_serving(const struct supervisor *s, const char *run_id)
{
	const struct process *p;

	for (size_t at = 0; (p = serves_next(s->serves, &at)) != NULL;)
		if (strcmp(process_id(p)->run_id, run_id) == 0)
			return 1;
	return 0;
}

/* Of a process that we know, or of somebody else altogether. */
static int
is_known_socket(const struct supervisor *s, const char *name)
{
	char run_id[ID_SIZE], own[RPC_ADDRESS_SIZE + 8];

	for (size_t i = 0; i < s->nresidents; i++)
		if (link_socket_name(child_address(s->residents[i]), own) == 0 &&
		    strcmp(own, name) == 0)
			return 1;
	if (strcmp(name, "supervisor.sock") == 0)
		return 1;
	(void)snprintf(
	    run_id, sizeof(run_id), "%.*s", (int)min_size(strlen(name) - 5, ID_SIZE - 1), name);
	if (id_check(ID_RUN, run_id) && strlen(name) == strlen(run_id) + 5)
		return runners_find(s->runners, run_id) != NULL || is_serving(s, run_id);
	return strncmp(name, "project-", 8) != 0;
}

static int
is_ended(struct turn *t, const char *run_id, int *ret)
{
	CLEANUP(stmt_resetp) struct stmt *st = sup_stmt(t, SUP_ENDED_GET);
	int r = stmt_first(st, stmt_bind(st, "s", run_id));

	*ret = r == 0;
	return r == E_NOENT ? 0 : r;
}

static int
tell_runs(const struct listing *l, struct turn *t, struct supervisor_list_files_result *ret)
{
	int r = 0;

	for (size_t i = 0; i < l->nruns && r == 0; i++) {
		l->runs[i].live = runners_find(l->sup->runners, l->runs[i].run_id) != NULL;
		r = is_ended(t, l->runs[i].run_id, &l->runs[i].ended);
	}
	ret->runs = l->runs;
	ret->nruns = l->nruns;
	ret->next = l->more ? l->runs[l->nruns - 1].run_id : NULL;
	return r;
}

static int
tell_rest(struct listing *l, struct supervisor_list_files_result *ret)
{
	int64_t *shards = arena_calloc(l->arena, l->stores.n + 1, sizeof(*shards));
	size_t n = 0;

	if (shards == NULL)
		return E_NOMEM;
	for (size_t i = 0; i < l->sockets.n; i++)
		if (!is_known_socket(l->sup, l->sockets.rows[i]))
			l->sockets.rows[n++] = l->sockets.rows[i];
	ret->sockets = l->sockets.rows;
	ret->nsockets = n;
	for (size_t i = 0; i < l->mirrors.n; i++) {
		char *name = arena_strndup(
		    l->arena, l->mirrors.rows[i], strlen(l->mirrors.rows[i]) - 4);

		if (name == NULL)
			return E_NOMEM;
		l->mirrors.rows[i] = name;
	}
	ret->mirrors = l->mirrors.rows;
	ret->nmirrors = l->mirrors.n;
	for (size_t i = 0; i < l->stores.n; i++) {
		long shard = strtol(l->stores.rows[i] + 8, NULL, 10);

		if (shard >= l->sup->config->shards && shard < SUP_SHARDS_MAX)
			shards[ret->nshards++] = shard;
	}
	ret->shards = shards;
	ret->keep_days = l->sup->config->runs_keep_days;
	ret->sweeping = sweep_is_busy(l->sup->sweep);
	return 0;
}

static int
tell_turn(void *arg, struct turn *t)
{
	struct listing *l = arg;
	struct supervisor_list_files_result result = { .nruns = 0 };
	int r = tell_runs(l, t, &result);

	if (r == 0)
		r = tell_rest(l, &result);
	if (r < 0)
		return r;
	parked_reply(l->caller, &result);
	l->caller = NULL;
	return 0;
}

static void
list_done(void *arg, int err)
{
	struct listing *l = arg;
	int r = err < 0 ? err : l->err;

	if (r == 0)
		r = actor_turn(l->sup->actor, 0, tell_turn, l);
	/* The turn takes the caller when it has answered. */
	if (l->caller != NULL)
		parked_error(l->caller, r < 0 ? r : E_INTERNAL, NULL);
	(void)listing_free(l);
}

static struct listing *
listing_new(struct supervisor *s, const struct supervisor_list_files_params *p)
{
	struct listing *l = mem_calloc(1, sizeof(*l));

	if (l == NULL)
		return NULL;
	l->sup = s;
	l->limit = (size_t)p->limit;
	(void)snprintf(l->cursor, sizeof(l->cursor), "%s", p->cursor != NULL ? p->cursor : "");
	l->arena = arena_new();
	if (l->arena != NULL) {
		l->data_dir = arena_strdup(l->arena, s->config->data_dir);
		l->runtime_dir = arena_strdup(l->arena, s->config->runtime_dir);
	}
	return l->arena != NULL && l->data_dir != NULL && l->runtime_dir != NULL
	    ? l
	    : listing_free(l);
}

int
supervisor_list_files(struct supervisor *s, struct turn *t,
    const struct supervisor_list_files_params *p, struct supervisor_list_files_result *ret)
{
	struct listing *l = listing_new(s, p);
	int r;

	(void)ret;
	if (l == NULL)
		return E_NOMEM;
	l->caller = turn_park(t);
	if (l->caller == NULL) {
		(void)listing_free(l);
		return E_NOMEM;
	}
	r = actor_work(s->actor, list_work, list_done, l);
	if (r < 0) {
		parked_error(l->caller, r, NULL);
		(void)listing_free(l);
	}
	return TURN_PARKED;
}

/* ---- sweeping ---- */

static void
note_swept(const char *what, const char *name)
{
	log_event(LOG_LEVEL_WARN, "orphan_swept", LOG_STR("kind", what), LOG_STR("name", name));
}

static int
has_folder(const struct supervisor *s, const char *run_id)
{
	CLEANUP_FREE char *path = mem_format("%s/runs/%s", s->config->data_dir, run_id);

	return path != NULL && io_is_dir(AT_FDCWD, path);
}

/* Its time is counted from now on: nobody knows when it ended. */
static int
keep_run(const struct supervisor *s, struct turn *t, const char *run_id, int64_t *swept)
{
	int known, r = is_ended(t, run_id, &known);

	if (r < 0 || known || runners_find(s->runners, run_id) != NULL ||
	    !has_folder(s, run_id))
		return r;
	CRASH_POINT("sweep_keeps_run");
	{
		CLEANUP(stmt_resetp) struct stmt *st = sup_stmt(t, SUP_ENDED_SET);

		r = stmt_bind(st, "ssi", run_id, "", t->now_ms);
		if (r == 0)
			r = stmt_run(st);
	}
	if (r == 0) {
		note_swept("run", run_id);
		++*swept;
	}
	return r;
}

static int
is_executing(const struct supervisor *s, const char *project_id)
{
	const struct process *p;

	for (size_t at = 0; (p = runners_next(s->runners, &at)) != NULL;)
		if (strcmp(process_id(p)->project_id, project_id) == 0)
			return 1;
	return 0;
}

static void
sweep_files(struct supervisor *s, const struct supervisor_sweep_params *p,
    struct supervisor_sweep_ok *ret)
{
	for (size_t i = 0; i < p->ntrees; i++) {
		if (runners_find(s->runners, p->trees[i]) != NULL)
			continue;
		/* Who serves it has its lock, and is in no need of it. */
		if (serves_stop(s->serves, p->trees[i])) {
			++ret->waiting;
			continue;
		}
		sweep_leftovers(s->sweep, p->trees[i]);
		note_swept("workspace", p->trees[i]);
		++ret->swept;
	}
	for (size_t i = 0; i < p->nmirrors; i++) {
		if (is_executing(s, p->mirrors[i]))
			continue;
		sweep_mirror(s->sweep, p->mirrors[i]);
		note_swept("mirror", p->mirrors[i]);
		++ret->swept;
	}
	for (size_t i = 0; i < p->nsockets; i++) {
		const char *name = p->sockets[i];

		if (!is_socket(name) || strchr(name, '/') != NULL || is_known_socket(s, name))
			continue;
		(void)unlinkat(actor_runtime_dirfd(s->actor), name, 0);
		note_swept("socket", name);
		++ret->swept;
	}
}

int
supervisor_sweep(struct supervisor *s, struct turn *t, const struct supervisor_sweep_params *p,
    struct supervisor_sweep_result *ret)
{
	for (size_t i = 0; i < p->nended; i++) {
		int r = keep_run(s, t, p->ended[i], &ret->u.ok.swept);

		if (r < 0)
			return r;
	}
	sweep_files(s, p, &ret->u.ok);
	ret->kind = SUPERVISOR_SWEEP_OK;
	return 0;
}
