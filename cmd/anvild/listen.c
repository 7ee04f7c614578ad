#include "cmd/anvild/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/base.h"
#include "lib/base/err.h"
#include "lib/base/io.h"

#define BACKLOG          1024
#define SYSTEMD_FIRST_FD 3

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un un;
};

int
listeners_from_systemd(struct listeners *l)
{
	const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
	long n = 0;

	if (pid != NULL && fds != NULL && strtol(pid, NULL, 10) == (long)getpid())
		n = strtol(fds, NULL, 10);
	(void)unsetenv("LISTEN_PID");
	(void)unsetenv("LISTEN_FDS");
	(void)unsetenv("LISTEN_FDNAMES");
	for (long i = 0; i < n && l->n < LISTEN_MAX; i++) {
		int fd = SYSTEMD_FIRST_FD + (int)i;

		if (io_set_cloexec(fd, 1) == 0 && io_set_nonblocking(fd) == 0)
			l->fds[l->n++] = fd;
	}
	l->from_systemd = l->n > 0;
	return l->from_systemd;
}

/* Splits "host:port" at its last colon; the host may stand in brackets. */
static int
parse_tcp(const char *text, union address *a, socklen_t *ret_len)
{
	const char *colon = strrchr(text, ':');
	char host[INET6_ADDRSTRLEN + 2], *end;
	size_t len;
	long port;

	if (colon == NULL || (len = (size_t)(colon - text)) >= sizeof(host))
		return E_INVAL;
	memcpy(host, text, len);
	host[len] = '\0';
	port = strtol(colon + 1, &end, 10);
	if (colon[1] == '\0' || *end != '\0' || port < 0 || port > 65535)
		return E_INVAL;
	if (host[0] == '[' && len > 2 && host[len - 1] == ']') {
		host[len - 1] = '\0';
		a->v6 = (struct sockaddr_in6) { .sin6_family = AF_INET6,
			.sin6_port = htons((uint16_t)port) };
		*ret_len = sizeof(a->v6);
		return inet_pton(AF_INET6, host + 1, &a->v6.sin6_addr) == 1 ? 0 : E_INVAL;
	}
	a->v4 = (struct sockaddr_in) { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)port) };
	*ret_len = sizeof(a->v4);
	return inet_pton(AF_INET, host, &a->v4.sin_addr) == 1 ? 0 : E_INVAL;
}

static int
parse_address(const char *text, union address *a, socklen_t *ret_len)
{
	if (strncmp(text, "unix:", 5) != 0)
		return parse_tcp(text, a, ret_len);
	if (text[5] != '/' || strlen(text + 5) >= sizeof(a->un.sun_path))
		return E_INVAL;
	a->un = (struct sockaddr_un) { .sun_family = AF_UNIX };
	memcpy(a->un.sun_path, text + 5, strlen(text + 5) + 1);
	*ret_len = sizeof(a->un);
	return 0;
}

/* A socket file that nobody listens on any more stands in the way; one that is served, or
 * any other kind of file, is left alone. */
static void
remove_stale(const struct sockaddr_un *un)
{
	CLEANUP(io_closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct stat st;

	if (fd < 0 || lstat(un->sun_path, &st) < 0 || !S_ISSOCK(st.st_mode))
		return;
	if (connect(fd, (const struct sockaddr *)un, sizeof(*un)) < 0 && errno == ECONNREFUSED)
		(void)unlink(un->sun_path);
}

static int
fail(const char *address, int errnum, char why[LISTEN_WHY_SIZE])
{
	switch (errnum) {
	case EADDRINUSE:
		(void)snprintf(why, LISTEN_WHY_SIZE,
		    "cannot listen on %s: the address is in use; "
		    "stop what uses it or choose another in `listen`",
		    address);
		return E_EXISTS;
	case EACCES:
	case EPERM:
		(void)snprintf(why, LISTEN_WHY_SIZE,
		    "cannot listen on %s: permission denied; "
		    "ports below 1024 need root, or a socket handed over by systemd",
		    address);
		return E_DENIED;
	default:
		(void)snprintf(
		    why, LISTEN_WHY_SIZE, "cannot listen on %s: %s", address, strerror(errnum));
		return E_SYS;
	}
}

int
listeners_add(struct listeners *l, const char *address, char why[LISTEN_WHY_SIZE])
{
	CLEANUP(io_closep) int fd = -1;
	union address a;
	socklen_t len;
	int on = 1;

	if (l->n == LISTEN_MAX || parse_address(address, &a, &len) < 0) {
		(void)snprintf(why, LISTEN_WHY_SIZE,
		    "cannot listen on %s: expected "
		    "ADDRESS:PORT, [IPV6]:PORT or unix:/path, %d at most",
		    address, LISTEN_MAX);
		return E_INVAL;
	}
	if (a.any.sa_family == AF_UNIX)
		remove_stale(&a.un);
	fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return fail(address, errno, why);
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (a.any.sa_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	if (bind(fd, &a.any, len) < 0 || listen(fd, BACKLOG) < 0)
		return fail(address, errno, why);
	l->fds[l->n++] = fd;
	fd = -1;
	return 0;
}

void
listeners_close(struct listeners *l)
{
	for (size_t i = 0; i < l->n; i++)
		io_close(&l->fds[i]);
	l->n = 0;
}
