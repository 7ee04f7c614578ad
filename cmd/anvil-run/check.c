#include "cmd/anvil-run/check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cmd/anvil-run/run.h"
#include "lib/base/err.h"
#include "lib/base/id.h"
#include "lib/base/io.h"
#include "lib/base/json_text.h"
#include "lib/base/mem.h"
#include "lib/record/record.h"
#include "lib/wire/wire.h"

struct looking {
	char *runs;    /* Owned.  data_dir/runs */
	char **names;  /* Owned, with what it holds. */
	size_t nnames; /* in the order of their ids */
	struct arena *arena;
	int fd;
};

/* ---- the report ---- */

static void
add_text(struct buf *out, const char *name, const char *text)
{
	if (text == NULL)
		return;
	buf_printf(out, ",\"%s\":", name);
	json_text_string(out, text, strlen(text));
}

static void
add_time(struct buf *out, const char *name, int64_t at)
{
	if (at != 0)
		buf_printf(out, ",\"%s\":%lld", name, (long long)at);
}

static void
add_standing(struct buf *out, const struct record_standing *st)
{
	if (st->run_id == NULL)
		return;
	add_text(out, "projectId", st->project_id);
	add_text(out, "status", st->status);
	buf_printf(out, ",\"epoch\":%lld", (long long)st->epoch);
	add_time(out, "startedAt", st->started_at);
	add_time(out, "finishedAt", st->finished_at);
	if (st->has_exit_code)
		buf_printf(out, ",\"exitCode\":%lld", (long long)st->exit_code);
	add_text(out, "failureCode", st->failure_code);
}

static void
add_problems(struct buf *out, const struct store_problems *found)
{
	buf_add_str(out, ",\"problems\":[");
	for (size_t i = 0; i < found->n; i++) {
		const struct store_problem *p = &found->rows[i];

		buf_printf(out, "%s{\"code\":\"%s\"", i > 0 ? "," : "", p->code);
		add_text(out, "subject", p->subject);
		add_text(out, "text", p->text);
		buf_add_byte(out, '}');
	}
	buf_add_str(out, "]");
}

static int
tell(struct looking *l, struct buf *line)
{
	buf_add_byte(line, '\n');
	return line->failed ? E_NOMEM : io_write_all(l->fd, line->data, line->len);
}

static int
failed(struct looking *l, int r)
{
	CLEANUP(buf_done) struct buf line = BUF_INIT;

	buf_printf(&line, "{\"failed\":\"%s\"}", err_text(r));
	(void)tell(l, &line);
	return r;
}

/* ---- one run ---- */

static int
look_at(struct looking *l, const char *dir, const char *run_id, struct buf *line)
{
	struct store_problems found = { .arena = l->arena };
	struct record_standing st = { .run_id = NULL };
	CLEANUP(io_closep) int lock = -1;
	int r = place_lock_ended(dir, "check", &lock);

	/* A disk that is full keeps nobody from reading. */
	if (r == 0 || r == E_FULL)
		r = record_inspect(dir, clock_wall_ms(), &found, &st);
	if (r < 0 && r != E_LOCKED)
		return r;
	if (st.run_id != NULL && strcmp(st.run_id, run_id) != 0)
		r = store_problem_say(
		    &found, "record_of_other", "store", 0, "is the record of %s", st.run_id);
	buf_printf(line, "{\"runId\":\"%s\",\"state\":\"%s\"", run_id,
	    r == E_LOCKED             ? "live"
		: !record_exists(dir) ? "empty"
				      : "looked");
	add_standing(line, &st);
	add_problems(line, &found);
	return buf_add_byte(line, '}');
}

/* 0 to go on. */
static int
one(struct looking *l, const char *run_id)
{
	CLEANUP(buf_done) struct buf line = BUF_INIT;
	CLEANUP_FREE char *dir = mem_format("%s/%s", l->runs, run_id);
	int r = dir != NULL ? look_at(l, dir, run_id, &line) : E_NOMEM;

	arena_reset(l->arena);
	if (r == E_NOENT)
		return 0; /* its time was over */
	return r < 0 ? r : tell(l, &line);
}

/* ---- all of them ---- */

