/*
 * test/fuzz/fuzz_http_request.c -- bytes of a connection through the readers of head and body.
 *
 * The first byte is the size of the pieces.  Reading in pieces and reading at once must agree;
 * what is accepted, http_parser must accept too and read in the same way.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/base.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/http/conn.h"
#include "test/unit/http_oracle.h"

#define TARGET_MAX 256
#define FIELDS_MAX 1024

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What became of one request. */
struct outcome {
	int head, body; /* last results */
	size_t head_end, end;
	struct buf text;
};

static void
read_body(struct outcome *o, int64_t length, const uint8_t *p, size_t n, size_t step)
{
	const uint8_t *piece;
	struct body b;
	size_t used, len;

	body_init(&b, length);
	do {
		size_t take = min_size(step, n - o->end);

		o->body = body_feed(&b, p + o->end, take, &used, &piece, &len);
		must(used <= take);
		o->end += used;
		if (o->body == BODY_PIECE) {
			must(piece >= p && len > 0 && piece + len <= p + n);
			must(buf_add(&o->text, piece, len) == 0);
		}
	} while (o->body == BODY_PIECE || (o->body == BODY_MORE && o->end < n));
	must(o->body == BODY_BAD || b.total == o->text.len);
}

static void
read_one(struct outcome *o, struct head *h, const uint8_t *p, size_t n, size_t step)
{
	size_t used = 0;

	memset(o, 0, sizeof(*o));
	head_init(h);
	while (o->head == HEAD_MORE && o->end < n) {
		o->head = head_feed(
		    h, p + o->end, min_size(step, n - o->end), TARGET_MAX, FIELDS_MAX, &used);
		o->end += used;
	}
	o->head_end = o->end;
	if (o->head == HEAD_DONE)
		read_body(o, h->length, p, n, step);
}

static void
look_at(struct head *h)
{
	static struct http_server srv;
	struct conn c = { .srv = &srv };
	struct http_req *req = req_new(&c);
	const char *value;
	int i;

	must(req != NULL);
	req->head = *h;
	req->conn = NULL;
	req->srv = NULL;
	for (i = 0; http_req_segment(req, i) != NULL; i++)
		must(strlen(http_req_segment(req, i)) <= strlen(http_req_path(req)));
	must(i == max_i64(http_req_segments(req), 0));
	(void)http_req_query(req, "a", &value);
	(void)http_req_header_has(req, "Connection", "close");
	(void)http_req_client(req);
	memset(&req->head, 0, sizeof(req->head));
	req_free(req, 0);
}

/* Trailers may hold names that mean something to http_parser, though not there. */
static int
has_trailers(const struct head *h, const uint8_t *p, size_t n)
{
	if (h->length >= 0 || n < 5)
		return 0;
	n -= 4;
	while (n > 0 && p[n - 1] == '0')
		n--;
	return n == 0 || p[n - 1] != '\n';
}

/* A word that it does not know is a method all the same; hosts it reads its own way; and every
 * name that begins with "Transfer-Encoding" is that header to it. */
static int
is_quirk(const struct head *h, const struct oracle *w)
{
	enum http_errno e = HTTP_PARSER_ERRNO(&w->parser);

	return e == HPE_INVALID_METHOD || h->authority != 0 || w->parser.upgrade ||
	    (e == HPE_INVALID_TRANSFER_ENCODING && !h->has_coding);
}

static void
ask_oracle(const struct head *h, const struct outcome *o, const uint8_t *p)
{
	struct oracle w;
	long took = oracle_read(&w, p, o->end);
	size_t path = strlen(head_text(h, h->path));

	if (!is_quirk(h, &w) && !has_trailers(h, p + o->head_end, o->end - o->head_end)) {
		must(took >= 0 && w.head_over && w.message_over);
		must(w.nfields == h->nfields);
		must(w.target.len >= path);
		must(memcmp(w.target.data, head_text(h, h->path), path) == 0);
		must(w.body.len == o->text.len);
		must(o->text.len == 0 || memcmp(w.body.data, o->text.data, o->text.len) == 0);
	}
	oracle_done(&w);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t step, n;
	const uint8_t *p;
	int again = 1;

	if (size < 2)
		return 0;
	step = (size_t)data[0] + 1;
	for (p = data + 1, n = size - 1; again && n > 0;) {
		struct outcome whole, pieces;
		struct head h, h2;

		read_one(&whole, &h, p, n, SIZE_MAX);
		read_one(&pieces, &h2, p, n, step);
		must((whole.head == HEAD_DONE) == (pieces.head == HEAD_DONE));
		again = whole.head == HEAD_DONE && whole.body == BODY_DONE;
		if (whole.head == HEAD_DONE) {
			must(whole.body == pieces.body);
			must(whole.text.len == pieces.text.len);
			look_at(&h);
		}
		if (again) {
			must(whole.end == pieces.end);
			ask_oracle(&h, &whole, p);
		}
		p += whole.end;
		n -= whole.end;
		head_done(&h);
		head_done(&h2);
		buf_done(&whole.text);
		buf_done(&pieces.text);
	}
	return 0;
}
