#include "lib/actor/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gen/supervisor.h"
#include "lib/actor/crash.h"
#include "lib/actor/inside.h"
#include "lib/actor/options.h"
#include "lib/actor/timer.h"
#include "lib/actor/trace.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

#define EXIT_LOCKED 75

struct proc {
	const struct proc_role *role;
	struct options options;
	json_t *start; /* Of descriptor 3; NULL once forgotten. */
	pid_t supervisor_pid;
	char boot_id[37];
	struct actor *actor;
	struct link *supervisor; /* The actor's. */
	struct actor_watch *lifeline;
};

/* ---- before there is an actor ---- */

/* Many small processes: one arena, and pages go back early. */
static void
tune_memory(void)
{
	(void)mallopt(M_ARENA_MAX, 1);
	(void)mallopt(M_TRIM_THRESHOLD, 128 * 1024);
	(void)mallopt(M_MMAP_THRESHOLD, 128 * 1024);
	(void)mallopt(M_TOP_PAD, 16 * 1024);
}

static void
fail_start(const struct proc *p, const char *what)
{
	fprintf(stderr, "%s: %s (this program is started by anvild)\n", p->role->program, what);
	exit(PROC_EXIT_USAGE);
}

static void
read_start(struct proc *p)
{
	struct buf text = BUF_INIT;
	const char *boot_id;
	int fd = PROC_FD_START, r;

	r = io_read_all(fd, PROC_START_MAX_BYTES, &text);
	if (r == 0)
		r = json_text_parse(
		    (const char *)text.data, text.len, RPC_DEPTH_MAX, &p->start);
	/* Keys may be in it. */
	buf_wipe(&text);
	io_close(&fd);
	if (r < 0 || !json_is_object(json_object_get(p->start, "config")))
		fail_start(p, "descriptor 3 has no start object");
	p->supervisor_pid = (pid_t)json_integer_value(
	    json_object_get(p->start, "supervisorPid"));
	boot_id = json_string_value(json_object_get(p->start, "bootId"));
	(void)snprintf(p->boot_id, sizeof(p->boot_id), "%s", boot_id != NULL ? boot_id : "");
}

/* A child that was forked before its parent died would wait for a signal for ever. */
static void
tie_to_parent(const struct proc *p)
{
	if (p->role->outlives_supervisor)
		return;
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (p->supervisor_pid != 0 && getppid() != p->supervisor_pid)
		exit(0);
}

static void
ignore_sigpipe(void)
{
	struct sigaction sa = { .sa_handler = SIG_IGN };

	(void)sigaction(SIGPIPE, &sa, NULL);
}

struct proc *
proc_start(const struct proc_role *role, int argc, char *argv[])
{
	struct proc *p = mem_calloc(1, sizeof(*p));

	tune_memory();
	if (p == NULL)
		exit(ACTOR_EXIT_RESTART);
	p->role = role;
	options_read(&p->options, role, argc, argv);
	log_set_component(role->program);
	(void)umask(0077);
	ignore_sigpipe();
	trace_set(getenv("ANVIL_TRACE"));
	read_start(p);
	if (!p->options.check)
		tie_to_parent(p);
	return p;
}

const char *
proc_option(const struct proc *p, const char *name)
{
	for (size_t i = 0; i < p->role->noptions; i++)
		if (strcmp(p->role->options[i].name, name) == 0)
			return p->options.values[i];
	base_bug(__FILE__, __LINE__, "an option that is not in the table");
}

int64_t
proc_option_int(
    const struct proc *p, const char *name, int64_t min, int64_t max, int64_t absent)
{
	const char *text = proc_option(p, name);
	long long v;
	char *end;

	if (text == NULL)
		return absent;
	errno = 0;
	v = strtoll(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || v < min || v > max)
		options_usage(p->role, "%s: a number from %lld to %lld", name, (long long)min,
		    (long long)max);
	return v;
}

int
proc_wants_check(const struct proc *p)
{
	return p->options.check;
}

const json_t *
proc_config(const struct proc *p)
{
	return json_object_get(p->start, "config");
}

const char *
proc_config_file(const struct proc *p)
{
	return json_string_value(json_object_get(p->start, "configFile"));
}

const json_t *
proc_keys(const struct proc *p)
{
	const json_t *keys = json_object_get(p->start, "keys");

	return json_is_null(keys) ? NULL : keys;
}

const char *
proc_boot_id(const struct proc *p)
{
	return p->boot_id;
}

/* Strings of a tree are its own memory, and nobody else's any more. */
static void
wipe_texts(json_t *j)
{
	const char *name;
	json_t *member;
	size_t i;

	if (json_is_string(j)) {
		const char *text = json_string_value(j);
		char *bytes;

		memcpy(&bytes, &text, sizeof(bytes));
		mem_wipe(bytes, json_string_length(j));
	}
	json_object_foreach (j, name, member)
		wipe_texts(member);
	json_array_foreach (j, i, member)
		wipe_texts(member);
}

void
proc_forget_start(struct proc *p)
{
	if (p->start == NULL)
		return;
	wipe_texts(json_object_get(p->start, "keys"));
	json_decref(p->start);
	p->start = NULL;
	(void)malloc_trim(0);
}

/* Last words where the supervisor looks for those of a crash. */
static void
leave_note(const char *data_dir, const char *address, const char *why)
{
	CLEANUP_FREE char *path = data_dir == NULL || why == NULL
	    ? NULL
	    : mem_format("%s/crash/%s.txt", data_dir, address);
	char *slash = path != NULL ? path + strlen(data_dir) + strlen("/crash/") : NULL;

	if (path == NULL)
		return;
	while ((slash = strchr(slash, '/')) != NULL)
		*slash = '-';
	(void)io_write_file(AT_FDCWD, path, why, strlen(why), 0600);
}

