/*
 * lib/http/ws_sha1.h -- SHA-1, which the handshake of WebSocket asks for and nothing else may
 * use: it proves only that the peer has read RFC 6455.  Private.
 */
#ifndef LIB_HTTP_WS_SHA1_H
#define LIB_HTTP_WS_SHA1_H

#include <stddef.h>
#include <stdint.h>

#define WS_SHA1_SIZE 20

void ws_sha1(const void *p, size_t n, uint8_t out[WS_SHA1_SIZE]);

#endif
