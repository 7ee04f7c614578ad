/*
 * test/bench/bench_watch.c -- runs that are watched: a thousand viewers of one run, how soon a
 * line is seen, how fast one viewer is served, and what those cost that stop reading.
 *
 * The floors are the same step with nobody watching, and the same text through a pipe.  A step
 * is this program under another name, see speak.h; its lines tell when they were written.
 * BENCH_ONLY=crowd|line|speed|stalled; BENCH_VIEWERS, BENCH_SECONDS.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/base/base.h"
#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/wire/wire.h"
#include "test/bench/crowd.h"
#include "test/bench/report.h"
#include "test/bench/speak.h"
#include "test/bench/system.h"

#define ROUNDS     3
#define VIEWERS    1000
#define SECONDS    20
#define RATE       "1000000" /* bytes a second */
#define LINES      "100"
#define PATIENCE   180
#define SAMPLE_MS  100
#define SETTLE_MS  500 /* For those who have joined to be told what there is. */
#define STALLED    20
#define STALLED_S  "10"
#define STALL_MS   1000 /* From the step's start to the moment when they stop. */
#define STAGGER_MS 250

/* 200 MB that look like the output of a build. */
#define MAKE_TEXT                                                                              \
	"awk 'BEGIN { srand(1); for (i = 0; i < 120000; i++) printf \"[%3d%%] gcc -std=gnu17 " \
	"-O2 -Wall -c -o build/%x/%x.o src/%x.c # %d ms\\n\", rand() * 100, rand() * 4096, "   \
	"rand() * 2147483647, rand() * 2147483647, rand() * 10000 }' > part; "                 \
	"for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do cat part; done > text"

struct bench {
	struct system s;
	size_t rounds, nviewers, nprojects;
	char speak[96], gate[96];
	pid_t ingress;
};

/* A run whose second step begins when the gate opens. */
struct watched {
	char project[32], run[32];
	double ms, mb;  /* Of that step, and of the whole log. */
	double pss_mib; /* The most that ingress had.          */
	/* CPU time since the gate opened. */
	double served_s; /* Of ingress.         */
	double told_s;   /* Of the run's actor. */
	double own_s;    /* Of the viewers.     */
	pid_t pid;       /* Of that actor.      */
};

/* ---- runs ---- */

static double
cpu_s(pid_t pid)
{
	unsigned long user = 0, sys = 0;
	char path[64];
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (f == NULL ||
	    fscanf(f, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
		&sys) != 2)
		user = sys = 0;
	if (f != NULL)
		(void)fclose(f);
	return (double)(user + sys) / (double)sysconf(_SC_CLK_TCK);
}

static double
load(void)
{
	double now = 0;

	(void)getloadavg(&now, 1);
	return now;
}

static void
make_project(struct bench *b, const char *name, const char *command, struct watched *w)
{
	char url[160], yml[768], slug[32];

	(void)snprintf(yml, sizeof(yml),
	    "version: 1\nrun:\n  steps:\n    - name: wait\n      run: |\n"
	    "        until test -e %s; do sleep 0.05; done\n"
	    "    - name: output\n      run: |\n        %s\n",
	    b->gate, command);
	*w = (struct watched) { 0 };
	(void)snprintf(slug, sizeof(slug), "%s%zu", name, ++b->nprojects);
	system_repository(&b->s, slug, 2, yml, url);
	system_project(&b->s, slug, url, w->project);
}

static void
trigger(struct bench *b, struct watched *w)
{
	(void)unlink(b->gate);
	w->pss_mib = w->told_s = 0;
	system_trigger(&b->s, w->project, w->run);
}

