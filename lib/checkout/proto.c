/*
 * Frames between a run and its checkout child: 4 bytes of length, one of type, then fields.
 * Numbers are big-endian; a string is its length, its bytes and a NUL that the length does
 * not count.  Runs in both processes, which are one program.
 */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/checkout/co.h"

#define LENGTH_BYTES 4
#define NO_STRING    UINT32_MAX
#define PROGRESS_MS  1000

/* ---- writing ------------------------------------------------------------------------ */

static void
put_u32(struct buf *b, uint32_t v)
{
	uint8_t p[4] = { (uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8),
		(uint8_t)v };

	(void)buf_add(b, p, sizeof(p));
}

static void
put_u64(struct buf *b, uint64_t v)
{
	put_u32(b, (uint32_t)(v >> 32));
	put_u32(b, (uint32_t)v);
}

static void
put_bytes(struct buf *b, const void *p, size_t n)
{
	put_u32(b, (uint32_t)min_size(n, CHECKOUT_FRAME_MAX + 1));
	(void)buf_add(b, p, min_size(n, CHECKOUT_FRAME_MAX + 1));
	(void)buf_add_byte(b, 0);
}

static void
put_string(struct buf *b, const char *s)
{
	if (s == NULL)
		put_u32(b, NO_STRING);
	else
		put_bytes(b, s, strlen(s));
}

static size_t
frame_begin(struct buf *b, enum co_type type)
{
	size_t at = b->len;

	put_u32(b, 0);
	(void)buf_add_byte(b, (uint8_t)type);
	return at;
}

/* Fills the length in; on failure the buffer is as it was at frame_begin(). */
static int
frame_end(struct buf *b, size_t at)
{
	size_t n = b->len - at - LENGTH_BYTES;

	if (b->failed)
		return E_NOMEM;
	if (n > CHECKOUT_FRAME_MAX) {
		b->len = at;
		return E_TOO_BIG;
	}
	for (int i = 0; i < LENGTH_BYTES; i++)
		b->data[at + (size_t)i] = (uint8_t)(n >> (24 - 8 * i));
	return 0;
}

int
checkout_put_request(struct buf *out, const struct checkout_request *req)
{
	size_t at;

	if (req->mirror == NULL || req->lock == NULL || req->workspace == NULL ||
	    req->url == NULL || req->branch == NULL || req->config == NULL)
		return E_INVAL;
	at = frame_begin(out, CO_REQUEST);
	put_string(out, req->mirror);
	put_string(out, req->lock);
	put_string(out, req->workspace);
	put_string(out, req->alternates);
	put_string(out, req->url);
	put_string(out, req->branch);
	put_string(out, req->commit);
	put_string(out, req->token);
	put_string(out, req->config);
	put_string(out, req->ca_file);
	put_u32(out,
	    (req->allow_http ? 1U : 0) | (req->allow_private_hosts ? 2U : 0) |
		(req->allow_local ? 4U : 0));
	return frame_end(out, at);
}

int
checkout_put_go_on(struct buf *out)
{
	return frame_end(out, frame_begin(out, CO_GO_ON));
}

int
checkout_put_workspace(struct buf *out, uint32_t depth)
{
	size_t at = frame_begin(out, CO_WORKSPACE);

	put_u32(out, depth);
	return frame_end(out, at);
}

/* ---- reading ------------------------------------------------------------------------ */

struct reader {
	const uint8_t *p;
	size_t left;
	int bad;
};

static uint32_t
get_u32(struct reader *rd)
{
	uint32_t v;

	if (rd->bad || rd->left < 4) {
		rd->bad = 1;
		return 0;
	}
	v = (uint32_t)rd->p[0] << 24 | (uint32_t)rd->p[1] << 16 | (uint32_t)rd->p[2] << 8 |
	    (uint32_t)rd->p[3];
	rd->p += 4;
	rd->left -= 4;
	return v;
}

static uint64_t
get_u64(struct reader *rd)
{
	uint64_t high = get_u32(rd);

	return high << 32 | get_u32(rd);
}

