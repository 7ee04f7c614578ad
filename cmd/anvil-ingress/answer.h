/*
 * cmd/anvil-ingress/answer.h -- what leaves: headers of every answer, errors, JSON (http-api
 * 2.2, 2.5).
 */
#ifndef CMD_ANVIL_INGRESS_ANSWER_H
#define CMD_ANVIL_INGRESS_ANSWER_H

#include "cmd/anvil-ingress/exchange.h"

/* Hooks of the server. */
void answer_on_headers(void *ingress, struct http_req *req, int status);
void answer_on_refusal(void *ingress, struct http_req *req, int status, const char *code);
void answer_on_end(void *ingress, struct http_req *req);

/* Sends x->out, a whole JSON text, with ${status}. */
void answer_json(struct exchange *x, int status);
/* Encodes and sends. */
void
answer_value(struct exchange *x, int status, const struct codec_type *t, const void *value);
/* Encodes into x->out, to be sent after a commit.  0 or E_NOMEM. */
int answer_prepare(struct exchange *x, const struct codec_type *t, const void *value);
void answer_empty(struct exchange *x, int status);
/* Whether one of If-None-Match is the tag, weak or not. */
int answer_is_known(const struct http_req *req, const char *etag);

/* The error of that code with its usual message, or with ${message} unless that is NULL.  WWW-Authenticate and
 * Retry-After go along where the code has them. */
void answer_error(struct exchange *x, enum http_code code);
void answer_error_text(struct exchange *x, enum http_code code, const char *message);
/* With one more header. */
void
answer_error_with(struct exchange *x, enum http_code code, const char *name, const char *value);
/* 405 with the methods that the resource knows. */
void answer_error_allow(struct exchange *x, const char *allow);
/* ${details}: JSON text of an object. */
void answer_error_details(
    struct exchange *x, enum http_code code, const char *message, const char *details);
/* 400 `invalid_request` or another code for one bad query parameter. */
void answer_bad_query(struct exchange *x, enum http_code code, const char *name,
    const char *expected, const char *message);

/* Time stamps, users and projects as the API shows them. */
struct http_user answer_user(const struct index_user *u);
struct http_project_summary answer_project(const struct index_project *p);

#endif
