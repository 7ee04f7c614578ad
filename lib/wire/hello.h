/*
 * lib/wire/hello.h -- the first message of a connection, as both sides read and write it.
 */
#ifndef LIB_WIRE_HELLO_H
#define LIB_WIRE_HELLO_H

#include <sys/socket.h>
#include <sys/un.h>

#include <jansson.h>

#include "lib/base/buf.h"
#include "lib/wire/link.h"

#define HELLO_METHOD "hello"

/* 0 or E_NOMEM. */
int hello_write_params(struct buf *out, enum rpc_role role, const char *address);
int hello_write_result(struct buf *out, const char *address);
/* Texts stay borrowed from the tree.  0, E_PARAMS, E_PROTOCOL. */
int hello_read_params(const json_t *params, struct hello *ret);
int hello_read_result(const json_t *result, const char **ret_address);

/* 0, or E_DENIED: neither our uid nor root at the other end. */
int hello_check_uid(const struct rpc_peer *p);

/* `/proc/self/fd/N/name`: short, whatever the directory is called.  0 or E_INVAL. */
int hello_sockaddr(int dirfd, const char *name, struct sockaddr_un *ret);

#endif
