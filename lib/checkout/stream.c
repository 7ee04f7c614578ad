/*
 * The sockets of libgit2, confined to one host and port.
 *
 * libgit2 follows a redirect to another port of the same host and then still takes its
 * credential callback's answer for the first URL.  It opens every connection, TLS or not,
 * through a stream that can be registered, so the only place that a connection can be made
 * refuses whatever is not the repository's own host and port, before a byte is sent.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <git2/sys/stream.h>

#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/checkout/co.h"

struct socket_stream {
	git_stream base; /* First: libgit2 has a pointer to it. */
	int fd;
	char host[256];
	char port[8];
};

/* libgit2's constructor of streams has no argument of ours.  One process fetches from one
 * repository, so this is that repository's. */
static struct co_origin confined;

static int
fail(const char *what, const char *why)
{
	CLEANUP_FREE char *text = mem_format("%s: %s", what, why);

	(void)git_error_set_str(GIT_ERROR_NET, text != NULL ? text : what);
	return -1;
}

static int
stream_connect(git_stream *base)
{
	struct socket_stream *s = (struct socket_stream *)base;
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC };
	struct addrinfo *list = NULL;
	int r = getaddrinfo(s->host, s->port, &hints, &list), on = 1, saved = 0;

	if (r != 0)
		return fail("host cannot be resolved", gai_strerror(r));
	for (struct addrinfo *a = list; a != NULL && s->fd < 0; a = a->ai_next) {
		s->fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
		if (s->fd >= 0 && connect(s->fd, a->ai_addr, a->ai_addrlen) < 0) {
			saved = errno;
			io_close(&s->fd);
		}
	}
	freeaddrinfo(list);
	if (s->fd < 0)
		return fail("connection failed", strerror(saved));
	(void)setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(s->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	return 0;
}

static ssize_t
stream_read(git_stream *base, void *p, size_t n)
{
	struct socket_stream *s = (struct socket_stream *)base;
	ssize_t got;

	do
		got = recv(s->fd, p, n, 0);
	while (got < 0 && errno == EINTR);
	return got < 0 ? fail("receiving", strerror(errno)) : got;
}

static ssize_t
stream_write(git_stream *base, const char *p, size_t n, int flags)
{
	struct socket_stream *s = (struct socket_stream *)base;
	ssize_t done;

	do
		done = send(s->fd, p, n, flags | MSG_NOSIGNAL);
	while (done < 0 && errno == EINTR);
	return done < 0 ? fail("sending", strerror(errno)) : done;
}

static int
stream_close(git_stream *base)
{
	io_close(&((struct socket_stream *)base)->fd);
	return 0;
}

static void
stream_free(git_stream *base)
{
	struct socket_stream *s = (struct socket_stream *)base;

	io_close(&s->fd);
	mem_free(s);
}

static int
stream_new(git_stream **out, const char *host, const char *port)
{
	struct socket_stream *s;
	size_t n = strlen(host);

	if (n > 1 && host[0] == '[' && host[n - 1] == ']') {
		host++;
		n -= 2;
	}
	if (strlen(confined.host) != n || strncasecmp(confined.host, host, n) != 0 ||
	    strcmp(confined.port, port) != 0)
		return fail("the repository redirects to another server", host);
	s = mem_calloc(1, sizeof(*s));
	if (s == NULL) {
		git_error_set_oom();
		return -1;
	}
	s->base.version = GIT_STREAM_VERSION;
	s->base.connect = stream_connect;
	s->base.read = stream_read;
	s->base.write = stream_write;
	s->base.close = stream_close;
	s->base.free = stream_free;
	s->fd = -1;
	memcpy(s->host, confined.host, sizeof(s->host));
	memcpy(s->port, confined.port, sizeof(s->port));
	*out = &s->base;
	return 0;
}

int
co_stream_confine(const struct co_origin *origin)
{
	git_stream_registration reg = { .version = GIT_STREAM_VERSION, .init = stream_new };

	confined = *origin;
	return git_stream_register(GIT_STREAM_STANDARD, &reg) < 0 ? E_SYS : 0;
}
