#include "lib/http/body.h"

#include <string.h>

#include "lib/base/base.h"
#include "lib/base/enc.h"
#include "lib/http/head.h"

#define SIZE_DIGITS_MAX 8     /* of a chunk: below 4 GiB */
#define OVERHEAD_MAX    16384 /* extensions and trailers of one body, bytes */

enum body_state {
	BODY_S_LENGTH,    /* `left` bytes, then the end        */
	BODY_S_SIZE,      /* digits of a chunk size            */
	BODY_S_EXTENSION, /* behind ';', up to CR              */
	BODY_S_SIZE_LF,   /* LF behind a chunk size            */
	BODY_S_DATA,      /* `left` bytes of a chunk           */
	BODY_S_DATA_CR,   /* CRLF behind them                  */
	BODY_S_DATA_LF,
	BODY_S_TRAILER, /* a trailer line up to CR           */
	BODY_S_TRAILER_LF,
	BODY_S_DONE,
};

void
body_init(struct body *b, int64_t length)
{
	b->left = length < 0 ? 0 : length;
	b->total = 0;
	b->overhead = 0;
	b->line_len = 0;
	b->digits = 0;
	b->state = length < 0 ? BODY_S_SIZE : length == 0 ? BODY_S_DONE : BODY_S_LENGTH;
}

static int
is_text(uint8_t c)
{
	return (c >= ' ' && c != 0x7f) || c == '\t';
}

static int
body_size_byte(struct body *b, uint8_t c)
{
	int d = hex_value((char)c);

	if (d >= 0) {
		if (b->digits == SIZE_DIGITS_MAX)
			return BODY_BAD;
		b->digits++;
		b->left = b->left * 16 + d;
		return BODY_MORE;
	}
	if (b->digits == 0 || (c != ';' && c != '\r'))
		return BODY_BAD;
	b->state = c == ';' ? BODY_S_EXTENSION : BODY_S_SIZE_LF;
	return BODY_MORE;
}

/* An extension is skipped, but never a byte in it that could end a line for somebody else. */
static int
body_extension_byte(struct body *b, uint8_t c)
{
	if (c == '\r') {
		b->state = BODY_S_SIZE_LF;
		return BODY_MORE;
	}
	if (!is_text(c) || ++b->overhead > OVERHEAD_MAX)
		return BODY_BAD;
	return BODY_MORE;
}

static int
body_trailer_byte(struct body *b, uint8_t c)
{
	size_t name, value, value_len;

	if (c != '\r') {
		if (!is_text(c) || b->line_len == sizeof(b->line) ||
		    ++b->overhead > OVERHEAD_MAX)
			return BODY_BAD;
		b->line[b->line_len++] = c;
		return BODY_MORE;
	}
	if (b->line_len != 0 &&
	    !head_split_field(b->line, b->line_len, &name, &value, &value_len))
		return BODY_BAD;
	b->state = BODY_S_TRAILER_LF;
	return BODY_MORE;
}

/* One byte of framing. */
static int
body_byte(struct body *b, uint8_t c)
{
	switch ((enum body_state)b->state) {
	case BODY_S_SIZE: return body_size_byte(b, c);
	case BODY_S_EXTENSION: return body_extension_byte(b, c);
	case BODY_S_TRAILER: return body_trailer_byte(b, c);
	case BODY_S_SIZE_LF: b->state = b->left > 0 ? BODY_S_DATA : BODY_S_TRAILER; break;
	case BODY_S_DATA_CR: b->state = BODY_S_DATA_LF; return c == '\r' ? BODY_MORE : BODY_BAD;
	case BODY_S_DATA_LF:
		b->state = BODY_S_SIZE;
		b->digits = 0;
		break;
	case BODY_S_TRAILER_LF:
		b->state = b->line_len == 0 ? BODY_S_DONE : BODY_S_TRAILER;
		b->line_len = 0;
		break;
	case BODY_S_LENGTH:
	case BODY_S_DATA:
	case BODY_S_DONE: base_bug(__FILE__, __LINE__, "no byte of framing");
	}
	return c == '\n' ? BODY_MORE : BODY_BAD;
}

int
body_feed(struct body *b, const uint8_t *p, size_t n, size_t *ret_used,
    const uint8_t **ret_piece, size_t *ret_len)
{
	size_t used = 0;
	int r = BODY_MORE;

	while (r == BODY_MORE && b->state != BODY_S_DONE && used < n) {
		if (b->state != BODY_S_LENGTH && b->state != BODY_S_DATA) {
			r = body_byte(b, p[used++]);
			continue;
		}
		*ret_piece = p + used;
		*ret_len = (size_t)min_i64(b->left, (int64_t)(n - used));
		used += *ret_len;
		b->left -= (int64_t)*ret_len;
		b->total += *ret_len;
		if (b->left == 0)
			b->state = b->state == BODY_S_DATA ? BODY_S_DATA_CR : BODY_S_DONE;
		r = BODY_PIECE;
	}
	*ret_used = used;
	if (r == BODY_MORE && b->state == BODY_S_DONE)
		r = BODY_DONE;
	return r;
}
