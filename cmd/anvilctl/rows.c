#include "cmd/anvilctl/rows.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/ascii.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/json_text.h"

int
rows_is_header(const char *p, size_t n)
{
	size_t i = 5;

	if (n < 10 || memcmp(p, "Step ", 5) != 0)
		return 0;
	while (i < n && (ascii_is_digit(p[i]) || p[i] == '/'))
		i++;
	return i > 5 && i < n && p[i] == ':';
}

static void
add_line(
    const struct rows *r, const struct log_row *row, const char *p, size_t n, struct buf *out)
{
	char at[CLOCK_TEXT_SIZE];

	clock_format(row->created_at, at);
	buf_printf(out, "{\"seq\":%lld,\"time\":\"%s\",\"step\":", (long long)row->seq, at);
	if (r->step > 0)
		buf_printf(out, "%lld", (long long)r->step);
	else
		buf_add_str(out, "null");
	buf_printf(out, ",\"stream\":\"%s\",\"text\":", log_stream_name(row->stream));
	(void)json_text_string(out, p, n);
	buf_add_str(out, "}\n");
}

int
rows_add(struct rows *r, const struct log_row *row, struct buf *out)
{
	const char *p = row->chunk.p;
	size_t left = row->chunk.n;

	while (left > 0) {
		const char *end = memchr(p, '\n', left);
		size_t n = end != NULL ? (size_t)(end - p) + 1 : left;

		/* What a step prints itself may look the same. */
		if (row->stream == LOG_STREAM_SYSTEM && rows_is_header(p, n))
			r->step = strtoll(p + 5, NULL, 10);
		add_line(r, row, p, n, out);
		p += n;
		left -= n;
	}
	return out->failed ? E_NOMEM : 0;
}

int
rows_add_gap(int64_t from_seq, int64_t to_seq, struct buf *out)
{
	buf_printf(out, "{\"gap\":{\"fromSeq\":%lld,\"toSeq\":%lld}}\n", (long long)from_seq,
	    (long long)to_seq);
	return out->failed ? E_NOMEM : 0;
}
