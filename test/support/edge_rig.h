/*
 * test/support/edge_rig.h -- a whole anvil in a scratch directory, asked over HTTP and by RPC.
 *
 * The real anvild with ingress and two shards, listening on a Unix socket, so that tests run side
 * by side and can name the address that a client has (X-Forwarded-For).  Dispatch is drained:
 * runs stay queued.  A rig made by root becomes nobody first, for good.
 */
#ifndef TEST_SUPPORT_EDGE_RIG_H
#define TEST_SUPPORT_EDGE_RIG_H

#include <stddef.h>
#include <sys/types.h>

#include <jansson.h>

#include "lib/base/base.h"
#include "lib/base/buf.h"
#include "lib/wire/wire.h"

#define EDGE_PASSWORD     "correct horse"
#define EDGE_PUBLIC_LIMIT 60 /* requests of an address to /api/public in 60 s */

struct edge_rig {
	char *dir;
	pid_t pid; /* anvild */
	struct client *ctl;
	int dirfd;
	char session[64]; /* Sent with every request; "": none. */
	char address[64]; /* X-Forwarded-For.                   */
	int naddresses;
	/* The newest answer. */
	int status;
	char head[8192];
	struct buf body;
	json_t *json; /* NULL: the body is none. */
};

void edge_start(struct edge_rig *g);
/* Ends it in order; anvild's exit status. */
int edge_stop(struct edge_rig *g);
/* Waits until every actor is up. */
void edge_await(struct edge_rig *g);

/* ---- HTTP ---- */

/* A new connection; -1: nobody listens. */
int edge_dial(const struct edge_rig *g);
/* Sends as it is and reads to the end of the connection. */
void edge_raw(struct edge_rig *g, const char *text, size_t n);
/* ${body}: NULL none, else JSON.  The status, which is checked when ${status} is not 0. */
int edge_ask(
    struct edge_rig *g, int status, const char *method, const char *path, const char *body);
/* The same with more header lines, each with its CRLF, and a body of any kind. */
int edge_ask_with(struct edge_rig *g, int status, const char *method, const char *path,
    const char *headers, const char *body);
/* An error answer of that code; its details are {"issues": ...} or null. */
void edge_refused(struct edge_rig *g, int status, const char *code, const char *method,
    const char *path, const char *body);
/* The connection after the request has been sent, for answers that take time. */
int edge_send(struct edge_rig *g, const char *method, const char *path);
/* Its answer, to the end; closes ${fd}. */
void edge_receive(struct edge_rig *g, int fd);
/* Later requests come from an address that none came from before. */
void edge_move(struct edge_rig *g);

/* Value of a header of the newest answer, in a static buffer; NULL: it has none. */
const char *edge_header(const struct edge_rig *g, const char *name);
/* A string of the newest answer by its path, "project.id", "runs.0.id"; "(null)", "(none)". */
const char *edge_text(const struct edge_rig *g, const char *path);
/* Any value by its path, as JSON text in a static buffer. */
const char *edge_value(const struct edge_rig *g, const char *path);
/* "path:expected path:expected ..." of the newest answer's issues, in a static buffer. */
const char *edge_issues(const struct edge_rig *g);

/* ---- the rest ---- */

/* Calls as anvilctl would: the result, borrowed until the next call; NULL: *ret_err. */
const json_t *edge_rpc(struct edge_rig *g, const char *address, const char *method,
    const char *params, int *ret_err);
/* Makes the user <slug> with <slug>@example.com and signs in. */
void edge_sign_in(struct edge_rig *g, const char *slug);
/* Path of a new project of the user who is signed in, and of a new run of a project. */
const char *edge_project(struct edge_rig *g, const char *slug, char out[96]);
const char *edge_trigger(struct edge_rig *g, const char *project, char out[96]);
/* `kind` of a result. */
const char *edge_kind(const json_t *result);
/* Formatted text in one of sixteen static buffers. */
const char *edge_fmt(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* Pid of an actor, as the supervisor has it. */
pid_t edge_pid(struct edge_rig *g, const char *address);

#endif
