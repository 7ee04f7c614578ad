#include "test/soak/witness.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/io.h"

#define ROOM_BYTES (4 << 20)

static pthread_t thread;
static int sock = -1;

static void *
listen_to(void *arg)
{
	struct soak *s = arg;
	char text[256], slug[64], run[ID_SIZE], word[16];
	ssize_t n;

	for (;;) {
		n = recv(sock, text, sizeof(text) - 1, 0);
		if (n <= 0)
			continue;
		text[n] = '\0';
		if (strcmp(text, "over") == 0)
			return NULL;
		if (sscanf(text, "%63s %26s %15s", slug, run, word) == 3)
			book_beacon(&s->book, slug, run, word);
	}
}

static struct sockaddr_in
address(const struct soak *s)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)s->beacons) };

	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return sin;
}

void
witness_begin(struct soak *s)
{
	struct sockaddr_in sin = address(s);
	int room = ROOM_BYTES;

	sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	must(sock >= 0);
	(void)setsockopt(sock, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	must(bind(sock, (struct sockaddr *)(void *)&sin, sizeof(sin)) == 0);
	must(pthread_create(&thread, NULL, listen_to, s) == 0);
}

void
witness_end(struct soak *s)
{
	struct sockaddr_in sin = address(s);

	(void)sendto(sock, "over", 4, 0, (struct sockaddr *)(void *)&sin, sizeof(sin));
	must(pthread_join(thread, NULL) == 0);
	io_close(&sock);
}
