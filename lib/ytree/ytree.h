/*
 * lib/ytree/ytree.h -- a YAML text as a tree with positions, in the narrow dialect of
 * spec run 7, and the list of what is wrong with it.
 *
 * The only folder that knows libyaml.  Tree and issues live in the caller's arena.  What the
 * dialect refuses is reported here; what the keys mean is for pipeline and config to judge,
 * with the helpers below, into the same list.
 */
#ifndef LIB_YTREE_YTREE_H
#define LIB_YTREE_YTREE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/base.h"
#include "lib/base/buf.h"

#define YTREE_DEPTH_MAX  8  /* Maps and lists inside one another. */
#define YTREE_ISSUES_MAX 20 /* Issues that are kept.              */
#define YTREE_VALUE_MAX  64 /* Bytes of a value or key in a text. */
#define YTREE_PATH_MAX   32 /* Bytes of one key in a path.        */

enum ytree_kind {
	YTREE_SCALAR,
	YTREE_LIST,
	YTREE_MAP,
	YTREE_REFUSED /* An alias, a tagged value, or too deep: reported already, skip it. */
};

struct ytree_node {
	enum ytree_kind kind;
	size_t line, column; /* From 1; columns count characters.                      */
	int plain;           /* Scalar: neither quoted nor a block.                    */
	const char *text;    /* Scalar: NUL-terminated; may hold further NULs.         */
	size_t len;
	size_t nchildren;         /* List and map; a map's duplicates left out.    */
	struct ytree_node *first; /* The children, linked by `next`.               */
	struct ytree_node *next;
	const struct ytree_node *key; /* In a map: a scalar.                           */
	size_t index;                 /* In a list: from 0.                            */
	const struct ytree_node *parent;
};

enum ytree_class {
	YTREE_YAML, /* Not YAML, or not in the dialect. */
	YTREE_RULE  /* Not what is expected there.      */
};

struct ytree_issue {
	enum ytree_class class;
	size_t line, column;
	const char *path; /* Such as run.steps[0].name; "" for the whole. */
	const char *text;
};

/*
 * Takes out of what is quoted in an issue what its readers must not see: adds the rest of
 * ${p} to ${out}.  0 or E_NOMEM.  A quotation goes through it whole, before it is escaped and
 * cut: of what lies across a cut nobody could tell afterwards what it was.  `fn` NULL: all
 * may be seen.
 */
typedef int ytree_clean_fn(const void *arg, const char *p, size_t n, struct buf *out);
struct ytree_cleaner {
	ytree_clean_fn *fn;
	const void *arg;
};

/* The first YTREE_ISSUES_MAX issues by position; `nmore` were found besides.  Zeroed but for
 * `arena` and `cleaner` before use. */
struct ytree_issues {
	struct arena *arena;
	struct ytree_cleaner cleaner;
	struct ytree_issue at[YTREE_ISSUES_MAX];
	size_t n, nmore;
	size_t nyaml; /* How many of all are of class YTREE_YAML.                       */
	int failed;   /* Memory ran out while one was added: E_NOMEM is the only answer. */
};

/*
 * ytree_parse(arena, text, n, issues, &root):
 * Reads ${n} bytes.  0: ${ret_root} is the tree, an empty map at 1:1 when there is no
 * document; issues of the dialect may have been added all the same.  E_INVAL: the text could
 * not be read to its end and only the issues count.  E_NOMEM.
 */
int ytree_parse(struct arena *arena, const char *text, size_t n, struct ytree_issues *issues,
    struct ytree_node **ret_root);

/* ---- reporting ------------------------------------------------------------------------ */

/* Adds an issue at the position and path of ${node}. */
void ytree_report(struct ytree_issues *issues, enum ytree_class class,
    const struct ytree_node *node, const char *fmt, ...) PRINTF_LIKE(4, 5);
/* Adds `expected <type>, got <value>` for ${node}, unless it is refused already. */
void
ytree_expected(struct ytree_issues *issues, const struct ytree_node *node, const char *type);
/* Adds `missing` for ${key} at the position of ${map}. */
void ytree_missing(struct ytree_issues *issues, const struct ytree_node *map, const char *key);
/* Reports every key of ${map} that is not among ${known}, with the nearest that is. */
void ytree_check_keys(struct ytree_issues *issues, const struct ytree_node *map,
    const char *const *known, size_t nknown);

/* ---- looking -------------------------------------------------------------------------- */

/* The value of ${key}, or NULL. */
const struct ytree_node *ytree_get(const struct ytree_node *map, const char *key);
/* 1 for a value that is not there at all (`key:`). */
int ytree_is_null(const struct ytree_node *node);
/* 1 for a scalar that is text: every one but null. */
int ytree_is_text(const struct ytree_node *node);
/* A plain scalar 0|[1-9][0-9]* that fits.  0 or E_INVAL. */
int ytree_int(const struct ytree_node *node, int64_t *ret);

/* ---- texts, for those who format issues ------------------------------------------------- */

/* Adds at most ${max} bytes of what ${c} leaves of ${p}, and `…` when there were more, controls
 * escaped, so that it stays on one line.  0 or E_NOMEM. */
int ytree_put_cut(
    struct buf *out, const struct ytree_cleaner *c, const char *p, size_t n, size_t max);
/* Adds the path of ${node}.  0 or E_NOMEM. */
int
ytree_put_path(struct buf *out, const struct ytree_cleaner *c, const struct ytree_node *node);

#endif
