/*
 * test/bench/bench_deliver.c -- verified deliveries a second over 64 connections: to a branch
 * that starts no run, accepted on many projects, and delivered before; bodies of 400 bytes and
 * of the 7 KiB that GitHub sends for a push.
 *
 * The floors are nginx answering 204 to the same POSTs, and single-row transactions, each
 * synced.  With ANVIL_FAULT_FSYNC_US, in a build with faults, every sync of both sides takes so
 * long: then the ratio tells how many deliveries share one.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/enc.h"
#include "lib/vault/vault.h"
#include "lib/wire/wire.h"
#include "test/bench/report.h"
#include "test/bench/single.h"
#include "test/bench/system.h"

#define ROUNDS     5
#define PROJECTS   500
#define CONNS      64
#define A_PROJECT  19 /* runs for each: 20 may wait, and none is started */
#define IDS        4096
#define SECRET     "bench-secret"
#define REPOSITORY "https://github.com/bench/repo"
#define BODY_MAX   16384

struct body {
	size_t n;
	char text[BODY_MAX], signature[72];
};

struct deliveries {
	const struct system *s;
	int port;
	const struct body *body;
	size_t nprojects, left;
	unsigned long id; /* of the next one             */
	int again;        /* the same ids, over and over */
	struct buf text;
};

struct bench {
	struct system s;
	struct single single;
	pid_t nginx;
	int nginx_port;
	size_t rounds, nprojects;
	int slow;
};

/* ---- what is sent ---- */

static void
sign(struct body *b)
{
	uint8_t mac[VAULT_SHA256_BYTES];
	struct vault_hmac h;

	vault_hmac_init(&h, SECRET, strlen(SECRET));
	vault_hmac_update(&h, b->text, b->n);
	vault_hmac_final(&h, mac);
	(void)snprintf(b->signature, sizeof(b->signature), "sha256=");
	hex_encode(mac, sizeof(mac), b->signature + 7);
}

static void
small_body(struct body *b, const char *branch)
{
	b->n = (size_t)snprintf(b->text, sizeof(b->text),
	    "{\"ref\":\"refs/heads/%s\",\"before\":\"%040d\",\"after\":\"%040x\","
	    "\"repository\":{\"full_name\":\"bench/repo\",\"private\":false},"
	    "\"pusher\":{\"name\":\"bench\"},\"forced\":false,\"commits\":[],\"compare\":"
	    "\"https://github.com/bench/repo/compare/0000000...aaaaaaa\",\"padding\":\"%080d\"}",
	    branch, 0, 0xabcdef1, 0);
	sign(b);
}

/* The shape of what GitHub sends: a repository of many URLs, and commits. */
static void
real_body(struct body *b, const char *branch)
{
	static const char *const urls[] = { "forks", "keys", "collaborators", "teams", "hooks",
		"issue_events", "events", "assignees", "branches", "tags", "blobs", "git_tags",
		"git_refs", "trees", "statuses", "languages", "stargazers", "contributors",
		"subscribers", "subscription", "commits", "git_commits", "comments",
		"issue_comment", "contents", "compare", "merges", "archive", "downloads",
		"issues", "pulls", "milestones", "notifications", "labels", "releases",
		"deployments" };
	size_t n = (size_t)snprintf(b->text, sizeof(b->text),
	    "{\"ref\":\"refs/heads/%s\",\"before\":\"%040x\",\"after\":\"%040x\","
	    "\"repository\":{\"id\":186853002,\"name\":\"repo\",\"full_name\":\"bench/repo\"",
	    branch, 0x1234567, 0xabcdef1);

	for (size_t i = 0; i < ARRAY_LEN(urls); i++)
		n += (size_t)snprintf(b->text + n, sizeof(b->text) - n,
		    ",\"%s_url\":\"https://api.github.com/repos/bench/repo/%s{/sha}\"", urls[i],
		    urls[i]);
	n += (size_t)snprintf(b->text + n, sizeof(b->text) - n,
	    ",\"topics\":[],\"size\":21,\"fork\":false,\"license\":null},\"commits\":[");
	for (size_t i = 0; i < 11; i++)
		n += (size_t)snprintf(b->text + n, sizeof(b->text) - n,
		    "%s{\"id\":\"%040zx\",\"distinct\":true,\"message\":\"Mend the flux of \\u00fc"
		    " and \\\"quotes\\\" in part %zu\\n\\nAs it was found in the field.\","
		    "\"timestamp\":\"2026-01-31T09:05:07+01:00\",\"author\":{\"name\":\"Bench\","
		    "\"email\":\"bench@example.org\",\"username\":\"bench\"},\"added\":["
		    "\"lib/a/%zu.c\"],\"removed\":[],\"modified\":[\"Makefile\",\"README.md\","
		    "\"lib/b/%zu.h\",\"test/unit/test_b_%zu.c\",\"scripts/build-%zu.sh\"]}",
		    i > 0 ? "," : "", i + 17, i, i, i, i, i);
	n += (size_t)snprintf(b->text + n, sizeof(b->text) - n,
	    "],\"head_commit\":null,\"pusher\":{\"name\":\"bench\",\"email\":null},"
	    "\"created\":false,\"deleted\":false,\"forced\":false}");
	must(n < sizeof(b->text));
	b->n = n;
	sign(b);
}

