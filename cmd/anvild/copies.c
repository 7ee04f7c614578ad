/* supervisor.copyRuns: the process that copies the records of runs that nobody has open, for a
 * backup, and its report. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/anvild/errand.h"
#include "cmd/anvild/spawn.h"
#include "cmd/anvild/supervisor.h"
#include "gen/supervisor.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"

#define REPORT_MAX_BYTES ((size_t)4 << 20)
#define NAMES_MAX        1024 /* runs of a kind in an answer; more are counted alone */

/* ---- the process ---- */

/* Which runs, a line each; none: all. */
static int
names_fd(const struct supervisor_copy_runs_params *p)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;

	for (size_t i = 0; i < p->nrun_ids; i++)
		buf_printf(&text, "%s\n", p->run_ids[i]);
	return text.failed ? -1
			   : spawn_memfd(text.data != NULL ? (void *)text.data : "", text.len);
}

static int
start(struct errand *e, struct turn *t, const struct supervisor_copy_runs_params *p)
{
	CLEANUP(io_closep) int names = names_fd(p);

	return names < 0 ? E_NOMEM : errand_start(e, t, "--copy", p->folder, names);
}

/* ---- the report ---- */

struct found {
	const char *live[NAMES_MAX];
	struct bad_run bad[NAMES_MAX];
	size_t nlive, nbad;
	int64_t left_out;
	const char *failed;
};

static void
read_line(struct found *f, char *line)
{
	char *word = strsep(&line, " "), *run_id;

	if (line == NULL)
		return;
	if (strcmp(word, "failed") == 0) {
		f->failed = line;
		return;
	}
	run_id = strsep(&line, " ");
	if (strcmp(word, "live") == 0 ? f->nlive >= NAMES_MAX : f->nbad >= NAMES_MAX)
		f->left_out++;
	else if (strcmp(word, "live") == 0)
		f->live[f->nlive++] = run_id;
	else if (line != NULL)
		f->bad[f->nbad++] = (struct bad_run) { .run_id = run_id, .message = line };
}

/* What it has written so far, NUL-terminated in ${a}; it may be writing more. */
static char *
read_report(int report, struct arena *a)
{
	off_t size = lseek(report, 0, SEEK_END);
	size_t n = size > 0 ? min_size((size_t)size, REPORT_MAX_BYTES) : 0;
	char *text = arena_alloc(a, n + 1);
	ssize_t got = text != NULL ? pread(report, text, n, 0) : -1;

	if (got < 0)
		return NULL;
	text[got] = '\0';
	return text;
}

static int
tell(const struct errand *e, struct arena *a, struct supervisor_copy_status_status *ret)
{
	int running = errand_is_under_way(e);
	struct found *f = arena_calloc(a, 1, sizeof(*f));
	char *text = f != NULL ? read_report(errand_report(e), a) : NULL;
	long long total = 0, ncopied = 0, ngone = 0;
	char *line;

	if (text == NULL)
		return E_NOMEM;
	line = strsep(&text, "\n");
	if (sscanf(line, "%lld %lld %lld", &total, &ncopied, &ngone) != 3)
		total = ncopied = ngone = 0;
	/* Who is in the way is of use when it is through. */
	while (!running && text != NULL && (line = strsep(&text, "\n")) != NULL)
		read_line(f, line);
	if (f->failed == NULL)
		f->failed = errand_failure(e);
	*ret = (struct supervisor_copy_status_status) { .running = running,
		.total = total,
		.copied = ncopied,
		.gone = ngone,
		.live = f->live,
		.nlive = f->nlive,
		.bad = f->bad,
		.nbad = f->nbad,
		.left_out = f->left_out,
		.failed = f->failed };
	return 0;
}

/* ---- the methods ---- */

int
supervisor_copy_runs(struct supervisor *s, struct turn *t,
    const struct supervisor_copy_runs_params *p, struct supervisor_copy_runs_result *ret)
{
	const char *wrong = actor_backup_refusal(p->folder);

	if (wrong == NULL && s->stopping)
		return turn_fail(t, E_DRAINING, "the supervisor is stopping");
	if (wrong == NULL && errand_is_under_way(s->copies)) {
		ret->kind = SUPERVISOR_COPY_RUNS_BUSY;
		return 0;
	}
	if (wrong == NULL) {
		ret->kind = SUPERVISOR_COPY_RUNS_STARTED;
		return start(s->copies, t, p);
	}
	ret->kind = SUPERVISOR_COPY_RUNS_REFUSED;
	ret->u.refused.message = arena_format(t->arena, "%s %s", p->folder, wrong);
	return ret->u.refused.message != NULL ? 0 : E_NOMEM;
}

int
supervisor_copy_status(struct supervisor *s, struct turn *t,
    const struct supervisor_copy_status_params *p, struct supervisor_copy_status_result *ret)
{
	(void)p;
	ret->kind = SUPERVISOR_COPY_STATUS_NONE;
	if (errand_report(s->copies) < 0)
		return 0;
	ret->kind = SUPERVISOR_COPY_STATUS_STATUS;
	return tell(s->copies, t->arena, &ret->u.status);
}
