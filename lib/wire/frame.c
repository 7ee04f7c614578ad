#include "lib/wire/frame.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"

#define STEP_MIN_BYTES 4096
#define STEP_MAX_BYTES 32768

void
frame_in_init(struct frame_in *f)
{
	*f = (struct frame_in) { .step = STEP_MIN_BYTES };
}

void
frame_in_done(struct frame_in *f)
{
	free(f->data);
	frame_in_init(f);
}

uint8_t *
frame_in_room(struct frame_in *f, size_t *ret_room)
{
	/* What is left of the last read stands in front, so that a body is in one piece. */
	if (f->start != 0) {
		memmove(f->data, f->data + f->start, f->end - f->start);
		f->end -= f->start;
		f->start = 0;
	}
	if (f->cap - f->end < f->step) {
		/* Doubling: at most twice of what has come is held, whatever was promised. */
		size_t cap = f->end + (f->end > f->step ? f->end : f->step);
		uint8_t *data = mem_realloc(f->data, cap);

		if (data == NULL)
			return NULL;
		f->data = data;
		f->cap = cap;
	}
	*ret_room = f->cap - f->end;
	return f->data + f->end;
}

void
frame_in_add(struct frame_in *f, size_t n)
{
	must(n <= f->cap - f->end);
	if (n == f->cap - f->end && f->step < STEP_MAX_BYTES)
		f->step *= 2;
	f->end += n;
}

int
frame_in_next(struct frame_in *f, char **ret_body, size_t *ret_n)
{
	size_t have = f->end - f->start;
	const uint8_t *head;
	size_t n;

	if (have < FRAME_HEAD_BYTES)
		return 0;
	head = f->data + f->start;
	n = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
	if (n > FRAME_MAX_BYTES)
		return E_TOO_BIG;
	if (have - FRAME_HEAD_BYTES < n)
		return 0;
	*ret_body = (char *)f->data + f->start + FRAME_HEAD_BYTES;
	*ret_n = n;
	f->start += FRAME_HEAD_BYTES + n;
	return 1;
}

void
frame_in_idle(struct frame_in *f)
{
	if (f->start != f->end)
		return;
	f->start = f->end = 0;
	if (f->cap > STEP_MAX_BYTES) {
		free(f->data);
		f->data = NULL;
		f->cap = 0;
		f->step = STEP_MIN_BYTES;
	}
}

size_t
frame_begin(struct buf *out)
{
	size_t at = out->len;

	(void)buf_add(out, "\0\0\0", FRAME_HEAD_BYTES);
	return at;
}

int
frame_end(struct buf *out, size_t at)
{
	int r = out->failed ? E_NOMEM : 0;
	size_t n;

	if (r == 0 && out->len - at - FRAME_HEAD_BYTES > FRAME_MAX_BYTES)
		r = E_TOO_BIG;
	if (r < 0) {
		out->len = at;
		out->failed = 0;
		return r;
	}
	n = out->len - at - FRAME_HEAD_BYTES;
	out->data[at] = (uint8_t)(n >> 24);
	out->data[at + 1] = (uint8_t)(n >> 16);
	out->data[at + 2] = (uint8_t)(n >> 8);
	out->data[at + 3] = (uint8_t)n;
	return 0;
}
