#include "lib/wire/envelope.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "lib/base/base.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/json_text.h"
#include "lib/wire/json.h"
#include "lib/wire/rpc.h"

struct scan {
	char *at;
	char *end;
};

static void
skip_space(struct scan *s)
{
	while (s->at < s->end &&
	    (*s->at == ' ' || *s->at == '\n' || *s->at == '\r' || *s->at == '\t'))
		s->at++;
}

static int
skip_char(struct scan *s, char c)
{
	skip_space(s);
	if (s->at == s->end || *s->at != c)
		return 0;
	s->at++;
	return 1;
}

/* From behind the opening quote to behind the closing one. */
static int
skip_string(struct scan *s)
{
	for (; s->at < s->end; s->at++) {
		s->at += json_text_plain(s->at, (size_t)(s->end - s->at));
		if (s->at == s->end)
			break;
		if (*s->at == '"') {
			s->at++;
			return 1;
		}
		if (*s->at == '\\')
			s->at++;
	}
	return 0;
}

/* One step inside a container: changes ${depth} by one at a bracket.  0: the text is odd. */
static int
skip_inside(struct scan *s, int *depth)
{
	switch (*s->at++) {
	case '"': return skip_string(s);
	case '{':
	case '[': return ++*depth < RPC_DEPTH_MAX;
	case '}':
	case ']': --*depth; return 1;
	default: return 1;
	}
}

/* Finds where a value ends.  That brackets match is the parser's to check. */
static int
skip_value(struct scan *s, struct span *ret)
{
	int depth = 0;

	skip_space(s);
	ret->p = s->at;
	if (s->at == s->end)
		return 0;
	if (*s->at == '{' || *s->at == '[' || *s->at == '"') {
		do {
			if (s->at == s->end || !skip_inside(s, &depth))
				return 0;
		} while (depth > 0);
	} else {
		while (s->at < s->end && strchr(",}] \t\r\n", *s->at) == NULL)
			s->at++;
	}
	ret->n = (size_t)(s->at - ret->p);
	return s->at <= s->end && ret->n != 0;
}

/* A name in quotes, without escapes.  ${ret} is what stands between the quotes. */
static int
skip_name(struct scan *s, struct span *ret)
{
	if (!skip_char(s, '"'))
		return 0;
	ret->p = s->at;
	while (s->at < s->end && *s->at != '"') {
		if (*s->at < 0x20 || *s->at > 0x7e || *s->at == '\\')
			return 0;
		s->at++;
	}
	if (s->at == s->end)
		return 0;
	ret->n = (size_t)(s->at++ - ret->p);
	return 1;
}

static struct span *
member_of(struct envelope *e, struct span name)
{
	static const struct {
		const char *name;
		size_t n, offset;
	} rows[] = {
		{ "jsonrpc", 7, offsetof(struct envelope, version) },
		{ "id", 2, offsetof(struct envelope, id) },
		{ "method", 6, offsetof(struct envelope, method) },
		{ "params", 6, offsetof(struct envelope, params) },
		{ "meta", 4, offsetof(struct envelope, meta) },
		{ "result", 6, offsetof(struct envelope, result) },
		{ "error", 5, offsetof(struct envelope, error) },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].n == name.n && memcmp(rows[i].name, name.p, name.n) == 0)
			return (struct span *)(void *)((char *)e + rows[i].offset);
	return NULL;
}

/* 1: cut into ${ret}; 0: not in the ordinary form. */
static int
cut(char *text, size_t n, struct envelope *ret)
{
	struct scan s = { text, text + n };
	struct span name, value, *member;

	if (!skip_char(&s, '{'))
		return 0;
	do {
		if (!skip_name(&s, &name) || !skip_char(&s, ':') || !skip_value(&s, &value))
			return 0;
		member = member_of(ret, name);
		if (member == NULL)
			ret->nunknown++;
		else if (member->p != NULL)
			return 0;
		else
			*member = value;
	} while (skip_char(&s, ','));
	if (!skip_char(&s, '}'))
		return 0;
	skip_space(&s);
	return s.at == s.end;
}

/* Written anew, names and strings have no needless escapes. */
static char *
rewrite(const json_t *object, size_t *ret_n)
{
	struct buf text = BUF_INIT;

	(void)json_text_dump(&text, object);
	*ret_n = text.len;
	return buf_take_cstr(&text);
}

