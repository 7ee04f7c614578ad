/*
 * lib/checkout/checkout.h -- from a repository URL to a workspace (spec run 6).
 *
 * All git happens in a child process with one request pipe and one result pipe.  This header
 * has both of its ends: the child's whole life is checkout_child_main(); the parent writes
 * requests with the checkout_put_...() functions and reads results with a decoder that it
 * feeds as bytes come.  No event loop, no log, no thread.
 *
 *	parent -> child		child -> parent
 *	request
 *				line *		progress and remarks, <= 1/s of the former
 *				commit		the parent records it with the shard first
 *	go on
 *				config		the parent parses it
 *	workspace {depth}
 *				done
 *				failed		instead of any of the above, and the last word
 *
 * The child leaves when its request pipe closes, so a parent that has seen enough (no usable
 * config, a lost lease) just closes it.  It may be killed at any instruction.
 */
#ifndef LIB_CHECKOUT_CHECKOUT_H
#define LIB_CHECKOUT_CHECKOUT_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/base.h"
#include "lib/base/buf.h"

#define CHECKOUT_FRAME_MAX  (128 * 1024) /* Bytes of one message, either way.       */
#define CHECKOUT_CONFIG_MAX (64 * 1024)  /* A larger config blob is never loaded.   */
#define CHECKOUT_TEXT_MAX   512          /* Bytes of libgit2's text to be shown.    */
#define CHECKOUT_SHA_SIZE   65           /* Hexadecimal digits and a NUL.           */

#define CHECKOUT_FAILED_PREFIX "Checkout failed: "

/* What to check out.  Strings are borrowed.  Paths are absolute. */
struct checkout_request {
	const char *mirror;     /* cache/<project_id>.git; made when absent.            */
	const char *lock;       /* cache/<project_id>.lock; made when absent.           */
	const char *workspace;  /* runs/<run_id>/ws; made when absent, else empty.      */
	const char *alternates; /* Where steps see the mirror's objects; NULL: as here. */
	const char *url;        /* Clean: no credential in it.                          */
	const char *branch;     /* Without refs/heads/.                                 */
	const char *commit;     /* Pinned: 4..64 hexadecimal digits.  NULL: the head.   */
	const char *token;      /* `user:token` or bare.  NULL: none.                   */
	const char *config;     /* Path of the config in the commit's tree.             */
	const char *ca_file;    /* PEM, in place of the system's; NULL or "": those.    */
	/* repositories.* of the configuration: what the URL may be besides https to a
	 * public host name. */
	int allow_http;
	int allow_private_hosts;
	int allow_local;
};

enum checkout_kind {
	CHECKOUT_LINE,   /* `text`: for the run's log, without its newline.               */
	CHECKOUT_COMMIT, /* `sha`: resolved, and in the mirror.  Answer with go on.       */
	CHECKOUT_CONFIG, /* `config`, `size`, `text`.  Answer with workspace.             */
	CHECKOUT_DONE,   /* `sha` is HEAD; `size` bytes received, `nfiles` files written. */
	/* `failure`, `text`: the errorMessage of spec run 13, as long as it comes: it may quote
	 * the server, and is to be redacted before it is cut to CHECKOUT_TEXT_MAX bytes behind
	 * the prefix. */
	CHECKOUT_FAILED
};

enum checkout_config {
	CHECKOUT_CONFIG_FOUND,      /* `text` and `text_len` are its bytes; may hold NULs. */
	CHECKOUT_CONFIG_TOO_BIG,    /* `size` tells; nothing was loaded.                   */
	CHECKOUT_CONFIG_NOT_FOUND,  /* No such path in the commit.                         */
	CHECKOUT_CONFIG_NOT_REGULAR /* A directory, symlink or submodule.                  */
};

enum checkout_failure {
	CHECKOUT_CHECKOUT_FAILED,
	CHECKOUT_COMMIT_UNREACHABLE,
	CHECKOUT_CREDENTIAL_REFUSED,
	CHECKOUT_DISK_FULL,
	CHECKOUT_INTERNAL /* Out of memory, or a parent that broke the protocol; `text` is the
			   * reason alone. */
};

/* One result message.  `text` points into the decoder and ends in a NUL that text_len does
 * not count; it is valid until the decoder is used again.  Members that the kind does not
 * name are zero. */
struct checkout_message {
	enum checkout_kind kind;
	enum checkout_config config;
	enum checkout_failure failure;
	char sha[CHECKOUT_SHA_SIZE];
	uint64_t size;
	uint32_t nfiles;
	const char *text;
	size_t text_len;
};

/* Code of spec run 13, such as "checkout_failed"; never NULL. */
const char *checkout_failure_code(enum checkout_failure failure);

/*
 * Each appends one message for the child to ${out}, whose bytes the caller then writes to
 * the request pipe in order.  0, E_NOMEM, E_INVAL (a missing string) or E_TOO_BIG; then
 * ${out} is as before.  A request holds the token: buf_wipe() ${out} once it is written.
 * The child wipes its own copy when no fetch can follow, damage of the mirror included.
 * Depth 0 is the full history, with every tag; else the tags of the commit come along.
 */
int checkout_put_request(struct buf *out, const struct checkout_request *req);
int checkout_put_go_on(struct buf *out);
int checkout_put_workspace(struct buf *out, uint32_t depth);

/* The child's side of the same; here for tests and fuzzing.  ${ret} borrows from ${body},
 * the bytes behind the length; strings end in NUL there.  0 or E_FRAME. */
int checkout_get_request(const void *body, size_t len, struct checkout_request *ret);

/* Reader of the result pipe. */
struct checkout_decoder {
	struct buf in; /* Owned: bytes fed and not yet handed out as a message. */
	size_t used;   /* Bytes at its start that the last message occupied.    */
};

void checkout_decoder_init(struct checkout_decoder *d);
void checkout_decoder_done(struct checkout_decoder *d);
/* 0 or E_NOMEM. */
int checkout_decoder_feed(struct checkout_decoder *d, const void *p, size_t n);
/* 1: a message is in ${ret}; 0: feed more; E_FRAME or E_TOO_BIG: the child is not ours any
 * more (kill it). */
int checkout_decoder_next(struct checkout_decoder *d, struct checkout_message *ret);

/*
 * checkout_child_main(request_fd, result_fd):
 * The child's life.  Called right after fork, in a process that holds no secret and has no
 * second thread; closes every descriptor but 0, 1, 2 and these two, asks for KILL when the
 * parent dies, becomes non-dumpable, and uses blocking I/O.  Both descriptors are taken.
 * Signals are at their defaults afterwards: TERM ends it at any point, and the next run
 * clears up.  Returns the exit status: 0 after `done`, 1 after `failed` or when the parent
 * has gone away.
 */
int checkout_child_main(int request_fd, int result_fd);

#endif
