#include "cmd/anvil-run/window.h"

#include "lib/base/base.h"

size_t
window_room(const struct window *w)
{
	return w->unacked < WINDOW_BYTES ? WINDOW_BYTES - w->unacked : 0;
}

void
window_add(struct window *w, int64_t seq, size_t bytes)
{
	struct window_mark *last;

	if (w->n < WINDOW_MARKS)
		w->marks[(w->first + w->n++) % WINDOW_MARKS] = (struct window_mark) { 0, 0 };
	last = &w->marks[(w->first + w->n - 1) % WINDOW_MARKS];
	last->seq = seq;
	last->bytes += bytes;
	w->unacked += bytes;
}

void
window_ack(struct window *w, int64_t seq)
{
	while (w->n != 0 && w->marks[w->first].seq <= seq) {
		w->unacked -= w->marks[w->first].bytes;
		w->first = (w->first + 1) % WINDOW_MARKS;
		w->n--;
	}
}