struct actor *
proc_actor(struct proc *p, const struct actor_desc *desc, const struct actor_place *place,
    const char *data_dir)
{
	struct actor_place here = *place;
	CLEANUP_FREE char *why = NULL;
	int r;

	log_set_component(place->address);
	if (data_dir != NULL) {
		CLEANUP_FREE char *dir = mem_format("%s/crash", data_dir);

		/* Without its note a crash is still a crash: the actor starts. */
		if (dir == NULL || crash_catch(dir, place->address) < 0)
			log_plain(LOG_LEVEL_WARN, "crash_note_unavailable");
	}
	/* Who outlives one supervisor must let the next one in. */
	here.supervisor_pid = p->role->outlives_supervisor ? 0 : p->supervisor_pid;
	here.stays = desc->store != NULL;
	r = actor_new(desc, &here, &p->actor, &why);
	if (r < 0) {
		log_event(LOG_LEVEL_ERROR, "actor_failed", LOG_STR("errorCode", err_symbol(r)),
		    LOG_STR("why", why));
		if (r == E_NEWER) {
			leave_note(data_dir, place->address, why);
			exit(ACTOR_EXIT_UNUSABLE);
		}
		exit(r == E_LOCKED ? EXIT_LOCKED : ACTOR_EXIT_RESTART);
	}
	return p->actor;
}

void
proc_die(struct proc *p, const char *why)
{
	(void)p;
	log_event(LOG_LEVEL_ERROR, "actor_failed", LOG_STR("why", why));
	exit(ACTOR_EXIT_RESTART);
}

/* ---- the loop ---- */

/* Nobody writes to it: readable is the end of file. */
static void
proc_on_lifeline(void *arg, int fd, enum watch_what what)
{
	struct proc *p = arg;
	char byte;

	(void)what;
	if (read(fd, &byte, 1) != 0)
		return;
	actor_watch_pause(p->lifeline);
	log_plain(LOG_LEVEL_INFO, "supervisor_gone");
	actor_ask_to_go(p->actor);
}

static void
on_ready(void *arg, int err, const struct supervisor_ready_result *result)
{
	(void)arg;
	(void)result;
	if (err < 0)
		log_event(
		    LOG_LEVEL_WARN, "ready_refused", LOG_STR("errorCode", err_symbol(err)));
}

static void
on_full_told(void *arg, int err, const struct supervisor_store_full_result *result)
{
	(void)arg;
	(void)err;
	(void)result;
}

/* Who is not told now is told when the link is up again. */
static void
tell_full(void *arg)
{
	struct proc *p = arg;
	struct rpc_peer *peer = link_peer(p->supervisor);
	CLEANUP_FREE char *why = actor_full_text(p->actor);
	struct supervisor_store_full_params params = { .address = p->actor->address,
		.why = why };

	if (peer != NULL)
		(void)supervisor_store_full_call(peer, NULL, &params, on_full_told, p);
}

static void
on_supervisor_up(void *arg, struct link *l, struct rpc_peer *peer)
{
	struct proc *p = arg;
	CLEANUP_FREE char *outage = actor_outage_text(p->actor);
	struct supervisor_ready_params params = { .address = p->actor->address,
		.outage = outage != NULL ? outage : actor_outage(p->actor) };

	const struct actor_desc *d = p->actor->desc;

	/* A run says what it is by its claim, unless somebody waits for it to serve. */
	if (d->role != ROLE_RUN || d->says_ready)
		if (supervisor_ready_call(peer, NULL, &params, on_ready, p) < 0)
			link_retry(l);
	if (p->actor->full.is)
		tell_full(p);
	if (d->on_supervisor_up != NULL)
		d->on_supervisor_up(p->actor->ctx, l);
}

static int
watch_lifeline(struct proc *p)
{
	if (p->role->outlives_supervisor)
		return 0;
	p->lifeline = actor_watch_new(
	    p->actor, PROC_FD_LIFELINE, WATCH_READ, proc_on_lifeline, p);
	return p->lifeline == NULL ? E_SYS : 0;
}

static int
begin(struct proc *p)
{
	static const struct link_ops ops = { .on_up = on_supervisor_up };
	int r = actor_signals(p->actor);

	if (r == 0)
		r = watch_lifeline(p);
	if (r == 0) {
		p->supervisor = actor_link(p->actor, "supervisor", &ops, p);
		r = p->supervisor == NULL ? E_NOMEM : 0;
		p->actor->full.changed = tell_full;
		p->actor->full.arg = p;
	}
	return r;
}

struct proc *
proc_free(struct proc *p)
{
	json_decref(p->start);
	free(p);
	return NULL;
}

/* Told once more to end, it would die before its socket is removed. */
static void
block_end_signals(void)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)pthread_sigmask(SIG_BLOCK, &set, NULL);
}

int
proc_run(struct proc *p, void *ctx)
{
	int status;

	actor_set_ctx(p->actor, ctx);
	if (begin(p) < 0)
		proc_die(p, "no lifeline, or no memory");
	log_event(LOG_LEVEL_INFO, "actor_started", LOG_STR("version", base_version()));
	status = actor_run(p->actor);
	block_end_signals();
	log_event(LOG_LEVEL_INFO, "actor_ending", LOG_INT("status", status));
	p->lifeline = actor_watch_free(p->lifeline);
	if (p->actor->desc->on_end != NULL)
		p->actor->desc->on_end(ctx);
	p->actor = actor_free(p->actor);
	(void)proc_free(p);
	return status;
}

struct link *
proc_supervisor(const struct proc *p)
{
	return p->supervisor;
}
