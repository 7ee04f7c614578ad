#include "lib/record/stream.h"

#include "lib/base/err.h"

void
record_stream_init(struct record_stream *s)
{
	*s = (struct record_stream) { 0 };
	redact_stream_init(&s->redact);
	chunker_init(&s->chunker);
}

void
record_stream_done(struct record_stream *s)
{
	redact_stream_done(&s->redact);
	chunker_done(&s->chunker);
}

static int
decode(void *arg, const void *p, size_t n)
{
	struct record_stream *s = arg;

	return decode_feed(&s->decoder, p, n, &s->chunker.text);
}

int
record_stream_feed(struct record_stream *s, const struct redactor *r, const void *p, size_t n)
{
	(void)chunker_input(&s->chunker);
	return redact_pass(r, &s->redact, p, n, decode, s);
}

int
record_stream_end(struct record_stream *s, const struct redactor *r)
{
	CLEANUP(buf_done) struct buf clear = BUF_INIT;
	struct buf *text = chunker_input(&s->chunker);
	int err = redact_end(r, &s->redact, &clear);

	if (err == 0)
		err = decode_feed(&s->decoder, clear.data, clear.len, text);
	return err < 0 ? err : decode_end(&s->decoder, text);
}

size_t
record_stream_pending(const struct record_stream *s)
{
	return chunker_pending(&s->chunker);
}

size_t
record_stream_next(struct record_stream *s, int flush, const char **ret)
{
	return chunker_next(&s->chunker, flush, ret);
}
