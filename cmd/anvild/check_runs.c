/* supervisor.checkRuns: the process that looks at the records of ended runs, and its report. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cmd/anvild/check.h"
#include "cmd/anvild/process.h"
#include "cmd/anvild/spawn.h"
#include "cmd/anvild/supervisor.h"
#include "gen/supervisor.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"

#define PAGE_BYTES ((size_t)256 << 10)
/* What stands in its row where others have a run. */
#define NO_RUN "checks"

struct checks {
	uint32_t magic;
#define CHECKS_MAGIC 0x31b7d8c5
	struct supervisor *sup;
	struct process *process; /* NULL: none is looking */
	int report_fd;           /* of the last one; -1: none was started */
	char how[96];            /* it ended otherwise than it should; "" */
};

struct checks *
checks_new(struct supervisor *s)
{
	struct checks *c = mem_calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->magic = CHECKS_MAGIC;
	c->sup = s;
	c->report_fd = -1;
	return c;
}

struct checks *
checks_free(struct checks *c)
{
	if (c == NULL)
		return NULL;
	checks_stop(c);
	process_free(c->process);
	io_close(&c->report_fd);
	c->magic = 0;
	return mem_free(c);
}

pid_t
checks_pid(const struct checks *c)
{
	return c->process != NULL ? process_pid(c->process) : 0;
}

void
checks_stop(struct checks *c)
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
	struct checks *c = arg;
	struct process_id id = *process_id(p);

	OBJ_CHECK(c, CHECKS_MAGIC);
	c->process = NULL;
	if (!end->exited || end->exit_status != 0)
		process_end_text(end, c->how);
	if (!end->unrecorded)
		(void)sup_write(c->sup, forget_turn, id.spawn_id);
	if (c->sup->stopping)
		sup_resident_changed(c->sup);
}

static int
start(struct checks *c, struct turn *t)
{
	struct supervisor *s = c->sup;
	struct process_id id = {
		.kind = PROCESS_SERVE, .address = "run/" NO_RUN, .run_id = NO_RUN
	};
	const struct process_owner owner = { on_end, c };
	CLEANUP_FREE char *program = sup_program(s, "anvil-run");
	CLEANUP(io_closep) int start_fd = sup_start_fd(s, NULL);
	CLEANUP(io_closep) int report = memfd_create("checks", MFD_CLOEXEC);
	struct spawn_desc d = { .program = program,
		.start_fd = start_fd,
		.lifeline_fd = -1,
		.more_fds = { report },
		.nmore_fds = 1,
		.argv = { program, "--check-all" } };
	int r;

	if (program == NULL || start_fd < 0 || report < 0)
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

/* ---- the methods ---- */

int
supervisor_check_runs(struct supervisor *s, struct turn *t,
    const struct supervisor_check_runs_params *p, struct supervisor_check_runs_result *ret)
{
	(void)p;
	if (s->stopping)
		return turn_fail(t, E_DRAINING, "the supervisor is stopping");
	ret->kind = s->checks->process != NULL ? SUPERVISOR_CHECK_RUNS_BUSY
					       : SUPERVISOR_CHECK_RUNS_STARTED;
	return s->checks->process != NULL ? 0 : start(s->checks, t);
}

/* Whole lines from there on, as many as there are or as go into an answer. */
static int
read_lines(const struct checks *c, struct arena *a, int64_t from, const char **ret)
{
	char *text = arena_alloc(a, PAGE_BYTES + 1);
	ssize_t n = text != NULL ? pread(c->report_fd, text, PAGE_BYTES, (off_t)from) : -1;

	if (n < 0)
		return text == NULL ? E_NOMEM : E_SYS;
	while (n > 0 && text[n - 1] != '\n')
		n--;
	text[n] = '\0';
	*ret = text;
	return 0;
}

int
supervisor_check_status(struct supervisor *s, struct turn *t,
    const struct supervisor_check_status_params *p, struct supervisor_check_status_result *ret)
{
	const struct checks *c = s->checks;
	struct supervisor_check_status_status *status = &ret->u.status;
	int r;

	ret->kind = c->report_fd >= 0 ? SUPERVISOR_CHECK_STATUS_STATUS
				      : SUPERVISOR_CHECK_STATUS_NONE;
	if (c->report_fd < 0)
		return 0;
	/* Asked before the report is read: what it then has is all. */
	status->running = c->process != NULL;
	r = read_lines(c, t->arena, p->from, &status->lines);
	if (r < 0)
		return r;
	status->next = p->from + (int64_t)strlen(status->lines);
	status->failed = c->process == NULL && c->how[0] != '\0' ? c->how : NULL;
	return 0;
}
