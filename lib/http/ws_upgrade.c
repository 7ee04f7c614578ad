#include "lib/http/ws_upgrade.h"

#include <string.h>

#include "lib/base/base.h"
#include "lib/base/enc.h"
#include "lib/http/conn.h"
#include "lib/http/ws.h"
#include "lib/http/ws_sha1.h"

#define KEY_DIGITS 22 /* the rest is padding */
#define KEY_GUID   "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

static int
is_base64_digit(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
	    c == '+' || c == '/';
}

/* The last digit holds two bits of the key, and four that have to be zero. */
static int
is_key(const char *s)
{
	size_t i;

	if (s == NULL || strlen(s) != WS_KEY_LEN || strcmp(s + KEY_DIGITS, "==") != 0)
		return 0;
	for (i = 0; i < KEY_DIGITS; i++)
		if (!is_base64_digit(s[i]))
			return 0;
	return strchr("AQgw", s[KEY_DIGITS - 1]) != NULL;
}

enum ws_request
ws_request_check(const struct http_req *req)
{
	const char *version = http_req_header_once(req, "Sec-WebSocket-Version");

	if (req->head.minor < 1 || !http_req_header_has(req, "Upgrade", "websocket") ||
	    !http_req_header_has(req, "Connection", "upgrade"))
		return WS_REQUEST_PLAIN;
	if (version == NULL || strcmp(version, "13") != 0)
		return WS_REQUEST_VERSION;
	if (!is_key(http_req_header_once(req, "Sec-WebSocket-Key")) ||
	    http_req_body_length(req) != 0)
		return WS_REQUEST_BAD;
	return WS_REQUEST_OK;
}

void
ws_accept_value(const char *key, char out[WS_ACCEPT_SIZE])
{
	char text[WS_KEY_LEN + sizeof(KEY_GUID)];
	uint8_t hash[WS_SHA1_SIZE];

	must(strlen(key) == WS_KEY_LEN);
	memcpy(text, key, WS_KEY_LEN);
	memcpy(text + WS_KEY_LEN, KEY_GUID, sizeof(KEY_GUID));
	ws_sha1(text, sizeof(text) - 1, hash);
	base64_encode(hash, sizeof(hash), out);
}
