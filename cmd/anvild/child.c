#include "cmd/anvild/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/anvild/history.h"
#include "cmd/anvild/process.h"
#include "cmd/anvild/spawn.h"
#include "cmd/anvild/supervisor.h"
#include "lib/base/io.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

#define LAST_WORDS_MAX 400
#define WELL_AFTER_MS  60000 /* of life: the back-off begins anew */

static const int64_t backoff_ms[] = { 0, 100, 500, 1000, 5000, 10000 };

struct child {
	uint32_t magic;
#define CHILD_MAGIC 0x3b2f91c7
	struct supervisor *sup;
	int shard; /* below 0: ingress */
	char address[24];
	enum child_state state;
	struct process *process;                       /* NULL while there is none            */
	struct actor_timer *timer;                     /* of the state: start, back-off, stop */
	size_t step;                                   /* into backoff_ms                     */
	struct mono_time deaths[CHILD_DEATHS_MAX + 1]; /* the newest, as a ring */
	size_t ndeaths;
	int failing;
	int64_t restarts;
	char last_exit[96];
	int64_t last_exit_ms;
};

typedef void child_fn(struct child *);

static child_fn child_spawn, child_is_up, child_died, child_term, child_kill, child_gone;

static child_fn *const child_fsm[CH_STATES][CH_EVENTS] = {
	[CH_DOWN] = { [ON_START] = child_spawn, [ON_STOP] = child_gone },
	[CH_STARTING] = { [ON_READY] = child_is_up,
	    [ON_EXIT] = child_died,
	    [ON_STOP] = child_term,
	    [ON_TIMEOUT] = child_kill },
	[CH_UP] = { [ON_EXIT] = child_died, [ON_STOP] = child_term },
	[CH_BACKOFF] = { [ON_START] = child_spawn,
	    [ON_TIMEOUT] = child_spawn,
	    [ON_STOP] = child_gone },
	[CH_STOPPING] = { [ON_EXIT] = child_gone, [ON_TIMEOUT] = child_kill },
};

void
child_event(struct child *c, enum child_event ev)
{
	static const char *const states[] = { "down", "starting", "up", "backoff", "stopping" };
	static const char *const events[] = { "start", "ready", "exit", "stop", "timeout" };
	child_fn *fn;

	OBJ_CHECK(c, CHILD_MAGIC);
	fn = child_fsm[c->state][ev];
	if (fn != NULL)
		fn(c);
	else
		log_event(LOG_LEVEL_DEBUG, "child_event_ignored", LOG_STR("actor", c->address),
		    LOG_STR("state", states[c->state]), LOG_STR("on", events[ev]));
}

static void
child_on_timer(void *arg)
{
	child_event(arg, ON_TIMEOUT);
}

/* ---- rows of the history, outside of anything that has to succeed ---- */

static int
history_turn(void *arg, struct turn *t)
{
	return history_add(t, arg);
}

static void
note(struct child *c, const char *event, const char *reason)
{
	struct history_entry e = { c->address, event,
		c->process != NULL ? process_pid(c->process) : 0, -1, NULL, reason };

	(void)actor_turn(c->sup->actor, 1, history_turn, &e);
}

/* ---- spawning ---- */

static void child_on_end(void *arg, struct process *p, const struct process_end *end);

static int
spawn_turn(void *arg, struct turn *t)
{
	struct child *c = arg;
	struct supervisor *s = c->sup;
	CLEANUP(io_closep) int start = sup_start_fd(s, c->shard < 0 ? s->keys : NULL);
	CLEANUP_FREE char *program = sup_program(
	    s, c->shard < 0 ? "anvil-ingress" : "anvil-project");
	struct process_id id = { .kind = PROCESS_RESIDENT };
	struct spawn_desc d = {
		.program = program, .start_fd = start, .lifeline_fd = s->lifeline[0]
	};
	char number[16];

	if (start < 0 || program == NULL)
		return E_NOMEM;
	id_hex32(id.spawn_id);
	(void)snprintf(id.address, sizeof(id.address), "%s", c->address);
	d.argv[0] = program;
	if (c->shard < 0) {
		d.argv[1] = "--listen-fds";
		(void)snprintf(number, sizeof(number), "%zu", s->listeners.n);
		d.argv[2] = number;
		memcpy(d.listen_fds, s->listeners.fds, s->listeners.n * sizeof(int));
		d.nlisten_fds = s->listeners.n;
	} else {
		(void)snprintf(number, sizeof(number), "%d", c->shard);
		d.argv[1] = number;
	}
	return process_start(s, t, &id, &d, child_on_end, c, &c->process);
}

