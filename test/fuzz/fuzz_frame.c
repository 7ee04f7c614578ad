/*
 * Any bytes as a stream of frames, read in chunks whose sizes the input chooses.  What comes
 * out is what a straight reading of the same bytes gives, and never reserves what was only
 * promised.
 */
#include <string.h>

#include "lib/base/err.h"
#include "lib/wire/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The next frame by the definition: 1, 0 (cut off), or an error. */
static int
straight(const uint8_t **at, const uint8_t *end, const uint8_t **ret_body, size_t *ret_n)
{
	size_t n;

	if (end - *at < FRAME_HEAD_BYTES)
		return 0;
	n = (size_t)(*at)[0] << 24 | (size_t)(*at)[1] << 16 | (size_t)(*at)[2] << 8 | (*at)[3];
	if (n > FRAME_MAX_BYTES)
		return E_TOO_BIG;
	if ((size_t)(end - *at) - FRAME_HEAD_BYTES < n)
		return 0;
	*ret_body = *at + FRAME_HEAD_BYTES;
	*ret_n = n;
	*at += FRAME_HEAD_BYTES + n;
	return 1;
}

/* First byte: how long the chunk sizes are that follow; the rest is the stream. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t nchunks = size > 0 ? min_size(data[0] % 8, size - 1) : 0;
	const uint8_t *chunks = data + 1, *at = data + min_size(1 + nchunks, size);
	const uint8_t *end = data + size, *want = at, *body;
	struct frame_in f;
	int r = 0;

	frame_in_init(&f);
	for (size_t i = 0; at < end && r >= 0; i++) {
		size_t room, n, len;
		uint8_t *to = frame_in_room(&f, &room);
		char *got;

		must(to != NULL && room > 0);
		n = nchunks == 0 ? room : (size_t)1 + chunks[i % nchunks];
		n = min_size(min_size(n, room), (size_t)(end - at));
		memcpy(to, at, n);
		frame_in_add(&f, n);
		at += n;
		while ((r = frame_in_next(&f, &got, &n)) == 1) {
			must(straight(&want, at, &body, &len) == 1);
			must(n == len && memcmp(got, body, n) == 0);
			memset(got, 0, n); /* it may be written to */
		}
		must(straight(&want, at, &body, &len) == r);
		must(f.cap <= 65536 + 2 * size);
		frame_in_idle(&f);
	}
	frame_in_done(&f);
	return 0;
}
