#include "cmd/anvild/serves.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd/anvild/methods.h"
#include "cmd/anvild/process.h"
#include "cmd/anvild/runners.h"
#include "cmd/anvild/spawn.h"
#include "cmd/anvild/supervisor.h"
#include "lib/base/io.h"
#include "lib/base/log.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"

struct waiter {
	STAILQ_ENTRY(waiter) entry;
	struct parked *parked;
};

struct serve {
	uint32_t magic;
#define SERVE_MAGIC 0x19e6c35d
	struct serves *owner;
	struct process *process;
	int ready;
	int leaving;
	struct mono_time asked; /* the last time that somebody wanted it */
	STAILQ_HEAD(, waiter) waiters;
};

struct serves {
	struct supervisor *sup;
	struct map *by_run; /* run id -> struct serve, owned */
};

struct serves *
serves_new(struct supervisor *s)
{
	struct serves *v = mem_calloc(1, sizeof(*v));

	if (v == NULL)
		return NULL;
	v->sup = s;
	v->by_run = map_new();
	return v->by_run != NULL ? v : serves_free(v);
}

static void
answer_all(struct serve *sv, enum serve_verdict verdict)
{
	struct waiter *w;

	while ((w = STAILQ_FIRST(&sv->waiters)) != NULL) {
		STAILQ_REMOVE_HEAD(&sv->waiters, entry);
		methods_answer_serve(w->parked, verdict);
		free(w);
	}
}

static void
serve_free(struct serve *sv)
{
	answer_all(sv, SERVE_FAILED);
	process_free(sv->process);
	sv->magic = 0;
	free(sv);
}

struct serves *
serves_free(struct serves *v)
{
	void *sv;

	if (v == NULL)
		return NULL;
	if (v->by_run != NULL)
		for (size_t at = 0; map_next(v->by_run, &at, NULL, &sv);)
			serve_free(sv);
	map_free(v->by_run);
	free(v);
	return NULL;
}

static int
forget_turn(void *arg, struct turn *t)
{
	return process_forget(t, arg);
}

static void
serve_on_end(void *arg, struct process *p, const struct process_end *end)
{
	struct serve *sv = arg;
	struct serves *v = sv->owner;
	struct process_id id = *process_id(p);
	char how[96];

	OBJ_CHECK(sv, SERVE_MAGIC);
	process_end_text(end, how);
	log_event(end->exited && end->exit_status == 0 ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARN,
	    "actor_exited", LOG_STR("actor", id.address), LOG_STR("mode", "serve"),
	    LOG_INT("childPid", process_pid(p)), LOG_STR("how", how));
	(void)map_remove(v->by_run, id.run_id);
	answer_all(sv, sv->leaving || end->unrecorded ? SERVE_BUSY : SERVE_FAILED);
	sv->process = NULL;
	serve_free(sv);
	if (!end->unrecorded)
		(void)sup_write(v->sup, forget_turn, id.spawn_id);
	runners_wake(v->sup->runners);
	if (v->sup->stopping)
		sup_resident_changed(v->sup);
}

