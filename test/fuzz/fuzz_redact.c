/* Input: length of the token, the token, seed of the splits, the stream.  Whatever the
 * splits, what comes out is what the whole text gives, and holds no spelling of the token. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/base.h"
#include "lib/record/forms.h"
#include "lib/record/redact.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Has no letter of the mark. */
static int
is_usable(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strchr("[]REDACT", p[i]) != NULL)
			return 0;
	return 1;
}

static void
check_hidden(const struct forms *f, const struct buf *out)
{
	const uint32_t *ends = (const uint32_t *)(const void *)f->ends.data;
	size_t from = 0;

	/* Forms with a letter of the mark may arise where a mark was put; the others may not. */
	for (size_t i = 0; i < f->ends.len / sizeof(*ends); i++) {
		if (is_usable(f->bytes.data + from, ends[i] - from))
			must(out->len == 0 ||
			    memmem(out->data, out->len, f->bytes.data + from, ends[i] - from) ==
				NULL);
		from = ends[i];
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct forms f = { BUF_INIT, BUF_INIT };
	struct buf whole = BUF_INIT, parts = BUF_INIT;
	struct redactor *r = NULL;
	struct redact_stream s;
	const uint8_t *text;
	size_t ntoken, ntext;
	unsigned seed;

	if (size < 2 || data[0] == 0 || (size_t)data[0] + 2 > size)
		return 0;
	ntoken = data[0];
	seed = data[1 + ntoken];
	text = data + 2 + ntoken;
	ntext = size - 2 - ntoken;
	must(redactor_new((const char *)data + 1, ntoken, &r) == 0);
	must(forms_make((const char *)data + 1, ntoken, &f) == 0);
	must(redact_text(r, (const char *)text, ntext, &whole) == 0);
	redact_stream_init(&s);
	while (ntext != 0) {
		size_t n = min_size(ntext, 1 + (size_t)rand_r(&seed) % 9);

		must(redact_feed(r, &s, text, n, &parts) == 0);
		text += n;
		ntext -= n;
	}
	must(redact_end(r, &s, &parts) == 0);
	redact_stream_done(&s);
	must(whole.len == parts.len);
	must(whole.len == 0 || memcmp(whole.data, parts.data, whole.len) == 0);
	check_hidden(&f, &parts);
	buf_wipe(&f.bytes);
	buf_wipe(&f.ends);
	buf_done(&whole);
	buf_done(&parts);
	redactor_free(r);
	return 0;
}
