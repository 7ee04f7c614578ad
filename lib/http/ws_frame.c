#include "lib/http/ws_frame.h"

#include <string.h>

#include "lib/base/base.h"
#include "lib/base/utf8.h"
#include "lib/http/outq.h"
#include "lib/http/ws.h"

#define FINAL    0x80
#define LEN_16   126
#define LEN_64   127
#define CODE_LEN 2

size_t
ws_frame_head(uint8_t out[WS_HEAD_MAX], enum ws_opcode op, uint64_t n)
{
	size_t digits = n < LEN_16 ? 0 : n <= UINT16_MAX ? 2 : 8;
	size_t i;

	out[0] = (uint8_t)(FINAL | op);
	out[1] = (uint8_t)(digits == 0 ? n : digits == 2 ? LEN_16 : LEN_64);
	for (i = 0; i < digits; i++)
		out[2 + i] = (uint8_t)(n >> (8 * (digits - 1 - i)));
	return 2 + digits;
}

size_t
ws_frame_control(uint8_t out[2 + WS_CONTROL_MAX], enum ws_opcode op, const void *p, size_t n)
{
	must(n <= WS_CONTROL_MAX);
	out[0] = (uint8_t)(FINAL | op);
	out[1] = (uint8_t)n;
	if (n > 0)
		memcpy(out + 2, p, n);
	return 2 + n;
}

size_t
ws_close_payload(uint8_t out[WS_CONTROL_MAX], int code, const char *reason)
{
	size_t n = utf8_cut(reason, strlen(reason), WS_CONTROL_MAX - CODE_LEN);

	out[0] = (uint8_t)(code >> 8);
	out[1] = (uint8_t)code;
	memcpy(out + CODE_LEN, reason, n);
	return CODE_LEN + n;
}

int
ws_close_code_valid(int code)
{
	if (code >= 3000)
		return code <= 4999;
	return code >= 1000 && code <= 1014 && (code < 1004 || code > 1006);
}

struct http_blob *
ws_frame_text(const void *p, size_t n)
{
	uint8_t head[WS_HEAD_MAX], *bytes;
	size_t nhead = ws_frame_head(head, WS_OP_TEXT, n);
	struct http_blob *b;

	if (n > SIZE_MAX - sizeof(head))
		return NULL;
	b = http_blob_new_sized(nhead + n, &bytes);
	if (b == NULL)
		return NULL;
	memcpy(bytes, head, nhead);
	if (n > 0)
		memcpy(bytes + nhead, p, n);
	return b;
}
