/* A body may be cut anywhere, so that all that is known at a byte is in the state.  Strings are
 * most of a payload: their plain bytes are passed over eight at a time. */
#include "lib/webhook/scan.h"

#include <string.h>

#include "lib/base/ascii.h"
#include "lib/base/enc.h"
#include "lib/base/err.h"
#include "lib/base/json_text.h"
#include "lib/base/mem.h"
#include "lib/base/refname.h"
#include "lib/base/repourl.h"
#include "lib/webhook/inside.h"

#define SHA_MAX  64
#define KIND_MAX 16
/* White space and dot segments may go when a URL is normalised. */
#define URL_MAX (2 * REPOURL_MAX)

#define SAY_OBJECT "The body must be one JSON object."
#define SAY_JSON   "The body must be valid JSON."
#define SAY_DEEP   "The body must not nest deeper than 64 arrays and objects."
#define SAY_AFTER  "Nothing but white space may follow the JSON object."
#define SAY_CUT    "The JSON object must be complete."
#define SAY_TWICE  "This member must not be given twice."

enum state {
	ST_START,
	ST_KEY_OR_END, /* Behind "{". */
	ST_KEY,        /* Behind a comma. */
	ST_COLON,
	ST_VALUE_OR_END, /* Behind "[". */
	ST_VALUE,
	ST_NEXT, /* Behind a value. */
	ST_DONE,
	/* Those above are between tokens, where white space may stand. */
	ST_STRING,
	ST_ESCAPE,
	ST_HEX,
	ST_LITERAL,
	ST_NUMBER,
	ST_FAILED
};

#define NAME(text) text, sizeof(text) - 1

const struct member_row member_rows[WEBHOOK_MEMBER_COUNT] = {
	[WEBHOOK_MEMBER_AFTER] = { PLACE_TOP, PLACE_OTHER, NAME("after"), "after", SHA_MAX },
	[WEBHOOK_MEMBER_BEFORE] = { PLACE_TOP, PLACE_OTHER, NAME("before"), "before", SHA_MAX },
	[WEBHOOK_MEMBER_CHECKOUT_SHA] = { PLACE_TOP, PLACE_OTHER, NAME("checkout_sha"),
	    "checkout_sha", SHA_MAX },
	[WEBHOOK_MEMBER_EVENT_NAME] = { PLACE_TOP, PLACE_OTHER, NAME("event_name"),
	    "event_name", KIND_MAX },
	[WEBHOOK_MEMBER_OBJECT_KIND] = { PLACE_TOP, PLACE_OTHER, NAME("object_kind"),
	    "object_kind", KIND_MAX },
	[WEBHOOK_MEMBER_PROJECT] = { PLACE_TOP, PLACE_PROJECT, NAME("project"), "project", 0 },
	[WEBHOOK_MEMBER_PROJECT_GIT_HTTP_URL] = { PLACE_PROJECT, PLACE_OTHER,
	    NAME("git_http_url"), "project.git_http_url", URL_MAX },
	[WEBHOOK_MEMBER_PROJECT_HTTP_URL] = { PLACE_PROJECT, PLACE_OTHER, NAME("http_url"),
	    "project.http_url", URL_MAX },
	[WEBHOOK_MEMBER_REF] = { PLACE_TOP, PLACE_OTHER, NAME("ref"), "ref", REFNAME_FULL_MAX },
	[WEBHOOK_MEMBER_REPOSITORY] = { PLACE_TOP, PLACE_REPOSITORY, NAME("repository"),
	    "repository", 0 },
	[WEBHOOK_MEMBER_REPOSITORY_CLONE_URL] = { PLACE_REPOSITORY, PLACE_OTHER,
	    NAME("clone_url"), "repository.clone_url", URL_MAX },
	[WEBHOOK_MEMBER_REPOSITORY_FULL_NAME] = { PLACE_REPOSITORY, PLACE_OTHER,
	    NAME("full_name"), "repository.full_name", URL_MAX },
	[WEBHOOK_MEMBER_REPOSITORY_GIT_HTTP_URL] = { PLACE_REPOSITORY, PLACE_OTHER,
	    NAME("git_http_url"), "repository.git_http_url", URL_MAX },
};

/* ---- verdicts ---- */

void
scan_fail(struct webhook_scan *s, const char *path, const char *message)
{
	if (s->err != 0)
		return;
	s->err = E_PARSE;
	s->state = ST_FAILED;
	s->fault = (struct webhook_fault) { path, message };
}

