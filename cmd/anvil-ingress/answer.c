#include "cmd/anvil-ingress/answer.h"

#include <stdio.h>
#include <string.h>

#include "cmd/anvil-ingress/routes.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

/* What people read when a route has nothing better to say. */
static const struct message {
	enum http_code code;
	const char *text;
} messages[] = {
	{ HTTP_CODE_BAD_REQUEST, "The request is malformed." },
	{ HTTP_CODE_INVALID_JSON, "The body is not one valid JSON value." },
	{ HTTP_CODE_INVALID_REQUEST, "The request is not what this resource takes." },
	{ HTTP_CODE_INVALID_SLUG,
	    "A slug of the path is not 1 to 64 letters, digits, \"-\" or \"_\"." },
	{ HTTP_CODE_INVALID_PASSWORD, "A password has 8 to 1,024 bytes." },
	{ HTTP_CODE_INVALID_INVITE_TTL, "An invite is valid for 1 to 720 hours." },
	{ HTTP_CODE_INVALID_REPO_URL, "The repository URL cannot be used." },
	{ HTTP_CODE_INVALID_CONFIG_PATH, "The path of the configuration cannot be used." },
	{ HTTP_CODE_INVALID_REPO_TOKEN, "The repository token cannot be used." },
	{ HTTP_CODE_PROJECT_REPO_URL_CONFLICTS_WITH_WEBHOOK,
	    "A webhook of this project does not fit that repository URL." },
	{ HTTP_CODE_EMPTY_UPDATE, "The update changes nothing; give at least one member." },
	{ HTTP_CODE_INVALID_CURSOR, "The cursor is not one that this server has given." },
	{ HTTP_CODE_MISSING_AUTHORIZATION,
	    "Send the session id as: Authorization: Bearer <session id>." },
	{ HTTP_CODE_INVALID_SESSION, "The session is unknown or has expired; sign in again." },
	{ HTTP_CODE_INVALID_CREDENTIALS, "The e-mail address or the password is wrong." },
	{ HTTP_CODE_USER_DISABLED, "This account has been disabled." },
	{ HTTP_CODE_INVALID_WEBHOOK_SIGNATURE,
	    "The delivery is not signed with the secret of this webhook." },
	{ HTTP_CODE_INVALID_LOG_TICKET,
	    "The ticket is unknown, used up, expired, or for another run; ask for a new one." },
	{ HTTP_CODE_ORIGIN_NOT_ALLOWED, "Pages of that origin may not watch runs here." },
	{ HTTP_CODE_WEBHOOK_REPO_MISMATCH,
	    "The delivery is about another repository than that of the project." },
	{ HTTP_CODE_NOT_FOUND, "There is no such resource." },
	{ HTTP_CODE_PROJECT_NOT_FOUND, "There is no such project." },
	{ HTTP_CODE_RUN_NOT_FOUND, "There is no such run." },
	{ HTTP_CODE_WEBHOOK_NOT_FOUND, "There is no such webhook, or it is switched off." },
	{ HTTP_CODE_INVITE_NOT_FOUND, "There is no such invite." },
	{ HTTP_CODE_METHOD_NOT_ALLOWED, "This resource does not know that method." },
	{ HTTP_CODE_REQUEST_TIMEOUT, "The request did not come in time." },
	{ HTTP_CODE_INVITE_ALREADY_USED, "This invite has been used already." },
	{ HTTP_CODE_EMAIL_TAKEN, "This e-mail address has an account already." },
	{ HTTP_CODE_SLUG_TAKEN, "This slug belongs to another account; choose another." },
	{ HTTP_CODE_PROJECT_SLUG_TAKEN, "You have a project with this slug already." },
	{ HTTP_CODE_PROJECT_QUEUE_FULL,
	    "The queue of this project is full; try again when a run has ended." },
	{ HTTP_CODE_STALE_WEBHOOK_VERIFICATION,
	    "The webhook was changed while the delivery was being verified; deliver again." },
	{ HTTP_CODE_DELIVERY_CONFLICT,
	    "Another delivery with this id, but another body, was here before." },
	{ HTTP_CODE_INVITE_EXPIRED, "This invite has expired; ask for another." },
	{ HTTP_CODE_LOG_EXPIRED, "The log of this run is not kept any more." },
	{ HTTP_CODE_PAYLOAD_TOO_LARGE, "The body is larger than this resource takes." },
	{ HTTP_CODE_URI_TOO_LONG, "The request target is too long." },
	{ HTTP_CODE_UNSUPPORTED_MEDIA_TYPE, "Send application/json without an encoding." },
	{ HTTP_CODE_UPGRADE_REQUIRED, "This resource is a WebSocket of version 13." },
	{ HTTP_CODE_RATE_LIMITED, "Too many attempts; try again in a minute." },
	{ HTTP_CODE_HEADERS_TOO_LARGE, "The headers of the request are too long." },
	{ HTTP_CODE_ENCRYPTION_NOT_CONFIGURED,
	    "This server has no usable encryption key; its operator has to set one up." },
	{ HTTP_CODE_INVALID_WEBHOOK_CONFIG,
	    "The configuration of this webhook does not fit its project any more." },
	{ HTTP_CODE_SHARD_UNAVAILABLE, "A part of the server does not answer; try again." },
	{ HTTP_CODE_PROJECT_MOVING, "This project is being moved; try again." },
	{ HTTP_CODE_STORAGE_UNAVAILABLE,
	    "The server could not store this; whether it happened is not known, and it is "
	    "safe to repeat." },
	{ HTTP_CODE_RUN_UNAVAILABLE, "The run does not answer; try again." },
	{ HTTP_CODE_OVERLOADED, "The server has too much to do; try again." },
	{ HTTP_CODE_QUEUE_FULL, "The queue of this project is full; deliver again later." },
};