/* Bytes that may hold NULs; NULL when the field says so, or the frame is bad. */
static const char *
get_bytes(struct reader *rd, size_t *ret_n)
{
	uint32_t n = get_u32(rd);
	const char *s = (const char *)rd->p;

	*ret_n = 0;
	if (rd->bad || n == NO_STRING)
		return NULL;
	if (n >= rd->left || s[n] != '\0') {
		rd->bad = 1;
		return NULL;
	}
	rd->p += n + 1;
	rd->left -= n + 1;
	*ret_n = n;
	return s;
}

static const char *
get_string(struct reader *rd, int needed)
{
	size_t n;
	const char *s = get_bytes(rd, &n);

	if (s == NULL ? needed : strlen(s) != n)
		rd->bad = 1;
	return s;
}

int
checkout_get_request(const void *body, size_t len, struct checkout_request *ret)
{
	struct reader rd = { body, len, 0 };
	struct checkout_request req = { 0 };
	uint32_t flags;

	if (len == 0 || rd.p[0] != CO_REQUEST)
		return E_FRAME;
	rd.p++;
	rd.left--;
	req.mirror = get_string(&rd, 1);
	req.lock = get_string(&rd, 1);
	req.workspace = get_string(&rd, 1);
	req.alternates = get_string(&rd, 0);
	req.url = get_string(&rd, 1);
	req.branch = get_string(&rd, 1);
	req.commit = get_string(&rd, 0);
	req.token = get_string(&rd, 0);
	req.config = get_string(&rd, 1);
	req.ca_file = get_string(&rd, 0);
	flags = get_u32(&rd);
	req.allow_http = (flags & 1) != 0;
	req.allow_private_hosts = (flags & 2) != 0;
	req.allow_local = (flags & 4) != 0;
	if (rd.bad || rd.left != 0)
		return E_FRAME;
	*ret = req;
	return 0;
}

void
checkout_decoder_init(struct checkout_decoder *d)
{
	buf_init(&d->in);
	d->used = 0;
}

void
checkout_decoder_done(struct checkout_decoder *d)
{
	buf_done(&d->in);
	d->used = 0;
}

int
checkout_decoder_feed(struct checkout_decoder *d, const void *p, size_t n)
{
	buf_consume(&d->in, d->used);
	d->used = 0;
	return buf_add(&d->in, p, n);
}

static void
get_sha(struct reader *rd, char out[CHECKOUT_SHA_SIZE])
{
	const char *s = get_string(rd, 1);

	if (s == NULL || strlen(s) >= CHECKOUT_SHA_SIZE)
		rd->bad = 1;
	else
		memcpy(out, s, strlen(s) + 1);
}

static void
get_fields(struct reader *rd, int type, struct checkout_message *m)
{
	switch (type) {
	case CO_LINE:
		m->kind = CHECKOUT_LINE;
		m->text = get_bytes(rd, &m->text_len);
		rd->bad |= m->text == NULL;
		break;
	case CO_COMMIT:
		m->kind = CHECKOUT_COMMIT;
		get_sha(rd, m->sha);
		break;
	case CO_CONFIG:
		m->kind = CHECKOUT_CONFIG;
		m->config = (enum checkout_config)get_u32(rd);
		m->size = get_u64(rd);
		m->text = get_bytes(rd, &m->text_len);
		rd->bad |= m->text == NULL || m->config > CHECKOUT_CONFIG_NOT_REGULAR ||
		    m->text_len > CHECKOUT_CONFIG_MAX;
		break;
	case CO_DONE:
		m->kind = CHECKOUT_DONE;
		get_sha(rd, m->sha);
		m->size = get_u64(rd);
		m->nfiles = get_u32(rd);
		break;
	case CO_FAILED:
		m->kind = CHECKOUT_FAILED;
		m->failure = (enum checkout_failure)get_u32(rd);
		m->text = get_bytes(rd, &m->text_len);
		rd->bad |= m->text == NULL || m->failure > CHECKOUT_INTERNAL;
		break;
	default: rd->bad = 1;
	}
}

