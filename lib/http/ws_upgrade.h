/*
 * lib/http/ws_upgrade.h -- the value that proves the handshake.  Private.
 */
#ifndef LIB_HTTP_WS_UPGRADE_H
#define LIB_HTTP_WS_UPGRADE_H

#define WS_KEY_LEN     24 /* characters of 16 bytes in base64 */
#define WS_ACCEPT_SIZE 29

/* Sec-WebSocket-Accept for a key, which has WS_KEY_LEN characters. */
void ws_accept_value(const char *key, char out[WS_ACCEPT_SIZE]);

#endif
