#include "lib/base/enc.h"

#include <string.h>

#include "lib/base/err.h"

static const char hex_digits[] = "0123456789abcdef";
static const char url_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
static const char std_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void
hex_encode(const void *p, size_t n, char *out)
{
	const uint8_t *in = p;

	for (size_t i = 0; i < n; i++) {
		*out++ = hex_digits[in[i] >> 4];
		*out++ = hex_digits[in[i] & 15];
	}
	*out = '\0';
}

int
hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

int
hex_decode(const char *text, size_t text_len, void *out, size_t n)
{
	uint8_t *to = out;

	if (text_len / 2 != n || text_len % 2 != 0)
		return E_INVAL;
	for (size_t i = 0; i < n; i++) {
		int hi = hex_value(text[2 * i]), lo = hex_value(text[2 * i + 1]);

		if (hi < 0 || lo < 0)
			return E_INVAL;
		to[i] = (uint8_t)(hi << 4 | lo);
	}
	return 0;
}

int
hex_is_lower(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (hex_value(text[i]) < 0 || (text[i] >= 'A' && text[i] <= 'F'))
			return 0;
	return text[n] == '\0';
}

/* Writes the digits of ${n} bytes without padding; returns the end. */
static char *
encode64(const uint8_t *in, size_t n, const char *alphabet, char *out)
{
	for (; n >= 3; n -= 3, in += 3) {
		uint32_t v = (uint32_t)in[0] << 16 | (uint32_t)in[1] << 8 | in[2];

		*out++ = alphabet[v >> 18];
		*out++ = alphabet[v >> 12 & 63];
		*out++ = alphabet[v >> 6 & 63];
		*out++ = alphabet[v & 63];
	}
	if (n != 0) {
		uint32_t v = (uint32_t)in[0] << 16 | (n == 2 ? (uint32_t)in[1] << 8 : 0);

		*out++ = alphabet[v >> 18];
		*out++ = alphabet[v >> 12 & 63];
		if (n == 2)
			*out++ = alphabet[v >> 6 & 63];
	}
	return out;
}

void
base64url_encode(const void *p, size_t n, char *out)
{
	*encode64(p, n, url_digits, out) = '\0';
}

void
base64_encode(const void *p, size_t n, char *out)
{
	char *end = encode64(p, n, std_digits, out);

	while ((end - out) % 4 != 0)
		*end++ = '=';
	*end = '\0';
}

int
base64url_decode(const char *text, size_t text_len, void *out, size_t cap, size_t *ret_n)
{
	uint8_t *to = out;
	uint32_t bits = 0;
	unsigned nbits = 0;
	size_t n = 0;

	if (text_len % 4 == 1)
		return E_INVAL;
	for (size_t i = 0; i < text_len; i++) {
		const char *at = text[i] != '\0' ? strchr(url_digits, text[i]) : NULL;

		if (at == NULL)
			return E_INVAL;
		bits = bits << 6 | (uint32_t)(at - url_digits);
		nbits += 6;
		if (nbits < 8)
			continue;
		nbits -= 8;
		if (n == cap)
			return E_RANGE;
		to[n++] = (uint8_t)(bits >> nbits);
		bits &= (1u << nbits) - 1;
	}
	if (bits != 0)
		return E_INVAL;
	*ret_n = n;
	return 0;
}
