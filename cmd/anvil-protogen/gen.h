/*
 * cmd/anvil-protogen/gen.h -- the contract in memory, and who does what with it.
 *
 * anvil-protogen DIR NAME OUT reads DIR/NAME.json and DIR/types.json and writes OUT/NAME.h
 * and OUT/NAME.c, for actors also OUT/NAME_methods.h, for http also OUT/http_routes.h.  It
 * runs once and ends, so memory is given back by the exit.  Whatever is not understood ends
 * it with file, path and what is wrong: nothing is ignored.
 */
#ifndef CMD_ANVIL_PROTOGEN_GEN_H
#define CMD_ANVIL_PROTOGEN_GEN_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "lib/base/base.h"
#include "lib/base/buf.h"
#include "lib/base/map.h"

enum gkind {
	G_STRING,
	G_VIEW,
	G_TIME,
	G_ENUM,
	G_INTEGER,
	G_NUMBER,
	G_BOOLEAN,
	G_ANY,
	G_ARRAY,
	G_OBJECT,
	G_UNION,
};

struct gfield {
	const char *name;  /* "runId"  */
	const char *cname; /* "run_id" */
	struct gtype *type;
	int required, nullable;
	const json_t *def; /* Default; NULL: none. */
	const char *code, *blank_code;
};

struct gvariant {
	const char *name;  /* Value of the tag. */
	const char *cname; /* Member of the C union. */
	struct gtype *type;
};

struct gtype {
	enum gkind kind;
	const char *name;  /* In issues: "RunId", "Integer".                        */
	const char *cname; /* Stem of all C names: "run_id".                        */
	int is_public;     /* Its table can be used by other files.                 */
	int foreign;       /* Of types.json, and that is not the file being made.   */
	int building;      /* Guards against types that contain themselves.         */
	int is_variant;    /* Has a constant member: only for oneOf.                */
	int64_t min, max, max_bytes;
	const char *shape; /* Suffix of CODEC_SHAPE_, "NONE" when it has none.      */
	const char *prefix, *rule, *code;
	const char **words;
	size_t nwords;
	struct gtype *item;
	struct gfield *fields;
	size_t nfields;
	struct gvariant *variants;
	size_t nvariants;
	const char *tag;
	const char *kind_stem; /* Of the enum of a union's kinds. */
};

struct gmethod {
	const char *name, *cname, *summary;
	unsigned from;
	const char *turn; /* Suffix of RPC_TURN_. */
	int notification;
	int outgoing; /* x-outgoing: the actor sends it, clients decode it. */
	struct gtype *params, *result;
};

/* Error code of the HTTP API and its status. */
struct gcode {
	const char *name;
	int status;
};

struct goperation {
	const char *id, *cname, *method, *path, *access;
	int stream; /* x-stream: HEAD does not reach it. */
	struct gtype *body, *answer;
};

struct gen {
	const char *dir, *name, *out;
	const char *prefix;         /* Before the C names of this file's types. */
	json_t *doc, *types, *base; /* The file; types.json; actor.json, or NULL. */
	const char *context;        /* C struct that handlers get.  */
	/* Where the reader stands: "project.json: methods[3].params[1]". */
	char at[512];
	int foreign;          /* Inside a type of types.json, which has a file of its own. */
	struct map *named;    /* By reference, such as "types.json#/$defs/RunId". */
	struct gtype **order; /* Every type of this file, what it needs before it. */
	size_t norder;
	struct gmethod *methods;
	size_t nmethods;
	struct goperation *operations;
	size_t noperations;
	struct gcode *codes;
	size_t ncodes;
};

/* ---- main.c ---- */
void gen_fail(const struct gen *g, const char *fmt, ...) PRINTF_LIKE(2, 3) NORETURN;
void *gen_alloc(size_t n, size_t size);
/* Room for one more behind ${n} items. */
void *gen_grow(void *items, size_t n, size_t size);
char *gen_format(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* Steps down in g->at; gen_up() takes the length that it returned. */
size_t gen_down(struct gen *g, const char *fmt, ...) PRINTF_LIKE(2, 3);
void gen_up(struct gen *g, size_t len);

/* ---- names.c ---- */
/* "pendingRuns" and "project.claimRun" to "pending_runs" and "project_claim_run". */
char *name_snake(const char *name);
/* Capitals of a snake name. */
char *name_upper(const char *snake);
/* A member name that is no word of C. */
char *name_member(const char *name);
/* C type of a value of ${t}, "int64_t" or "struct run_row". */
const char *name_ctype(const struct gtype *t);

/* ---- load.c: documents to methods ---- */
/* Fills the model from g->doc. */
void load_all(struct gen *g);
/* Ends the program when ${object} has a member that is not in ${known}. */
void
load_check_keys(const struct gen *g, const json_t *object, const char *const *known, size_t n);
json_t *load_file(const char *dir, const char *name);
/* The text of a member that must be there. */
const char *load_text(const struct gen *g, const json_t *object, const char *key);

/* ---- load_http.c: OpenAPI to operations ---- */
void load_operations(struct gen *g);
/* The status of an error code; one that is not listed ends the program. */
int load_status(const struct gen *g, const char *code);

/* ---- schema.c: schemas to types ---- */
/* The type of a schema; ${cname}: the stem of C names when it has no name of its own. */
struct gtype *schema_type(struct gen *g, const json_t *schema, const char *cname);
/* As schema_type(), but a new type of that C name even for a reference. */
struct gtype *schema_own_type(struct gen *g, const json_t *schema, const char *cname);
/* Type of a definition by its full reference; made when it is met first. */
struct gtype *schema_named(struct gen *g, const char *ref);
/* An object type without members yet, for parameters of a method. */
struct gtype *schema_new_object(const char *cname);
void schema_add_field(
    struct gen *g, struct gtype *owner, const char *name, const json_t *schema, int required);
/* Puts ${t} behind what it needs. */
void schema_done(struct gen *g, struct gtype *t);

/* ---- header.c, tables.c, stubs.c, http.c, document.c: the output ---- */
void header_write(const struct gen *g, struct buf *out);
void tables_write(const struct gen *g, struct buf *out);
void stubs_header(const struct gen *g, struct buf *out);
void stubs_code(const struct gen *g, struct buf *out);
void stubs_methods(const struct gen *g, struct buf *out);
void http_header(const struct gen *g, struct buf *out);
void http_code_table(const struct gen *g, struct buf *out);
void http_routes(const struct gen *g, struct buf *out);
void document_write(const struct gen *g, struct buf *out);

#endif
