/*
 * cmd/anvild/listen.h -- the listening sockets, opened here so that they outlive ingress.
 */
#ifndef CMD_ANVILD_LISTEN_H
#define CMD_ANVILD_LISTEN_H

#include <stddef.h>

#define LISTEN_MAX      16
#define LISTEN_WHY_SIZE 512

struct listeners {
	int fds[LISTEN_MAX];
	size_t n;
	int from_systemd; /* taken over from LISTEN_FDS */
};

#define LISTENERS_NONE       \
	{                    \
		{ -1 }, 0, 0 \
	}

/* Takes what systemd hands over (LISTEN_FDS and LISTEN_PID, both removed from the
 * environment); 1 when there was something. */
int listeners_from_systemd(struct listeners *l);

/* Opens one address: "127.0.0.1:8470", "[::1]:8470" or "unix:/path".
 * 0, or E_INVAL, E_EXISTS (in use), E_DENIED, E_SYS with a sentence in ${why}. */
int listeners_add(struct listeners *l, const char *address, char why[LISTEN_WHY_SIZE]);

void listeners_close(struct listeners *l);

#endif
