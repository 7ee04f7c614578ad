/*
 * test/bench/bench_rpc.c -- JSON-RPC over a Unix socket against a raw ping-pong of the same
 * bytes: two processes, bodies of 300 bytes, one call at a time and 64 in flight.
 *
 * Floor and measured thing alternate, so that a noisy minute hits both, and the ratio is taken
 * round by round.  BENCH_ROUNDS=n, default 7.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/event.h>

#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/wire/wire.h"
#include "test/bench/report.h"

#define BODY_BYTES 300
#define PINGS      20000
#define CALLS      200000
#define WINDOW     64
#define ROUNDS     7

static void
die(const char *what)
{
	perror(what);
	exit(1);
}

/* ---- the floor ---- */

static void
read_exactly(int fd, char *p, size_t n)
{
	while (n != 0) {
		ssize_t got = read(fd, p, n);

		if (got <= 0)
			exit(got == 0 ? 0 : 1);
		p += got;
		n -= (size_t)got;
	}
}

static void
echo_raw(int fd)
{
	char frame[FRAME_HEAD_BYTES + BODY_BYTES];

	for (;;) {
		read_exactly(fd, frame, sizeof(frame));
		if (io_write_all(fd, frame, sizeof(frame)) < 0)
			exit(1);
	}
}

static double
ping_raw(int fd)
{
	char frame[FRAME_HEAD_BYTES + BODY_BYTES] = { 0 };
	struct mono_time from = clock_mono();

	for (int i = 0; i < PINGS; i++) {
		if (io_write_all(fd, frame, sizeof(frame)) < 0)
			die("write");
		read_exactly(fd, frame, sizeof(frame));
	}
	return (double)mono_diff_us(from, clock_mono()) / PINGS;
}

/* ---- the same bytes as JSON-RPC ---- */

/* A parameter object, or a result, of the members that messages of anvil have. */
static void
make_object(struct buf *out, size_t size)
{
	buf_add_str(out,
	    "{\"projectId\":\"prj_0000000000000000000001\",\"runId\":"
	    "\"run_0000000000000000000001\",\"leaseId\":\"0123456789abcdef0123456789abcdef\","
	    "\"sequence\":123456,\"final\":false,\"text\":\"");
	while (out->len < size - 2)
		buf_add_byte(out, 'x');
	buf_add_str(out, "\"}");
}

struct server {
	struct event_base *base;
	struct buf result;
};

static void
server_on_request(void *arg, struct rpc_peer *p, struct rpc_request *req)
{
	struct server *s = arg;

	(void)p;
	if (json_integer_value(json_object_get(req->params, "sequence")) != 123456)
		exit(1);
	rpc_reply(req, (const char *)s->result.data, s->result.len);
}

static void
server_on_close(void *arg, struct rpc_peer *p, int err)
{
	struct server *s = arg;

	(void)p;
	(void)err;
	event_base_loopbreak(s->base);
}

static void
serve(int fd)
{
	static const struct rpc_peer_ops ops = { .on_request = server_on_request,
		.on_close = server_on_close };
	struct server s = { .base = event_base_new() };

	/* {"jsonrpc":"2.0","id":NNNNNNNN,"result":...} */
	make_object(&s.result, BODY_BYTES - 42);
	if (s.base == NULL || rpc_peer_new(s.base, fd, &ops, &s) == NULL)
		exit(1);
	event_base_dispatch(s.base);
	exit(0);
}

struct client {
	struct event_base *base;
	struct rpc_peer *peer;
	struct buf params;
	long to_send, to_come;
};

static void client_send(struct client *c);

static void
client_on_answer(void *arg, const struct rpc_answer *a)
{
	struct client *c = arg;

	if (a->err != 0 || json_object_get(a->result, "runId") == NULL) {
		fprintf(stderr, "bench_rpc: %s\n", err_text(a->err));
		exit(1);
	}
	if (--c->to_come == 0)
		event_base_loopbreak(c->base);
	else if (c->to_send > 0)
		client_send(c);
}

static void
client_send(struct client *c)
{
	static const struct rpc_call_opts opts = { .request_id = "4fzyo82mvyr50lp9jfaxe2" };

	c->to_send--;
	if (rpc_send(c->peer, "run.append", &c->params, &opts, client_on_answer, c) < 0)
		die("rpc_send");
}

/* Microseconds for each of ${n} calls, ${window} of them in flight. */
static double
call_rounds(struct client *c, long n, int window)
{
	struct mono_time from = clock_mono();

	c->to_send = c->to_come = n;
	for (int i = 0; i < window; i++)
		client_send(c);
	event_base_dispatch(c->base);
	return (double)mono_diff_us(from, clock_mono()) / (double)n;
}

/* ---- rounds ---- */

/* A child that runs ${fn} with its end of a socket pair; our end. */
static int
with_child(void (*fn)(int fd))
{
	int fds[2];
	pid_t pid = -1;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0 || (pid = fork()) < 0)
		die("fork");
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(fds[0]);
		fn(fds[1]);
	}
	close(fds[1]);
	return fds[0];
}

int
main(void)
{
	static struct series raw, one, many;
	long rounds = bench_env("BENCH_ROUNDS", ROUNDS);
	int raw_fd = with_child(echo_raw);
	int rpc_fd = with_child(serve);
	struct client c = { .base = event_base_new() };
	struct rpc_peer_stats stats;

	report_open();
	/* {"jsonrpc":"2.0","id":NNNNNNNN,"method":"run.append","params":...,"meta":{...}} */
	make_object(&c.params, BODY_BYTES - 128);
	c.peer = c.base != NULL ? rpc_peer_new(c.base, rpc_fd, NULL, NULL) : NULL;
	if (c.peer == NULL)
		die("rpc_peer_new");
	(void)call_rounds(&c, 1000, 1);
	for (long i = 0; i < rounds; i++) {
		series_add(&raw, ping_raw(raw_fd));
		series_add(&one, call_rounds(&c, PINGS, 1));
		series_add(&many, 1e6 / call_rounds(&c, CALLS, WINDOW));
	}
	rpc_peer_stats(c.peer, &stats);
	report_row(&(struct report) { .what = "JSON-RPC call, one at a time / raw ping-pong",
	    .unit = "us",
	    .floor = &raw,
	    .value = &one,
	    .limit = 2.5 });
	report_row(&(struct report) { .what = "JSON-RPC calls, 64 in flight",
	    .unit = "per second",
	    .value = &many,
	    .limit = 60000,
	    .at_least = 1 });
	report_note("bodies: %.0f bytes out, %.0f in",
	    (double)stats.bytes_out / (double)stats.frames_out - FRAME_HEAD_BYTES,
	    (double)stats.bytes_in / (double)stats.frames_in - FRAME_HEAD_BYTES);
	return 0;
}
