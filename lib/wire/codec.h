/*
 * lib/wire/codec.h -- between JSON and C structs, by tables.
 *
 * The tables are generated from proto/ (cmd/anvil-protogen), one for each type; this is what
 * reads them.  Decoding borrows: strings point into the JSON tree, what needs room of its own
 * (lists, nullable objects, normalised texts) comes from the arena.  Encoding writes text.
 */
#ifndef LIB_WIRE_CODEC_H
#define LIB_WIRE_CODEC_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "lib/base/arena.h"
#include "lib/base/base.h"
#include "lib/base/buf.h"

#define CODEC_ISSUES_MAX 256 /* Further ones are counted, not kept. */
#define CODEC_FIELDS_MAX 40  /* Members of one object.              */

struct rule_ctx;

/* Text that may hold U+0000 (x-nul in the contract). */
struct str_view {
	const char *p;
	size_t n;
};

/* ---- decoding ---- */

/* One bad field (spec http-api 2.5).  Texts live as long as the arena. */
struct codec_issue {
	const char *path;     /* "set.name", "rows[3].runId", "" for the whole.     */
	const char *expected; /* Name of the type; "absent" for an unknown member.  */
	const char *message;  /* A sentence.                                        */
	const char *code;     /* Error code of the HTTP API for this field.         */
};

/* What a pass looks at: types, missing and unknown members, NUL, slugs; or all the rest. */
enum codec_pass { CODEC_SHAPES = 1, CODEC_RULES = 2, CODEC_ALL = 3 };

struct codec {
	struct arena *arena;          /* Borrowed.                                    */
	const struct rule_ctx *rules; /* For x-rule; NULL: the defaults.              */
	unsigned passes;              /* CODEC_ALL at first.                          */
	int lenient;                  /* Unknown members and kinds are no issue.      */
	/* Results. */
	struct codec_issue *issues; /* In the order of the table, unknown ones last.  */
	size_t nissues;             /* Kept.                                          */
	size_t nbad;                /* Found.                                         */
	/* Private. */
	size_t cap;
	const struct codec_at *at;
	int err;
};

/* Fresh, strict, with all passes. */
void codec_init(struct codec *c, struct arena *arena, const struct rule_ctx *rules);

struct codec_type;

/* Fills ${ret} from ${j} (NULL: an empty object).  0; E_PARAMS: see the issues;
 * E_UNSUPPORTED: lenient, and of a kind that this release does not know; E_NOMEM.  On failure
 * ${ret} is void.  Issues of earlier calls are forgotten. */
int codec_decode(struct codec *c, const struct codec_type *t, const json_t *j, void *ret);

/* Adds `{"issues":[{"path":…,"expected":…,"message":…},…]}`.  0 or E_NOMEM. */
int codec_issues_text(const struct codec *c, struct buf *out);

struct codec_words;
/* Index of ${text}, or E_INVAL. */
int codec_word_find(const struct codec_words *words, const char *text);

/* ---- encoding ---- */

/* Adds ${v} as JSON text.  0 or E_NOMEM.  A union without a kind, an enum outside its words or
 * a NULL where the contract wants text is our own bug: must(). */
int codec_encode(struct buf *out, const struct codec_type *t, const void *v);

/* ---- tables, written by the generator alone ---- */

enum codec_kind {
	CODEC_STRING = 1, /* const char *                          */
	CODEC_VIEW,       /* struct str_view                       */
	CODEC_TIME,       /* int64_t in ms; text of 24 characters  */
	CODEC_ENUM,       /* an enum that counts from 0            */
	CODEC_INTEGER,    /* int64_t                               */
	CODEC_NUMBER,     /* double                                */
	CODEC_BOOLEAN,    /* int                                   */
	CODEC_ANY,        /* const json_t *, then const char *     */
	CODEC_ARRAY,      /* const T *, then size_t                */
	CODEC_OBJECT,     /* struct                                */
	CODEC_UNION,      /* enum that counts from 1, then a union */
};

/* Shapes of texts that JSON Schema would write as patterns. */
enum codec_shape {
	CODEC_SHAPE_NONE = 0,
	CODEC_SHAPE_ID,     /* 22 digits of base 62 behind a prefix   */
	CODEC_SHAPE_SLUG,   /* 1..64 of A-Za-z0-9_-                   */
	CODEC_SHAPE_HEX32,  /* 32 lower-case hexadecimal digits       */
	CODEC_SHAPE_SHA256, /* 64 of them                             */
	CODEC_SHAPE_COMMIT, /* 7..64 lower-case hexadecimal digits    */
	CODEC_SHAPE_BASE64URL,
};

struct codec_words {
	const char *const *names;
	size_t n;
};

/* Small, because relocated tables are memory of each process. */
struct codec_type {
	const char *name; /* As issues tell it.                              */
	const char *code; /* Of the HTTP API; NULL: invalid_request.         */
	int64_t min, max; /* Texts: characters; integers: values; lists: items. */
	const char *rule; /* For rule_apply().                               */
	const char *tag;  /* Member that tells the kind of a union; of ids, the prefix. */
	const struct codec_words *words;
	const struct codec_type *item;
	const struct codec_field *fields;
	const struct codec_variant *variants;
	uint32_t size;      /* Of the C value.            */
	uint32_t max_bytes; /* Of a text; 0: no limit.    */
	uint16_t nfields, nvariants;
	uint8_t kind;  /* enum codec_kind  */
	uint8_t shape; /* enum codec_shape */
};

enum codec_flag {
	CODEC_REQUIRED = 1,
	CODEC_NULLABLE = 2,
	CODEC_POINTER = 4, /* An object behind a pointer.                             */
	CODEC_HAS = 8,     /* `has` tells that there is a value, or that it is there. */
	CODEC_DEFAULT = 16,
};

/* What few fields have. */
struct codec_extra {
	const char *code;       /* Instead of the type's; NULL: that.               */
	const char *blank_code; /* The same, for a text of white space alone.       */
	int64_t def_int;
	const char *def_text;
};

struct codec_field {
	const char *key; /* Quoted, with its colon: "\"runId\":". */
	const struct codec_type *type;
	const struct codec_extra *extra; /* NULL: nothing. */
	uint32_t at, has;                /* Offsets in the struct. */
	uint16_t key_len;
	uint16_t flags; /* enum codec_flag */
};

/* A variant without members of its own has a type without fields. */
struct codec_variant {
	const char *name;
	const struct codec_type *type;
	uint32_t at;
};

#endif
