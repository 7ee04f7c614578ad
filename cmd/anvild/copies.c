#include "cmd/anvild/copies.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cmd/anvild/process.h"
#include "cmd/anvild/spawn.h"
#include "cmd/anvild/supervisor.h"
#include "gen/supervisor.h"
#include "lib/base/io.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

#define REPORT_MAX_BYTES ((size_t)4 << 20)
#define NAMES_MAX        1024 /* runs of a kind in an answer; more are counted alone */
/* What stands in its row where others have a run. */
#define NO_RUN "copies"

struct copies {
	uint32_t magic;
#define COPIES_MAGIC 0x7be2094d
	struct supervisor *sup;
	struct process *process; /* NULL: none is copying */
	int report_fd;           /* of the last one; -1: none was started */
	char how[96];            /* it ended otherwise than it should; "" */
};

struct copies *
copies_new(struct supervisor *s)
{
	struct copies *c = mem_calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->magic = COPIES_MAGIC;
	c->sup = s;
	c->report_fd = -1;
	return c;
}

struct copies *
copies_free(struct copies *c)
{
	if (c == NULL)
		return NULL;
	copies_stop(c);
	process_free(c->process);
	io_close(&c->report_fd);
	c->magic = 0;
	return mem_free(c);
}

pid_t
copies_pid(const struct copies *c)
{
	return c->process != NULL ? process_pid(c->process) : 0;
}

void
copies_stop(struct copies *c)
{
	if (c->process != NULL)
		process_signal(c->process, SIGKILL);
}

/* ---- the process ---- */

static int
forget_turn(void *arg, struct turn *t)
{
	return process_forget(t, arg);
}

static void
on_end(void *arg, struct process *p, const struct process_end *end)
{
	struct copies *c = arg;
	struct process_id id = *process_id(p);

	OBJ_CHECK(c, COPIES_MAGIC);
	c->process = NULL;
	if (!end->exited || end->exit_status != 0)
		process_end_text(end, c->how);
	log_event(c->how[0] == '\0' ? LOG_LEVEL_INFO : LOG_LEVEL_WARN, "runs_copied",
	    LOG_INT("childPid", process_pid(p)), LOG_STR("how", c->how));
	if (!end->unrecorded)
		(void)sup_write(c->sup, forget_turn, id.spawn_id);
	if (c->sup->stopping)
		sup_resident_changed(c->sup);
}

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
start(struct copies *c, struct turn *t, const struct supervisor_copy_runs_params *p)
{
	struct supervisor *s = c->sup;
	struct process_id id = {
		.kind = PROCESS_SERVE, .address = "run/" NO_RUN, .run_id = NO_RUN
	};
	const struct process_owner owner = { on_end, c };
	CLEANUP_FREE char *program = sup_program(s, "anvil-run");
	CLEANUP(io_closep) int start_fd = sup_start_fd(s, NULL);
	CLEANUP(io_closep) int names = names_fd(p);
	CLEANUP(io_closep) int report = memfd_create("copies", MFD_CLOEXEC);
	struct spawn_desc d = { .program = program,
		.start_fd = start_fd,
		.lifeline_fd = -1,
		.more_fds = { names, report },
		.nmore_fds = 2,
		.argv = { program, "--copy", p->folder } };
	int r;

	if (program == NULL || start_fd < 0 || names < 0 || report < 0)
		return E_NOMEM;
	id_hex32(id.spawn_id);
	r = process_start(s, t, &id, &d, &owner, &c->process);
	if (r < 0)
		return r;
	io_close(&c->report_fd);
	c->report_fd = report;
	report = -1;
	c->how[0] = '\0';
	return 0;
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
read_report(const struct copies *c, struct arena *a)
{
	off_t size = lseek(c->report_fd, 0, SEEK_END);
	size_t n = size > 0 ? min_size((size_t)size, REPORT_MAX_BYTES) : 0;
	char *text = arena_alloc(a, n + 1);
	ssize_t got = text != NULL ? pread(c->report_fd, text, n, 0) : -1;

	if (got < 0)
		return NULL;
	text[got] = '\0';
	return text;
}

static int
tell(const struct copies *c, struct arena *a, struct supervisor_copy_status_status *ret)
{
	struct found *f = arena_calloc(a, 1, sizeof(*f));
	char *text = f != NULL ? read_report(c, a) : NULL;
	long long total = 0, ncopied = 0, ngone = 0;
	char *line;

	if (text == NULL)
		return E_NOMEM;
	line = strsep(&text, "\n");
	if (sscanf(line, "%lld %lld %lld", &total, &ncopied, &ngone) != 3)
		total = ncopied = ngone = 0;
	/* Who is in the way is of use when it is through. */
	while (c->process == NULL && text != NULL && (line = strsep(&text, "\n")) != NULL)
		read_line(f, line);
	if (f->failed == NULL && c->process == NULL && c->how[0] != '\0')
		f->failed = c->how;
	*ret = (struct supervisor_copy_status_status) { .running = c->process != NULL,
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

	if (wrong == NULL && s->copies->process != NULL)
		wrong = "has to wait: the runs are being copied to some folder already";
	if (wrong == NULL && s->stopping)
		return turn_fail(t, E_DRAINING, "the supervisor is stopping");
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
	ret->kind = s->copies->report_fd >= 0 ? SUPERVISOR_COPY_STATUS_STATUS
					      : SUPERVISOR_COPY_STATUS_NONE;
	return s->copies->report_fd >= 0 ? tell(s->copies, t->arena, &ret->u.status) : 0;
}
