#include "cmd/anvild/child.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/anvild/history.h"
#include "cmd/anvild/keys.h"
#include "cmd/anvild/process.h"
#include "cmd/anvild/spawn.h"
#include "cmd/anvild/supervisor.h"
#include "lib/base/io.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/utf8.h"

#define LAST_WORDS_MAX      400
#define LAST_WORDS_FILE_MAX (1 << 20)

static const int64_t backoff_ms[] = { 0, 100, 500, 1000, 5000, 10000 };

struct child {
	uint32_t magic;
#define CHILD_MAGIC 0x3b2f91c7
	struct supervisor *sup;
	int shard; /* below 0: ingress */
	char address[24];
	enum child_state state;
	struct process *process;   /* NULL while there is none            */
	struct actor_timer *timer; /* of the state: start, well, back-off, stop */
	struct actor_timer *ready; /* ready_pid has said that it is       */
	pid_t ready_pid;
	int was_ready;                                 /* any process of it, ever             */
	size_t step;                                   /* into backoff_ms                     */
	struct mono_time deaths[CHILD_DEATHS_MAX + 1]; /* the newest, as a ring */
	size_t ndeaths;
	int failing;
	int64_t restarts;
	char last_exit[96];
	char last_words[LAST_WORDS_MAX]; /* of the newest crash; "": none */
	int unusable;                    /* it said that its store is     */
	char outage[ACTOR_OUTAGE_MAX];   /* why it cannot serve; "": it does */
	char full[ACTOR_OUTAGE_MAX];     /* what it finds no room for; "": it does */
	int64_t last_exit_ms;
};

typedef void child_fn(struct child *);

static child_fn child_spawn, child_is_up, child_is_well, child_died, child_term, child_kill,
    child_gone;

struct reaction {
	child_fn *fn;
	const char *name;
};
#define DO(what)                    \
	{                           \
		child_##what, #what \
	}

static const struct reaction child_fsm[CH_STATES][CH_EVENTS] = {
	[CH_DOWN] = { [ON_START] = DO(spawn), [ON_STOP] = DO(gone) },
	[CH_STARTING] = { [ON_READY] = DO(is_up),
	    [ON_EXIT] = DO(died),
	    [ON_STOP] = DO(term),
	    [ON_TIMEOUT] = DO(kill) },
	[CH_UP] = { [ON_EXIT] = DO(died), [ON_STOP] = DO(term), [ON_TIMEOUT] = DO(is_well) },
	[CH_BACKOFF] = { [ON_START] = DO(spawn),
	    [ON_TIMEOUT] = DO(spawn),
	    [ON_STOP] = DO(gone) },
	[CH_STOPPING] = { [ON_EXIT] = DO(gone), [ON_TIMEOUT] = DO(kill) },
};

const char *
child_reaction(enum child_state state, enum child_event ev)
{
	const char *name = child_fsm[state][ev].name;

	return name != NULL ? name : "";
}

void
child_event(struct child *c, enum child_event ev)
{
	static const char *const states[] = { "down", "starting", "up", "backoff", "stopping" };
	static const char *const events[] = { "start", "ready", "exit", "stop", "timeout" };
	child_fn *fn;

	OBJ_CHECK(c, CHILD_MAGIC);
	fn = child_fsm[c->state][ev].fn;
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

	(void)sup_write(c->sup, history_turn, &e);
}

/* ---- spawning ---- */

static void child_on_end(void *arg, struct process *p, const struct process_end *end);

/* The program and its arguments; ${number} is memory for one of them, ${keys} ingress' end of
 * the socket for newer keys. */
static void
describe(const struct child *c, int keys, struct spawn_desc *d, char number[16])
{
	const struct listeners *l = &c->sup->listeners;

	d->argv[0] = d->program;
	if (c->shard >= 0) {
		(void)snprintf(number, 16, "%d", c->shard);
		d->argv[1] = number;
		return;
	}
	(void)snprintf(number, 16, "%zu", l->n);
	d->argv[1] = "--listen-fds";
	d->argv[2] = number;
	d->argv[3] = "--keys-socket";
	memcpy(d->more_fds, l->fds, l->n * sizeof(int));
	d->more_fds[l->n] = keys;
	d->nmore_fds = l->n + 1;
}

