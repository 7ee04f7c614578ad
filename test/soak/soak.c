/*
 * test/soak/soak.c -- anvil under load while everything dies, stops and fills up around it, by a
 * plan that comes from a seed; at its end all that was acknowledged is compared with what there
 * is.  scripts/soak.sh makes the place and calls it.
 */
#include "test/soak/soak.h"

#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "test/soak/chaos.h"
#include "test/soak/load.h"
#include "test/soak/operator.h"
#include "test/soak/verdict.h"
#include "test/soak/view.h"
#include "test/soak/witness.h"

#define NDELIVER  2
#define NTRIGGER  1
#define NMEDDLE   1
#define NVIEW     4
#define NTHREADS  (NDELIVER + NTRIGGER + NMEDDLE + NVIEW)
#define STATUS_S  60
#define HEALTHY_S 60

struct soaking {
	struct soak s;
	long pace_ms;
	struct plan plan;
	struct chaos_counts chaos;
	struct verdict verdict;
	struct load loads[NTHREADS];
	int terminal;
};

static const struct option options[] = {
	{ "seed", required_argument, NULL, 's' },
	{ "seconds", required_argument, NULL, 't' },
	{ "dir", required_argument, NULL, 'd' },
	{ "data", required_argument, NULL, 'D' },
	{ "runtime", required_argument, NULL, 'R' },
	{ "conf", required_argument, NULL, 'c' },
	{ "programs", required_argument, NULL, 'p' },
	{ "git", required_argument, NULL, 'g' },
	{ "local", required_argument, NULL, 'l' },
	{ "commit", required_argument, NULL, 'C' },
	{ "disk", required_argument, NULL, 'f' },
	{ "port", required_argument, NULL, 'P' },
	{ "beacons", required_argument, NULL, 'b' },
	{ "pace", required_argument, NULL, 'a' },
	{ NULL, 0, NULL, 0 },
};

static void
take_option(struct soaking *k, int c, const char *value)
{
	struct soak *s = &k->s;
	const char **texts[128] = { ['d'] = &s->dir,
		['D'] = &s->data_dir,
		['R'] = &s->run_dir,
		['c'] = &s->conf,
		['p'] = &s->programs,
		['g'] = &s->git,
		['l'] = &s->local,
		['C'] = &s->commit,
		['f'] = &s->disk };

	switch (c) {
	case 's': s->seed = strtoull(value, NULL, 10); break;
	case 't': s->seconds = strtol(value, NULL, 10); break;
	case 'P': s->port = atoi(value); break;
	case 'b': s->beacons = atoi(value); break;
	case 'a': k->pace_ms = strtol(value, NULL, 10); break;
	default:
		if (c < 0 || c >= (int)ARRAY_LEN(texts) || texts[c] == NULL)
			exit(2);
		*texts[c] = value;
	}
}

