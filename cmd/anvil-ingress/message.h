/*
 * cmd/anvil-ingress/message.h -- what viewers of a run are sent (http-api 8.1, 8.4), as text and
 * in the frames of each transport.
 *
 * Texts are added to ${out}; want of memory shows in it.  Frames are made once for any number of
 * viewers; NULL: out of memory.
 */
#ifndef CMD_ANVIL_INGRESS_MESSAGE_H
#define CMD_ANVIL_INGRESS_MESSAGE_H

#include "gen/types.h"
#include "lib/base/buf.h"

struct http_blob;

enum message_format {
	MESSAGE_WS,   /* One text frame.                            */
	MESSAGE_SSE,  /* One event.                                 */
	MESSAGE_TEXT, /* The text of lines alone; nothing else has. */
	MESSAGE_FORMATS,
};

void message_log(struct buf *out, const struct log_row *row);
void message_state(
    struct buf *out, const struct run_live *run, const struct step_row *steps, size_t nsteps);
void message_gap(struct buf *out, int64_t from_seq, int64_t to_seq);
void message_end(struct buf *out, const char *reason);

/* ${json} is what one of the functions above has made; ${type} is the word in it.  ${id} 0: the
 * event has none.  Not for MESSAGE_TEXT. */
struct http_blob *
message_frame(enum message_format f, const char *type, int64_t id, const struct buf *json);
/* One line in any format. */
struct http_blob *message_log_frame(enum message_format f, const struct log_row *row);

#endif