static const struct retry {
	enum http_code code;
	const char *seconds;
} retries[] = {
	{ HTTP_CODE_RATE_LIMITED, "60" },
	{ HTTP_CODE_SHARD_UNAVAILABLE, "5" },
	{ HTTP_CODE_PROJECT_MOVING, "1" },
	{ HTTP_CODE_STORAGE_UNAVAILABLE, "5" },
	{ HTTP_CODE_RUN_UNAVAILABLE, "1" },
	{ HTTP_CODE_OVERLOADED, "1" },
	{ HTTP_CODE_QUEUE_FULL, "60" },
};

static const char *
message_of(enum http_code code)
{
	for (size_t i = 0; i < ARRAY_LEN(messages); i++)
		if (messages[i].code == code)
			return messages[i].text;
	return "The request was refused.";
}

/* ---- hooks ---- */

/* Only a plain host and port may enter a header that we make. */
static int
host_is_plain(const char *host)
{
	return host[0] != '\0' &&
	    host[strspn(host,
		"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		".:[]-")] == '\0';
}

static void
add_content_policy(const struct ingress *in, struct http_req *req)
{
	const char *host = http_req_host(req);
	char more[600] = "";

	if (host_is_plain(host) && strlen(host) < 256 && strcmp(host, in->public_host) != 0)
		(void)snprintf(more, sizeof(more), " ws://%s wss://%s", host, host);
	http_answer_addf(req, "Content-Security-Policy",
	    "default-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'; "
	    "object-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; "
	    "img-src 'self'; connect-src 'self' ws://%s wss://%s%s; manifest-src 'self'; "
	    "worker-src 'self'",
	    in->public_host, in->public_host, more);
}

void
answer_on_headers(void *ingress, struct http_req *req, int status)
{
	const struct ingress *in = ingress;

	(void)status;
	http_answer_add(req, "X-Request-Id", http_req_id(req));
	http_answer_add(req, "X-Content-Type-Options", "nosniff");
	http_answer_add(req, "X-Frame-Options", "DENY");
	http_answer_add(req, "Referrer-Policy", "strict-origin-when-cross-origin");
	http_answer_add(req, "X-Permitted-Cross-Domain-Policies", "none");
	add_content_policy(in, req);
	if (in->public_is_https)
		http_answer_add(
		    req, "Strict-Transport-Security", "max-age=63072000; includeSubDomains");
	if (!http_answer_has(req, "Cache-Control"))
		http_answer_add(req, "Cache-Control", "no-store");
}

static void
error_body(struct buf *out, const char *code, const char *message, const char *details)
{
	struct http_error e = {
		.error = { .code = code, .message = message, .details_text = details }
	};

	(void)http_error_encode(out, &e);
}

void
answer_on_refusal(void *ingress, struct http_req *req, int status, const char *code)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	struct exchange *x = http_req_data(req);
	enum http_code known = HTTP_CODE_INTERNAL_ERROR;

	(void)ingress;
	(void)http_code_parse(code, &known);
	error_body(&out, code, message_of(known), NULL);
	if (x != NULL) {
		x->answered = 1;
		x->code = http_code_name(known);
	}
	if (out.failed)
		return; /* a bare answer follows */
	http_answer_add(req, "Content-Type", "application/json");
	http_answer(req, status, out.data, out.len);
}

static void
log_failure(const struct exchange *x, int status)
{
	log_set_request(http_req_id(x->req));
	log_event(status >= 500 ? LOG_LEVEL_ERROR : LOG_LEVEL_INFO, "request_failed",
	    LOG_INT("status", status), LOG_STR("errorCode", x->code),
	    LOG_STR("method", x->route != NULL ? x->route->method : NULL),
	    LOG_STR("route", x->route != NULL ? x->route->pattern : NULL),
	    LOG_STR("userId", x->user.id), LOG_STR("projectId", x->project.id),
	    LOG_INT("durationMs", mono_diff_ms(http_req_started(x->req), clock_mono())));
	log_set_request("");
}

void
answer_on_end(void *ingress, struct http_req *req)
{
	struct exchange *x = http_req_data(req);

	(void)ingress;
	if (x == NULL)
		return;
	OBJ_CHECK(x, EXCHANGE_MAGIC);
	if (http_req_status(req) >= 400)
		log_failure(x, http_req_status(req));
	http_req_set_data(req, NULL);
	(void)exchange_free(x);
}

/* ---- values ---- */

void
answer_json(struct exchange *x, int status)
{
	must(!x->answered);
	if (x->out.failed) {
		exchange_fail(x, E_NOMEM);
		return;
	}
	x->answered = 1;
	http_answer_add(x->req, "Content-Type", "application/json");
	http_answer(x->req, status, x->out.data, x->out.len);
	buf_done(&x->out);
}

int
answer_prepare(struct exchange *x, const struct codec_type *t, const void *value)
{
	buf_reset(&x->out);
	return codec_encode(&x->out, t, value);
}

void
answer_value(struct exchange *x, int status, const struct codec_type *t, const void *value)
{
	int r = answer_prepare(x, t, value);

	if (r < 0)
		exchange_fail(x, r);
	else
		answer_json(x, status);
}

void
answer_empty(struct exchange *x, int status)
{
	must(!x->answered);
	x->answered = 1;
	http_answer(x->req, status, NULL, 0);
}

int
answer_is_known(const struct http_req *req, const char *etag)
{
	const char *tags = http_req_header(req, "If-None-Match");

	return tags != NULL && (strcmp(tags, "*") == 0 || strstr(tags, etag) != NULL);
}

/* ---- errors ---- */

/* Headers that were added before belong to it. */
static void
send_error(struct exchange *x, enum http_code code, const char *message, const char *details)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	struct http_req *req = x->req;
	int status = http_code_status(code);

	must(!x->answered);
	x->answered = 1;
	x->code = http_code_name(code);
	if (code == HTTP_CODE_MISSING_AUTHORIZATION || code == HTTP_CODE_INVALID_SESSION ||
	    code == HTTP_CODE_INVALID_CREDENTIALS)
		http_answer_add(req, "WWW-Authenticate", "Bearer");
	for (size_t i = 0; i < ARRAY_LEN(retries); i++)
		if (retries[i].code == code)
			http_answer_add(req, "Retry-After", retries[i].seconds);
	error_body(&out, http_code_name(code), message, details);
	if (out.failed) {
		http_answer(req, status, NULL, 0);
		return;
	}
	http_answer_add(req, "Content-Type", "application/json");
	http_answer(req, status, out.data, out.len);
}

