#include "test/soak/http.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "test/support/member.h"

#define SILENCE_MS 10000

int
http_connect(int port, int ms)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	struct timeval limit = { ms / 1000, ms % 1000 * 1000 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0 &&
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) == 0 &&
	    connect(fd, (struct sockaddr *)(void *)&sin, sizeof(sin)) == 0)
		return fd;
	io_close(&fd);
	return -1;
}

int
http_unchunk(struct buf *in, struct buf *out)
{
	const char *text, *end;
	char *behind;
	size_t head, n;

	for (;;) {
		text = buf_cstr(in);
		end = text == NULL || in->len == 0 ? NULL : strstr(text, "\r\n");
		if (end == NULL)
			return 0;
		n = strtoul(text, &behind, 16);
		if (behind == text)
			return -1;
		head = (size_t)(end - text) + 2;
		if (in->len < head + n + 2)
			return 0;
		buf_add(out, in->data + head, n);
		buf_consume(in, head + n + 2);
		if (n == 0)
			return 1;
	}
}

/* To the end of the connection, however it ends: whether all is there, the answer tells. */
static void
read_all(int fd, struct buf *in)
{
	ssize_t n;

	do {
		if (buf_reserve(in, 65536) < 0)
			return;
		n = read(fd, in->data + in->len, in->cap - in->len);
		in->len += n > 0 ? (size_t)n : 0;
	} while (n > 0);
}

/* Head and body apart; -1: it is not whole. */
static int
take_answer(struct http *h, struct buf *in)
{
	const char *text = buf_cstr(in), *end, *length;
	size_t head;

	end = text == NULL || in->len < 12 ? NULL : strstr(text, "\r\n\r\n");
	if (end == NULL)
		return -1;
	head = (size_t)(end - text) + 4;
	length = strcasestr(text, "\r\ncontent-length:");
	h->status = atoi(text + 9);
	if (length != NULL && length < end) {
		size_t n = strtoul(length + 17, NULL, 10);

		if (in->len < head + n)
			return -1;
		buf_add(&h->body, in->data + head, n);
	} else if ((length = strcasestr(text, "\r\ntransfer-encoding: chunked")) != NULL &&
	    length < end) {
		buf_consume(in, head);
		if (http_unchunk(in, &h->body) != 1)
			return -1;
	}
	return buf_cstr(&h->body) != NULL ? 0 : -1;
}

int
http_call(struct http *h, const char *method, const char *path, const char *headers,
    const void *body, size_t n)
{
	CLEANUP(io_closep) int fd = http_connect(h->port, SILENCE_MS);
	struct buf out = BUF_INIT, in = BUF_INIT;

	h->status = 0;
	buf_reset(&h->body);
	buf_printf(&out, "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n",
	    method, path, h->port);
	if (h->session != NULL)
		buf_printf(&out, "Authorization: Bearer %s\r\n", h->session);
	buf_add_str(&out, headers != NULL ? headers : "");
	if (body != NULL)
		buf_printf(&out, "Content-Length: %zu\r\n", n);
	buf_add_str(&out, "\r\n");
	if (body != NULL)
		buf_add(&out, body, n);
	if (fd >= 0 && io_write_all(fd, out.data, out.len) == 0)
		read_all(fd, &in);
	if (take_answer(h, &in) < 0)
		h->status = 0;
	buf_done(&out);
	buf_done(&in);
	return h->status;
}

int
http_json(struct http *h, const char *method, const char *path, const char *json)
{
	return http_call(h, method, path,
	    json != NULL ? "Content-Type: application/json\r\n" : NULL, json,
	    json != NULL ? strlen(json) : 0);
}

int
http_member(const struct http *h, const char *name, char *out, size_t size)
{
	return member_of(&h->body, name, out, size);
}

void
http_done(struct http *h)
{
	buf_done(&h->body);
}
