/*
 * lib/wire/envelope.h -- the outer object of a JSON-RPC message, without a tree.
 *
 * The ordinary form is cut into its members where it stands; anything else (escapes in names,
 * members that are not ours) is parsed, written anew in the ordinary form, and cut then.
 * Members are checked for being JSON by whoever parses them; unknown ones here.
 */
#ifndef LIB_WIRE_ENVELOPE_H
#define LIB_WIRE_ENVELOPE_H

#include <stddef.h>

/* Text of one member; p NULL: absent. */
struct span {
	char *p;
	size_t n;
};

struct envelope {
	struct span version, id, method, params, meta, result, error;
	int nunknown; /* Members beyond these.                              */
	char *owned;  /* The rewritten text that the spans are in, or NULL. */
};

/* 0; E_REQUEST: JSON but not an object; E_PARSE, E_DEEP, E_NOMEM.  After 0 the caller calls
 * envelope_done() when it is through with the spans. */
int envelope_read(char *body, size_t n, struct envelope *ret);
void envelope_done(struct envelope *e);

/* Name behind the quotes, terminated in place.  NULL: no string of printable ASCII. */
const char *envelope_word(struct span s);
/* An integer of at most 15 digits.  1 it is one, 0 it is not. */
int envelope_int(struct span s, long long *ret_value);

/* What a request says about its caller.  0 or E_REQUEST, E_PARSE, E_DEEP, E_NOMEM. */
int
envelope_meta(struct span meta, char *ret_request_id, size_t size, long long *ret_deadline_ms);

#endif
