/* Input: a seed of the splits, then the stream.  What comes out is valid UTF-8, the same for
 * every split, and the input itself when that was valid. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/base.h"
#include "lib/base/utf8.h"
#include "lib/record/decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf whole = BUF_INIT, parts = BUF_INIT;
	struct decoder d = { 0 };
	unsigned seed;

	if (size < 1)
		return 0;
	seed = *data++;
	size--;
	must(decode_feed(&d, data, size, &whole) == 0);
	must(decode_end(&d, &whole) == 0);
	must(utf8_valid((const char *)whole.data, whole.len));
	if (utf8_valid((const char *)data, size))
		must(whole.len == size && (size == 0 || memcmp(whole.data, data, size) == 0));
	for (size_t at = 0; at < size;) {
		size_t n = min_size(size - at, (size_t)rand_r(&seed) % 6);

		must(decode_feed(&d, data + at, n, &parts) == 0);
		at += n;
	}
	must(decode_end(&d, &parts) == 0);
	must(whole.len == parts.len);
	must(whole.len == 0 || memcmp(whole.data, parts.data, whole.len) == 0);
	buf_done(&whole);
	buf_done(&parts);
	return 0;
}
