#include "lib/http/ws_sha1.h"

#include <string.h>

#define BLOCK 64

static uint32_t
rotate(uint32_t v, int by)
{
	return v << by | v >> (32 - by);
}

static void
sha1_block(uint32_t h[5], const uint8_t *p)
{
	uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
	int i;

	for (i = 0; i < 16; i++, p += 4)
		w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
	for (; i < 80; i++)
		w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
	for (i = 0; i < 80; i++) {
		uint32_t t = rotate(a, 5) + e + w[i];

		if (i < 20)
			t += ((b & c) | (~b & d)) + 0x5a827999;
		else if (i < 40)
			t += (b ^ c ^ d) + 0x6ed9eba1;
		else if (i < 60)
			t += ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
		else
			t += (b ^ c ^ d) + 0xca62c1d6;
		e = d;
		d = c;
		c = rotate(b, 30);
		b = a;
		a = t;
	}
	h[0] += a;
	h[1] += b;
	h[2] += c;
	h[3] += d;
	h[4] += e;
}

void
ws_sha1(const void *data, size_t n, uint8_t out[WS_SHA1_SIZE])
{
	uint32_t h[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 };
	uint8_t tail[2 * BLOCK] = { 0 };
	uint64_t bits = (uint64_t)n * 8;
	const uint8_t *p = data;
	size_t end, i;

	for (; n >= BLOCK; p += BLOCK, n -= BLOCK)
		sha1_block(h, p);
	if (n > 0)
		memcpy(tail, p, n);
	tail[n] = 0x80;
	end = n + 1 + 8 <= BLOCK ? BLOCK : 2 * BLOCK;
	for (i = 0; i < 8; i++)
		tail[end - 1 - i] = (uint8_t)(bits >> (8 * i));
	for (i = 0; i < end; i += BLOCK)
		sha1_block(h, tail + i);
	for (i = 0; i < WS_SHA1_SIZE; i++)
		out[i] = (uint8_t)(h[i / 4] >> (24 - 8 * (i % 4)));
}
