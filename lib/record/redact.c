/* Matching after Wu and Manber: a window as long as the shortest pattern slides over the
 * text, and the two bytes at its end tell how far it may jump.  Starts of matches are met
 * from left to right and none is jumped over, which makes a match leftmost; at one start the
 * longest pattern is tried first. */
#include "lib/record/redact.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/record/forms.h"

#define SHIFT_SLOTS 4096

struct pattern {
	const uint8_t *p;
	size_t n;
};

struct redactor {
	uint32_t magic;
#define REDACTOR_MAGIC 0x3ac95e71
	uint8_t *bytes; /* Owned: all patterns. */
	size_t nbytes;
	struct pattern *patterns; /* Owned: by first byte, then longest first. */
	size_t npatterns;
	size_t window;       /* Length of the shortest, */
	size_t longest;      /* and of the longest. */
	uint16_t first[257]; /* Patterns that begin with byte c: first[c]..first[c + 1]. */
	uint8_t shift[SHIFT_SLOTS]; /* 0: the window may hold the beginning of a pattern. */
};

enum verdict { NO_MATCH, MATCH, UNDECIDED };

static size_t
slot_of(uint8_t a, uint8_t b)
{
	return ((size_t)a << 5 ^ b) & (SHIFT_SLOTS - 1);
}

static int
by_start_and_length(const void *va, const void *vb)
{
	const struct pattern *a = va, *b = vb;

	if (a->p[0] != b->p[0])
		return a->p[0] < b->p[0] ? -1 : 1;
	if (a->n != b->n)
		return a->n > b->n ? -1 : 1;
	return memcmp(a->p, b->p, a->n);
}

static void
drop_twins(struct redactor *r)
{
	size_t kept = 0;

	for (size_t i = 0; i < r->npatterns; i++)
		if (i == 0 || by_start_and_length(&r->patterns[i], &r->patterns[kept - 1]) != 0)
			r->patterns[kept++] = r->patterns[i];
	r->npatterns = kept;
}

static void
make_tables(struct redactor *r)
{
	size_t at = 0;

	for (size_t c = 0; c < 256; c++) {
		r->first[c] = (uint16_t)at;
		while (at < r->npatterns && r->patterns[at].p[0] == c)
			at++;
	}
	r->first[256] = (uint16_t)at;
	r->window = SIZE_MAX;
	for (size_t i = 0; i < r->npatterns; i++) {
		r->window = min_size(r->window, r->patterns[i].n);
		if (r->longest < r->patterns[i].n)
			r->longest = r->patterns[i].n;
	}
	r->window = min_size(r->window, 128); /* Jumps fit a byte. */
	memset(r->shift, (int)(r->window - 1), sizeof(r->shift));
	for (size_t i = 0; i < r->npatterns; i++) {
		const uint8_t *p = r->patterns[i].p;

		for (size_t j = 1; j < r->window; j++) {
			uint8_t *s = &r->shift[slot_of(p[j - 1], p[j])];

			*s = (uint8_t)min_size(*s, r->window - 1 - j);
		}
	}
}

static int
take_forms(struct redactor *r, const struct forms *f)
{
	const uint32_t *ends = (const uint32_t *)(const void *)f->ends.data;
	size_t n = f->ends.len / sizeof(*ends), from = 0;

	r->bytes = mem_dup(f->bytes.data, f->bytes.len);
	r->patterns = mem_calloc(n, sizeof(*r->patterns));
	if (r->bytes == NULL || r->patterns == NULL)
		return E_NOMEM;
	r->nbytes = f->bytes.len;
	r->npatterns = n;
	for (size_t i = 0; i < n; i++) {
		r->patterns[i] = (struct pattern) { r->bytes + from, ends[i] - from };
		from = ends[i];
	}
	qsort(r->patterns, n, sizeof(*r->patterns), by_start_and_length);
	drop_twins(r);
	make_tables(r);
	return 0;
}

int
redactor_new(const char *token, size_t n, struct redactor **ret)
{
	CLEANUP(redactor_freep) struct redactor *r = mem_calloc(1, sizeof(*r));
	struct forms f = { BUF_INIT, BUF_INIT };
	int err = 0;

	if (r == NULL)
		return E_NOMEM;
	r->magic = REDACTOR_MAGIC;
	if (n != 0)
		err = forms_make(token, n, &f);
	if (err == 0 && f.ends.len != 0)
		err = take_forms(r, &f);
	buf_wipe(&f.bytes);
	buf_wipe(&f.ends);
	if (err == 0)
		*ret = TAKE_PTR(r);
	return err;
}

struct redactor *
redactor_free(struct redactor *r)
{
	if (r == NULL)
		return NULL;
	OBJ_CHECK(r, REDACTOR_MAGIC);
	mem_wipe(r->bytes, r->nbytes);
	mem_free(r->bytes);
	mem_free(r->patterns);
	mem_wipe(r, sizeof(*r));
	return mem_free(r);
}

