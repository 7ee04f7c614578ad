#include "lib/base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"

#define BUF_MIN_BYTES 64

void
buf_init(struct buf *b)
{
	*b = (struct buf)BUF_INIT;
}

void
buf_done(struct buf *b)
{
	free(b->data);
	buf_init(b);
}

void
buf_wipe(struct buf *b)
{
	mem_wipe(b->data, b->cap);
	buf_done(b);
}

void
buf_reset(struct buf *b)
{
	b->len = 0;
	b->failed = 0;
}

int
buf_reserve(struct buf *b, size_t more)
{
	size_t want, cap;
	uint8_t *data;

	if (b->failed)
		return E_NOMEM;
	if (__builtin_add_overflow(b->len, more, &want))
		goto fail;
	if (want <= b->cap)
		return 0;
	cap = b->cap < BUF_MIN_BYTES ? BUF_MIN_BYTES : b->cap;
	while (cap < want)
		if (__builtin_mul_overflow(cap, (size_t)2, &cap))
			goto fail;
	data = mem_realloc(b->data, cap);
	if (data == NULL)
		goto fail;
	b->data = data;
	b->cap = cap;
	return 0;
fail:
	b->failed = 1;
	return E_NOMEM;
}

int
buf_add(struct buf *b, const void *p, size_t n)
{
	int r = buf_reserve(b, n);

	if (r < 0)
		return r;
	if (n != 0)
		memcpy(b->data + b->len, p, n);
	b->len += n;
	return 0;
}

int
buf_add_byte(struct buf *b, uint8_t c)
{
	if (b->len == b->cap || b->failed) {
		int r = buf_reserve(b, 1);

		if (r < 0)
			return r;
	}
	b->data[b->len++] = c;
	return 0;
}

int
buf_add_str(struct buf *b, const char *s)
{
	return buf_add(b, s, strlen(s));
}

int
buf_add_int(struct buf *b, int64_t v)
{
	char digits[24];
	size_t at = sizeof(digits);
	uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;

	do {
		digits[--at] = (char)('0' + u % 10);
		u /= 10;
	} while (u != 0);
	if (v < 0)
		digits[--at] = '-';
	return buf_add(b, digits + at, sizeof(digits) - at);
}

int
buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	int n, r;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return E_INVAL;
	r = buf_reserve(b, (size_t)n + 1);
	if (r < 0)
		return r;
	va_start(ap, fmt);
	(void)vsnprintf((char *)b->data + b->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->len += (size_t)n;
	return 0;
}

void
buf_consume(struct buf *b, size_t n)
{
	must(n <= b->len);
	if (n != 0 && n < b->len)
		memmove(b->data, b->data + n, b->len - n);
	b->len -= n;
}

const char *
buf_cstr(struct buf *b)
{
	if (buf_reserve(b, 1) < 0)
		return NULL;
	b->data[b->len] = '\0';
	return (const char *)b->data;
}

char *
buf_take_cstr(struct buf *b)
{
	char *text = NULL;

	if (buf_cstr(b) != NULL) {
		text = (char *)b->data;
		b->data = NULL;
	}
	buf_done(b);
	return text;
}