static void
open_gate(struct bench *b, struct watched *w)
{
	int fd = open(b->gate, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	if (fd < 0)
		bench_die("cannot make %s", b->gate);
	io_close(&fd);
	w->pid = system_run_pid(&b->s, w->run);
	w->served_s = cpu_s(b->ingress);
	w->own_s = cpu_s(getpid());
}

static void
sample(struct bench *b, struct watched *w)
{
	double mib, told;
	struct memory m;

	if (system_memory(&b->s, b->ingress, &m) < 0)
		bench_die("ingress does not show its memory; be root");
	mib = (double)m.pss_kb / 1024;
	w->pss_mib = mib > w->pss_mib ? mib : w->pss_mib;
	/* It ends when nobody watches any more. */
	told = w->pid > 0 ? cpu_s(w->pid) : 0;
	w->told_s = told > 0 ? told : w->told_s;
}

/* Until all that read have gone, or for ${ms}. */
static void
watch(struct bench *b, struct watched *w, struct crowd *c, int ms)
{
	double until = bench_now_us() + ms * 1e3;

	do
		sample(b, w);
	while (crowd_watch(c, SAMPLE_MS) > 0 && bench_now_us() < until);
}

static int64_t
time_of(const json_t *step, const char *name)
{
	const char *text = json_string_value(json_object_get(step, name));
	int64_t ms;

	return text != NULL && clock_parse(text, &ms) == 0 ? ms : 0;
}

static void
await_end(struct bench *b, struct watched *w)
{
	char path[128];
	json_t *detail = NULL, *step;

	w->served_s = cpu_s(b->ingress) - w->served_s;
	w->own_s = cpu_s(getpid()) - w->own_s;
	if (system_await(&b->s, w->project, w->run, 20000, PATIENCE) < 0)
		bench_die("run %s did not pass", w->run);
	(void)snprintf(path, sizeof(path), "/api/private/runs/%s?logBytes=0", w->run);
	if (web_call(&b->s.web, "GET", path, b->s.session, NULL) != 200 ||
	    json_text_parse((const char *)b->s.web.body.data, b->s.web.body.len, 64, &detail) <
		0)
		bench_die("no detail of %s", w->run);
	step = json_array_get(json_object_get(detail, "steps"), 1);
	w->ms = (double)(time_of(step, "finishedAt") - time_of(step, "startedAt"));
	w->mb = json_number_value(json_object_get(detail, "logBytes")) / 1e6;
	json_decref(detail);
}

static void
join(struct bench *b, const struct watched *w, struct crowd *c, size_t n, enum crowd_kind kind)
{
	for (size_t i = 0; i < n; i++)
		crowd_join(c, &b->s.web, b->s.session, w->run, kind, 0);
}

/* ---- many viewers ---- */

/* The largest lag of any viewer in milliseconds; one that was sent away lags ever after. */
static double
tell_of_crowd(const struct crowd *c, const struct watched *w)
{
	double lag = 0, now = bench_now_us();
	long gaps = 0, logs = 0, away = 0;

	for (size_t i = 0; i < c->n; i++) {
		const struct crowd_viewer *v = &c->viewers[i];
		double own = v->code == 1000 ? v->lag_us : now - v->last_us;

		lag = own > lag ? own : lag;
		gaps += v->gaps;
		logs += v->logs;
		away += v->code != 1000;
	}
	report_note(
	    "%zu viewers, %.1f MB: %ld messages, behind by %.1f ms at the median, %.1f at "
	    "p99; %ld gaps, %ld sent away",
	    c->n, w->mb, logs, crowd_lag_ms(c, 0.5), crowd_lag_ms(c, 0.99), gaps, away);
	report_note("CPU in those %.1f s: run %.1f s, ingress %.1f, viewers %.1f; load %.1f",
	    w->ms / 1e3, w->told_s, w->served_s, w->own_s, load());
	return lag / 1e3;
}

static void
measure_crowd(struct bench *b)
{
	static struct series alone, watched, lag, memory;
	static struct crowd c;
	char command[160], what[96];
	struct watched w;

	(void)snprintf(command, sizeof(command), "%s pour " RATE " %ld", b->speak,
	    bench_env("BENCH_SECONDS", SECONDS));
	make_project(b, "crowd", command, &w);
	for (size_t i = 0; i < b->rounds; i++) {
		trigger(b, &w);
		open_gate(b, &w);
		await_end(b, &w);
		series_add(&alone, w.ms);
		crowd_init(&c, b->nviewers);
		trigger(b, &w);
		join(b, &w, &c, b->nviewers, CROWD_GLANCES);
		(void)crowd_watch(&c, SETTLE_MS);
		open_gate(b, &w);
		watch(b, &w, &c, PATIENCE * 1000);
		await_end(b, &w);
		series_add(&watched, w.ms);
		series_add(&memory, w.pss_mib);
		series_add(&lag, tell_of_crowd(&c, &w));
		crowd_done(&c);
	}
	(void)snprintf(
	    what, sizeof(what), "%zu viewers of 1 MB/s: furthest behind of any", b->nviewers);
	report_row(
	    &(struct report) { .what = what, .unit = "ms", .value = &lag, .limit = 1000 });
	report_row(&(struct report) { .what = "ingress with these viewers, peak",
	    .unit = "MiB",
	    .value = &memory,
	    .limit = 64 });
	report_row(&(struct report) { .what = "the step with these viewers / with none",
	    .unit = "ms",
	    .floor = &alone,
	    .value = &watched,
	    .limit = 1.02 });
}

/* ---- a line ---- */

static void
measure_line(struct bench *b)
{
	static struct series middle, tail;
	static struct crowd c;
	char command[160];
	struct watched w;

	(void)snprintf(command, sizeof(command), "%s drip " LINES, b->speak);
	make_project(b, "line", command, &w);
	for (size_t i = 0; i < b->rounds; i++) {
		crowd_init(&c, 1);
		trigger(b, &w);
		join(b, &w, &c, 1, CROWD_GLANCES);
		open_gate(b, &w);
		watch(b, &w, &c, PATIENCE * 1000);
		await_end(b, &w);
		series_add(&middle, crowd_lag_ms(&c, 0.5));
		series_add(&tail, crowd_lag_ms(&c, 0.99));
		report_note("%lu lines: median %.1f ms, p99 %.1f, slowest %.1f; load of the "
			    "machine %.1f",
		    c.nlags, crowd_lag_ms(&c, 0.5), crowd_lag_ms(&c, 0.99),
		    c.viewers[0].lag_us / 1e3, load());
		crowd_done(&c);
	}
	report_row(&(struct report) { .what = "from a line's write to its viewer, median",
	    .unit = "ms",
	    .value = &middle,
	    .limit = 60 });
	report_row(&(struct report) { .what = "from a line's write to its viewer, p99",
	    .unit = "ms",
	    .value = &tail,
	    .limit = 100 });
}

/* ---- one viewer at full speed ---- */

static double
through_a_pipe(const struct system *s, double mb)
{
	static const char *const argv[] = { "sh", "-c", "cat text | cat > /dev/null", NULL };
	double begin = bench_now_us();

	if (system_run(argv, s->dir) != 0)
		bench_die("a pipe does not work here");
	return mb / ((bench_now_us() - begin) / 1e6);
}

/* The text of the whole run over HTTP; MB/s. */
static double
read_text(struct bench *b, const struct watched *w)
{
	static char in[256 << 10];
	struct buf out = BUF_INIT;
	double begin = bench_now_us(), bytes = 0;
	struct web web;
	ssize_t n;

	buf_printf(&out,
	    "GET /api/private/runs/%s/log HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
	    "Authorization: Bearer %s\r\nConnection: close\r\n\r\n",
	    w->run, b->s.port, b->s.session);
	if (web_open(&web, b->s.port) < 0 || io_write_all(web.fd, out.data, out.len) < 0)
		bench_die("cannot ask for a text");
	while ((n = read(web.fd, in, sizeof(in))) > 0)
		bytes += (double)n;
	buf_done(&out);
	web_close(&web);
	if (bytes < w->mb * 1e6)
		bench_die("%.1f MB of a text of %.1f", bytes / 1e6, w->mb);
	return w->mb / ((bench_now_us() - begin) / 1e6);
}

static void
measure_speed(struct bench *b)
{
	static const char *const make_text[] = { "sh", "-c", MAKE_TEXT, NULL };
	static struct series pipe, socket, text;
	static struct crowd c;
	char command[160];
	struct watched w;

	if (system_run(make_text, b->s.dir) != 0)
		bench_die("awk does not work here");
	(void)snprintf(command, sizeof(command), "cat %s/text", b->s.dir);
	make_project(b, "speed", command, &w);
	for (size_t i = 0; i < b->rounds; i++) {
		const struct crowd_viewer *v;
		double s, mb;

		crowd_init(&c, 1);
		trigger(b, &w);
		join(b, &w, &c, 1, CROWD_READS);
		(void)crowd_watch(&c, SETTLE_MS);
		/* What came so far are words about the checkout. */
		c.viewers[0].first_us = 0;
		open_gate(b, &w);
		watch(b, &w, &c, PATIENCE * 1000);
		await_end(b, &w);
		v = &c.viewers[0];
		s = (v->last_us - v->first_us) / 1e6;
		mb = (double)v->text_bytes / 1e6;
		series_add(&pipe, through_a_pipe(&b->s, w.mb));
		series_add(&socket, mb / s);
		series_add(&text, read_text(b, &w));
		report_note(
		    "%.1f of %.1f MB in %.2f s, %.1f%% in %ld gaps; the step took %.2f s, "
		    "a pipe has %.0f MB/s; closed with %d",
		    mb, w.mb, s, 100 * (1 - mb / w.mb), v->gaps, w.ms / 1e3, pipe.v[i],
		    v->code);
		report_note("CPU: run %.2f s, ingress %.2f, the viewer %.2f; load %.1f",
		    w.told_s, w.served_s, w.own_s, load());
		crowd_done(&c);
	}
	report_row(&(struct report) { .what = "200 MB from cat: text at a viewer of the socket",
	    .unit = "MB/s",
	    .value = &socket,
	    .limit = 50,
	    .at_least = 1 });
	report_row(&(struct report) { .what = "the same text once the run has ended",
	    .unit = "MB/s",
	    .value = &text,
	    .limit = 50,
	    .at_least = 1 });
}

/* ---- viewers that stop reading ---- */

enum stall { STALL_NOBODY, STALL_ALL_AT_ONCE, STALL_FROM_THE_START };

/* The most that a fresh ingress has, in KiB. */
static double
peak_with(struct bench *b, enum stall how, const char *command)
{
	static struct crowd c;
	struct watched w;
	long away = 0;

	system_stop(&b->s);
	system_start(&b->s, "none", 2);
	b->ingress = system_pid(&b->s, "ingress");
	make_project(b, how == STALL_NOBODY ? "reading" : "stalled", command, &w);
	crowd_init(&c, STALLED + 1);
	trigger(b, &w);
	/* One reads in any case, so that the log comes. */
	join(b, &w, &c, how == STALL_FROM_THE_START ? 1 : STALLED + 1, CROWD_GLANCES);
	open_gate(b, &w);
	watch(b, &w, &c, STALL_MS);
	if (how == STALL_ALL_AT_ONCE)
		crowd_stall(&c, 1);
	while (how == STALL_FROM_THE_START && c.n < c.max) {
		crowd_join(&c, &b->s.web, b->s.session, w.run, CROWD_STALLS, 1);
		watch(b, &w, &c, STAGGER_MS);
	}
	watch(b, &w, &c, PATIENCE * 1000);
	crowd_wake(&c);
	(void)crowd_watch(&c, PATIENCE * 1000);
	await_end(b, &w);
	for (size_t i = 0; i < c.n; i++)
		away += c.viewers[i].code != 1000;
	crowd_done(&c);
	if (how != STALL_NOBODY)
		report_note("ingress had %.1f MiB; %ld of %d were sent away; load %.1f",
		    w.pss_mib, away, STALLED, load());
	return w.pss_mib * 1024;
}

static void
measure_stalled(struct bench *b)
{
	static struct series at_once, from_start;
	char command[160];

	(void)snprintf(command, sizeof(command), "%s pour " RATE " " STALLED_S, b->speak);
	for (size_t i = 0; i < b->rounds; i++) {
		double reading = peak_with(b, STALL_NOBODY, command);

		report_note("ingress with %d that read: %.1f MiB", STALLED, reading / 1024);
		series_add(
		    &at_once, (peak_with(b, STALL_ALL_AT_ONCE, command) - reading) / STALLED);
		series_add(&from_start,
		    (peak_with(b, STALL_FROM_THE_START, command) - reading) / STALLED);
	}
	report_row(&(struct report) { .what = "a viewer that stops reading",
	    .unit = "KiB",
	    .value = &at_once,
	    .limit = 1024 });
	report_row(&(struct report) { .what = "a viewer that never reads its replay",
	    .unit = "KiB",
	    .value = &from_start,
	    .limit = 1024 });
}

/* ---- all of it ---- */

/* A descriptor for each viewer, here and in ingress, which inherits the limit. */
static size_t
room_for_viewers(size_t wanted)
{
	struct rlimit now;

	if (getrlimit(RLIMIT_NOFILE, &now) < 0)
		bench_die("no limit of descriptors");
	now.rlim_cur = now.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &now);
	return min_size(wanted, now.rlim_max > 400 ? now.rlim_max - 200 : 200);
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*measure)(struct bench *b);
	} parts[] = {
		{ "crowd", measure_crowd },
		{ "line", measure_line },
		{ "speed", measure_speed },
		{ "stalled", measure_stalled },
	};
	struct bench b = { .rounds = (size_t)bench_env("BENCH_ROUNDS", ROUNDS) };
	const char *only = getenv("BENCH_ONLY");
	int status = speak_main(argc, argv);

	if (status >= 0)
		return status;
	report_open();
	b.nviewers = room_for_viewers((size_t)bench_env("BENCH_VIEWERS", VIEWERS));
	system_prepare(&b.s);
	speak_install(&b.s, b.speak);
	(void)snprintf(b.gate, sizeof(b.gate), "%s/gate", b.s.dir);
	system_start(&b.s, "none", 2);
	b.ingress = system_pid(&b.s, "ingress");
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (only == NULL || strcmp(only, parts[i].name) == 0)
			parts[i].measure(&b);
	system_done(&b.s);
	return 0;
}