static const char *
next_delivery(void *arg, size_t *ret_n)
{
	struct deliveries *d = arg;
	unsigned long id;

	if (d->left == 0)
		return NULL;
	d->left--;
	id = d->id++;
	if (d->again)
		id %= IDS;
	buf_reset(&d->text);
	buf_printf(&d->text,
	    "POST /api/public/hooks/github/bench/p%lu HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
	    "Content-Type: application/json\r\nUser-Agent: GitHub-Hookshot/044aadd\r\n"
	    "X-GitHub-Event: push\r\nX-GitHub-Delivery: %s-%zu-%012lu\r\n"
	    "X-Hub-Signature-256: %s\r\nContent-Length: %zu\r\n\r\n",
	    id % d->nprojects, d->port, d->again ? "again" : "fresh", d->body->n, id,
	    d->body->signature, d->body->n);
	buf_add(&d->text, d->body->text, d->body->n);
	must(!d->text.failed);
	*ret_n = d->text.len;
	return (const char *)d->text.data;
}

/* ---- nginx ---- */

static void
nginx_start(struct bench *b)
{
	char conf[128];
	FILE *f;

	b->nginx_port = b->s.port + 1;
	(void)snprintf(conf, sizeof(conf), "%s/nginx.conf", b->s.dir);
	f = fopen(conf, "we");
	if (f == NULL)
		bench_die("cannot write %s", conf);
	(void)fprintf(f,
	    "daemon off; worker_processes auto; pid %s/nginx.pid; error_log stderr crit;\n"
	    "events { worker_connections 1024; }\n"
	    "http { access_log off; keepalive_requests 100000000; client_max_body_size 25m;\n"
	    " client_body_temp_path %s/body; proxy_temp_path %s/proxy;\n"
	    " fastcgi_temp_path %s/fastcgi; uwsgi_temp_path %s/uwsgi; scgi_temp_path %s/scgi;\n"
	    " server { listen 127.0.0.1:%d; location / { return 204; } } }\n",
	    b->s.dir, b->s.dir, b->s.dir, b->s.dir, b->s.dir, b->s.dir, b->nginx_port);
	(void)fclose(f);
	b->nginx = fork();
	if (b->nginx == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
		(void)execlp(
		    "nginx", "nginx", "-p", b->s.dir, "-c", conf, "-e", "stderr", (char *)NULL);
		_exit(127);
	}
	for (int i = 0; i < 1000; i++) {
		struct web w;

		if (web_open(&w, b->nginx_port) == 0) {
			web_close(&w);
			return;
		}
		(void)usleep(5000);
	}
	bench_die("nginx did not come up");
}

static void
nginx_stop(const struct bench *b)
{
	(void)kill(b->nginx, SIGTERM);
	(void)waitpid(b->nginx, NULL, 0);
}

/* ---- rounds ---- */

/* Requests a second; the latencies stay in ${f}. */
static double
round_of(struct deliveries *d, struct web_flood *f, size_t n, int port, int wanted)
{
	d->left = n;
	d->port = port;
	*f = (struct web_flood) {
		.port = port, .nconns = CONNS, .next = next_delivery, .arg = d, .wanted = wanted
	};
	if (web_flood(f) < 0 || f->refused != 0)
		bench_die(
		    "%ld well, %ld refused, the last with %d", f->done, f->refused, f->odd);
	return (double)f->done / (f->us / 1e6);
}

struct kind {
	const char *what;
	int wanted;    /* status                           */
	int again;     /* the same deliveries once more    */
	size_t n;      /* of a round                       */
	double single; /* to reach, against single rows    */
	double nginx;  /* ... and against nginx; 0: none   */
};

