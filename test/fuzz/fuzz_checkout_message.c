/*
 * What a checkout child might say, and what a run might ask for, as any bytes in any chunks.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/base.h"
#include "lib/checkout/checkout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct checkout_decoder d;
	struct checkout_message m;
	struct checkout_request req;
	size_t chunk = size != 0 ? (size_t)data[0] % 16 + 1 : 1;

	checkout_decoder_init(&d);
	for (size_t at = 1; at < size; at += chunk) {
		int r;

		must(checkout_decoder_feed(&d, data + at, min_size(chunk, size - at)) == 0);
		while ((r = checkout_decoder_next(&d, &m)) == 1)
			must(m.text == NULL || m.text[m.text_len] == '\0');
		if (r < 0)
			break;
	}
	checkout_decoder_done(&d);
	if (size != 0 && checkout_get_request(data, size, &req) == 0)
		must(strlen(req.mirror) < size && strlen(req.config) < size);
	return 0;
}