static int
has_store(const struct supervisor *s, const char *run_id)
{
	/* A run that died between its claim and its store has left a folder and no more. */
	CLEANUP_FREE char *path = mem_format("%s/runs/%s/run.db", s->config->data_dir, run_id);
	struct stat st;

	return path != NULL && lstat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* Told twice, it would die in the midst of its end and leave its socket behind. */
static void
tell_to_leave(struct serve *sv, int sig)
{
	if (sv->leaving && sig == SIGTERM)
		return;
	sv->leaving = 1;
	process_signal(sv->process, sig);
}

/* Makes room by sending away the one that nobody has asked for longest. */
static void
evict(struct serves *v)
{
	struct serve *oldest = NULL;
	void *each;

	for (size_t at = 0; map_next(v->by_run, &at, NULL, &each);) {
		struct serve *sv = each;

		if (!sv->ready || sv->leaving)
			continue;
		if (oldest == NULL || sv->asked.us < oldest->asked.us)
			oldest = sv;
	}
	if (oldest != NULL)
		tell_to_leave(oldest, SIGTERM);
}

static int
start(struct serves *v, struct turn *t, const char *run_id)
{
	struct supervisor *s = v->sup;
	struct process_id id = { .kind = PROCESS_SERVE };
	struct serve *sv = mem_calloc(1, sizeof(*sv));
	const struct process_owner owner = { serve_on_end, sv };
	CLEANUP_FREE char *program = sup_program(s, "anvil-run");
	CLEANUP(io_closep) int start_fd = sup_start_fd(s, NULL);
	struct spawn_desc d = { .program = program,
		.start_fd = start_fd,
		.lifeline_fd = -1,
		.argv = { program, "--serve", run_id } };
	int r;

	if (sv == NULL)
		return E_NOMEM;
	*sv = (struct serve) { .magic = SERVE_MAGIC, .owner = v, .asked = clock_mono() };
	STAILQ_INIT(&sv->waiters);
	id_hex32(id.spawn_id);
	(void)snprintf(id.run_id, sizeof(id.run_id), "%s", run_id);
	(void)snprintf(id.address, sizeof(id.address), "run/%s", run_id);
	r = program != NULL && start_fd >= 0 ? map_set(v->by_run, run_id, sv) : E_NOMEM;
	if (r == 0)
		r = process_start(s, t, &id, &d, &owner, &sv->process);
	if (r < 0) {
		(void)map_remove(v->by_run, run_id);
		serve_free(sv);
	}
	return r;
}

int
serves_ask(
    struct serves *v, struct turn *t, const char *run_id, int takeover, enum serve_verdict *ret)
{
	struct serve *sv = map_get(v->by_run, run_id);
	size_t places = takeover ? SERVES_MAX : SERVES_MAX - SERVES_TAKEOVER;
	const struct process *live;
	int r = runners_look(v->sup->runners, run_id, &live);

	*ret = live != NULL ? SERVE_LIVE : SERVE_BUSY;
	if (live != NULL || r == E_BUSY)
		return 0;
	if (r < 0)
		return r;
	if (sv != NULL) {
		sv->asked = clock_mono();
		*ret = sv->leaving ? SERVE_BUSY : sv->ready ? SERVE_SERVING : SERVE_WAIT;
		return 0;
	}
	if (!has_store(v->sup, run_id)) {
		*ret = SERVE_ABSENT;
		return 0;
	}
	if (map_count(v->by_run) >= places) {
		evict(v);
		*ret = SERVE_BUSY;
		return 0;
	}
	*ret = SERVE_WAIT;
	return start(v, t, run_id);
}

int
serves_wait(struct serves *v, const char *run_id, struct parked *waiter)
{
	struct serve *sv = map_get(v->by_run, run_id);
	struct waiter *w = mem_calloc(1, sizeof(*w));

	if (w == NULL)
		return E_NOMEM;
	must(sv != NULL);
	w->parked = waiter;
	STAILQ_INSERT_TAIL(&sv->waiters, w, entry);
	return 0;
}

void
serves_ready(struct serves *v, const char *run_id, pid_t pid)
{
	struct serve *sv = map_get(v->by_run, run_id);

	if (sv == NULL || process_pid(sv->process) != pid)
		return;
	sv->ready = 1;
	answer_all(sv, SERVE_SERVING);
}

int
serves_stop(struct serves *v, const char *run_id)
{
	struct serve *sv = map_get(v->by_run, run_id);

	if (sv == NULL)
		return 0;
	/* It only reads: there is nothing that it could leave half done. */
	sv->leaving = 1;
	process_signal(sv->process, SIGKILL);
	return 1;
}

void
serves_stop_all(struct serves *v, int sig)
{
	void *sv;

	for (size_t at = 0; map_next(v->by_run, &at, NULL, &sv);)
		tell_to_leave(sv, sig);
}

int
serves_has(const struct serves *v, const char *run_id)
{
	return map_get(v->by_run, run_id) != NULL;
}

size_t
serves_count(const struct serves *v)
{
	return map_count(v->by_run);
}

const struct process *
serves_next(const struct serves *v, size_t *at)
{
	void *sv;

	return map_next(v->by_run, at, NULL, &sv) ? ((const struct serve *)sv)->process : NULL;
}
