#include "cmd/anvil-ingress/cursor.h"

#include <string.h>

#include "lib/base/enc.h"
#include "lib/base/err.h"

#define TIME_BYTES 8
#define ID_BYTES   (ID_SIZE - 1)

void
cursor_format(int64_t queued_at, const char *run_id, char out[CURSOR_SIZE])
{
	uint8_t raw[TIME_BYTES + ID_BYTES];

	_Static_assert((sizeof(raw) * 4 + 2) / 3 + 1 <= CURSOR_SIZE, "a cursor fits");
	for (int i = 0; i < TIME_BYTES; i++)
		raw[i] = (uint8_t)((uint64_t)queued_at >> (8 * (TIME_BYTES - 1 - i)));
	memcpy(raw + TIME_BYTES, run_id, ID_BYTES);
	base64url_encode(raw, sizeof(raw), out);
}

int
cursor_parse(const char *text, int64_t *ret_queued_at, char ret_run_id[ID_SIZE])
{
	uint8_t raw[TIME_BYTES + ID_BYTES];
	char id[ID_SIZE] = "";
	uint64_t at = 0;
	size_t n;

	if (base64url_decode(text, strlen(text), raw, sizeof(raw), &n) < 0 || n != sizeof(raw))
		return E_INVAL;
	memcpy(id, raw + TIME_BYTES, ID_BYTES);
	for (int i = 0; i < TIME_BYTES; i++)
		at = at << 8 | raw[i];
	if (!id_check(ID_RUN, id) || at > INT64_MAX)
		return E_INVAL;
	*ret_queued_at = (int64_t)at;
	memcpy(ret_run_id, id, sizeof(id));
	return 0;
}