void
scan_fail_memory(struct webhook_scan *s)
{
	if (s->err != 0)
		return;
	s->err = E_NOMEM;
	s->state = ST_FAILED;
}

/* ---- members ---- */

/* Where a key is met whose name matters; -1: nowhere else. */
static int
member_of_key(const struct webhook_scan *s)
{
	if (s->nkey > KEY_MAX)
		return -1;
	for (unsigned left = s->forge->members; left != 0; left &= left - 1) {
		int m = __builtin_ctz(left);
		const struct member_row *row = &member_rows[m];

		if (row->name_len == s->nkey && row->place == s->place &&
		    memcmp(row->name, s->key, s->nkey) == 0)
			return m;
	}
	return -1;
}

static void
key_ended(struct webhook_scan *s)
{
	s->state = ST_COLON;
	if (s->sink == SINK_NOWHERE)
		return;
	text_end(s);
	s->member = member_of_key(s);
	if (s->member < 0)
		return;
	if ((s->seen >> s->member & 1) != 0)
		scan_fail(s, member_rows[s->member].path, SAY_TWICE);
	s->seen |= 1u << s->member;
}

static void
value_ended(struct webhook_scan *s)
{
	s->member = -1;
	s->state = s->depth == 0 ? ST_DONE : ST_NEXT;
}

static void
string_ended(struct webhook_scan *s)
{
	if (s->is_key) {
		key_ended(s);
		return;
	}
	if (s->sink == SINK_VALUE)
		text_end(s);
	if (s->err == 0)
		value_ended(s);
}

/* ---- containers and values ---- */

static int
in_object(const struct webhook_scan *s)
{
	return (int)(s->objects >> (s->depth - 1) & 1);
}

static void
open_container(struct webhook_scan *s, int is_object)
{
	uint64_t bit = UINT64_C(1) << (s->depth & 63);

	if (s->depth == WEBHOOK_DEPTH_MAX) {
		scan_fail(s, "", SAY_DEEP);
		return;
	}
	s->place = PLACE_OTHER;
	if (s->depth == 0)
		s->place = PLACE_TOP;
	else if (is_object && s->member >= 0)
		s->place = (uint8_t)member_rows[s->member].opens;
	if (++s->depth == 2)
		s->second = s->place;
	s->objects = is_object ? s->objects | bit : s->objects & ~bit;
	s->member = -1;
	s->state = is_object ? ST_KEY_OR_END : ST_VALUE_OR_END;
}

static void
close_container(struct webhook_scan *s)
{
	s->depth--;
	s->place = PLACE_OTHER;
	if (s->depth == 1)
		s->place = PLACE_TOP;
	else if (s->depth == 2)
		s->place = s->second;
	value_ended(s);
}

static void
begin_string(struct webhook_scan *s, int is_key)
{
	enum sink sink = SINK_NOWHERE;

	if (is_key && s->place != PLACE_OTHER)
		sink = SINK_KEY;
	else if (!is_key && s->member >= 0 && member_rows[s->member].max > 0)
		sink = SINK_VALUE;
	s->is_key = (uint8_t)is_key;
	s->state = ST_STRING;
	text_begin(s, sink);
}

static void
begin_literal(struct webhook_scan *s, const char *rest)
{
	s->rest = rest;
	s->state = ST_LITERAL;
}

/* ---- numbers ---- */

enum number { N_NONE, N_MINUS, N_ZERO, N_INT, N_DOT, N_FRACTION, N_E, N_SIGN, N_EXPONENT };

enum digit_class { D_ZERO, D_DIGIT, D_DOT, D_E, D_PLUS, D_MINUS, D_COUNT };

/* Where a character leads; N_NONE: it does not belong to the number. */
static const uint8_t number_next[][D_COUNT] = {
	[N_NONE] = { N_ZERO, N_INT, 0, 0, 0, N_MINUS },
	[N_MINUS] = { N_ZERO, N_INT, 0, 0, 0, 0 },
	[N_ZERO] = { 0, 0, N_DOT, N_E, 0, 0 },
	[N_INT] = { N_INT, N_INT, N_DOT, N_E, 0, 0 },
	[N_DOT] = { N_FRACTION, N_FRACTION, 0, 0, 0, 0 },
	[N_FRACTION] = { N_FRACTION, N_FRACTION, 0, N_E, 0, 0 },
	[N_E] = { N_EXPONENT, N_EXPONENT, 0, 0, N_SIGN, N_SIGN },
	[N_SIGN] = { N_EXPONENT, N_EXPONENT, 0, 0, 0, 0 },
	[N_EXPONENT] = { N_EXPONENT, N_EXPONENT, 0, 0, 0, 0 },
};

