#include "cmd/anvild/errand.h"

#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cmd/anvild/process.h"
#include "cmd/anvild/spawn.h"
#include "cmd/anvild/supervisor.h"
#include "lib/base/io.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

struct errand {
	uint32_t magic;
#define ERRAND_MAGIC 0x31b7d8c5
	struct supervisor *sup;
	const char *name;
	struct process *process; /* NULL: none is under way                */
	int report;              /* of the newest; -1: there was none      */
	char how[96];            /* it ended otherwise than it should; ""  */
};

struct errand *
errand_new(struct supervisor *s, const char *name)
{
	struct errand *e = mem_calloc(1, sizeof(*e));

	if (e == NULL)
		return NULL;
	e->magic = ERRAND_MAGIC;
	e->sup = s;
	e->name = name;
	e->report = -1;
	return e;
}

/* Nobody waits for it any more. */
struct errand *
errand_free(struct errand *e)
{
	if (e == NULL)
		return NULL;
	if (e->process != NULL)
		process_signal(e->process, SIGKILL);
	process_free(e->process);
	io_close(&e->report);
	e->magic = 0;
	return mem_free(e);
}

int
errand_is_under_way(const struct errand *e)
{
	return e->process != NULL;
}

pid_t
errand_pid(const struct errand *e)
{
	return e->process != NULL ? process_pid(e->process) : 0;
}

int
errand_report(const struct errand *e)
{
	return e->report;
}

const char *
errand_failure(const struct errand *e)
{
	return e->process == NULL && e->how[0] != '\0' ? e->how : NULL;
}

static int
forget_turn(void *arg, struct turn *t)
{
	return process_forget(t, arg);
}

static void
on_end(void *arg, struct process *p, const struct process_end *end)
{
	struct errand *e = arg;
	struct process_id id = *process_id(p);

	OBJ_CHECK(e, ERRAND_MAGIC);
	e->process = NULL;
	if (!end->exited || end->exit_status != 0)
		process_end_text(end, e->how);
	log_event(e->how[0] == '\0' ? LOG_LEVEL_INFO : LOG_LEVEL_WARN, "errand_ended",
	    LOG_STR("errand", e->name), LOG_INT("childPid", process_pid(p)),
	    LOG_STR("how", e->how));
	if (!end->unrecorded)
		(void)sup_write(e->sup, forget_turn, id.spawn_id);
	if (e->sup->stopping)
		sup_resident_changed(e->sup);
}

int
errand_start(
    struct errand *e, struct turn *t, const char *option, const char *argument, int input)
{
	const struct process_owner owner = { on_end, e };
	struct process_id id = { .kind = PROCESS_SERVE };
	CLEANUP_FREE char *program = sup_program(e->sup, "anvil-run");
	CLEANUP(io_closep) int start_fd = sup_start_fd(e->sup, NULL);
	CLEANUP(io_closep) int report = memfd_create(e->name, MFD_CLOEXEC);
	struct spawn_desc d = { .program = program,
		.start_fd = start_fd,
		.lifeline_fd = -1,
		.argv = { program, option, argument } };
	int r;

	must(e->process == NULL);
	if (program == NULL || start_fd < 0 || report < 0)
		return E_NOMEM;
	if (input >= 0)
		d.more_fds[d.nmore_fds++] = input;
	d.more_fds[d.nmore_fds++] = report;
	(void)snprintf(id.address, sizeof(id.address), "run/%s", e->name);
	(void)snprintf(id.run_id, sizeof(id.run_id), "%s", e->name);
	id_hex32(id.spawn_id);
	r = process_start(e->sup, t, &id, &d, &owner, &e->process);
	if (r < 0)
		return r;
	io_close(&e->report);
	e->report = report;
	report = -1;
	e->how[0] = '\0';
	return 0;
}
