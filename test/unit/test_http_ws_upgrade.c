/* The request for a WebSocket: what is wrong with it, and the value that answers its key. */
#include "lib/http/conn.h"
#include "lib/http/ws_sha1.h"
#include "lib/http/ws_upgrade.h"
#include "test/support/http_rig.h"

#define KEY "dGhlIHNhbXBsZSBub25jZQ=="

/* What is wrong with a request of these header lines. */
static enum ws_request
check(const char *version, const char *lines)
{
	struct http_req req = { .magic = HTTP_REQ_MAGIC };
	char text[2048];
	size_t used;
	enum ws_request r;

	snprintf(text, sizeof(text), "GET /logs HTTP/%s\r\nHost: a\r\n%s\r\n", version, lines);
	head_init(&req.head);
	assert_int_equal(
	    head_feed(&req.head, (const uint8_t *)text, strlen(text), 1000, 2000, &used),
	    HEAD_DONE);
	r = ws_request_check(&req);
	head_done(&req.head);
	return r;
}

static void
each_header_is_asked_for_in_its_order(void **state)
{
	static const struct {
		enum ws_request wanted;
		const char *lines;
	} cases[] = {
		{ WS_REQUEST_OK,
		    "Upgrade: websocket\r\nConnection: Upgrade\r\n"
		    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " KEY "\r\n" },
		{ WS_REQUEST_OK,
		    "upgrade: h2c, WebSocket\r\nconnection: keep-alive, uPGRADE\r\n"
		    "sec-websocket-version:  13 \r\nsec-websocket-key:" KEY "\r\n"
		    "Sec-WebSocket-Extensions: permessage-deflate\r\n"
		    "Sec-WebSocket-Protocol: chat\r\n" },
		{ WS_REQUEST_PLAIN, "" },
		{ WS_REQUEST_PLAIN,
		    "Connection: Upgrade\r\n"
		    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " KEY "\r\n" },
		{ WS_REQUEST_PLAIN,
		    "Upgrade: websocket\r\nConnection: keep-alive\r\n"
		    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " KEY "\r\n" },
		{ WS_REQUEST_PLAIN,
		    "Upgrade: websockets\r\nConnection: Upgrade\r\n"
		    "Sec-WebSocket-Version: 12\r\n" },
		{ WS_REQUEST_VERSION,
		    "Upgrade: websocket\r\nConnection: Upgrade\r\n"
		    "Sec-WebSocket-Key: " KEY "\r\n" },
		{ WS_REQUEST_VERSION,
		    "Upgrade: websocket\r\nConnection: Upgrade\r\n"
		    "Sec-WebSocket-Version: 8\r\nSec-WebSocket-Key: " KEY "\r\n" },
		{ WS_REQUEST_VERSION,
		    "Upgrade: websocket\r\nConnection: Upgrade\r\n"
		    "Sec-WebSocket-Version: 13, 8\r\n" },
		{ WS_REQUEST_VERSION,
		    "Upgrade: websocket\r\nConnection: Upgrade\r\n"
		    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Version: 13\r\n" },
		{ WS_REQUEST_BAD,
		    "Upgrade: websocket\r\nConnection: Upgrade\r\n"
		    "Sec-WebSocket-Version: 13\r\n" },
		{ WS_REQUEST_BAD,
		    "Upgrade: websocket\r\nConnection: Upgrade\r\n"
		    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " KEY "\r\n"
		    "Sec-WebSocket-Key: " KEY "\r\n" },
		{ WS_REQUEST_BAD,
		    "Upgrade: websocket\r\nConnection: Upgrade\r\nContent-Length: 4\r\n"
		    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " KEY "\r\n" },
		{ WS_REQUEST_BAD,
		    "Upgrade: websocket\r\nConnection: Upgrade\r\nTransfer-Encoding: chunked\r\n"
		    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " KEY "\r\n" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(check("1.1", cases[i].lines), cases[i].wanted);
	/* HTTP/1.0 knows no upgrade. */
	assert_int_equal(check("1.0", cases[0].lines), WS_REQUEST_PLAIN);
}

static void
a_key_is_16_bytes_in_base64(void **state)
{
	static const char *const good[] = { KEY,
		"AAAAAAAAAAAAAAAAAAAAAA==", "+/+/+/+/+/+/+/+/+/+/+w==",
		"AAAAAAAAAAAAAAAAAAAAAQ==", "AAAAAAAAAAAAAAAAAAAAAg==" };
	static const char *const bad[] = { "", "abc",
		"AAAAAAAAAAAAAAAAAAAAAA=", "AAAAAAAAAAAAAAAAAAAAAA",
		"AAAAAAAAAAAAAAAAAAAAAAA=", "AAAAAAAAAAAAAAAAAAAAAAAA",
		"AAAAAAAAAAAAAAAAAAAAAAAAAA==", "AAAAAAAAAAAAAAAAAAAAAB==",
		"AAAAAAAAAA AAAAAAAAAAA==", "AAAAAAAAAA-AAAAAAAAAAA==",
		"AAAAAAAAAA_AAAAAAAAAAA==", "AAAAAAAAAA=AAAAAAAAAAA==",
		"AAAAAAAAAAAAAAAAAAAAAA==, AAAAAAAAAAAAAAAAAAAAAA==" };
	char lines[512];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good) + ARRAY_LEN(bad); i++) {
		int is_good = i < ARRAY_LEN(good);

		snprintf(lines, sizeof(lines),
		    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
		    "Sec-WebSocket-Key: %s\r\n",
		    is_good ? good[i] : bad[i - ARRAY_LEN(good)]);
		assert_int_equal(check("1.1", lines), is_good ? WS_REQUEST_OK : WS_REQUEST_BAD);
	}
}

static void
the_key_of_the_rfc_gets_the_value_of_the_rfc(void **state)
{
	char value[WS_ACCEPT_SIZE];

	(void)state;
	ws_accept_value(KEY, value);
	assert_string_equal(value, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

static void
sha_1_is_right_around_its_blocks(void **state)
{
	static const struct {
		size_t n;
		const char *hex;
	} cases[] = {
		{ 0, "da39a3ee5e6b4b0d3255bfef95601890afd80709" },
		{ 1, "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8" },
		{ 54, "b05d71c64979cb95fa74a33cdb31a40d258ae02e" },
		{ 55, "c1c8bbdc22796e28c0e15163d20899b65621d65a" },
		{ 56, "c2db330f6083854c99d4b5bfb6e8f29f201be699" },
		{ 63, "03f09f5b158a7a8cdad920bddc29b81c18a551f5" },
		{ 64, "0098ba824b5c16427bd7a1122a5a442a25ec644d" },
		{ 65, "11655326c708d70319be2610e8a57d9a5b959d3b" },
		{ 119, "ee971065aaa017e0632a8ca6c77bb3bf8b1dfc56" },
		{ 120, "f34c1488385346a55709ba056ddd08280dd4c6d6" },
		{ 128, "ad5b3fdbcb526778c2839d2f151ea753995e26a0" },
		{ 1000, "291e9a6c66994949b57ba5e650361e98fc36b1ba" },
	};
	uint8_t hash[WS_SHA1_SIZE];
	char text[1000], hex[2 * WS_SHA1_SIZE + 1];

	(void)state;
	memset(text, 'a', sizeof(text));
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		ws_sha1(text, cases[i].n, hash);
		for (size_t k = 0; k < sizeof(hash); k++)
			snprintf(hex + 2 * k, 3, "%02x", hash[k]);
		assert_string_equal(hex, cases[i].hex);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_header_is_asked_for_in_its_order),
		cmocka_unit_test(a_key_is_16_bytes_in_base64),
		cmocka_unit_test(the_key_of_the_rfc_gets_the_value_of_the_rfc),
		cmocka_unit_test(sha_1_is_right_around_its_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
