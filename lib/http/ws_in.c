#include "lib/http/ws_in.h"

#include <string.h>

#include <wslay/wslay.h>

#include "lib/base/err.h"
#include "lib/base/utf8.h"
#include "lib/http/ws.h"

/*
 * wslay reads the frames: lengths in their shortest form and within 63 bits, control frames
 * whole and short, masks taken off.  It tells of a frame no sooner than with the first byte of
 * the payload, and leaves to us whether the bytes are masked, the reserved bits, the opcodes,
 * their order and every limit.  A client that announces a terabyte should not have to send some
 * of it to be refused; so the header is handed over byte by byte and looked at as it goes by.
 */
#define HEAD_MASK 4 /* bytes of the masking key */

/* Size of the header that has begun in `head`. */
static size_t
head_size(const struct ws_in *in)
{
	if (in->nhead < 2)
		return 2;
	switch (in->head[1] & 0x7f) {
	case 126: return 2 + 2 + HEAD_MASK;
	case 127: return 2 + 8 + HEAD_MASK;
	default: return 2 + HEAD_MASK;
	}
}

static uint64_t
head_length(const struct ws_in *in)
{
	uint64_t length = 0;
	size_t i;

	if ((in->head[1] & 0x7f) < 126)
		return in->head[1] & 0x7f;
	for (i = 2; i < head_size(in) - HEAD_MASK; i++)
		length = length << 8 | in->head[i];
	return length;
}

static enum ws_opcode
head_opcode(const struct ws_in *in)
{
	return in->head[0] & 0x0f;
}

/* The first two bytes are there. */
static void
head_judge_kind(struct ws_in *in)
{
	int ok = (in->head[0] & 0x70) == 0 && (in->head[1] & 0x80) != 0;

	switch (head_opcode(in)) {
	case WS_OP_MORE: ok &= in->kind != WS_OP_MORE; break;
	case WS_OP_TEXT:
	case WS_OP_BINARY: ok &= in->kind == WS_OP_MORE; break;
	case WS_OP_CLOSE:
	case WS_OP_PING:
	case WS_OP_PONG: break;
	default: ok = 0; break;
	}
	if (!ok)
		in->verdict = WS_CLOSE_PROTOCOL;
}

/* The whole header is there, and wslay had nothing to say about its length. */
static void
head_begin_payload(struct ws_in *in)
{
	enum ws_opcode op = head_opcode(in);

	in->left = head_length(in);
	in->got = 0;
	if (op == WS_OP_TEXT || op == WS_OP_BINARY) {
		in->kind = (uint8_t)op;
		in->size = 0;
		buf_reset(&in->text);
	}
	if (wslay_is_ctrl_frame(op))
		return;
	if (in->left > WS_MESSAGE_MAX - in->size)
		in->verdict = WS_CLOSE_TOO_BIG;
	else
		in->size += in->left;
}

/* What wslay reads from: never beyond the end of the present frame. */
static ssize_t
in_on_read(uint8_t *buf, size_t len, int flags, void *arg)
{
	struct ws_in *in = arg;
	size_t take = min_size(len, in->n);

	(void)flags;
	if (in->nhead < head_size(in)) {
		take = min_size(take, 1);
		if (take > 0)
			in->head[in->nhead++] = *in->p;
		if (take > 0 && in->nhead == 2)
			head_judge_kind(in);
		else if (take > 0 && in->nhead == head_size(in))
			head_begin_payload(in);
	} else {
		/* Announced lengths were within the limits, or there would be a verdict. */
		take = min_size(take, (size_t)in->left);
		in->left -= take;
		must(take > 0 || in->n == 0);
	}
	if (take == 0 || in->verdict != 0)
		return -1;
	memcpy(buf, in->p, take);
	in->p += take;
	in->n -= take;
	return (ssize_t)take;
}

/* ---- messages -------------------------------------------------------------------------- */

static enum ws_in_result
in_fail(struct ws_in *in, int code, struct ws_message *ret)
{
	in->verdict = code;
	*ret = (struct ws_message) { .code = code };
	return WS_IN_BAD;
}