int
checkout_decoder_next(struct checkout_decoder *d, struct checkout_message *ret)
{
	struct reader rd;
	struct checkout_message m = { 0 };
	uint32_t len;

	buf_consume(&d->in, d->used);
	d->used = 0;
	rd = (struct reader) { d->in.data, d->in.len, 0 };
	if (rd.left < LENGTH_BYTES)
		return 0;
	len = get_u32(&rd);
	if (len == 0)
		return E_FRAME;
	if (len > CHECKOUT_FRAME_MAX)
		return E_TOO_BIG;
	if (rd.left < len)
		return 0;
	rd.p++;
	rd.left = len - 1;
	get_fields(&rd, rd.p[-1], &m);
	if (rd.bad || rd.left != 0)
		return E_FRAME;
	d->used = LENGTH_BYTES + len;
	*ret = m;
	return 1;
}

const char *
checkout_failure_code(enum checkout_failure failure)
{
	static const char *const codes[] = {
		[CHECKOUT_CHECKOUT_FAILED] = "checkout_failed",
		[CHECKOUT_COMMIT_UNREACHABLE] = "commit_unreachable",
		[CHECKOUT_CREDENTIAL_REFUSED] = "credential_refused",
		[CHECKOUT_DISK_FULL] = "disk_full",
		[CHECKOUT_INTERNAL] = "internal_unexpected",
	};

	must((size_t)failure < ARRAY_LEN(codes));
	return codes[failure];
}

/* ---- the child's half --------------------------------------------------------------- */

static int
send_frame(struct co *co, struct buf *b)
{
	int r = frame_end(b, 0);

	return r < 0 ? r : io_write_all(co->out_fd, b->data, b->len);
}

int
co_send_text(struct co *co, enum co_type type, const char *text)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;

	(void)frame_begin(&b, type);
	put_string(&b, text);
	return send_frame(co, &b);
}

int
co_send_commit(struct co *co)
{
	return co_send_text(co, CO_COMMIT, co->sha);
}

int
co_send_config(struct co *co, enum checkout_config kind, uint64_t size, const void *p, size_t n)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;

	(void)frame_begin(&b, CO_CONFIG);
	put_u32(&b, kind);
	put_u64(&b, size);
	put_bytes(&b, p, n);
	return send_frame(co, &b);
}

int
co_send_done(struct co *co)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;

	(void)frame_begin(&b, CO_DONE);
	put_string(&b, co->sha);
	put_u64(&b, co->received_bytes);
	put_u32(&b, co->nfiles);
	return send_frame(co, &b);
}

int
co_send_failed(struct co *co)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;

	(void)frame_begin(&b, CO_FAILED);
	put_u32(&b, co->failure);
	put_string(&b, co->text);
	return send_frame(co, &b);
}

static int
read_exactly(int fd, void *p, size_t n)
{
	uint8_t *at = p;

	while (n != 0) {
		ssize_t got = read(fd, at, n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got == 0 ? E_EOF : E_SYS;
		at += got;
		n -= (size_t)got;
	}
	return 0;
}

int
co_receive(struct co *co, enum co_type type, struct buf *body)
{
	uint8_t head[LENGTH_BYTES];
	struct reader rd = { head, sizeof(head), 0 };
	uint32_t len;
	int r = read_exactly(co->in_fd, head, sizeof(head));

	if (r < 0)
		return r;
	len = get_u32(&rd);
	if (len == 0 || len > CHECKOUT_FRAME_MAX)
		return E_FRAME;
	buf_reset(body);
	r = buf_reserve(body, len);
	if (r == 0)
		r = read_exactly(co->in_fd, body->data, len);
	if (r < 0)
		return r;
	body->len = len;
	return body->data[0] == type ? 0 : E_FRAME;
}

static void __attribute__((format(printf, 2, 0)))
send_line(struct co *co, const char *fmt, va_list ap)
{
	char text[1024];

	(void)vsnprintf(text, sizeof(text), fmt, ap);
	(void)co_send_text(co, CO_LINE, text);
}

void
co_line(struct co *co, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	send_line(co, fmt, ap);
	va_end(ap);
}

void
co_progress(struct co *co, const char *fmt, ...)
{
	struct mono_time now = clock_mono();
	va_list ap;

	if (mono_diff_ms(co->line_at, now) < PROGRESS_MS)
		return;
	co->line_at = now;
	va_start(ap, fmt);
	send_line(co, fmt, ap);
	va_end(ap);
}
