#include "lib/base/id.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/random.h>

#include "lib/base/base.h"
#include "lib/base/clock.h"
#include "lib/base/enc.h"

#define UUID_VERSION_7 0x70
#define UUID_VARIANT   0x80

static const char base62[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

void
id_random(void *p, size_t n)
{
	uint8_t *to = p;

	while (n != 0) {
		ssize_t got = getrandom(to, n, 0);

		must(got >= 0 || errno == EINTR);
		if (got > 0) {
			to += got;
			n -= (size_t)got;
		}
	}
}

/* 12 bits that grow within one millisecond, so that ids made by one process ascend. */
static void
sequence_next(int64_t *ms, uint16_t *seq)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static int64_t last_ms;
	static uint16_t last_seq;

	must(pthread_mutex_lock(&lock) == 0);
	if (*ms > last_ms) {
		last_ms = *ms;
		id_random(&last_seq, sizeof(last_seq));
		last_seq &= 0x7ff; /* the upper half of the range is left to count into */
	} else if (++last_seq > 0xfff) {
		last_seq = 0;
		last_ms++;
	}
	*ms = last_ms;
	*seq = last_seq;
	must(pthread_mutex_unlock(&lock) == 0);
}

static void
uuid7(uint8_t u[16])
{
	int64_t ms = clock_wall_ms();
	uint16_t seq;

	id_random(u, 16);
	sequence_next(&ms, &seq);
	for (int i = 0; i < 6; i++)
		u[i] = (uint8_t)((uint64_t)ms >> (40 - 8 * i));
	u[6] = (uint8_t)(UUID_VERSION_7 | seq >> 8);
	u[7] = (uint8_t)seq;
	u[8] = (uint8_t)(UUID_VARIANT | (u[8] & 0x3f));
}

/* The 128-bit number, last digit first.  Ten digits fit 64 bits, so that it is divided by a
 * big power first and the digits come of small divisions. */
static void
base62_encode(const uint8_t u[16], char out[ID_DIGITS + 1])
{
	static const uint64_t ten_digits = 839299365868340224; /* 62^10 */
	unsigned __int128 n = 0;
	uint64_t part = 0;

	for (int i = 0; i < 16; i++)
		n = n << 8 | u[i];
	for (int at = ID_DIGITS - 1, left = 0; at >= 0; at--, left--) {
		if (left == 0) {
			part = (uint64_t)(n % ten_digits);
			n /= ten_digits;
			left = 10;
		}
		out[at] = base62[part % 62];
		part /= 62;
	}
	out[ID_DIGITS] = '\0';
}

void
id_request(char out[ID_DIGITS + 1])
{
	uint8_t u[16];

	uuid7(u);
	base62_encode(u, out);
}

void
id_make(const char *prefix, char out[ID_SIZE])
{
	must(strlen(prefix) == 4);
	memcpy(out, prefix, 4);
	id_request(out + 4);
}

int
id_check(const char *prefix, const char *text)
{
	if (strncmp(text, prefix, 4) != 0 || strlen(text) != 4 + ID_DIGITS)
		return 0;
	return strspn(text + 4, base62) == ID_DIGITS;
}

void
id_hex32(char out[ID_HEX32_SIZE])
{
	uint8_t bits[16];

	id_random(bits, sizeof(bits));
	hex_encode(bits, sizeof(bits), out);
}

int
id_hex32_check(const char *text)
{
	return strlen(text) == 32 && hex_is_lower(text, 32);
}
