#include "lib/http/outq.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"

#define PIECE_MIN     512 /* bytes of a copied piece, so that small writes share one */
#define PIECE_FRAMING 32  /* the same behind a blob, for the framing up to the next one */
#define SEND_PIECES   16  /* pieces of one write */

struct out_piece {
	STAILQ_ENTRY(out_piece) entry;
	struct http_blob *blob; /* Owned reference; NULL: the bytes are in `own`. */
	size_t off, len, cap;   /* Unsent: len bytes from off.                    */
	uint8_t own[];
};

struct http_blob {
	size_t refs;
	size_t len;
	const uint8_t *data; /* Lent, or `own`. */
	uint8_t own[];
};

/* ---- blobs --------------------------------------------------------------------------- */

struct http_blob *
http_blob_new_static(const void *p, size_t n)
{
	struct http_blob *b = mem_alloc(sizeof(*b));

	if (b != NULL)
		*b = (struct http_blob) { .refs = 1, .len = n, .data = p };
	return b;
}

struct http_blob *
http_blob_new_sized(size_t n, uint8_t **ret_bytes)
{
	struct http_blob *b = n <= SIZE_MAX / 2 ? mem_alloc(sizeof(*b) + n) : NULL;

	if (b == NULL)
		return NULL;
	b->refs = 1;
	b->len = n;
	b->data = b->own;
	*ret_bytes = b->own;
	return b;
}

struct http_blob *
http_blob_new_copy(const void *p, size_t n)
{
	uint8_t *bytes;
	struct http_blob *b = http_blob_new_sized(n, &bytes);

	if (b != NULL && n > 0)
		memcpy(bytes, p, n);
	return b;
}

struct http_blob *
http_blob_ref(struct http_blob *b)
{
	b->refs++;
	return b;
}

struct http_blob *
http_blob_unref(struct http_blob *b)
{
	if (b == NULL)
		return NULL;
	must(b->refs > 0);
	if (--b->refs == 0)
		free(b);
	return NULL;
}

size_t
http_blob_len(const struct http_blob *b)
{
	return b->len;
}

/* ---- queue --------------------------------------------------------------------------- */

void
outq_init(struct outq *q)
{
	STAILQ_INIT(&q->pieces);
	q->last = NULL;
	q->unsent = 0;
}

static void
outq_drop_first(struct outq *q)
{
	struct out_piece *o = STAILQ_FIRST(&q->pieces);

	STAILQ_REMOVE_HEAD(&q->pieces, entry);
	if (q->last == o)
		q->last = NULL;
	http_blob_unref(o->blob);
	/* Answers carry session ids, tickets and secrets that are told once. */
	mem_wipe(o->own, o->cap);
	free(o);
}

void
outq_clear(struct outq *q)
{
	while (!STAILQ_EMPTY(&q->pieces))
		outq_drop_first(q);
	q->unsent = 0;
}

static struct out_piece *
outq_new_piece(struct outq *q, size_t cap)
{
	struct out_piece *o = mem_alloc(sizeof(*o) + cap);

	if (o == NULL)
		return NULL;
	o->blob = NULL;
	o->off = o->len = 0;
	o->cap = cap;
	STAILQ_INSERT_TAIL(&q->pieces, o, entry);
	q->last = o;
	return o;
}

/* How much room a piece for ${n} bytes gets, so that those which follow find some. */
static size_t
outq_room_for(const struct outq *q, size_t n)
{
	if (q->last != NULL && q->last->blob != NULL && n < PIECE_FRAMING / 2)
		return PIECE_FRAMING;
	return n < PIECE_MIN ? PIECE_MIN : n;
}

int
outq_add(struct outq *q, const void *p, size_t n)
{
	struct out_piece *o = q->last;

	if (n == 0)
		return 0;
	if (o == NULL || o->blob != NULL || o->cap - o->off - o->len < n) {
		if (n > SIZE_MAX / 2)
			return E_NOMEM;
		o = outq_new_piece(q, outq_room_for(q, n));
		if (o == NULL)
			return E_NOMEM;
	}
	memcpy(o->own + o->off + o->len, p, n);
	o->len += n;
	q->unsent += n;
	return 0;
}

int
outq_add_blob(struct outq *q, struct http_blob *b)
{
	struct out_piece *o;

	if (b->len == 0)
		return 0;
	o = outq_new_piece(q, 0);
	if (o == NULL)
		return E_NOMEM;
	o->blob = http_blob_ref(b);
	o->len = b->len;
	q->unsent += b->len;
	return 0;
}

void
outq_drop_rest(struct outq *q)
{
	struct out_piece *first = STAILQ_FIRST(&q->pieces);

	if (first == NULL)
		return;
	STAILQ_REMOVE_HEAD(&q->pieces, entry);
	outq_clear(q);
	STAILQ_INSERT_HEAD(&q->pieces, first, entry);
	q->last = first;
	q->unsent = first->len;
}

static void
outq_forget(struct outq *q, size_t n)
{
	struct out_piece *o;

	q->unsent -= n;
	while (n > 0) {
		o = STAILQ_FIRST(&q->pieces);
		if (n < o->len) {
			o->off += n;
			o->len -= n;
			return;
		}
		n -= o->len;
		outq_drop_first(q);
	}
}

int
outq_send(struct outq *q, int fd, size_t *ret_sent)
{
	size_t sent = 0;

	while (q->unsent > 0) {
		struct iovec iov[SEND_PIECES];
		struct msghdr msg = { .msg_iov = iov };
		struct out_piece *o;
		ssize_t n;

		STAILQ_FOREACH (o, &q->pieces, entry) {
			const uint8_t *data = o->blob != NULL ? o->blob->data : o->own;

			if (msg.msg_iovlen == SEND_PIECES)
				break;
			/* sendmsg() only reads, its type does not say so. */
			iov[msg.msg_iovlen].iov_base = (void *)(uintptr_t)(data + o->off);
			iov[msg.msg_iovlen++].iov_len = o->len;
		}
		n = sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS))
			break;
		if (n < 0) {
			*ret_sent = sent;
			return E_LINK;
		}
		outq_forget(q, (size_t)n);
		sent += (size_t)n;
	}
	*ret_sent = sent;
	return 0;
}
