#include "cmd/anvil-ingress/exchange.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cmd/anvil-ingress/answer.h"
#include "lib/base/ascii.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

#define JSON_DEPTH_MAX 64

static const char outage_text[] = "The store of this server is out of order, and nothing was "
				  "done; runs go on. Its operator learns the cause and the "
				  "remedy from `anvilctl health`.";

struct exchange *
exchange_new(struct ingress *in, struct http_req *req)
{
	struct exchange *x = mem_calloc(1, sizeof(*x));

	if (x == NULL)
		return NULL;
	x->magic = EXCHANGE_MAGIC;
	x->in = in;
	x->req = req;
	x->arena = arena_new();
	if (x->arena == NULL)
		return mem_free(x);
	codec_init(&x->codec, x->arena, &in->rules);
	LIST_INSERT_HEAD(&in->exchanges, x, entry);
	in->nexchanges++;
	http_req_set_data(req, x);
	return x;
}

struct exchange *
exchange_free(struct exchange *x)
{
	if (x == NULL)
		return NULL;
	OBJ_CHECK(x, EXCHANGE_MAGIC);
	if (x->drop != NULL)
		x->drop(x);
	LIST_REMOVE(x, entry);
	x->in->nexchanges--;
	json_decref(x->body);
	buf_done(&x->out);
	x->arena = arena_free(x->arena);
	x->magic = 0;
	free(x);
	return NULL;
}

/* ---- turns ---- */

void
exchange_fail(struct exchange *x, int err)
{
	if (x->answered)
		return;
	switch (err) {
	case E_NOMEM:
	case E_OVERLOADED:
	case E_DRAINING: answer_error(x, HTTP_CODE_OVERLOADED); break;
	case E_STORAGE:
	case E_FULL:
	case E_CORRUPT:
		x->in->storage_lost = clock_mono();
		answer_error_text(x, HTTP_CODE_STORAGE_UNAVAILABLE,
		    actor_outage(x->in->actor) != NULL ? outage_text : NULL);
		break;
	default: answer_error(x, HTTP_CODE_INTERNAL_ERROR);
	}
}

int
exchange_turn(struct exchange *x, int write, exchange_turn_fn *fn)
{
	int r = actor_turn_for(x->in->actor, write, http_req_id(x->req), fn, x);

	if (r == E_STORAGE || r == E_FULL || r == E_CORRUPT || r == E_NOMEM)
		exchange_fail(x, r);
	return r;
}

void
exchange_do(struct exchange *x, int write, exchange_turn_fn *fn)
{
	int r = exchange_turn(x, write, fn);

	if (r < 0)
		exchange_fail(x, r);
}

static void
send_it(void *arg)
{
	struct exchange *x = arg;

	OBJ_CHECK(x, EXCHANGE_MAGIC);
	if (x->status == 204)
		answer_empty(x, 204);
	else
		answer_json(x, x->status);
}

static void
lost_it(void *arg)
{
	struct exchange *x = arg;

	OBJ_CHECK(x, EXCHANGE_MAGIC);
	exchange_fail(x, E_STORAGE);
}

int
exchange_answer_after(struct exchange *x, struct turn *t, int status)
{
	x->status = status;
	return turn_after_commit(t, send_it, x, lost_it);
}

/* ---- bodies ---- */

/* Media type "application/json", whatever its case and its parameters. */
static int
is_json(const char *type)
{
	static const char want[] = "application/json";
	size_t n = sizeof(want) - 1;

	if (strncasecmp(type, want, n) != 0)
		return 0;
	while (type[n] == ' ' || type[n] == '\t')
		n++;
	return type[n] == '\0' || type[n] == ';';
}

static void
parse_body(struct exchange *x, const uint8_t *data, size_t len)
{
	char why[160];
	int r;

	if (len == 0) {
		answer_error_text(x, HTTP_CODE_INVALID_JSON,
		    "The body is empty; send a JSON object, {} at least.");
		return;
	}
	r = json_text_parse((const char *)data, len, JSON_DEPTH_MAX, &x->body);
	if (r == E_PARSE || r == E_DEEP) {
		json_text_why((const char *)data, len, JSON_DEPTH_MAX, why, sizeof(why));
		answer_error_text(x, HTTP_CODE_INVALID_JSON,
		    why[0] != '\0' ? why : "The body is not one valid JSON value.");
	} else if (r < 0) {
		exchange_fail(x, r);
	} else {
		x->on_body(x);
	}
}

/* After a failure the server answers, through answer_on_refusal(). */
static void
on_collected(void *arg, struct http_req *req, int err, const uint8_t *data, size_t len)
{
	struct exchange *x = arg;

	(void)req;
	OBJ_CHECK(x, EXCHANGE_MAGIC);
	if (err == 0)
		parse_body(x, data, len);
}

void
exchange_read_body(struct exchange *x, void (*next)(struct exchange *x))
{
	struct http_req *req = x->req;
	int64_t max = x->in->config->http_max_json_bytes;
	size_t ntypes = http_req_header_count(req, "Content-Type");

	if (http_req_body_length(req) > max) {
		answer_error(x, HTTP_CODE_PAYLOAD_TOO_LARGE);
		return;
	}
	if (!http_req_is_identity(req) || ntypes > 1 ||
	    (ntypes == 1 && !is_json(http_req_header(req, "Content-Type")))) {
		answer_error(x, HTTP_CODE_UNSUPPORTED_MEDIA_TYPE);
		return;
	}
	x->on_body = next;
	http_body_collect(req, (size_t)max, on_collected, x);
}

static int
judge(struct exchange *x, const struct codec_type *t, void *ret, enum http_code *ret_code)
{
	int r = codec_decode(&x->codec, t, x->body, ret);

	*ret_code = HTTP_CODE_INVALID_REQUEST;
	if (r == E_PARAMS && x->codec.nissues > 0 && x->codec.passes != CODEC_SHAPES)
		(void)http_code_parse(x->codec.issues[0].code, ret_code);
	return r;
}

static int
answer_issues(struct exchange *x, enum http_code code)
{
	CLEANUP(buf_done) struct buf details = BUF_INIT;
	int one = x->codec.nbad == 1 && x->codec.nissues == 1;

	if (codec_issues_text(&x->codec, &details) < 0 || buf_cstr(&details) == NULL)
		exchange_fail(x, E_NOMEM);
	else
		answer_error_details(x, code,
		    one && x->codec.issues[0].message != NULL ? x->codec.issues[0].message
							      : "Some fields are not valid.",
		    (const char *)details.data);
	return E_PARAMS;
}

static int
decode_pass(struct exchange *x, const struct codec_type *t, void *ret, unsigned passes)
{
	enum http_code code;
	int r;

	x->codec.passes = passes;
	r = judge(x, t, ret, &code);
	if (r == E_PARAMS)
		return answer_issues(x, code);
	if (r < 0)
		exchange_fail(x, r);
	return r;
}

int
exchange_shapes(struct exchange *x, const struct codec_type *t, void *ret)
{
	return decode_pass(x, t, ret, CODEC_SHAPES);
}

int
exchange_rules(struct exchange *x, const struct codec_type *t, void *ret)
{
	return decode_pass(x, t, ret, CODEC_ALL);
}
