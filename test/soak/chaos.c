#include "test/soak/chaos.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/wire/wire.h"
#include "test/soak/operator.h"

#define TURN_US      20000
#define CENSUS_US    60000 /* between looks at who lives in a window                */
#define WINDOWS_MAX  64
#define LONG_STOP_MS 20000 /* what a lease of 30 s may not bear any more            */
#define STOP_MS      60000 /* an orderly stop takes no longer                       */
#define SLOW_US      20000 /* each sync takes so much longer                        */

/* Something that lasts. */
struct window {
	struct act act;
	double due_us;
	pid_t pid;       /* That is stopped, or told to end.               */
	int64_t from_ms; /* By anvil's clock. */
	int told;        /* It must end now; at due_us it is a loss.       */
};

struct chaos {
	struct soak *s;
	struct chaos_counts *n;
	struct window open[WINDOWS_MAX];
	size_t nopen;
	_Atomic int64_t *clock; /* Mapped; what is added to the wall clock. */
	pid_t told;             /* The anvild that was told to end last ... */
	int ntold;              /* ... and how often: see end_anvild().     */
	double census_us;
	struct proc procs[PROCS_MAX];
	size_t nprocs;
};

json_t *
chaos_call(
    const struct soak *s, const char *address, const char *method, const char *params, int ms)
{
	CLEANUP(io_closep) int dir = io_open_dir(AT_FDCWD, s->run_dir);
	CLEANUP(client_freep) struct client *c = dir >= 0 ? client_new(dir) : NULL;
	struct buf text = BUF_INIT;
	struct client_reply reply;
	json_t *result = NULL;

	buf_add_str(&text, params);
	if (c != NULL && client_call(c, address, method, &text, ms, &reply) == 0)
		result = json_deep_copy(reply.result);
	else if (c != NULL && reply.reached && reply.message != NULL)
		book_say("%s of %s: %s", method, address, reply.message);
	if (c != NULL)
		client_forget(c);
	buf_done(&text);
	return result;
}

/* ---- faults of stores, and the clock ---- */

static const char *
stores_of(enum proc_role role)
{
	switch (role) {
	case PROC_SUPERVISOR: return "supervisor";
	case PROC_INGRESS: return "ingress";
	case PROC_SHARD: return "project-*";
	default: return "run_*";
	}
}

static int
is_store_fault(enum action a)
{
	return a == ACT_FULL || a == ACT_IO || a == ACT_SYNC || a == ACT_SLOW;
}

/* The file of rules as the windows have it. */
static void
write_rules(const struct chaos *c)
{
	char path[256], temporary[264];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/faults", c->s->dir);
	(void)snprintf(temporary, sizeof(temporary), "%s.new", path);
	f = fopen(temporary, "we");
	must(f != NULL);
	for (size_t i = 0; i < c->nopen; i++) {
		const struct act *a = &c->open[i].act;

		if (!is_store_fault(a->action))
			continue;
		(void)fprintf(f, "%s ", stores_of(a->target));
		if (a->action == ACT_SLOW)
			(void)fprintf(f, "slow_us=%d\n", SLOW_US);
		else
			(void)fprintf(
			    f, "%s\n", a->action == ACT_IO ? "write" : action_names[a->action]);
	}
	must(fchmod(fileno(f), 0644) == 0 && fclose(f) == 0 && rename(temporary, path) == 0);
}