static void
child_spawn(struct child *c)
{
	struct history_entry e = { c->address, "started", 0, -1, NULL, NULL };
	int r = actor_turn(c->sup->actor, 1, spawn_turn, c);

	if (r < 0 && c->process == NULL) {
		log_event(LOG_LEVEL_ERROR, "actor_not_started", LOG_STR("actor", c->address),
		    LOG_STR("errorCode", err_symbol(r)));
		(void)snprintf(c->last_exit, sizeof(c->last_exit), "could not be started: %s",
		    err_text(r));
		c->state = CH_BACKOFF;
		(void)actor_timer_set(c->timer, backoff_ms[ARRAY_LEN(backoff_ms) - 1]);
		return;
	}
	e.pid = process_pid(c->process);
	c->state = CH_STARTING;
	(void)actor_timer_set(c->timer, CHILD_START_MS);
	(void)actor_turn(c->sup->actor, 1, history_turn, &e);
	/* Its peers must know its pid before its first hello reaches them. */
	sup_announce(c->sup);
}

static void
child_is_up(struct child *c)
{
	c->state = CH_UP;
	actor_timer_stop(c->timer);
	log_event(LOG_LEVEL_INFO, "actor_started", LOG_STR("actor", c->address),
	    LOG_INT("childPid", process_pid(c->process)));
	note(c, "ready", NULL);
	sup_resident_changed(c->sup);
}

/* ---- dying ---- */

/* More than CHILD_DEATHS_MAX in the window: the oldest of that many plus one is inside it. */
static void
count_death(struct child *c, struct mono_time now)
{
	size_t cap = ARRAY_LEN(c->deaths);
	int was = c->failing;

	c->deaths[c->ndeaths++ % cap] = now;
	c->failing = c->ndeaths >= cap &&
	    mono_diff_ms(c->deaths[c->ndeaths % cap], now) <= CHILD_WINDOW_MS;
	if (c->failing && !was)
		note(c, "failing", c->last_exit);
}

static void
read_last_words(const struct child *c, char out[LAST_WORDS_MAX])
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	CLEANUP_FREE char *path = NULL;
	char name[24];

	out[0] = '\0';
	(void)snprintf(name, sizeof(name), "%s", c->address);
	for (char *p = name; *p != '\0'; p++)
		if (*p == '/')
			*p = '-';
	path = mem_format("%s/crash/%s.txt", c->sup->config->data_dir, name);
	if (path == NULL || io_read_file(AT_FDCWD, path, 65536, &b) < 0)
		return;
	(void)snprintf(out, LAST_WORDS_MAX, "%.*s", (int)min_size(b.len, LAST_WORDS_MAX - 1),
	    (const char *)b.data);
	(void)unlink(path);
}

/* What the end of a process leaves in the store. */
struct ended {
	const char *spawn_id;
	const struct history_entry *entry;
};

static int
ended_turn(void *arg, struct turn *t)
{
	const struct ended *e = arg;
	int r = process_forget(t, e->spawn_id);

	return r < 0 ? r : history_add(t, e->entry);
}

