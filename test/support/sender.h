/*
 * test/support/sender.h -- the three forges, as they deliver to an edge.
 */
#ifndef TEST_SUPPORT_SENDER_H
#define TEST_SUPPORT_SENDER_H

#include "gen/types.h"
#include "test/support/edge_rig.h"

#define SENDER_SECRET "swordfish and chips"
#define SENDER_SHA    "0123456789abcdef0123456789abcdef01234567"

/* One delivery.  What is NULL is as the forge would send it, "" leaves a header out. */
struct sender_delivery {
	enum provider provider;
	const char *path;         /* /api/public/hooks/...                   */
	const char *secret;       /* NULL: SENDER_SECRET                     */
	const char *proof;        /* Whole value of the proof's header.      */
	const char *event;        /* NULL: a push                            */
	const char *id;           /* NULL: a new one                         */
	const char *content_type; /* NULL: application/json                  */
	const char *more;         /* Further header lines, each with CRLF.   */
	const char *body;         /* NULL: a push to main                    */
	const char *is_signed;    /* What the proof is of; NULL: the body    */
	size_t chunk;             /* Bytes of a chunk; 0: Content-Length     */
	size_t piece;             /* Bytes of a write; 0: all at once        */
};

/* A project of the user who is signed in, whose repository this forge has, with its webhook.
 * Its path, /api/private/projects/... */
const char *
sender_project(struct edge_rig *g, enum provider provider, const char *slug, char out[96]);
/* PUT of a new webhook with SENDER_SECRET. */
void sender_webhook(struct edge_rig *g, enum provider provider, const char *project);
/* Where it delivers for project ${owner}/${slug}; in one of the buffers of edge_fmt(). */
const char *sender_path(enum provider provider, const char *owner, const char *slug);
/* A push to ${branch} as this forge tells it; in one of the buffers of edge_fmt(). */
const char *sender_push(enum provider provider, const char *branch, const char *sha);

/* Delivers from a new address; the status of the answer, which is checked when ${status} is not
 * 0. */
int sender_deliver(struct edge_rig *g, int status, const struct sender_delivery *d);
/* Refused with that status and code; neither the secret nor the word "smuggled" is in the
 * answer. */
void sender_refused(
    struct edge_rig *g, int status, const char *code, const struct sender_delivery *d);

/* Sends the head and the first ${n} bytes of the body; the connection.  The caller frees
 * ${rest}. */
int
sender_begin(struct edge_rig *g, const struct sender_delivery *d, size_t n, struct buf *rest);
/* Sends the rest. */
void sender_send(int fd, const struct buf *rest);
/* Sends the rest and reads the answer. */
void sender_finish(struct edge_rig *g, int fd, const struct buf *rest);

#endif