static int
step_number(unsigned state, uint8_t c)
{
	switch (c) {
	case '0': return number_next[state][D_ZERO];
	case '.': return number_next[state][D_DOT];
	case 'e':
	case 'E': return number_next[state][D_E];
	case '+': return number_next[state][D_PLUS];
	case '-': return number_next[state][D_MINUS];
	default: return ascii_is_digit((char)c) ? number_next[state][D_DIGIT] : N_NONE;
	}
}

static const uint8_t *
take_number(struct webhook_scan *s, const uint8_t *p, const uint8_t *end)
{
	int next;

	while (p < end && (next = step_number(s->number, *p)) != N_NONE) {
		s->number = (uint8_t)next;
		p++;
	}
	if (p == end)
		return p;
	if (s->number == N_ZERO || s->number == N_INT || s->number == N_FRACTION ||
	    s->number == N_EXPONENT)
		value_ended(s);
	else
		scan_fail(s, "", SAY_JSON);
	return p;
}

/* ---- tokens ---- */

static void
note_type(struct webhook_scan *s, uint8_t c)
{
	enum webhook_type type = WEBHOOK_TYPE_OTHER;

	if (s->member < 0)
		return;
	if (c == '"')
		type = WEBHOOK_TYPE_STRING;
	else if (c == '{')
		type = WEBHOOK_TYPE_OBJECT;
	else if (c == 'n')
		type = WEBHOOK_TYPE_NULL;
	s->kept[s->member].type = (uint8_t)type;
}

static void
begin_value(struct webhook_scan *s, uint8_t c)
{
	note_type(s, c);
	switch (c) {
	case '"': begin_string(s, 0); return;
	case '{': open_container(s, 1); return;
	case '[': open_container(s, 0); return;
	case 't': begin_literal(s, "rue"); return;
	case 'f': begin_literal(s, "alse"); return;
	case 'n': begin_literal(s, "ull"); return;
	default: break;
	}
	s->number = (uint8_t)step_number(N_NONE, c);
	s->state = ST_NUMBER;
	if (s->number == N_NONE)
		scan_fail(s, "", SAY_JSON);
}

static void
take_next(struct webhook_scan *s, uint8_t c)
{
	int object = in_object(s);

	if (c == ',')
		s->state = object ? ST_KEY : ST_VALUE;
	else if (c == (object ? '}' : ']'))
		close_container(s);
	else
		scan_fail(s, "", SAY_JSON);
}

/* A character between tokens that is no white space. */
static void
take_token(struct webhook_scan *s, uint8_t c)
{
	enum state state = (enum state)s->state;

	if (state == ST_NEXT)
		take_next(s, c);
	else if (state == ST_COLON && c == ':')
		s->state = ST_VALUE;
	else if ((state == ST_KEY || state == ST_KEY_OR_END) && c == '"')
		begin_string(s, 1);
	else if ((state == ST_KEY_OR_END && c == '}') || (state == ST_VALUE_OR_END && c == ']'))
		close_container(s);
	else if (state == ST_VALUE || state == ST_VALUE_OR_END)
		begin_value(s, c);
	else if (state == ST_START && c == '{')
		open_container(s, 1);
	else if (state == ST_START || state == ST_DONE)
		scan_fail(s, "", state == ST_START ? SAY_OBJECT : SAY_AFTER);
	else
		scan_fail(s, "", SAY_JSON);
}

