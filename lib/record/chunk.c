#include "lib/record/chunk.h"

#include "lib/base/utf8.h"

void
chunker_init(struct chunker *c)
{
	buf_init(&c->text);
	c->at = 0;
}

void
chunker_done(struct chunker *c)
{
	buf_done(&c->text);
	c->at = 0;
}

struct buf *
chunker_input(struct chunker *c)
{
	if (c->at != 0)
		buf_consume(&c->text, c->at);
	c->at = 0;
	return &c->text;
}

size_t
chunker_pending(const struct chunker *c)
{
	return c->text.len - c->at;
}

size_t
chunker_next(struct chunker *c, int flush, const char **ret)
{
	size_t left = chunker_pending(c), n;
	const char *p;

	if (left == 0 || (left < CHUNK_MAX_BYTES && !flush))
		return 0;
	p = (const char *)c->text.data + c->at;
	n = utf8_cut(p, left, CHUNK_MAX_BYTES);
	c->at += n;
	*ret = p;
	return n;
}
