/*
 * lib/http/client.h -- who the client is: its peer address, or what trusted proxies say of
 * it (spec http-api 2.1).  Private.
 */
#ifndef LIB_HTTP_CLIENT_H
#define LIB_HTTP_CLIENT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "lib/http/head.h"

#define CLIENT_TEXT_SIZE 46 /* of INET6_ADDRSTRLEN */

struct client_addr {
	uint8_t is_unix;
	uint8_t ip[16]; /* IPv4 as ::ffff:a.b.c.d */
};

struct client_net {
	uint8_t ip[16];
	uint8_t bits; /* Of the 128. */
};

struct client_proxies {
	struct client_net *nets; /* Owned. */
	size_t n;
};

void client_addr_set(struct client_addr *a, const struct sockaddr_storage *ss);
int client_addr_is_local(const struct client_addr *a);
void client_addr_format(const struct client_addr *a, char out[CLIENT_TEXT_SIZE]);

/* 0, E_INVAL, E_NOMEM. */
int client_proxies_add(struct client_proxies *p, const char *cidr);
void client_proxies_done(struct client_proxies *p);

/* The rightmost entry of X-Forwarded-For that is not trusted, when ${peer} is; else ${peer}.
 * Entries are read from the right up to the first that is no address. */
void client_resolve(const struct client_proxies *p, const struct client_addr *peer,
    const struct head *h, struct client_addr *ret);

#endif