static int
is_white(uint8_t c)
{
	return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static const uint8_t *
take_literal(struct webhook_scan *s, const uint8_t *p, const uint8_t *end)
{
	while (p < end && *s->rest != '\0' && *p == (uint8_t)*s->rest) {
		p++;
		s->rest++;
	}
	if (*s->rest == '\0')
		value_ended(s);
	else if (p < end)
		scan_fail(s, "", SAY_JSON);
	return p;
}

/* ---- strings ---- */

/* The first byte from ${p} on that ends a run of plain text: a quote, a backslash, a control. */
static const uint8_t *
plain_end(const uint8_t *p, const uint8_t *end)
{
	for (;;) {
		p += json_text_plain((const char *)p, (size_t)(end - p));
		if (p == end || *p == '"' || *p == '\\' || *p < 0x20)
			return p;
		do
			p++;
		while (p < end && *p >= 0x7f);
	}
}

static const uint8_t *
take_string(struct webhook_scan *s, const uint8_t *p, const uint8_t *end)
{
	const uint8_t *stop = plain_end(p, end);

	if (s->sink != SINK_NOWHERE) {
		text_run(s, p, (size_t)(stop - p));
		if (s->err != 0)
			return end;
	}
	if (stop == end)
		return end;
	if (*stop == '"')
		string_ended(s);
	else if (*stop == '\\')
		s->state = ST_ESCAPE;
	else
		scan_fail(s, "", SAY_JSON);
	return stop + 1;
}

static void
take_escape(struct webhook_scan *s, uint8_t c)
{
	static const char names[] = "\"\\/bfnrt";
	static const char values[] = "\"\\/\b\f\n\r\t";
	const char *at = memchr(names, c, sizeof(names) - 1);

	s->state = ST_STRING;
	if (c == 'u') {
		s->nhex = 0;
		s->unit = 0;
		s->state = ST_HEX;
	} else if (at == NULL) {
		scan_fail(s, "", SAY_JSON);
	} else if (s->sink != SINK_NOWHERE) {
		text_run(s, (const uint8_t *)values + (at - names), 1);
	}
}

static void
take_hex(struct webhook_scan *s, uint8_t c)
{
	int digit = hex_value((char)c);

	if (digit < 0) {
		scan_fail(s, "", SAY_JSON);
		return;
	}
	s->unit = (uint16_t)((unsigned)s->unit << 4 | (unsigned)digit);
	if (++s->nhex < 4)
		return;
	s->state = ST_STRING;
	if (s->sink != SINK_NOWHERE)
		text_unit(s, s->unit);
}

/* ---- the whole ---- */

struct webhook_scan *
webhook_scan_new(const struct webhook_forge *f)
{
	struct webhook_scan *s = mem_calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->magic = SCAN_MAGIC;
	s->forge = f;
	s->state = ST_START;
	s->member = -1;
	return s;
}

struct webhook_scan *
webhook_scan_free(struct webhook_scan *s)
{
	if (s == NULL)
		return NULL;
	OBJ_CHECK(s, SCAN_MAGIC);
	for (size_t m = 0; m < WEBHOOK_MEMBER_COUNT; m++)
		buf_done(&s->kept[m].text);
	s->magic = 0;
	return mem_free(s);
}

void
webhook_scan_feed(struct webhook_scan *s, const void *data, size_t n)
{
	const uint8_t *p = data, *end = p + n;

	OBJ_CHECK(s, SCAN_MAGIC);
	while (p < end) {
		switch ((enum state)s->state) {
		case ST_STRING: p = take_string(s, p, end); break;
		case ST_ESCAPE: take_escape(s, *p++); break;
		case ST_HEX: take_hex(s, *p++); break;
		case ST_LITERAL: p = take_literal(s, p, end); break;
		case ST_NUMBER: p = take_number(s, p, end); break;
		case ST_FAILED: return;
		default:
			if (!is_white(*p))
				take_token(s, *p);
			p++;
			break;
		}
	}
}

int
webhook_scan_end(struct webhook_scan *s, struct webhook_fault *ret_fault)
{
	OBJ_CHECK(s, SCAN_MAGIC);
	if (s->state == ST_START)
		scan_fail(s, "", SAY_OBJECT);
	else if (s->state != ST_DONE)
		scan_fail(s, "", SAY_CUT);
	if (s->err == E_PARSE)
		*ret_fault = s->fault;
	return s->err;
}

struct webhook_value
webhook_scan_value(const struct webhook_scan *s, enum webhook_member m)
{
	const struct kept *k = &s->kept[m];

	OBJ_CHECK(s, SCAN_MAGIC);
	must(s->state == ST_DONE);
	return (struct webhook_value) {
		.type = (enum webhook_type)k->type,
		.p = k->text.len > 0 ? (const char *)k->text.data : "",
		.n = k->text.len,
		.too_long = k->too_long,
		.is_zeros = k->text.len > 0 && !k->not_zeros,
	};
}

const char *
webhook_member_path(enum webhook_member m)
{
	return member_rows[m].path;
}