static int
add_name(struct looking *l, size_t *cap, int runs, const char *name)
{
	char *copy;

	/* Where a link leads is no place of ours. */
	if (!id_check(ID_RUN, name) || !io_is_dir(runs, name))
		return 0;
	if (l->nnames == *cap) {
		size_t more = *cap != 0 ? 2 * *cap : 256;
		char **names = mem_realloc(l->names, more * sizeof(*names));

		if (names == NULL)
			return E_NOMEM;
		l->names = names;
		*cap = more;
	}
	copy = mem_strdup(name);
	if (copy == NULL)
		return E_NOMEM;
	l->names[l->nnames++] = copy;
	return 0;
}

static int
compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int
list_all(struct looking *l)
{
	DIR *d = opendir(l->runs);
	const struct dirent *e;
	size_t cap = 0;
	int r = 0;

	if (d == NULL)
		return errno == ENOENT ? 0 : err_from_errno(errno);
	while (r == 0 && (errno = 0, e = readdir(d)) != NULL)
		r = add_name(l, &cap, dirfd(d), e->d_name);
	if (r == 0 && errno != 0)
		r = err_from_errno(errno);
	(void)closedir(d);
	if (l->nnames > 0)
		qsort(l->names, l->nnames, sizeof(*l->names), compare_names);
	return r;
}

static int
begin(struct looking *l, struct proc *p)
{
	CLEANUP(buf_wipe) struct buf text = BUF_INIT;
	CLEANUP(config_freep) struct config *config = NULL;
	int r = json_text_dump(&text, proc_config(p));

	if (r == 0)
		r = config_from_json((const char *)text.data, text.len, &config);
	if (r < 0)
		return r;
	must(config != NULL);
	l->runs = mem_format("%s/runs", config->data_dir);
	l->arena = arena_new();
	return l->runs != NULL && l->arena != NULL ? 0 : E_NOMEM;
}

static void
end(struct looking *l, struct proc *p)
{
	for (size_t i = 0; i < l->nnames; i++)
		free(l->names[i]);
	free(l->names);
	free(l->runs);
	(void)arena_free(l->arena);
	(void)proc_free(p);
}

static int
look_at_all(struct looking *l)
{
	CLEANUP(buf_done) struct buf line = BUF_INIT;
	int r = list_all(l);

	buf_printf(&line, "{\"total\":%zu}", l->nnames);
	if (r == 0)
		r = tell(l, &line);
	for (size_t i = 0; r == 0 && i < l->nnames; i++)
		r = one(l, l->names[i]);
	return r;
}

int
check_runs(struct proc *p)
{
	struct looking l = { .fd = CHECK_FD_REPORT };
	int r;

	/* Without who asked for it nobody waits for it. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)setpriority(PRIO_PROCESS, 0, CHECK_NICE);
	r = begin(&l, p);
	if (r == 0)
		r = look_at_all(&l);
	if (r < 0)
		(void)failed(&l, r);
	end(&l, p);
	return r < 0 ? EXIT_INTERNAL : 0;
}

int
check_run(struct proc *p)
{
	struct looking l = { .fd = STDOUT_FILENO };
	CLEANUP(buf_done) struct buf line = BUF_INIT;
	CLEANUP_FREE char *dir = NULL;
	const char *run_id = proc_option(p, "RUN_ID");
	int r = begin(&l, p), bad;

	if (r == 0 && (dir = mem_format("%s/%s", l.runs, run_id)) == NULL)
		r = E_NOMEM;
	if (r == 0)
		r = look_at(&l, dir, run_id, &line);
	if (r == 0)
		r = tell(&l, &line);
	bad = r < 0 || strstr((const char *)line.data, "\"problems\":[]") == NULL;
	if (r < 0)
		(void)fprintf(stderr, "anvil-run: %s: %s\n", run_id, err_text(r));
	end(&l, p);
	return bad;
}

/* ---- a run that lives ---- */

static const char *
place_of(void *ctx)
{
	const struct run_actor *r = ctx;

	OBJ_CHECK(r, RUN_MAGIC);
	return r->place.dir;
}

static int
look_at_self(const char *place, int64_t now_ms, struct store_problems *ret)
{
	struct record_standing st;

	return record_inspect(place, now_ms, ret, &st);
}

const struct actor_check run_checks = { .place = place_of, .look = look_at_self };
