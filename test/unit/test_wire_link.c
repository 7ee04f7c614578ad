/*
 * test/unit/test_wire_link.c -- links and listeners over real sockets: hello, who is let in,
 * reconnecting, stale names.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/event.h>

#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/wire/hello.h"
#include "lib/wire/wire.h"

struct fix {
	char dir[300];
	int dirfd;
	struct event_base *base;
	struct listener *listener;
	struct link *link;
	struct rpc_peer *accepted; /* The newest. */
	int nup, ndown, naccepted, nrequests;
	int down_err, verdict, pid_verdict;
	struct hello seen;
	char seen_address[RPC_ADDRESS_SIZE];
	int free_on_down;
	int ncut_off;
};

static void
accepted_on_close(void *arg, struct rpc_peer *p, int err)
{
	struct fix *f = arg;

	(void)err;
	if (f->accepted == p)
		f->accepted = NULL;
	(void)rpc_peer_free(p);
}

static void
any_on_request(void *arg, struct rpc_peer *p, struct rpc_request *req)
{
	struct fix *f = arg;

	(void)p;
	f->nrequests++;
	rpc_reply(req, "{}", 2);
}

static void
listener_on_peer(void *arg, struct rpc_peer *p)
{
	static const struct rpc_peer_ops ops = { .on_request = any_on_request,
		.on_close = accepted_on_close };
	struct fix *f = arg;

	f->naccepted++;
	f->accepted = p;
	rpc_peer_set_ops(p, &ops, f);
}

static int
listener_on_check(void *arg, struct rpc_peer *p, const struct hello *h)
{
	struct fix *f = arg;

	(void)p;
	f->seen = *h;
	(void)snprintf(f->seen_address, sizeof(f->seen_address), "%s", h->address);
	return f->verdict;
}

static void
link_on_up(void *arg, struct link *l, struct rpc_peer *p)
{
	struct fix *f = arg;

	assert_ptr_equal(link_peer(l), p);
	f->nup++;
}

static void
link_on_down(void *arg, struct link *l, int err)
{
	struct fix *f = arg;

	assert_null(link_peer(l));
	f->ndown++;
	f->down_err = err;
	if (f->free_on_down)
		f->link = link_free(l);
}

static int
link_on_check(void *arg, const char *address, pid_t pid)
{
	struct fix *f = arg;

	assert_string_equal(address, "project/7");
	assert_int_equal(pid, getpid());
	return f->pid_verdict;
}

static const struct listener_ops listener_ops = { listener_on_check, listener_on_peer };
static const struct link_ops link_ops = { link_on_up, link_on_down, any_on_request,
	link_on_check };

static int
bind_it(struct fix *f)
{
	struct listener_desc d = { .dirfd = f->dirfd, .address = "project/7" };

	return listener_new(f->base, &d, &listener_ops, f, &f->listener);
}

static void
link_it(struct fix *f)
{
	struct link_desc d = {
		.dirfd = f->dirfd, .to = "project/7", .role = ROLE_INGRESS, .address = "ingress"
	};

	f->link = link_new(f->base, &d, &link_ops, f);
	assert_non_null(f->link);
}

