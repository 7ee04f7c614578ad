/*
 * lib/webhook/inside.h -- the state of a scan, shared by its grammar and its texts, and what
 * else the folder shares.  Private.
 */
#ifndef LIB_WEBHOOK_INSIDE_H
#define LIB_WEBHOOK_INSIDE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/webhook/scan.h"

#define KEY_MAX 16 /* Bytes; longer than any name that is looked for. */

/* Where a string's text goes. */
enum sink { SINK_NOWHERE, SINK_KEY, SINK_VALUE };

/* Places whose members are looked at. */
enum place { PLACE_OTHER, PLACE_TOP, PLACE_PROJECT, PLACE_REPOSITORY };

/* A member of the table: where it stands, what it is called, how long its text may be. */
struct member_row {
	enum place place;
	enum place opens; /* When it is an object; PLACE_OTHER: nothing is kept of it. */
	const char *name;
	size_t name_len;
	const char *path;
	size_t max; /* Bytes that are kept of a text; 0: no text is kept. */
};

extern const struct member_row member_rows[WEBHOOK_MEMBER_COUNT];

struct kept {
	struct buf text;
	uint8_t type; /* enum webhook_type */
	uint8_t too_long;
	uint8_t not_zeros;
};

struct webhook_scan {
	uint32_t magic;
#define SCAN_MAGIC 0x7b21d9c4
	const struct webhook_forge *forge;
	/* Grammar. */
	uint8_t state;  /* enum state, of scan.c                           */
	uint8_t number; /* State of a number.                              */
	uint8_t is_key; /* The string at hand is one.                      */
	uint8_t place;  /* enum place of the innermost container           */
	uint8_t second; /* ... of the one at depth 2                       */
	unsigned depth;
	uint64_t objects; /* Bit d: the container at depth d + 1 is an object. */
	const char *rest; /* What has to come of a literal.                    */
	/* The string at hand. */
	uint8_t sink;   /* enum sink                                     */
	uint8_t nhex;   /* Digits of an escape that have come.           */
	uint16_t unit;  /* Their value.                                  */
	uint16_t high;  /* First half of a surrogate pair; 0: none.      */
	uint8_t need;   /* Bytes that the character at hand lacks.       */
	uint8_t lo, hi; /* Bounds of the next of them.                   */
	uint8_t nkey;   /* KEY_MAX + 1: it is none that is looked for.   */
	char key[KEY_MAX];
	/* Members. */
	int member; /* enum webhook_member whose value is next or at hand; -1: none. */
	unsigned seen;
	struct kept kept[WEBHOOK_MEMBER_COUNT];
	/* Verdict. */
	int err; /* E_PARSE or E_NOMEM once it is known. */
	struct webhook_fault fault;
};

/* The first verdict stands; nothing is scanned after it. */
void scan_fail(struct webhook_scan *s, const char *path, const char *message);
void scan_fail_memory(struct webhook_scan *s);

/* The text of a string with a sink: its beginning, raw bytes, the character of a simple escape
 * (a run of one byte), code units of \u escapes, its end. */
void text_begin(struct webhook_scan *s, enum sink sink);
void text_run(struct webhook_scan *s, const uint8_t *p, size_t n);
void text_unit(struct webhook_scan *s, uint16_t unit);
void text_end(struct webhook_scan *s);

#endif