static _Atomic int64_t *
map_clock(const struct soak *s)
{
	char path[256];
	int fd;
	void *p;

	(void)snprintf(path, sizeof(path), "%s/clock", s->dir);
	fd = open(path, O_RDWR | O_CLOEXEC);
	must(fd >= 0);
	p = mmap(NULL, sizeof(int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	must(p != MAP_FAILED);
	io_close(&fd);
	return p;
}

/* To the last page. */
static void
fill_disk(const struct soak *s)
{
	char path[256];
	struct stat st = { .st_size = 0 };
	int fd;

	(void)snprintf(path, sizeof(path), "%s/ballast", s->disk);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	for (off_t n = (off_t)64 << 20; fd >= 0 && n >= 4096;)
		if (fstat(fd, &st) < 0 || fallocate(fd, 0, st.st_size, n) < 0)
			n /= 2;
	io_close(&fd);
}

/* As anvil sees it. */
static int64_t
wall_ms(const struct chaos *c)
{
	return clock_wall_ms() + atomic_load(c->clock);
}

/* ---- who is hit ---- */

static void
look(struct chaos *c)
{
	c->nprocs = procs_list(c->s, c->procs);
	c->census_us = book_now_us();
}

static const struct proc *
pick(struct chaos *c, enum proc_role role, uint64_t n)
{
	size_t k = 0;

	look(c);
	for (size_t i = 0; i < c->nprocs; i++)
		k += c->procs[i].role == role;
	if (k == 0)
		return NULL;
	n %= k;
	for (size_t i = 0;; i++)
		if (c->procs[i].role == role && n-- == 0)
			return &c->procs[i];
}

/* Every run that has a process has this excuse. */
static void
excuse_living(struct chaos *c, enum excuse why)
{
	for (size_t i = 0; i < c->nprocs; i++)
		if (c->procs[i].run[0] != '\0')
			book_excuse(&c->s->book, c->procs[i].run, why);
}

static void
kill_one(struct chaos *c, const struct act *a)
{
	const struct proc *p = pick(c, a->target, a->pick);

	if (p == NULL) {
		c->n->missed++;
		return;
	}
	if (p->run[0] != '\0')
		book_excuse(&c->s->book, p->run, EXCUSE_HIT);
	c->n->kills[a->target]++;
	(void)kill(p->pid, SIGKILL);
}

static void
kill_all(struct chaos *c)
{
	look(c);
	excuse_living(c, EXCUSE_HIT);
	for (int again = 0; again < 3; again++) {
		for (size_t i = 0; i < c->nprocs; i++)
			(void)kill(c->procs[i].pid, SIGKILL);
		look(c);
		excuse_living(c, EXCUSE_HIT);
	}
}

/* ---- windows ---- */

static struct window *
begin_window(struct chaos *c, const struct act *a, pid_t pid)
{
	struct window *w = &c->open[c->nopen];

	if (c->nopen == WINDOWS_MAX)
		return NULL;
	c->nopen++;
	*w = (struct window) { .act = *a,
		.from_ms = wall_ms(c),
		.due_us = book_now_us() + (double)a->length * 1e3,
		.pid = pid };
	return w;
}

static void
stop_one(struct chaos *c, const struct act *a)
{
	const struct proc *p = pick(c, a->target, a->pick);

	if (p == NULL || begin_window(c, a, p->pid) == NULL) {
		c->n->missed++;
		return;
	}
	if (p->run[0] != '\0' && a->length > LONG_STOP_MS)
		book_excuse(&c->s->book, p->run, EXCUSE_HIT);
	c->n->stops[a->target]++;
	(void)kill(p->pid, SIGSTOP);
}

static void
must_end(struct window *w)
{
	w->told = 1;
	w->due_us = book_now_us() + STOP_MS * 1e3;
}

/* The second SIGTERM ends the runs, the third kills them: two windows may meet in one anvild. */
static void
excuse_told(struct chaos *c)
{
	if (c->ntold > 1)
		excuse_living(c, EXCUSE_SHUT);
	if (c->ntold > 2)
		excuse_living(c, EXCUSE_HIT);
}

static void
send_term(struct chaos *c, pid_t pid)
{
	c->ntold = c->told == pid ? c->ntold + 1 : 1;
	c->told = pid;
	look(c);
	excuse_told(c);
	(void)kill(pid, SIGTERM);
}

/* SIGTERM, and for ACT_SHUT another one later. */
static void
end_anvild(struct chaos *c, const struct act *a)
{
	pid_t pid = atomic_load(&c->s->pid);
	struct window *w = pid > 0 ? begin_window(c, a, pid) : NULL;

	if (w == NULL) {
		c->n->missed++;
		return;
	}
	if (a->action == ACT_RESTART)
		must_end(w);
	send_term(c, pid);
}

/* 0: nobody has heard it, or it could not be kept. */
static int
order(const struct soak *s, const char *method)
{
	json_t *done = chaos_call(s, "supervisor", method, "{}", 1000);

	json_decref(done);
	return done != NULL;
}

/* Until it is heard: else nothing runs any more. */
static void
resume(struct chaos *c)
{
	static const struct act again = { .action = ACT_DRAIN, .length = 200 };

	if (!order(c->s, "supervisor.resume"))
		(void)begin_window(c, &again, 0);
}

static void
begin(struct chaos *c, const struct act *a)
{
	c->n->acts[a->action]++;
	switch (a->action) {
	case ACT_KILL: kill_one(c, a); break;
	case ACT_STOP: stop_one(c, a); break;
	case ACT_POWER: kill_all(c); break;
	case ACT_RESTART:
	case ACT_SHUT: end_anvild(c, a); break;
	case ACT_CLOCK: (void)atomic_fetch_add(c->clock, a->length); break;
	case ACT_HUP:
		if (atomic_load(&c->s->pid) > 0)
			(void)kill(atomic_load(&c->s->pid), SIGHUP);
		break;
	case ACT_DRAIN:
		(void)order(c->s, "supervisor.drain");
		(void)begin_window(c, a, 0);
		break;
	case ACT_DISK:
		if (c->s->disk != NULL)
			(void)begin_window(c, a, 0);
		break;
	case ACT_MOVE:
	case ACT_REINDEX:
	case ACT_BACKUP:
	case ACT_MEND:
		operator_acts(c->s, a);
		(void)begin_window(c, a, 0);
		break;
	default: (void)begin_window(c, a, 0); write_rules(c);
	}
}

static int
any_other(const struct chaos *c, enum action action)
{
	for (size_t i = 0; i < c->nopen; i++)
		if (c->open[i].act.action == action)
			return 1;
	return 0;
}

static int
hits_runs(const struct act *a)
{
	return a->action == ACT_DISK || (is_store_fault(a->action) && a->target == PROC_RUN);
}

/* It is not in the list any more. */
static void
end(struct chaos *c, const struct window *w)
{
	int64_t now = wall_ms(c);
	char path[256];

	if (hits_runs(&w->act))
		book_window(&c->s->book, min_i64(w->from_ms, now), max_i64(w->from_ms, now));

	switch (w->act.action) {
	case ACT_STOP: (void)kill(w->pid, SIGCONT); break;
	case ACT_DRAIN:
		if (!any_other(c, ACT_DRAIN))
			resume(c);
		break;
	case ACT_DISK:
		(void)snprintf(path, sizeof(path), "%s/ballast", c->s->disk);
		if (!any_other(c, ACT_DISK))
			(void)unlink(path);
		break;
	case ACT_RESTART:
	case ACT_SHUT:
		book_loss(&c->s->book, "anvild was told to end and did not within %d s",
		    STOP_MS / 1000);
		(void)kill(w->pid, SIGKILL);
		break;
	case ACT_MOVE:
	case ACT_REINDEX:
	case ACT_BACKUP:
	case ACT_MEND: break;
	default: write_rules(c);
	}
}

/* 1: it is over before its time. */
static int
await_end(struct chaos *c, struct window *w)
{
	if (atomic_load(&c->s->pid) != w->pid)
		return 1;
	if (w->act.action == ACT_SHUT)
		excuse_living(c, EXCUSE_SHUT);
	excuse_told(c);
	if (!w->told && book_now_us() >= w->due_us) {
		send_term(c, w->pid);
		must_end(w);
	}
	/* Nobody who is stopped can end. */
	if (w->told && any_other(c, ACT_STOP))
		must_end(w);
	return 0;
}

/* What goes on while it is open; 1: it is over before its time. */
static int
go_on(struct chaos *c, struct window *w)
{
	if (w->act.action == ACT_RESTART || w->act.action == ACT_SHUT)
		return await_end(c, w);
	if (w->act.action == ACT_DISK)
		fill_disk(c->s);
	return 0;
}

static void
tend(struct chaos *c)
{
	int census = 0;

	for (size_t i = 0; i < c->nopen; i++)
		census |= c->open[i].act.action == ACT_SHUT ||
		    (c->open[i].act.action == ACT_RESTART && c->ntold > 1);
	if (census && book_now_us() - c->census_us > CENSUS_US)
		look(c);
	for (size_t i = 0; i < c->nopen;) {
		struct window w;
		int over = go_on(c, &c->open[i]);

		if (!over && book_now_us() < c->open[i].due_us) {
			i++;
			continue;
		}
		w = c->open[i];
		c->open[i] = c->open[--c->nopen];
		if (!over)
			end(c, &w);
	}
}

void
chaos_run(struct soak *s, const struct plan *p, struct chaos_counts *n)
{
	struct chaos *c = calloc(1, sizeof(*c));
	double start = book_now_us();
	size_t at = 0;

	must(c != NULL);
	c->s = s;
	c->n = n;
	c->clock = map_clock(s);
	while (at < p->n || c->nopen > 0) {
		while (at < p->n && book_now_us() - start >= (double)p->acts[at].at_ms * 1e3)
			begin(c, &p->acts[at++]);
		tend(c);
		(void)usleep(TURN_US);
	}
	free(c);
}