static int
setup(void **state)
{
	struct fix *f = calloc(1, sizeof(*f));
	char *at;

	assert_non_null(f);
	f->base = event_base_new();
	/* Far longer than sun_path. */
	(void)snprintf(f->dir, sizeof(f->dir), "/tmp/anvil-link-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	at = f->dir + strlen(f->dir);
	(void)snprintf(at, sizeof(f->dir) - strlen(f->dir), "/%0120d/%0100d", 0, 0);
	assert_int_equal(io_mkdirs(f->dir, 0700), 0);
	f->dirfd = io_open_dir(AT_FDCWD, f->dir);
	assert_true(f->dirfd >= 0);
	*state = f;
	return 0;
}

static void
step(struct fix *f)
{
	(void)event_base_loop(f->base, EVLOOP_NONBLOCK);
}

static int
teardown(void **state)
{
	struct fix *f = *state;
	char command[400];

	f->link = link_free(f->link);
	f->listener = listener_free(f->listener);
	f->accepted = rpc_peer_free(f->accepted);
	step(f);
	step(f);
	event_base_free(f->base);
	io_close(&f->dirfd);
	f->dir[strlen("/tmp/anvil-link-XXXXXX")] = '\0';
	(void)snprintf(command, sizeof(command), "rm -rf %s", f->dir);
	assert_int_equal(system(command), 0);
	free(f);
	return 0;
}

/* One round of the loop that waits for something. */
static void
turn(struct fix *f)
{
	(void)event_base_loop(f->base, EVLOOP_ONCE);
}

static void
wait_up(struct fix *f, int n)
{
	while (f->nup < n)
		turn(f);
}

static void
a_link_says_hello_and_both_sides_know_each_other(void **state)
{
	struct fix *f = *state;

	assert_int_equal(bind_it(f), 0);
	link_it(f);
	wait_up(f, 1);
	assert_int_equal(f->seen.role, ROLE_INGRESS);
	assert_string_equal(f->seen_address, "ingress");
	assert_int_equal(f->seen.pid, getpid());
	assert_int_equal(f->seen.protocol, RPC_PROTOCOL);
	assert_int_equal(rpc_peer_role(f->accepted), ROLE_INGRESS);
	assert_string_equal(rpc_peer_address(f->accepted), "ingress");
	assert_int_equal(rpc_peer_role(link_peer(f->link)), ROLE_PROJECT);
	assert_string_equal(rpc_peer_address(link_peer(f->link)), "project/7");
	assert_int_equal(listener_nwaiting(f->listener), 0);
	assert_int_equal(link_error(f->link), 0);
	/* Either side may speak. */
	assert_int_equal(rpc_notify(f->accepted, "x", NULL, NULL), 0);
	assert_int_equal(rpc_notify(link_peer(f->link), "x", NULL, NULL), 0);
	while (f->nrequests < 2)
		turn(f);
}

static void
the_socket_is_for_us_alone_and_stale_ones_are_replaced(void **state)
{
	struct fix *f = *state;
	struct stat st;
	int fd;

	fd = openat(f->dirfd, "project-7.sock", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(bind_it(f), E_EXISTS); /* a file is nobody's stale socket */
	assert_int_equal(unlinkat(f->dirfd, "project-7.sock", 0), 0);
	assert_int_equal(bind_it(f), 0);
	assert_int_equal(fstatat(f->dirfd, "project-7.sock", &st, 0), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(st.st_mode & 07777, 0600);
	/* As after a SIGKILL: the name is there, nobody listens. */
	{
		struct listener *old = f->listener;

		assert_int_equal(bind_it(f), 0);
		(void)listener_free(old); /* does not remove what is not its own */
	}
	link_it(f);
	wait_up(f, 1);
	f->listener = listener_free(f->listener);
	assert_int_equal(fstatat(f->dirfd, "project-7.sock", &st, 0), -1);
}

static void
a_link_waits_for_who_is_not_there_yet(void **state)
{
	struct fix *f = *state;

	link_it(f);
	while (f->ndown < 1)
		turn(f);
	assert_int_equal(f->down_err, E_NOENT);
	assert_int_equal(link_error(f->link), E_NOENT);
	for (int i = 0; i < 2; i++)
		turn(f); /* retries are no news */
	assert_int_equal(f->ndown, 1);
	assert_int_equal(bind_it(f), 0);
	link_retry(f->link);
	wait_up(f, 1);
	assert_int_equal(f->ndown, 1);
}

static void
a_lost_connection_comes_back_by_itself(void **state)
{
	struct fix *f = *state;

	assert_int_equal(bind_it(f), 0);
	link_it(f);
	for (int i = 1; i <= 3; i++) {
		wait_up(f, i);
		rpc_peer_close(f->accepted, E_LINK);
		while (f->ndown < i)
			turn(f);
		assert_int_equal(f->down_err, E_LINK);
	}
	wait_up(f, 4);
	assert_int_equal(f->naccepted, 4);
}

static void
who_is_refused_hears_why_and_tries_again(void **state)
{
	struct fix *f = *state;

	assert_int_equal(bind_it(f), 0);
	f->verdict = E_PEER;
	link_it(f);
	while (f->ndown < 1)
		turn(f);
	assert_int_equal(f->down_err, E_PEER);
	assert_int_equal(f->naccepted, 0);
	f->verdict = 0;
	link_retry(f->link);
	wait_up(f, 1);
}

static void
a_link_refuses_who_is_not_meant(void **state)
{
	struct fix *f = *state;

	assert_int_equal(bind_it(f), 0);
	f->pid_verdict = E_PEER;
	link_it(f);
	while (f->ndown < 1)
		turn(f);
	assert_int_equal(f->down_err, E_PEER);
	assert_int_equal(f->nup, 0);
}

static void
a_link_may_be_freed_in_its_callback_and_in_its_hello(void **state)
{
	struct fix *f = *state;

	f->free_on_down = 1;
	link_it(f);
	while (f->ndown < 1)
		turn(f);
	assert_null(f->link);
	f->free_on_down = 0;
	assert_int_equal(bind_it(f), 0);
	link_it(f);
	turn(f); /* connected, the hello is on its way */
	f->link = link_free(f->link);
	while (listener_nwaiting(f->listener) != 0 || f->naccepted < 1)
		turn(f);
	assert_int_equal(f->nup, 0);
}

static void
on_cut_off(void *arg, const struct rpc_answer *answer)
{
	struct fix *f = arg;

	assert_int_equal(answer->err, E_LINK);
	assert_null(link_peer(f->link));
	f->ncut_off++;
}

static void
a_closed_link_is_there_for_the_callbacks_that_are_owed(void **state)
{
	struct fix *f = *state;

	assert_int_equal(bind_it(f), 0);
	link_it(f);
	wait_up(f, 1);
	assert_int_equal(rpc_send(link_peer(f->link), "x", NULL, NULL, on_cut_off, f), 0);
	link_close(f->link);
	assert_int_equal(f->ncut_off, 0);
	while (f->ncut_off < 1)
		turn(f);
	/* It does not come back, asked for or not. */
	link_retry(f->link);
	step(f);
	assert_int_equal(f->ndown, 0);
	assert_int_equal(f->nup, 1);
}

/* ---- against bytes written by hand ---- */

static int
raw_connect(struct fix *f)
{
	struct sockaddr_un to;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	assert_int_equal(hello_sockaddr(f->dirfd, "project-7.sock", &to), 0);
	assert_int_equal(
	    connect(fd, (const struct sockaddr *)(const void *)&to, sizeof(to)), 0);
	return fd;
}

static void
raw_ask(struct fix *f, const char *body, char *out, size_t size)
{
	int fd = raw_connect(f);
	size_t n = strlen(body), have = 0;
	uint8_t head[4] = { 0, 0, (uint8_t)(n >> 8), (uint8_t)n };
	ssize_t got;

	assert_int_equal(write(fd, head, 4), 4);
	assert_int_equal(write(fd, body, n), n);
	for (;;) {
		got = read(fd, out + have, size - 1 - have);
		if (got < 0 && errno == EAGAIN) {
			turn(f);
			continue;
		}
		if (got <= 0)
			break;
		have += (size_t)got;
	}
	out[have] = '\0';
	close(fd);
	if (have >= 4)
		memmove(out, out + 4, have - 3);
}

static void
what_is_no_hello_is_refused_and_hung_up_on(void **state)
{
#define HELLO(params) \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"hello\",\"params\":" params "}"
	static const struct {
		const char *body;
		int err;
	} rows[] = {
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"actor.info\"}", E_REQUEST },
		{ HELLO("{}"), E_PARAMS },
		{ HELLO("{\"role\":\"ctl\",\"address\":\"ctl\",\"pid\":1,\"protocol\":99}"),
		    E_PROTOCOL },
		{ HELLO("{\"role\":\"boss\",\"address\":\"ctl\",\"pid\":1,\"protocol\":1}"),
		    E_PARAMS },
		{ HELLO("{\"role\":\"ctl\",\"address\":\"ingress\",\"pid\":1,\"protocol\":1}"),
		    E_PARAMS },
		{ HELLO("{\"role\":\"ctl\",\"address\":\"ctl\",\"pid\":0,\"protocol\":1}"),
		    E_PARAMS },
		{ HELLO(
		      "{\"role\":\"ctl\",\"address\":\"ctl\",\"pid\":1,\"protocol\":1,\"x\":1}"),
		    E_PARAMS },
		{ HELLO("{\"role\":\"ctl\",\"address\":\"ctl\",\"pid\":1,\"protocol\":1}"),
		    E_DENIED },
	};
	struct fix *f = *state;
	char got[400], want[80];

	assert_int_equal(bind_it(f), 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		raw_ask(f, rows[i].body, got, sizeof(got));
		(void)snprintf(want, sizeof(want),
		    "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":%d,", rows[i].err);
		if (strncmp(got, want, strlen(want)) != 0)
			fail_msg("%zu: got %s, wanted %s", i, got, want);
	}
	assert_int_equal(f->naccepted, 0);
	while (listener_nwaiting(f->listener) != 0)
		turn(f);
}

static void
silent_connections_are_few(void **state)
{
	struct fix *f = *state;
	int fds[100];

	assert_int_equal(bind_it(f), 0);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
		fds[i] = raw_connect(f);
		step(f);
	}
	assert_int_equal(listener_nwaiting(f->listener), 64);
	link_it(f);
	wait_up(f, 1);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		close(fds[i]);
}

static void
a_name_that_has_gone_is_bound_again(void **state)
{
	struct fix *f = *state;

	assert_int_equal(bind_it(f), 0);
	assert_int_equal(listener_check(f->listener), 0);
	assert_int_equal(unlinkat(f->dirfd, "project-7.sock", 0), 0);
	assert_int_equal(listener_check(f->listener), 1);
	link_it(f);
	wait_up(f, 1);
}

static void
a_paused_listener_accepts_nobody(void **state)
{
	struct fix *f = *state;
	int fd;

	assert_int_equal(bind_it(f), 0);
	listener_pause(f->listener);
	fd = raw_connect(f);
	step(f);
	step(f);
	assert_int_equal(listener_nwaiting(f->listener), 0);
	close(fd);
}

static void
addresses_name_sockets_and_roles(void **state)
{
	static const struct {
		const char *address, *socket;
		uint32_t role;
	} rows[] = {
		{ "supervisor", "supervisor.sock", ROLE_SUPERVISOR },
		{ "ingress", "ingress.sock", ROLE_INGRESS },
		{ "project/63", "project-63.sock", ROLE_PROJECT },
		{ "run/run_0000000000000000000001", "run_0000000000000000000001.sock",
		    ROLE_RUN },
		{ "ctl/17", "ctl-17.sock", ROLE_CTL },
		{ "", NULL, 0 },
		{ "../x", NULL, 0 },
		{ "run/../x", NULL, ROLE_RUN },
		{ "run/", NULL, ROLE_RUN },
		{ "a b", NULL, 0 },
		{ "0123456789012345678901234567890123456789012345678901234567890123", NULL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char name[RPC_ADDRESS_SIZE + 8];
		int r = link_socket_name(rows[i].address, name);

		assert_int_equal(r, rows[i].socket != NULL ? 0 : E_INVAL);
		if (r == 0)
			assert_string_equal(name, rows[i].socket);
		assert_int_equal(link_address_role(rows[i].address), rows[i].role);
	}
}

static void
every_failed_allocation_is_only_a_delay(void **state)
{
	long n;

	for (n = 0;; n++) {
		struct fix *f;
		struct link_desc d = {
			.to = "project/7", .role = ROLE_INGRESS, .address = "ingress"
		};
		int hit;

		assert_int_equal(setup(state), 0);
		f = *state;
		d.dirfd = f->dirfd;
		mem_fault_arm(n);
		if (bind_it(f) < 0)
			assert_int_equal(bind_it(f), 0);
		while (f->link == NULL)
			f->link = link_new(f->base, &d, &link_ops, f);
		wait_up(f, 1);
		hit = mem_fault_hit();
		mem_fault_arm(-1);
		teardown(state);
		if (!hit)
			break;
	}
	assert_true(n > 10);
}

int
main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	static const struct CMUnitTest tests[] = {
		T(a_link_says_hello_and_both_sides_know_each_other),
		T(the_socket_is_for_us_alone_and_stale_ones_are_replaced),
		T(a_link_waits_for_who_is_not_there_yet),
		T(a_lost_connection_comes_back_by_itself),
		T(who_is_refused_hears_why_and_tries_again),
		T(a_link_refuses_who_is_not_meant),
		T(a_link_may_be_freed_in_its_callback_and_in_its_hello),
		T(what_is_no_hello_is_refused_and_hung_up_on),
		T(silent_connections_are_few),
		T(a_name_that_has_gone_is_bound_again),
		T(a_paused_listener_accepts_nobody),
		T(a_closed_link_is_there_for_the_callbacks_that_are_owed),
		cmocka_unit_test(addresses_name_sockets_and_roles),
		cmocka_unit_test(every_failed_allocation_is_only_a_delay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