/* Does a pattern begin at ${p}?  ${last}: nothing comes after the ${n} bytes. */
static enum verdict
look(const struct redactor *r, const uint8_t *p, size_t n, int last, size_t *ret_len)
{
	for (size_t i = r->first[p[0]]; i < r->first[p[0] + 1]; i++) {
		const struct pattern *pat = &r->patterns[i];

		if (pat->n > n && last)
			continue;
		if (memcmp(p, pat->p, min_size(pat->n, n)) != 0)
			continue;
		*ret_len = pat->n;
		return pat->n <= n ? MATCH : UNDECIDED;
	}
	return NO_MATCH;
}

/* Moves *at on to the next match, whose length goes to *len, or to what is undecided, or to
 * the end. */
static enum verdict
find(const struct redactor *r, const uint8_t *p, size_t n, int last, size_t *at, size_t *len)
{
	enum verdict v = NO_MATCH;

	while (n - *at >= r->window) {
		const uint8_t *end = p + *at + r->window;
		size_t jump = r->shift[slot_of(end[-2], end[-1])];

		*at += jump;
		if (jump != 0)
			continue;
		v = look(r, p + *at, n - *at, last, len);
		if (v != NO_MATCH)
			return v;
		++*at;
	}
	while (v == NO_MATCH && *at < n) {
		v = last ? NO_MATCH : look(r, p + *at, n - *at, 0, len);
		*at += v == NO_MATCH;
	}
	return v;
}

/* Where decided text goes. */
struct sink {
	redact_emit_fn *emit;
	void *arg;
};

/* Emits the decided part of ${p}, and tells in *ret_done how many bytes that were. */
static int
scan(const struct redactor *r, const uint8_t *p, size_t n, int last, const struct sink *to,
    size_t *ret_done)
{
	size_t at = 0, from = 0, len = 0;
	int err = 0;

	while (err == 0 && find(r, p, n, last, &at, &len) == MATCH) {
		if (at != from)
			err = to->emit(to->arg, p + from, at - from);
		if (err == 0)
			err = to->emit(to->arg, REDACT_MARK, sizeof(REDACT_MARK) - 1);
		at += len;
		from = at;
	}
	if (err == 0 && at != from)
		err = to->emit(to->arg, p + from, at - from);
	*ret_done = at;
	return err;
}

void
redact_stream_init(struct redact_stream *s)
{
	buf_init(&s->held);
}

void
redact_stream_done(struct redact_stream *s)
{
	buf_wipe(&s->held);
}

/* Decides the held bytes with as many of ${p} as the longest pattern has; *ret_used is where
 * to go on in ${p}, which is its end when too few have come. */
static int
finish_held(const struct redactor *r, struct redact_stream *s, const uint8_t *p, size_t n,
    const struct sink *to, size_t *ret_used)
{
	size_t more = min_size(n, r->longest), done;
	int err = buf_add(&s->held, p, more);

	if (err == 0)
		err = scan(r, s->held.data, s->held.len, 0, to, &done);
	if (err < 0)
		return err;
	buf_consume(&s->held, done);
	*ret_used = n;
	if (more == n)
		return 0;
	/* What is left began in ${p}, and is looked at there. */
	must(s->held.len <= more);
	*ret_used = more - s->held.len;
	buf_reset(&s->held);
	return 0;
}

int
redact_pass(const struct redactor *r, struct redact_stream *s, const void *bytes, size_t n,
    redact_emit_fn *emit, void *arg)
{
	const struct sink to = { emit, arg };
	const uint8_t *p = bytes;
	size_t used = 0, done = 0;
	int err = 0;

	OBJ_CHECK(r, REDACTOR_MAGIC);
	if (n == 0)
		return 0;
	if (r->npatterns == 0)
		return emit(arg, p, n);
	if (s->held.len != 0)
		err = finish_held(r, s, p, n, &to, &used);
	if (err == 0)
		err = scan(r, p + used, n - used, 0, &to, &done);
	used += done;
	return err < 0 ? err : buf_add(&s->held, p + used, n - used);
}

static int
emit_to_buf(void *arg, const void *p, size_t n)
{
	return buf_add(arg, p, n);
}

int
redact_feed(
    const struct redactor *r, struct redact_stream *s, const void *p, size_t n, struct buf *out)
{
	return redact_pass(r, s, p, n, emit_to_buf, out);
}

/* Nothing comes after ${p}. */
static int
scan_last(const struct redactor *r, const void *p, size_t n, struct buf *out)
{
	const struct sink to = { emit_to_buf, out };
	size_t done;

	return scan(r, p, n, 1, &to, &done);
}

int
redact_end(const struct redactor *r, struct redact_stream *s, struct buf *out)
{
	int err = 0;

	OBJ_CHECK(r, REDACTOR_MAGIC);
	if (s->held.len != 0)
		err = scan_last(r, s->held.data, s->held.len, out);
	buf_wipe(&s->held);
	return err;
}

int
redact_text(const struct redactor *r, const char *p, size_t n, struct buf *out)
{
	OBJ_CHECK(r, REDACTOR_MAGIC);
	return r->npatterns == 0 ? buf_add(out, p, n) : scan_last(r, p, n, out);
}