static int
fork_child(struct child *c)
{
	const struct process_owner owner = { child_on_end, c };
	struct supervisor *s = c->sup;
	CLEANUP(io_closep) int start = sup_start_fd(s, c->shard < 0 ? s->keys : NULL);
	CLEANUP(io_closep) int keys = -1;
	CLEANUP_FREE char *program = sup_program(
	    s, c->shard < 0 ? "anvil-ingress" : "anvil-project");
	struct process_id id = { .kind = PROCESS_RESIDENT };
	struct spawn_desc d = {
		.program = program, .start_fd = start, .lifeline_fd = s->lifeline[0]
	};
	char number[16];
	int r;

	if (start < 0 || program == NULL)
		return E_NOMEM;
	/* Made with the start object: what is newer than that comes over it. */
	if (c->shard < 0 && (r = keys_connect(s->handover, &keys)) < 0)
		return r;
	id_hex32(id.spawn_id);
	(void)snprintf(id.address, sizeof(id.address), "%s", c->address);
	describe(c, keys, &d, number);
	return process_start_resident(s, &id, &d, &owner, &c->process);
}

static void
child_spawn(struct child *c)
{
	int r = fork_child(c);

	if (r < 0) {
		log_event(LOG_LEVEL_ERROR, "actor_not_started", LOG_STR("actor", c->address),
		    LOG_STR("errorCode", err_symbol(r)));
		(void)snprintf(c->last_exit, sizeof(c->last_exit), "could not be started: %s",
		    err_text(r));
		c->last_exit_ms = clock_wall_ms();
		c->state = CH_BACKOFF;
		(void)actor_timer_set(c->timer, backoff_ms[ARRAY_LEN(backoff_ms) - 1]);
		return;
	}
	c->state = CH_STARTING;
	(void)actor_timer_set(c->timer, CHILD_START_MS);
	note(c, "started", NULL);
	/* Its peers must know its pid before its first hello reaches them. */
	sup_announce(c->sup);
}

static void
say_failing(struct child *c, const char *why)
{
	if (c->failing)
		return;
	c->failing = 1;
	log_event(LOG_LEVEL_ERROR, "actor_failing", LOG_STR("actor", c->address),
	    LOG_INT("deaths", min_size(c->ndeaths, ARRAY_LEN(c->deaths))), LOG_STR("how", why),
	    LOG_STR("lastWords", c->last_words[0] != '\0' ? c->last_words : NULL));
	note(c, "failing", why);
}

static void
child_is_up(struct child *c)
{
	c->state = CH_UP;
	c->was_ready = 1;
	if (c->outage[0] != '\0')
		say_failing(c, c->outage);
	(void)actor_timer_set(c->timer, CHILD_WELL_MS);
	log_event(LOG_LEVEL_INFO, "actor_started", LOG_STR("actor", c->address),
	    LOG_INT("childPid", process_pid(c->process)));
	note(c, "ready", NULL);
	sup_resident_changed(c->sup);
}

/* What it did wrong before is forgotten. */
static void
child_is_well(struct child *c)
{
	if (c->outage[0] != '\0')
		return;
	if (c->failing) {
		log_event(LOG_LEVEL_INFO, "actor_recovered", LOG_STR("actor", c->address));
		note(c, "recovered", NULL);
	}
	c->failing = 0;
	c->ndeaths = 0;
	c->step = 0;
}

static void
on_ready(void *arg)
{
	struct child *c = arg;

	OBJ_CHECK(c, CHILD_MAGIC);
	if (c->process != NULL && process_pid(c->process) == c->ready_pid)
		child_event(c, ON_READY);
}

void
child_says_ready(struct child *c, pid_t pid, const char *outage)
{
	c->ready_pid = pid;
	(void)snprintf(c->outage, sizeof(c->outage), "%s", outage != NULL ? outage : "");
	c->full[0] = '\0';
	(void)actor_timer_set(c->ready, 0);
}