static void
child_on_end(void *arg, struct process *p, const struct process_end *end)
{
	struct child *c = arg;
	char words[LAST_WORDS_MAX];
	struct ended ended;
	struct history_entry e = { c->address, "exited", process_pid(p),
		mono_diff_ms(process_started(p), clock_mono()), end, words };

	OBJ_CHECK(c, CHILD_MAGIC);
	process_end_text(end, c->last_exit);
	c->last_exit_ms = clock_wall_ms();
	read_last_words(c, words);
	if (words[0] == '\0')
		e.reason = NULL;
	log_event(c->state == CH_STOPPING ? LOG_LEVEL_INFO : LOG_LEVEL_ERROR, "actor_exited",
	    LOG_STR("actor", c->address), LOG_INT("childPid", e.pid),
	    LOG_INT("durationMs", e.uptime_ms), LOG_STR("how", c->last_exit),
	    LOG_STR("lastWords", e.reason));
	ended = (struct ended) { process_id(p)->spawn_id, &e };
	(void)actor_turn(c->sup->actor, 1, ended_turn, &ended);
	if (e.uptime_ms >= WELL_AFTER_MS) {
		c->step = 0;
		c->ndeaths = 0;
		c->failing = 0;
	}
	c->process = NULL;
	child_event(c, ON_EXIT);
}

static void
child_died(struct child *c)
{
	size_t last = ARRAY_LEN(backoff_ms) - 1;
	int64_t wait_ms;

	count_death(c, clock_mono());
	if (c->failing)
		c->step = last;
	wait_ms = backoff_ms[c->step];
	if (c->step < last)
		c->step++;
	c->restarts++;
	c->state = CH_BACKOFF;
	note(c, "restarting", c->last_exit);
	sup_resident_changed(c->sup);
	if (c->sup->stopping)
		child_event(c, ON_STOP);
	else if (wait_ms == 0)
		child_event(c, ON_START);
	else
		(void)actor_timer_set(c->timer, wait_ms);
}

/* ---- stopping ---- */

static void
child_term(struct child *c)
{
	c->state = CH_STOPPING;
	(void)actor_timer_set(c->timer, CHILD_STOP_MS);
	process_signal(c->process, SIGTERM);
}

static void
child_kill(struct child *c)
{
	log_event(LOG_LEVEL_WARN, "actor_killed", LOG_STR("actor", c->address),
	    LOG_STR("reason", c->state == CH_STARTING ? "not ready in time" : "did not stop"));
	process_signal(c->process, SIGKILL);
}

static void
child_gone(struct child *c)
{
	c->state = CH_DOWN;
	actor_timer_stop(c->timer);
	note(c, "stopped", NULL);
	sup_resident_changed(c->sup);
}

void
child_kill_now(struct child *c)
{
	if (c->process != NULL)
		process_signal(c->process, SIGKILL);
}

/* ---- the rest ---- */

struct child *
child_new(struct supervisor *s, int shard)
{
	struct child *c = mem_calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->magic = CHILD_MAGIC;
	c->sup = s;
	c->shard = shard;
	if (shard < 0)
		(void)snprintf(c->address, sizeof(c->address), "ingress");
	else
		(void)snprintf(c->address, sizeof(c->address), "project/%d", shard);
	c->timer = actor_timer_new(s->actor, child_on_timer, c);
	return c->timer != NULL ? c : child_free(c);
}

struct child *
child_free(struct child *c)
{
	if (c == NULL)
		return NULL;
	actor_timer_free(c->timer);
	process_free(c->process);
	c->magic = 0;
	free(c);
	return NULL;
}

enum child_state
child_state(const struct child *c)
{
	return c->state;
}

const char *
child_address(const struct child *c)
{
	return c->address;
}

pid_t
child_pid(const struct child *c)
{
	return c->process != NULL ? process_pid(c->process) : 0;
}

int
child_is_failing(const struct child *c)
{
	if (!c->failing)
		return 0;
	/* A minute of life clears it, without waiting for the next end. */
	return c->state != CH_UP ||
	    mono_diff_ms(process_started(c->process), clock_mono()) < WELL_AFTER_MS;
}

void
child_view(const struct child *c, struct child_view *ret)
{
	static const char *const words[] = { "down", "starting", "up", "starting", "down" };

	*ret = (struct child_view) { .address = c->address,
		.state = c->failing && c->state != CH_UP ? "failing" : words[c->state],
		.pid = child_pid(c),
		.started_ms = c->process != NULL ? process_started_ms(c->process) : 0,
		.restarts = c->restarts,
		.last_exit = c->last_exit,
		.last_exit_ms = c->last_exit_ms };
}