int
envelope_read(char *body, size_t n, struct envelope *ret)
{
	struct envelope e = { .owned = NULL };
	json_t *tree = NULL;
	int r;

	if (!cut(body, n, &e) || e.nunknown != 0) {
		r = json_text_parse(body, n, RPC_DEPTH_MAX, &tree);
		if (r < 0)
			return r;
		if (!json_is_object(tree)) {
			json_decref(tree);
			return E_REQUEST;
		}
		e = (struct envelope) { .owned = rewrite(tree, &n) };
		json_decref(tree);
		if (e.owned == NULL)
			return E_NOMEM;
		/* A name of other letters is still none of ours: the request is refused. */
		if (!cut(e.owned, n, &e)) {
			free(e.owned);
			return E_REQUEST;
		}
	}
	*ret = e;
	return 0;
}

void
envelope_done(struct envelope *e)
{
	free(e->owned);
	*e = (struct envelope) { .owned = NULL };
}

const char *
envelope_word(struct span s)
{
	struct scan scan = { s.p, s.p + s.n };
	struct span name;

	if (s.p == NULL || !skip_name(&scan, &name) || scan.at != scan.end)
		return NULL;
	name.p[name.n] = '\0';
	return name.p;
}

int
envelope_int(struct span s, long long *ret_value)
{
	size_t at = s.n > 1 && s.p[0] == '-';
	long long v = 0;

	if (s.n == at || s.n - at > 15 || (s.p[at] == '0' && s.n != 1))
		return 0;
	for (size_t i = at; i < s.n; i++) {
		if (s.p[i] < '0' || s.p[i] > '9')
			return 0;
		v = v * 10 + (s.p[i] - '0');
	}
	*ret_value = at != 0 ? -v : v;
	return 1;
}

/* Request ids go into log lines as they are, so only plain characters are let in. */
static int
take_request_id(const char *word, size_t n, char *out, size_t size)
{
	if (n == 0 || n >= size)
		return 0;
	for (size_t i = 0; i < n; i++)
		if (strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.",
			word[i]) == NULL ||
		    word[i] == '\0')
			return 0;
	memcpy(out, word, n);
	out[n] = '\0';
	return 1;
}

/* 1: read; 0: not in the ordinary form; E_REQUEST: ordinary, and wrong. */
static int
cut_meta(struct span meta, char *request_id, size_t size, long long *ret_deadline_ms)
{
	struct scan s = { meta.p, meta.p + meta.n };
	struct span name, value;

	if (!skip_char(&s, '{'))
		return 0;
	if (skip_char(&s, '}'))
		return s.at == s.end;
	do {
		if (!skip_name(&s, &name) || !skip_char(&s, ':') || !skip_value(&s, &value))
			return 0;
		if (name.n == 9 && memcmp(name.p, "requestId", 9) == 0) {
			if (value.n < 2 || value.p[0] != '"' ||
			    !take_request_id(value.p + 1, value.n - 2, request_id, size))
				return E_REQUEST;
		} else if (name.n == 10 && memcmp(name.p, "deadlineMs", 10) == 0) {
			if (!envelope_int(value, ret_deadline_ms) || *ret_deadline_ms <= 0)
				return E_REQUEST;
		} else {
			return 0;
		}
	} while (skip_char(&s, ','));
	return skip_char(&s, '}') && s.at == s.end;
}

int
envelope_meta(struct span meta, char *ret_request_id, size_t size, long long *ret_deadline_ms)
{
	const json_t *id, *deadline;
	json_t *tree = NULL;
	int r;

	if (meta.p == NULL)
		return 0;
	r = cut_meta(meta, ret_request_id, size, ret_deadline_ms);
	if (r == 1)
		return 0;
	r = json_text_parse(meta.p, meta.n, RPC_DEPTH_MAX - 1, &tree);
	if (r < 0)
		return r;
	id = json_object_get(tree, "requestId");
	deadline = json_object_get(tree, "deadlineMs");
	*ret_deadline_ms = deadline != NULL ? json_integer_value(deadline) : 0;
	if (!json_is_object(tree) || (deadline != NULL && *ret_deadline_ms <= 0) ||
	    (id != NULL &&
		(!json_is_string(id) ||
		    !take_request_id(
			json_string_value(id), json_string_length(id), ret_request_id, size))))
		r = E_REQUEST;
	json_decref(tree);
	return r;
}