void
child_says_full(struct child *c, const char *why)
{
	(void)snprintf(c->full, sizeof(c->full), "%s", why != NULL ? why : "");
}

/* ---- dying ---- */

/* More than CHILD_DEATHS_MAX in the window: the oldest of that many plus one is inside it. */
static void
count_death(struct child *c, struct mono_time now)
{
	size_t cap = ARRAY_LEN(c->deaths);

	c->deaths[c->ndeaths++ % cap] = now;
	if (c->ndeaths >= cap &&
	    mono_diff_ms(c->deaths[c->ndeaths % cap], now) <= CHILD_WINDOW_MS)
		say_failing(c, c->last_exit);
	else
		c->failing = 0;
}

static void
read_last_words(struct child *c)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	CLEANUP_FREE char *path = NULL;
	char name[24];
	size_t n;

	c->last_words[0] = '\0';
	(void)snprintf(name, sizeof(name), "%s", c->address);
	for (char *p = name; *p != '\0'; p++)
		if (*p == '/')
			*p = '-';
	path = mem_format("%s/crash/%s.txt", c->sup->config->data_dir, name);
	if (path == NULL || io_read_file(AT_FDCWD, path, LAST_WORDS_FILE_MAX, &b) < 0)
		return;
	n = utf8_cut((const char *)b.data, b.len, LAST_WORDS_MAX - 1);
	memcpy(c->last_words, b.data, n);
	c->last_words[n] = '\0';
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
	struct ended ended;
	struct history_entry e = { c->address, "exited", process_pid(p),
		mono_diff_ms(process_started(p), clock_mono()), end, NULL };

	OBJ_CHECK(c, CHILD_MAGIC);
	process_end_text(end, c->last_exit);
	c->last_exit_ms = clock_wall_ms();
	read_last_words(c);
	if (c->last_words[0] != '\0')
		e.reason = c->last_words;
	log_event(c->state == CH_STOPPING ? LOG_LEVEL_INFO : LOG_LEVEL_ERROR, "actor_exited",
	    LOG_STR("actor", c->address), LOG_INT("childPid", e.pid),
	    LOG_INT("durationMs", e.uptime_ms), LOG_STR("how", c->last_exit),
	    LOG_STR("lastWords", e.reason));
	ended = (struct ended) { process_id(p)->spawn_id, &e };
	(void)sup_write(c->sup, ended_turn, &ended);
	c->unusable = end->exited && end->exit_status == ACTOR_EXIT_UNUSABLE && !c->was_ready;
	c->process = NULL;
	c->outage[0] = '\0';
	c->full[0] = '\0';
	child_event(c, ON_EXIT);
}

static void
child_died(struct child *c)
{
	size_t last = ARRAY_LEN(backoff_ms) - 1;
	int64_t wait_ms;

	if (c->unusable && !c->sup->stopping) {
		c->state = CH_DOWN;
		sup_cannot_start(c->sup, c->address, c->last_words);
		return;
	}
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
	c->ready = actor_timer_new(s->actor, on_ready, c);
	return c->timer != NULL && c->ready != NULL ? c : child_free(c);
}

struct child *
child_free(struct child *c)
{
	if (c == NULL)
		return NULL;
	actor_timer_free(c->timer);
	actor_timer_free(c->ready);
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

const char *
child_outage(const struct child *c)
{
	return c->state == CH_UP && c->outage[0] != '\0' ? c->outage : NULL;
}

const char *
child_full(const struct child *c)
{
	return c->full[0] != '\0' ? c->full : NULL;
}

int
child_is_failing(const struct child *c)
{
	return c->failing;
}

void
child_view(const struct child *c, struct child_view *ret)
{
	static const char *const words[] = { "down", "starting", "up", "starting", "down" };

	*ret = (struct child_view) { .address = c->address,
		.state = c->failing ? "failing" : words[c->state],
		.pid = child_pid(c),
		.started_ms = c->process != NULL ? process_started_ms(c->process) : 0,
		.restarts = c->restarts,
		.last_exit = c->last_exit,
		.last_exit_ms = c->last_exit_ms };
}
