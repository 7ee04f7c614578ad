/*
 * lib/checkout/co.h -- what the files of the checkout child share; private to lib/checkout.
 *
 * Functions here return 0, or a negative error after they have put the failure for the
 * parent into the struct (co_fail() and co_fail_git()).  E_CORRUPT among those means that
 * the mirror's objects are damaged, and that making it anew may help.
 */
#ifndef LIB_CHECKOUT_CO_H
#define LIB_CHECKOUT_CO_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <git2.h>

#include "lib/base/base.h"
#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/checkout/checkout.h"

#define CO_TEXT_SIZE   (96 * 1024) /* A frame has room for it; an answer of git's has 64 KiB. */
#define CO_ORIGIN_SIZE 300

/* Types of message, the first byte of a frame's body. */
enum co_type {
	CO_REQUEST = 'R',
	CO_GO_ON = 'G',
	CO_WORKSPACE = 'W',
	CO_LINE = 'l',
	CO_COMMIT = 'c',
	CO_CONFIG = 'f',
	CO_DONE = 'd',
	CO_FAILED = 'x'
};

/* Where a URL leads.  host is lower case and without brackets. */
struct co_origin {
	char scheme[8]; /* "https", "http", "file" */
	char host[256]; /* "" for file             */
	char port[8];   /* digits; "" for file     */
};

/* One branch or tag of the remote. */
struct co_ref {
	char *name; /* Owned: "refs/heads/main".                    */
	git_oid oid;
	git_oid peeled; /* What an annotated tag leads to, else oid. */
};

struct co {
	/* The request. */
	struct buf request; /* Owned; req borrows from it, the token too. */
	struct checkout_request req;
	struct co_origin origin; /* Of req.url. */
	/* Pipes and the lock. */
	int in_fd;
	int out_fd;
	int lock_fd;
	struct mono_time line_at; /* When the last progress line was sent. */
	/* Mirror. */
	git_repository *repo; /* Owned. */
	git_odb *odb;         /* Owned. */
	struct co_ref *refs;  /* Owned, as the array's names; by name, ascending. */
	size_t nrefs;
	size_t refs_cap;
	int fresh; /* The mirror was made by this child.                    */
	int anew;  /* It was thrown away once already for damage.           */
	/* The commit. */
	git_oid oid;
	int pinned;   /* The request named a commit: HEAD is detached.       */
	int resolved; /* oid and sha count: no other commit from here on.    */
	char sha[CHECKOUT_SHA_SIZE];
	uint32_t depth;
	/* The fetch. */
	int asked;   /* Times that the remote asked for a credential.       */
	int refused; /* It did not take it, or there was none to give.       */
	uint64_t received_bytes;
	uint32_t nfiles;
	/* The failure, once there is one. */
	enum checkout_failure failure;
	char text[CO_TEXT_SIZE]; /* Neither redacted nor cut. */
};

/* fail.c: each returns an error to pass on. */
int
co_fail(struct co *co, enum checkout_failure failure, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* CHECKOUT_FAILED_PREFIX and the reason. */
int co_fail_reason(struct co *co, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* From errno, about ${what}; a full disk is told apart. */
int co_fail_errno(struct co *co, const char *what);
/* From an error of base. */
int co_fail_err(struct co *co, int err, const char *what);
/* From libgit2's last error, with the state of the credential; E_CORRUPT where it is one of
 * the object database. */
int co_fail_git(struct co *co);

/* proto.c: the child's half.  They write whole frames; 0 or E_SYS (the parent is gone). */
int co_send_text(struct co *co, enum co_type type, const char *text);
int co_send_commit(struct co *co);
int co_send_config(
    struct co *co, enum checkout_config kind, uint64_t size, const void *p, size_t n);
int co_send_done(struct co *co);
int co_send_failed(struct co *co);
/* A whole frame of ${type} into ${body}; 0, E_EOF, E_FRAME, E_NOMEM, E_SYS. */
int co_receive(struct co *co, enum co_type type, struct buf *body);
/* A line for the log at once; and one of progress, dropped when one went out less than a
 * second ago.  A parent that is gone is noticed elsewhere. */
void co_line(struct co *co, const char *fmt, ...) PRINTF_LIKE(2, 3);
void co_progress(struct co *co, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* url.c */
/* 0 or E_INVAL: not a URL that the child knows. */
int co_origin_parse(const char *url, struct co_origin *ret);
int co_origin_equal(const struct co_origin *a, const struct co_origin *b);
/* Refuses what the configuration does not allow. */
int co_origin_check(struct co *co);

/* stream.c: every connection of libgit2 goes to ${origin}, and to nothing else. */
int co_stream_confine(const struct co_origin *origin);

/* mirror.c */
int co_mirror_lock(struct co *co);
int co_mirror_open(struct co *co);
void co_mirror_close(struct co *co);
/* Away with it; the next open makes a new one. */
int co_mirror_discard(struct co *co);
/* Writes the refs in memory, when they differ from the file's.  co_mirror_refs_same(): 1
 * when the file has them already. */
int co_mirror_refs_same(struct co *co);
int co_mirror_refs_write(struct co *co);
/* Writes ${text} at ${path} by way of a temporary name; no fsync, a mirror is a cache. */
int co_write_text(struct co *co, const char *path, const char *text, size_t n);
void co_refs_clear(struct co *co);
/* NULL: there is none. */
const struct co_ref *co_refs_find(const struct co *co, const char *prefix, const char *name);

/* fetch.c */
int co_fetch(struct co *co);
/* Gets ${oid} itself, when the remote gives it.  0 also when it did not: look. */
int co_fetch_oid(struct co *co, const git_oid *oid);

/* commit.c */
int co_commit_resolve(struct co *co);
int co_config_send(struct co *co);
/* Hexadecimal lines of the commits whose parents depth cuts off; empty: no cut. */
int co_commit_boundary(struct co *co, struct buf *out);

/* workspace.c and gitdir.c */
int co_workspace_write(struct co *co);
/* ${text} as a quoted value of a git configuration file. */
void co_config_quote(struct buf *out, const char *text);
/* Everything in .git but the index; and the proof that HEAD is the commit. */
int co_gitdir_write(struct co *co);
int co_gitdir_check(struct co *co);

#endif