/* What anvild maps and reads from its first moment on. */
static void
make_files(const struct soaking *k)
{
	char path[256];
	int64_t none = 0;
	FILE *f;
	int fd;

	(void)snprintf(path, sizeof(path), "%s/clock", k->s.dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	must(fd >= 0 && write(fd, &none, sizeof(none)) == sizeof(none));
	must(fchmod(fd, 0644) == 0);
	io_close(&fd);
	(void)snprintf(path, sizeof(path), "%s/faults", k->s.dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	must(fd >= 0 && fchmod(fd, 0644) == 0);
	io_close(&fd);
	(void)snprintf(path, sizeof(path), "%s/plan", k->s.dir);
	f = fopen(path, "we");
	must(f != NULL);
	plan_print(&k->plan, f);
	(void)fclose(f);
}

static void
make_user(const struct soak *s)
{
	json_t *made = chaos_call(s, "ingress", "user.bootstrap",
	    "{\"email\":\"soak@example.org\",\"slug\":\"" SOAK_OWNER
	    "\",\"displayName\":\"Soak\",\"password\":\"" SOAK_PASSWORD "\"}",
	    10000);

	if (made == NULL) {
		(void)fprintf(stderr, "soak: no user\n");
		exit(2);
	}
	json_decref(made);
}

static void
begin_load(struct soaking *k)
{
	static void *(*const what[])(
	    void *) = { load_deliver, load_trigger, load_meddle, view_thread };
	static const int many[] = { NDELIVER, NTRIGGER, NMEDDLE, NVIEW };
	const long pauses[] = { k->pace_ms / 2, k->pace_ms, k->pace_ms * 2, 0 };
	unsigned n = 0;

	atomic_store(&k->s.loading, 1);
	for (size_t i = 0; i < ARRAY_LEN(what); i++)
		for (int j = 0; j < many[i]; j++, n++) {
			k->loads[n] =
			    (struct load) { .s = &k->s, .number = n, .pause_ms = pauses[i] };
			must(pthread_create(&k->loads[n].thread, NULL, what[i], &k->loads[n]) ==
			    0);
		}
}

static void
end_load(struct soaking *k)
{
	atomic_store(&k->s.loading, 0);
	for (size_t i = 0; i < NTHREADS; i++)
		must(pthread_join(k->loads[i].thread, NULL) == 0);
}

static long
sum(const long *v, size_t n)
{
	long all = 0;

	for (size_t i = 0; i < n; i++)
		all += v[i];
	return all;
}

static void
status(struct soaking *k, double since)
{
	const struct book_counts *n = &k->s.book.n;

	if (k->terminal)
		(void)printf("\r\033[K");
	book_say(
	    "%.0f of %ld s: %ld kills, %ld stops, %ld deliveries, %zu runs, %ld lines seen, "
	    "%ld reconnects, %ld losses",
	    (book_now_us() - since) / 1e6, k->s.seconds, sum(k->chaos.kills, NPROCS),
	    sum(k->chaos.stops, NPROCS), n->deliveries, k->s.book.nruns, n->lines,
	    n->reconnects, k->s.book.losses);
}

static void *
carry_out(void *arg)
{
	struct soaking *k = arg;

	chaos_run(&k->s, &k->plan, &k->chaos);
	atomic_store(&k->s.calm, 1);
	return NULL;
}

/* The load goes on for as long as the plan says, and until its last window is shut. */
static void
soak(struct soaking *k)
{
	double since = book_now_us(), told = since;
	pthread_t chaos;

	begin_load(k);
	must(pthread_create(&chaos, NULL, carry_out, k) == 0);
	while (!atomic_load(&k->s.calm) || book_now_us() - since < (double)k->s.seconds * 1e6) {
		(void)usleep(100000);
		if (book_now_us() - told < (k->terminal ? 1e6 : STATUS_S * 1e6))
			continue;
		told = book_now_us();
		status(k, since);
		if (k->terminal)
			(void)printf("\033[A");
	}
	must(pthread_join(chaos, NULL) == 0);
	end_load(k);
	status(k, since);
}

static void
print_by_role(const char *what, const long *v, const char *const *names, size_t n)
{
	const char *before = " (";

	(void)printf("%s: %ld", what, sum(v, n));
	for (size_t i = 0; i < n; i++) {
		if (v[i] == 0)
			continue;
		(void)printf("%s%ld %s", before, v[i], names[i]);
		before = ", ";
	}
	(void)printf("%s\n", before[0] == ',' ? ")" : "");
}

static void
report(const struct soaking *k)
{
	const struct book_counts *n = &k->s.book.n;
	const struct verdict *v = &k->verdict;
	long ended, done;

	operator_count(&k->s, &ended, &done);
	(void)printf("seed %llu, %ld s\n", (unsigned long long)k->s.seed, k->s.seconds);
	print_by_role("kills", k->chaos.kills, role_names, NPROCS);
	print_by_role("stops", k->chaos.stops, role_names, NPROCS);
	print_by_role("actions", k->chaos.acts, action_names, NACTIONS);
	(void)printf(
	    "operators: %ld of their commands did all, %ld did not\n", done, ended - done);
	(void)printf("starts of anvild: %ld\n", n->restarts + 1);
	(void)printf("deliveries: %ld accepted, %ld sent again, %ld ignored, %ld forged, "
		     "%ld without an answer; refused since the queue was full: %ld\n",
	    n->deliveries, n->redelivered, n->ignored, n->forged, n->unanswered, n->full);
	(void)printf("manual runs: %ld, %ld without an answer; cancels: %ld; changes: %ld\n",
	    n->manual, n->manual_unanswered, n->cancels, n->changes);
	(void)printf("runs: %ld: %ld passed, %ld failed (%ld lost their runner), %ld canceled; "
		     "%ld ended so because of a fault or a cancel\n",
	    v->runs, v->passed, v->failed, v->lost_runners, v->canceled, v->excused);
	(void)printf("viewers: %ld, %ld reconnects, %ld lines seen; beacons of steps: %ld\n",
	    n->viewers, n->reconnects, n->lines, n->beacons);
	(void)printf("losses: %ld\n", k->s.book.losses);
}

int
main(int argc, char **argv)
{
	static struct soaking k = { .pace_ms = 600, .s = { .seed = 1, .seconds = 60 } };
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
		take_option(&k, c, optarg);
	if (k.s.dir == NULL || k.s.conf == NULL || k.s.programs == NULL || k.s.local == NULL)
		return 2;
	(void)signal(SIGPIPE, SIG_IGN);
	(void)umask(022);
	k.terminal = isatty(1);
	book_init(&k.s.book);
	k.plan = plan_make(k.s.seed, k.s.seconds);
	make_files(&k);
	witness_begin(&k.s);
	procs_begin(&k.s);
	if (verdict_await_health(&k.s, HEALTHY_S) < 0)
		return 2;
	make_user(&k.s);
	load_prepare(&k.s);
	soak(&k);
	verdict_compare(&k.s, &k.verdict);
	verdict_end(&k.s);
	witness_end(&k.s);
	report(&k);
	c = k.s.book.losses != 0;
	plan_done(&k.plan);
	book_done(&k.s.book);
	return c;
}