static void
measure(struct bench *b, const struct kind *k, const struct body *body, const char *size)
{
	static struct series rows, bare, value, tail;
	static struct web_flood f;
	struct deliveries d = { .s = &b->s,
		.body = body,
		.nprojects = b->nprojects,
		.again = k->again,
		.text = BUF_INIT };
	char what[96];

	rows.n = bare.n = value.n = tail.n = 0;
	d.id = (unsigned long)bench_now_us() % 1000000000 * 1000;
	d.id -= d.id % b->nprojects;
	if (k->again)
		(void)round_of(&d, &f, IDS, b->s.port, k->wanted);
	for (size_t i = 0; i < b->rounds; i++) {
		series_add(&rows, single_round(&b->single, b->slow ? 100 : 1000));
		if (k->nginx > 0)
			series_add(&bare, round_of(&d, &f, k->n, b->nginx_port, 204));
		series_add(&value, round_of(&d, &f, k->n, b->s.port, k->wanted));
		series_add(&tail, web_latency_us(&f, 0.99) / web_latency_us(&f, 0.5));
	}
	buf_done(&d.text);
	(void)snprintf(what, sizeof(what), "%s, %s%s / single-row transactions", k->what, size,
	    b->slow ? ", each sync 5 ms" : "");
	report_row(&(struct report) {
	    what, "per second", &rows, &value, b->slow ? 12 : k->single, 1 });
	if (k->nginx > 0) {
		(void)snprintf(
		    what, sizeof(what), "%s, %s / nginx answering 204", k->what, size);
		report_row(&(struct report) { what, "per second", &bare, &value, k->nginx, 1 });
	}
	(void)snprintf(what, sizeof(what), "%s, %s%s: p99 of an answer / its median", k->what,
	    size, b->slow ? ", each sync 5 ms" : "");
	report_row(&(struct report) { what, "times", NULL, &tail, 8, 0 });
}

/* Proportional memory of all resident actors in KiB. */
static long
memory(struct system *s)
{
	static const char *const actors[] = { "ingress", "project/0", "project/1" };
	long sum = 0;

	for (size_t i = 0; i < ARRAY_LEN(actors); i++) {
		struct memory m = { 0 };

		if (system_memory(s, system_pid(s, actors[i]), &m) == 0)
			sum += m.pss_kb;
	}
	return sum;
}

/* Many deliveries more must not cost memory. */
static void
measure_memory(struct bench *b, const struct body *body)
{
	static struct series value;
	static struct web_flood f;
	size_t n = (size_t)bench_env("BENCH_DELIVERIES", 200000);
	struct deliveries d = { .s = &b->s,
		.body = body,
		.nprojects = b->nprojects,
		.again = 1,
		.text = BUF_INIT };
	long before = memory(&b->s);

	(void)round_of(&d, &f, n, b->s.port, 200);
	buf_done(&d.text);
	series_add(&value, (double)(memory(&b->s) - before));
	report_row(&(struct report) {
	    "memory that deliveries leave behind", "KiB", NULL, &value, 2048, 0 });
	report_note("%zu deliveries; ingress and both shards had %ld KiB before", n, before);
}

static void
prepare(struct bench *b)
{
	char slug[32], id[32], path[128], body[128];

	system_start(&b->s, "none", 2);
	json_decref(system_rpc(&b->s, "supervisor", "supervisor.drain", NULL));
	for (size_t i = 0; i < b->nprojects; i++) {
		(void)snprintf(slug, sizeof(slug), "p%zu", i);
		system_project(&b->s, slug, REPOSITORY, id);
		(void)snprintf(
		    path, sizeof(path), "/api/private/projects/%s/webhooks/github", id);
		(void)snprintf(
		    body, sizeof(body), "{\"enabled\":true,\"secret\":\"%s\"}", SECRET);
		if (web_call(&b->s.web, "PUT", path, b->s.session, body) != 201)
			bench_die("cannot make a webhook: %s", (char *)b->s.web.body.data);
	}
}

int
main(void)
{
	static struct body small, real;
	const char *slow = getenv("ANVIL_FAULT_FSYNC_US");
	size_t much = slow != NULL ? 4000 : 20000;
	struct bench b = { .rounds = (size_t)bench_env("BENCH_ROUNDS", ROUNDS),
		.nprojects = (size_t)bench_env("BENCH_PROJECTS", PROJECTS),
		.slow = slow != NULL };
	const struct kind ignored = { "deliveries to another branch", 200, 0, much, 1.5, 0.1 },
			  again = { "deliveries once more", 200, 1, much, 1.5, 0.1 },
			  accepted = { "deliveries accepted", 202, 0,
				  b.nprojects * A_PROJECT / b.rounds / 2, 0.8, 0 };

	report_open();
	system_prepare(&b.s);
	prepare(&b);
	nginx_start(&b);
	single_open(&b.single, b.s.dir);
	small_body(&small, "feature");
	real_body(&real, "feature");
	report_note("bodies of %zu and %zu bytes, %zu projects, %d connections", small.n,
	    real.n, b.nprojects, CONNS);
	measure(&b, &ignored, &small, "small");
	measure(&b, &(struct kind) { ignored.what, 200, 0, much, 1.0, 0 }, &real, "real");
	measure(&b, &again, &small, "small");
	measure(&b, &(struct kind) { again.what, 200, 1, much, 1.0, 0 }, &real, "real");
	if (!b.slow)
		measure_memory(&b, &small);
	small_body(&small, "main");
	real_body(&real, "main");
	measure(&b, &accepted, &small, "small");
	measure(&b, &accepted, &real, "real");
	single_close(&b.single);
	nginx_stop(&b);
	system_done(&b.s);
	return 0;
}