static enum ws_in_result
in_close(struct ws_in *in, struct ws_message *ret)
{
	const char *reason = (const char *)in->control + 2;

	if (ret->len == 0) {
		ret->code = WS_CLOSE_NONE;
		return WS_IN_CLOSE;
	}
	ret->code = in->control[0] << 8 | in->control[1];
	if (ret->len < 2 || !ws_close_code_valid(ret->code))
		return in_fail(in, WS_CLOSE_PROTOCOL, ret);
	if (!utf8_valid(reason, ret->len - 2))
		return in_fail(in, WS_CLOSE_NOT_UTF8, ret);
	return WS_IN_CLOSE;
}

static enum ws_in_result
in_frame_end(struct ws_in *in, struct ws_message *ret)
{
	int fin = (in->head[0] & 0x80) != 0;
	enum ws_opcode op = head_opcode(in), kind = in->kind;

	in->nhead = 0;
	in->nframes++;
	*ret = (struct ws_message) { .data = in->control, .len = (size_t)in->got };
	switch (op) {
	case WS_OP_CLOSE: return in_close(in, ret);
	case WS_OP_PING: return WS_IN_PING;
	case WS_OP_PONG: return WS_IN_PONG;
	default: break;
	}
	if (!fin)
		return WS_IN_MORE;
	in->kind = WS_OP_MORE;
	if (kind == WS_OP_BINARY)
		return WS_IN_MORE;
	*ret = (struct ws_message) { .data = in->text.data, .len = in->text.len };
	if (!utf8_valid((const char *)in->text.data, in->text.len))
		return in_fail(in, WS_CLOSE_NOT_UTF8, ret);
	return WS_IN_TEXT;
}

/* Some payload, or the end of a frame that has none. */
static enum ws_in_result
in_payload(struct ws_in *in, const struct wslay_frame_iocb *io, struct ws_message *ret)
{
	if (io->data_length > 0 && wslay_is_ctrl_frame(io->opcode)) {
		must(in->got + io->data_length <= sizeof(in->control));
		memcpy(in->control + in->got, io->data, io->data_length);
	} else if (in->kind == WS_OP_TEXT && !wslay_is_ctrl_frame(io->opcode)) {
		if (buf_add(&in->text, io->data, io->data_length) < 0)
			return in_fail(in, WS_CLOSE_INTERNAL, ret);
	}
	in->got += io->data_length;
	return in->got == io->payload_length ? in_frame_end(in, ret) : WS_IN_MORE;
}

enum ws_in_result
ws_in_feed(
    struct ws_in *in, const uint8_t *p, size_t n, size_t *ret_used, struct ws_message *ret)
{
	enum ws_in_result result = WS_IN_MORE;
	struct wslay_frame_iocb io;

	in->p = p;
	in->n = n;
	while (result == WS_IN_MORE) {
		ssize_t r = in->verdict == 0 ? wslay_frame_recv(in->frames, &io) : -1;

		if (in->verdict != 0)
			result = in_fail(in, in->verdict, ret);
		else if (r >= 0)
			result = in_payload(in, &io, ret);
		else if (r != WSLAY_ERR_WANT_READ)
			result = in_fail(in, WS_CLOSE_PROTOCOL, ret);
		else if (in->n == 0)
			break;
	}
	*ret_used = n - in->n;
	return result;
}

/* ---- life ------------------------------------------------------------------------------ */

int
ws_in_init(struct ws_in *in)
{
	static const struct wslay_frame_callbacks callbacks = { .recv_callback = in_on_read };

	memset(in, 0, sizeof(*in));
	buf_init(&in->text);
	if (wslay_frame_context_init(&in->frames, &callbacks, in) < 0)
		return E_NOMEM;
	return 0;
}

void
ws_in_done(struct ws_in *in)
{
	wslay_frame_context_free(in->frames);
	in->frames = NULL;
	buf_done(&in->text);
}
