/* cmd/anvild/listen.c: listening sockets, and a sentence when one cannot be had. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/anvild/listen.h"
#include "lib/base/base.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "test/support/scratch.h"
#include "test/support/unit.h"

static int
port_of(int fd)
{
	struct sockaddr_storage at;
	socklen_t len = sizeof(at);

	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	return at.ss_family == AF_INET6 ? ntohs(((struct sockaddr_in6 *)&at)->sin6_port)
					: ntohs(((struct sockaddr_in *)&at)->sin_port);
}

static void
an_ipv4_address_is_opened_and_answers(void **state)
{
	struct listeners l = LISTENERS_NONE;
	struct sockaddr_in at = { .sin_family = AF_INET };
	char why[LISTEN_WHY_SIZE];
	int fd;

	(void)state;
	assert_int_equal(listeners_add(&l, "127.0.0.1:0", why), 0);
	assert_int_equal(l.n, 1);
	assert_true((fcntl(l.fds[0], F_GETFD) & FD_CLOEXEC) != 0);
	assert_true((fcntl(l.fds[0], F_GETFL) & O_NONBLOCK) != 0);
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	at.sin_port = htons((uint16_t)port_of(l.fds[0]));
	fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	io_close(&fd);
	listeners_close(&l);
	assert_int_equal(l.n, 0);
}

static void
an_ipv6_address_stands_in_brackets(void **state)
{
	struct listeners l = LISTENERS_NONE;
	char why[LISTEN_WHY_SIZE];
	int r = listeners_add(&l, "[::1]:0", why);

	(void)state;
	if (r == E_SYS)
		skip(); /* a host without IPv6 */
	assert_int_equal(r, 0);
	listeners_close(&l);
}

static void
an_address_in_use_is_named_with_what_to_do(void **state)
{
	struct listeners l = LISTENERS_NONE;
	char why[LISTEN_WHY_SIZE], address[32], want[96];

	(void)state;
	assert_int_equal(listeners_add(&l, "127.0.0.1:0", why), 0);
	(void)snprintf(address, sizeof(address), "127.0.0.1:%d", port_of(l.fds[0]));
	assert_int_equal(listeners_add(&l, address, why), E_EXISTS);
	(void)snprintf(
	    want, sizeof(want), "cannot listen on %s: the address is in use", address);
	assert_non_null(strstr(why, want));
	assert_int_equal(l.n, 1); /* what is open stays open */
	listeners_close(&l);
}

static void
what_is_no_address_is_refused(void **state)
{
	static const char *const bad[] = { "", "127.0.0.1", ":80", "localhost:80",
		"127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:80x", "[::1]",
		"[::1:80", "::1:80", "unix:", "unix:relative", "300.0.0.1:80" };
	struct listeners l = LISTENERS_NONE;
	char why[LISTEN_WHY_SIZE], path[300] = "unix:/";

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (listeners_add(&l, bad[i], why) != E_INVAL)
			fail_msg("\"%s\" is taken for an address", bad[i]);
	memset(path + 6, 'x', sizeof(path) - 7);
	assert_int_equal(listeners_add(&l, path, why), E_INVAL);
	assert_int_equal(l.n, 0);
}

static void
more_than_sixteen_are_too_many(void **state)
{
	struct listeners l = LISTENERS_NONE;
	char why[LISTEN_WHY_SIZE];

	(void)state;
	for (int i = 0; i < LISTEN_MAX; i++)
		assert_int_equal(listeners_add(&l, "127.0.0.1:0", why), 0);
	assert_int_equal(listeners_add(&l, "127.0.0.1:0", why), E_INVAL);
	listeners_close(&l);
}

static void
a_stale_unix_socket_is_replaced_and_a_live_one_is_not(void **state)
{
	char *dir = scratch_new();
	CLEANUP_FREE char *address = mem_format("unix:%s/s", dir);
	struct listeners a = LISTENERS_NONE, b = LISTENERS_NONE;
	char why[LISTEN_WHY_SIZE];

	(void)state;
	assert_int_equal(listeners_add(&a, address, why), 0);
	assert_int_equal(listeners_add(&b, address, why), E_EXISTS);
	listeners_close(&a);
	assert_int_equal(listeners_add(&b, address, why), 0);
	listeners_close(&b);
	scratch_free(dir);
}

static void
a_file_in_the_way_of_a_unix_socket_is_left_alone(void **state)
{
	char *dir = scratch_new();
	CLEANUP_FREE char *address = mem_format("unix:%s/s", dir);
	struct listeners l = LISTENERS_NONE;
	char why[LISTEN_WHY_SIZE];
	struct stat st;

	(void)state;
	assert_int_equal(io_write_file(AT_FDCWD, address + 5, "mine", 4, 0600), 0);
	assert_int_equal(listeners_add(&l, address, why), E_EXISTS);
	assert_int_equal(stat(address + 5, &st), 0);
	assert_int_equal(st.st_size, 4);
	scratch_free(dir);
}

static void
a_port_that_only_root_may_have_says_so(void **state)
{
	struct listeners l = LISTENERS_NONE;
	char why[LISTEN_WHY_SIZE];
	int r;

	(void)state;
	if (geteuid() == 0)
		skip();
	r = listeners_add(&l, "127.0.0.1:1", why);
	if (r == 0) /* a host that lets everybody */
		listeners_close(&l);
	else
		assert_non_null(strstr(why, "ports below 1024 need root"));
}

/* In a child: descriptors 3 and 4 as systemd gives them. */
static void
take_over(const char *fds, int for_us, size_t want)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		struct listeners l = LISTENERS_NONE;
		char text[16];
		int ok;

		(void)dup2(socket(AF_UNIX, SOCK_STREAM, 0), 3);
		(void)dup2(socket(AF_UNIX, SOCK_STREAM, 0), 4);
		(void)snprintf(text, sizeof(text), "%d", for_us ? (int)getpid() : 1);
		(void)setenv("LISTEN_PID", text, 1);
		(void)setenv("LISTEN_FDS", fds, 1);
		ok = listeners_from_systemd(&l) == (want != 0) && l.n == want &&
		    l.from_systemd == (want != 0) && getenv("LISTEN_FDS") == NULL &&
		    getenv("LISTEN_PID") == NULL;
		for (size_t i = 0; i < want; i++)
			ok = ok && l.fds[i] == (int)i + 3 &&
			    (fcntl(l.fds[i], F_GETFD) & FD_CLOEXEC) != 0;
		_exit(ok ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void
sockets_of_systemd_are_taken_when_they_are_meant_for_us(void **state)
{
	(void)state;
	take_over("2", 1, 2);
	take_over("1", 1, 1);
	take_over("2", 0, 0);
	take_over("0", 1, 0);
	take_over("-3", 1, 0);
	take_over("many", 1, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_ipv4_address_is_opened_and_answers),
		cmocka_unit_test(an_ipv6_address_stands_in_brackets),
		cmocka_unit_test(an_address_in_use_is_named_with_what_to_do),
		cmocka_unit_test(what_is_no_address_is_refused),
		cmocka_unit_test(more_than_sixteen_are_too_many),
		cmocka_unit_test(a_stale_unix_socket_is_replaced_and_a_live_one_is_not),
		cmocka_unit_test(a_file_in_the_way_of_a_unix_socket_is_left_alone),
		cmocka_unit_test(a_port_that_only_root_may_have_says_so),
		cmocka_unit_test(sockets_of_systemd_are_taken_when_they_are_meant_for_us),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
