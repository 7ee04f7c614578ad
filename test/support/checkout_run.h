/*
 * test/support/checkout_run.h -- a checkout child driven to its end, and git repositories.
 */
#ifndef TEST_SUPPORT_CHECKOUT_RUN_H
#define TEST_SUPPORT_CHECKOUT_RUN_H

#include <stddef.h>

#include "lib/base/buf.h"
#include "lib/checkout/checkout.h"

/* A temporary place: src/ is a repository with branch main, cache/ and ws/ are anvil's. */
struct checkout_place {
	char base[64];
	char src[96];
	char url[112]; /* file:// of src */
	char mirror[96];
	char lock[96];
	char workspace[96];
};

struct checkout_run {
	struct checkout_request req; /* Filled by checkout_run_init(); change at will. */
	uint32_t depth;
	int leave_after;  /* Kind of message after which the parent goes away; -1: none. */
	int ends_at_once; /* The child leaves without a search for leaks. */
	/* What came. */
	int committed, configured, done, failed;
	char sha[CHECKOUT_SHA_SIZE];
	enum checkout_config config;
	enum checkout_failure failure;
	uint64_t size;     /* Of the config.  */
	uint64_t received; /* By the fetch.   */
	uint32_t nfiles;
	struct buf lines; /* Each with a newline. */
	struct buf text;  /* Config's, or failure's; NUL-terminated. */
	int status;       /* As of waitpid(2). */
};

void checkout_place_make(struct checkout_place *p);
void checkout_place_remove(struct checkout_place *p);

/* sh -e -c of the formatted text in src/, with git confined to this place; must work. */
void checkout_sh(const struct checkout_place *p, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* First line of what such a command prints, in a static buffer. */
const char *
checkout_sh_line(const struct checkout_place *p, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* ${r} is zeroed before its first use; what it held is freed. */
void checkout_run_init(struct checkout_run *r, const struct checkout_place *p);
/* Removes the workspace, runs the child to its end. */
void checkout_run_go(struct checkout_run *r, const struct checkout_place *p);
void checkout_run_done(struct checkout_run *r);

#endif