void
answer_error_details(
    struct exchange *x, enum http_code code, const char *message, const char *details)
{
	http_answer_clear(x->req);
	send_error(x, code, message, details);
}

void
answer_error_with(struct exchange *x, enum http_code code, const char *name, const char *value)
{
	http_answer_clear(x->req);
	http_answer_add(x->req, name, value);
	send_error(x, code, message_of(code), NULL);
}

void
answer_error_allow(struct exchange *x, const char *allow)
{
	answer_error_with(x, HTTP_CODE_METHOD_NOT_ALLOWED, "Allow", allow);
}

void
answer_error_text(struct exchange *x, enum http_code code, const char *message)
{
	if (message != NULL)
		answer_error_details(x, code, message, NULL);
	else
		answer_error(x, code);
}

void
answer_error(struct exchange *x, enum http_code code)
{
	char text[120];

	if (code != HTTP_CODE_INTERNAL_ERROR) {
		answer_error_details(x, code, message_of(code), NULL);
		return;
	}
	(void)snprintf(text, sizeof(text),
	    "Something went wrong on this server; its log tells more about request %s.",
	    http_req_id(x->req));
	answer_error_details(x, code, text, NULL);
}

void
answer_bad_query(struct exchange *x, enum http_code code, const char *name,
    const char *expected, const char *message)
{
	CLEANUP(buf_done) struct buf details = BUF_INIT;

	/* All three are words of ours, free of quotes. */
	buf_printf(&details,
	    "{\"issues\":[{\"path\":\"%s\",\"expected\":\"%s\",\"message\":\"%s\"}]}", name,
	    expected, message);
	if (details.failed)
		exchange_fail(x, E_NOMEM);
	else
		answer_error_details(x, code, message_of(code), buf_cstr(&details));
}

/* ---- shapes ---- */

struct http_user
answer_user(const struct index_user *u)
{
	return (struct http_user) { .id = u->id,
		.slug = u->slug,
		.email = u->email,
		.display_name = u->display_name,
		.created_at = u->created_at,
		.has_disabled_at = u->disabled_at != 0,
		.disabled_at = u->disabled_at };
}

struct http_project_summary
answer_project(const struct index_project *p)
{
	struct http_project_summary s = { .id = p->id,
		.owner_user_id = p->owner_user_id,
		.owner_slug = p->owner_slug,
		.project_slug = p->slug,
		.name = p->name,
		.repo_url = p->repo_url,
		.default_branch = p->default_branch,
		.config_path = p->config_path,
		.badge_public = p->badge_public,
		.created_at = p->created_at,
		.updated_at = p->updated_at };

	s.has_last_run_status = p->last_run_status != NULL &&
	    run_status_parse(p->last_run_status, &s.last_run_status) == 0;
	return s;
}
