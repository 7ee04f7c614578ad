#include <string.h>

#include <jansson.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/webhook/inside.h"
#include "test/support/forge_rig.h"
#include "test/support/starve.h"
#include "test/support/unit.h"

#define GITHUB webhook_forge_of(PROVIDER_GITHUB)
#define GITLAB webhook_forge_of(PROVIDER_GITLAB)
#define GITEA  webhook_forge_of(PROVIDER_GITEA)

/* Byte by byte as well, which has to come to the same. */
static int
scan_text(const struct webhook_forge *f, const char *text, size_t n, struct webhook_scan **ret,
    struct webhook_fault *ret_fault)
{
	CLEANUP(webhook_scan_freep) struct webhook_scan *by_bytes = NULL;
	struct webhook_fault other = { 0 };
	int r = rig_scan(f, text, n, 0, ret, ret_fault);

	assert_int_equal(rig_scan(f, text, n, 1, &by_bytes, &other), r);
	if (r == 0) {
		assert_true(rig_scans_equal(*ret, by_bytes));
	} else {
		assert_ptr_equal(other.message, ret_fault->message);
		assert_ptr_equal(other.path, ret_fault->path);
	}
	return r;
}

static int
verdict(const char *text, size_t n)
{
	CLEANUP(webhook_scan_freep) struct webhook_scan *s = NULL;
	struct webhook_fault fault = { 0 };
	int r = scan_text(GITHUB, text, n, &s, &fault);

	if (r < 0) {
		assert_int_equal(r, E_PARSE);
		assert_non_null(fault.path);
		assert_non_null(fault.message);
	}
	return r;
}

static void
all_accepted(const char *const *texts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (verdict(texts[i], strlen(texts[i])) != 0)
			fail_msg("refused: %s", texts[i]);
}

static void
all_refused(const char *const *texts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (verdict(texts[i], strlen(texts[i])) == 0)
			fail_msg("accepted: %s", texts[i]);
}

static void
the_grammar_of_json_is_accepted(void **state)
{
	static const char *const good[] = { "{}", " \t\r\n{ } \n", "{\"a\":1}",
		"{ \"a\" : [ ] , \"b\" : { } }", "{\"a\":[1,2,[3]],\"b\":{\"c\":{}}}",
		"{\"a\":true,\"b\":false,\"c\":null}", "{\"a\":0,\"b\":-0,\"c\":-1,\"d\":10}",
		"{\"a\":0.0,\"b\":1.25,\"c\":-0.5e10,\"d\":1E+2,\"e\":1e-2,\"f\":0e0}",
		"{\"a\":1e999999,\"b\":123456789012345678901234567890}",
		"{\"\":\"\",\"\":\"\"}", "{\"a\":1,\"a\":2}",
		"{\"a\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e4\\u00E4\"}",
		"{\"a\":\"\\ud800\",\"b\":\"\\udc00 \\u0000\",\"\\ud800\":1}",
		"{\"a\":\"\x7f\",\"b\":\"\xff\xc0\x80\xed\xa0\x80\",\"\xff\":0}",
		"{\"a\":[{\"ref\":1,\"ref\":2}],\"b\":{\"after\":1,\"after\":\"\\ud800\"}}" };

	(void)state;
	all_accepted(good, ARRAY_LEN(good));
	assert_int_equal(verdict("{\"a\":1}\0", 7), 0);
}

static void
what_is_not_json_is_refused(void **state)
{
	static const char *const bad[] = { "", " ", "{", "}", "{\"a\"", "{\"a\":", "{\"a\":1",
		"{\"a\":1,", "{\"a\":1,}", "{,}", "{\"a\" 1}", "{\"a\"::1}", "{a:1}", "{1:1}",
		"{'a':1}", "{\"a\":[1,]}", "{\"a\":[,1]}", "{\"a\":[1 2]}", "{\"a\":[1}",
		"{\"a\":{]}", "{\"a\":1]", "{\"a\":tru}", "{\"a\":True}", "{\"a\":truee}",
		"{\"a\":nul}", "{\"a\":undefined}", "{\"a\":NaN}", "{\"a\":Infinity}",
		"{\"a\":-}", "{\"a\":01}", "{\"a\":-01}", "{\"a\":1.}", "{\"a\":.5}",
		"{\"a\":1.e1}", "{\"a\":1e}", "{\"a\":1e+}", "{\"a\":+1}", "{\"a\":1.2.3}",
		"{\"a\":0x1}", "{\"a\":1-1}", "{\"a\":--1}", "{\"a\":\"}", "{\"a\":\"\\\"}",
		"{\"a\":\"\\x\"}", "{\"a\":\"\\u12\"}", "{\"a\":\"\\u12g4\"}",
		"{\"a\":\"\\U0041\"}", "{\"a\":\"\n\"}", "{\"a\":\"\x1f\"}", "{\"a\n\":1}",
		"{\"a\":1}x", "{\"a\":1}{}", "{\"a\":1},", "{}]", "{}//", "/**/{}", "{\v}",
		"{\f}", "{\"a\":1\xc2\xa0}", "\xef\xbb\xbf{}", "[]", "[{}]", "\"a\"", "1",
		"null", "true", "{\"a\":\"b\"\"c\"}" };

	(void)state;
	all_refused(bad, ARRAY_LEN(bad));
	assert_int_equal(verdict("{}\0", 3), E_PARSE);
	assert_int_equal(verdict("\0{}", 3), E_PARSE);
	assert_int_equal(verdict("{\"a\":\"\0\"}", 9), E_PARSE);
	assert_int_equal(verdict("{\"a\":1\0}", 8), E_PARSE);
	assert_int_equal(verdict("{\"a\0\":1}", 8), E_PARSE);
}

static void
the_fault_says_what_is_wrong(void **state)
{
	static const struct {
		const char *text, *path, *part;
	} rows[] = {
		{ "[]", "", "one JSON object" },
		{ "", "", "one JSON object" },
		{ "{\"a\":1", "", "complete" },
		{ "{\"a\":x}", "", "valid JSON" },
		{ "{} {}", "", "follow" },
		{ "{\"ref\":\"a\",\"ref\":\"a\"}", "ref", "twice" },
		{ "{\"repository\":{\"full_name\":\"\xff\"}}", "repository.full_name",
		    "UTF-8" },
		{ "{\"after\":\"\\ud83d\"}", "after", "surrogate" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(webhook_scan_freep) struct webhook_scan *s = NULL;
		struct webhook_fault fault = { 0 };

		assert_int_equal(
		    scan_text(GITHUB, rows[i].text, strlen(rows[i].text), &s, &fault), E_PARSE);
		assert_string_equal(fault.path, rows[i].path);
		assert_non_null(strstr(fault.message, rows[i].part));
	}
}

/* ---- depth ---- */

/* An object around ${n} - 1 further containers, all arrays or all objects. */
static char *
nested(size_t n, int objects)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;

	buf_add_str(&b, "{\"a\":");
	for (size_t i = 1; i < n; i++)
		buf_add_str(&b, objects ? i + 1 == n ? "{" : "{\"a\":" : "[");
	for (size_t i = 1; i < n; i++)
		buf_add_str(&b, objects ? "}" : "]");
	buf_add_str(&b, "}");
	return buf_take_cstr(&b);
}

static void
sixty_four_containers_may_nest_and_one_more_may_not(void **state)
{
	(void)state;
	for (int objects = 0; objects <= 1; objects++) {
		CLEANUP_FREE char *fits = nested(WEBHOOK_DEPTH_MAX, objects);
		CLEANUP_FREE char *deep = nested(WEBHOOK_DEPTH_MAX + 1, objects);

		assert_int_equal(verdict(fits, strlen(fits)), 0);
		assert_int_equal(verdict(deep, strlen(deep)), E_PARSE);
	}
}

static void
containers_close_as_they_were_opened_at_every_depth(void **state)
{
	(void)state;
	for (size_t depth = 2; depth <= WEBHOOK_DEPTH_MAX; depth++) {
		CLEANUP_FREE char *text = nested(depth, 0);
		size_t n = strlen(text);

		assert_int_equal(verdict(text, n), 0);
		for (size_t i = 5 + depth - 1; i < n; i++) {
			char was = text[i];

			text[i] = was == ']' ? '}' : ']';
			assert_int_equal(verdict(text, n), E_PARSE);
			text[i] = was;
		}
	}
}

/* ---- what is kept ---- */

static struct webhook_value
kept(const struct webhook_forge *f, const char *text, enum webhook_member m,
    struct webhook_scan **ret)
{
	CLEANUP_FREE char *json = rig_json(text);
	struct webhook_fault fault = { 0 };

	webhook_scan_free(*ret);
	*ret = NULL;
	if (scan_text(f, json, strlen(json), ret, &fault) != 0)
		fail_msg("%s: %s %s", text, fault.path, fault.message);
	return webhook_scan_value(*ret, m);
}

static void
ref_is(const char *text, const char *want)
{
	CLEANUP(webhook_scan_freep) struct webhook_scan *s = NULL;
	struct webhook_value v = kept(GITHUB, text, WEBHOOK_MEMBER_REF, &s);

	if (v.type != WEBHOOK_TYPE_STRING || v.n != strlen(want) || memcmp(v.p, want, v.n) != 0)
		fail_msg("%s: %.*s", text, (int)v.n, v.p);
}

static void
text_is_kept_unescaped(void **state)
{
	(void)state;
	ref_is("{'ref':'refs/heads/main'}", "refs/heads/main");
	ref_is("{'a':{'ref':'x','b':['ref']},'ref':'y'}", "y");
	ref_is("{'ref':'','a':0}", "");
	ref_is("{'ref':'a\\u0062c'}", "abc");
	ref_is("{'ref':'\\'\\\\\\/\\b\\f\\n\\r\\t'}", "\"\\/\b\f\n\r\t");
	ref_is(
	    "{'ref':'\\u00e4\\u20AC\\ud83d\\ude80!'}", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x9a\x80!");
	ref_is("{'ref':'\xc3\xa4\xe2\x82\xac\xf0\x9f\x9a\x80'}",
	    "\xc3\xa4\xe2\x82\xac\xf0\x9f\x9a\x80");
	ref_is("{'ref':'\\udbff\\udfff\\ud800\\udc00'}", "\xf4\x8f\xbf\xbf\xf0\x90\x80\x80");
	ref_is("{'ref':'\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf\xe0\xa0\x80\xf0\x90\x80\x80'}",
	    "\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf\xe0\xa0\x80\xf0\x90\x80\x80");
}

static void
keys_may_be_written_with_escapes(void **state)
{
	(void)state;
	ref_is("{'\\u0072ef':'x'}", "x");
	ref_is("{'\\u0072\\u0065\\u0066':'x'}", "x");
	ref_is("{'\\ud83dref':'a','ref\\ud83d':'b','\\udc00ref':'d','ref':'c'}", "c");
	ref_is("{'re':'a','reff':'b','ref\\u0000':'c','Ref':'d','ref':'e'}", "e");
	ref_is("{'refrefrefrefrefrefref':'a','ref':'e'}", "e");
	ref_is("{'re\xff':1,'ref':'e'}", "e");
}

static void
only_the_members_of_the_forge_are_kept(void **state)
{
	static const char text[] = "{'checkout_sha':'a','object_kind':'b','event_name':'c',"
				   "'project':{'git_http_url':'d','http_url':'e'},"
				   "'repository':{'git_http_url':'f','clone_url':'g',"
				   "'full_name':'h'},'ref':'i','before':'j','after':'k'}";
	static const char github[] = "kj      i  h ", gitea[] = "kj      i g  ";
	static const char gitlab[] = "kjacb dei   f";
	const char *const want[] = { github, gitlab, gitea };

	(void)state;
	for (int f = 0; f < PROVIDER_COUNT; f++) {
		CLEANUP(webhook_scan_freep) struct webhook_scan *s = NULL;

		(void)kept(webhook_forge_of((enum provider)f), text, WEBHOOK_MEMBER_REF, &s);
		for (int m = 0; m < WEBHOOK_MEMBER_COUNT; m++) {
			struct webhook_value v = webhook_scan_value(s, (enum webhook_member)m);
			char c = v.type == WEBHOOK_TYPE_STRING ? v.p[0] : ' ';

			if (c != want[f][m])
				fail_msg("%s of %s",
				    webhook_member_path((enum webhook_member)m),
				    provider_name((enum provider)f));
		}
	}
}

static void
types_of_members_are_told(void **state)
{
	static const struct {
		const char *text;
		enum webhook_type type;
	} rows[] = {
		{ "{}", WEBHOOK_TYPE_ABSENT },
		{ "{'ref':null}", WEBHOOK_TYPE_NULL },
		{ "{'ref':'null'}", WEBHOOK_TYPE_STRING },
		{ "{'ref':{'ref':'x'}}", WEBHOOK_TYPE_OBJECT },
		{ "{'ref':['x']}", WEBHOOK_TYPE_OTHER },
		{ "{'ref':[]}", WEBHOOK_TYPE_OTHER },
		{ "{'ref':-1}", WEBHOOK_TYPE_OTHER },
		{ "{'ref':true}", WEBHOOK_TYPE_OTHER },
		{ "{'ref':false}", WEBHOOK_TYPE_OTHER },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(webhook_scan_freep) struct webhook_scan *s = NULL;

		assert_int_equal(
		    kept(GITHUB, rows[i].text, WEBHOOK_MEMBER_REF, &s).type, rows[i].type);
	}
}

static void
members_stand_at_their_path_alone(void **state)
{
	static const char *const none[] = { "{'a':{'repository':{'full_name':'x'}}}",
		"{'repository':{'a':{'full_name':'x'}}}", "{'repository':[{'full_name':'x'}]}",
		"{'full_name':'x'}", "{'repository':{'repository':{'full_name':'x'}}}",
		"{'repository':{},'a':{'full_name':'x'}}", "{'repository.full_name':'x'}",
		"{'repository':'full_name','full_name':'x'}",
		"{'repository':null,'a':{'full_name':'x'}}" };
	static const char *const there[] = { "{'repository':{'full_name':'x'}}",
		"{'repository':{'a':{'full_name':1},'b':[{'full_name':2}],'full_name':'x'}}",
		"{'repository':{'full_name':'x','full':{'full_name':[]}}}",
		"{'a':{'b':[[{}]]},'repository':{'a':[[{}],{}],'full_name':'x'},'c':{}}" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(none); i++) {
		CLEANUP(webhook_scan_freep) struct webhook_scan *s = NULL;
		struct webhook_value v = kept(
		    GITHUB, none[i], WEBHOOK_MEMBER_REPOSITORY_FULL_NAME, &s);

		assert_int_equal(v.type, WEBHOOK_TYPE_ABSENT);
	}
	for (size_t i = 0; i < ARRAY_LEN(there); i++) {
		CLEANUP(webhook_scan_freep) struct webhook_scan *s = NULL;
		struct webhook_value v = kept(
		    GITHUB, there[i], WEBHOOK_MEMBER_REPOSITORY_FULL_NAME, &s);

		assert_int_equal(v.type, WEBHOOK_TYPE_STRING);
		assert_memory_equal(v.p, "x", 1);
	}
}

static void
a_kept_member_must_not_be_given_twice_or_have_broken_text(void **state)
{
	static const char *const bad[] = { "{'ref':'a','ref':'a'}", "{'ref':null,'ref':null}",
		"{'ref':1,'\\u0072ef':2}", "{'after':{},'after':[]}",
		"{'repository':{'full_name':'a','full_name':'a'}}",
		"{'repository':{'full_name':'a'},'repository':{'full_name':'a'}}",
		"{'repository':{'full_name':'a'},'repository':null}", "{'ref':'\\ud800'}",
		"{'ref':'\\udc00'}", "{'ref':'\\ud800x'}", "{'ref':'\\ud800\\n'}",
		"{'ref':'\\ud800\\ud800\\udc00'}", "{'ref':'\\ud800\\u0041'}", "{'ref':'\xff'}",
		"{'ref':'\xc3'}", "{'ref':'\xc3\\u00a4'}", "{'ref':'\xc3\\n'}",
		"{'ref':'\xc0\x80'}", "{'ref':'\xe0\x9f\xbf'}", "{'ref':'\xed\xa0\x80'}",
		"{'ref':'\xf0\x8f\xbf\xbf'}", "{'ref':'\xf4\x90\x80\x80'}",
		"{'ref':'\xf5\x80\x80\x80'}", "{'ref':'\x80'}", "{'ref':'\xe2\x82'}",
		"{'ref':'\xe2\x82x'}", "{'before':'\xe2\\ud83d\\ude80'}" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		CLEANUP_FREE char *json = rig_json(bad[i]);

		if (verdict(json, strlen(json)) != E_PARSE)
			fail_msg("accepted: %s", bad[i]);
	}
}

/* Of GitLab's members Gitea uses none, nor GitHub Gitea's. */
static void
what_another_forge_uses_may_be_given_twice(void **state)
{
	static const char text[] =
	    "{'checkout_sha':'\\ud800','checkout_sha':1,'project':1,'project':2,"
	    "'repository':{'clone_url':'\xff','clone_url':2,'full_name':'a/b'}}";
	CLEANUP(webhook_scan_freep) struct webhook_scan *s = NULL;

	(void)state;
	assert_int_equal(kept(GITHUB, text, WEBHOOK_MEMBER_REPOSITORY_FULL_NAME, &s).type,
	    WEBHOOK_TYPE_STRING);
}

static void
a_nul_in_kept_text_is_kept(void **state)
{
	CLEANUP(webhook_scan_freep) struct webhook_scan *s = NULL;
	struct webhook_value v = kept(GITEA, "{'ref':'a\\u0000b'}", WEBHOOK_MEMBER_REF, &s);

	(void)state;
	assert_int_equal(v.n, 3);
	assert_memory_equal(v.p, "a\0b", 3);
}

/* ---- lengths ---- */

/* {"<name>":"<n times unit>"} */
static char *
long_text(const char *name, const char *unit, size_t n)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;

	buf_printf(&b, "{'%s':'", name);
	for (size_t i = 0; i < n; i++)
		buf_add_str(&b, unit);
	buf_add_str(&b, "'}");
	return buf_take_cstr(&b);
}

static struct webhook_value
long_kept(const char *name, const char *unit, size_t n, enum webhook_member m,
    struct webhook_scan **ret)
{
	CLEANUP_FREE char *text = long_text(name, unit, n);

	return kept(GITHUB, text, m, ret);
}

static void
text_beyond_its_bound_is_cut_and_told(void **state)
{
	CLEANUP(webhook_scan_freep) struct webhook_scan *s = NULL;
	struct webhook_value v;

	(void)state;
	v = long_kept("ref", "a", 255, WEBHOOK_MEMBER_REF, &s);
	assert_int_equal(v.n, 255);
	assert_false(v.too_long);
	v = long_kept("ref", "a", 256, WEBHOOK_MEMBER_REF, &s);
	assert_true(v.too_long);
	assert_int_equal(v.n, 255);
	v = long_kept("ref", "\\u00e4", 128, WEBHOOK_MEMBER_REF, &s);
	assert_true(v.too_long);
	v = long_kept("after", "f", 64, WEBHOOK_MEMBER_AFTER, &s);
	assert_false(v.too_long || v.is_zeros);
	v = long_kept("after", "f", 65, WEBHOOK_MEMBER_AFTER, &s);
	assert_true(v.too_long);
}

static void
zeros_are_zeros_however_many(void **state)
{
	CLEANUP(webhook_scan_freep) struct webhook_scan *s = NULL;

	(void)state;
	assert_false(long_kept("after", "0", 0, WEBHOOK_MEMBER_AFTER, &s).is_zeros);
	assert_true(long_kept("after", "0", 1, WEBHOOK_MEMBER_AFTER, &s).is_zeros);
	assert_true(long_kept("after", "0", 40, WEBHOOK_MEMBER_AFTER, &s).is_zeros);
	assert_true(long_kept("after", "\\u0030", 1000, WEBHOOK_MEMBER_AFTER, &s).is_zeros);
	assert_false(long_kept("after",
	    "0000000000000000000000000000000000000000000000000000000"
	    "000000000000000000000001",
	    1, WEBHOOK_MEMBER_AFTER, &s)
			 .is_zeros);
}

/* ---- bodies of 25 MiB ---- */

#define BIG ((size_t)25 * 1024 * 1024)

/* ${head}, 25 MiB of ${fill}, ${tail}. */
static int
scan_big(const char *head, const char *fill, const char *tail, struct webhook_scan *s)
{
	char piece[16000];
	size_t len = strlen(fill), used = 0;
	struct webhook_fault fault = { 0 };

	while (used + len <= sizeof(piece)) {
		memcpy(piece + used, fill, len);
		used += len;
	}
	webhook_scan_feed(s, head, strlen(head));
	for (size_t n = 0; n < BIG; n += used)
		webhook_scan_feed(s, piece, used);
	webhook_scan_feed(s, tail, strlen(tail));
	return webhook_scan_end(s, &fault);
}

static size_t
held_by(const struct webhook_scan *s)
{
	size_t n = 0;

	for (size_t m = 0; m < WEBHOOK_MEMBER_COUNT; m++)
		n += s->kept[m].text.cap;
	return n;
}

static void
big_bodies_take_no_more_memory_than_small_ones(void **state)
{
	static const struct {
		const char *head, *fill, *tail;
		int r;
	} rows[] = {
		{ "{\"commits\":\"", "text and more of it ", "\"}", 0 },
		{ "{\"ref\":\"", "refs/heads/main", "\"}", 0 },
		{ "{\"repository\":{\"full_name\":\"", "\\u00e4\\n", "\"}}", 0 },
		{ "{\"after\":\"", "0", "\"}", 0 },
		{ "{\"commits\":[0", ",{\"ref\":[1,null]}", "]}", 0 },
		{ "{\"", "key and more of it ", "\":0}", 0 },
		{ "{\"a\":", "1234567890", "}", 0 },
		{ "", "\t \n\r ", "{}", 0 },
		{ "{\"ref\":\"\xff", "refs/heads/main", "\"}", E_PARSE },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(webhook_scan_freep) struct webhook_scan *s = webhook_scan_new(GITHUB);

		assert_non_null(s);
		assert_int_equal(
		    scan_big(rows[i].head, rows[i].fill, rows[i].tail, s), rows[i].r);
		assert_true(held_by(s) <= 16384);
	}
}

/* ---- pieces and memory ---- */

static const char mixed[] =
    "{'object_kind':'push','event_name':'push','ref':'refs/heads/f\\u00fc\\ud83d\\ude80\xc3\xbc',"
    "'before':'95790bf891e76fee5e1747ab589903a6a1f80f22',"
    "'after':'da1560886d4f094c3e6c9ef40349f7d38b5d27d7',"
    "'checkout_sha':null,'project':{'id':15,'git_http_url':'https://example.com/m/d.git',"
    "'http_url':'https:\\/\\/example.com\\/m\\/d'},'total':[1.5e+3,-0,true,false,{}],"
    "'repository':{'git_http_url':'x','name':'\\ud800'}}";

static void
every_split_comes_to_the_same(void **state)
{
	CLEANUP_FREE char *json = rig_json(mixed);
	CLEANUP(webhook_scan_freep) struct webhook_scan *whole = NULL;
	struct webhook_fault fault = { 0 };
	size_t n = strlen(json);

	(void)state;
	assert_int_equal(rig_scan(GITLAB, json, n, 0, &whole, &fault), 0);
	for (size_t at = 0; at <= n; at++) {
		CLEANUP(webhook_scan_freep) struct webhook_scan *s = webhook_scan_new(GITLAB);

		webhook_scan_feed(s, json, at);
		webhook_scan_feed(s, NULL, 0);
		webhook_scan_feed(s, json + at, n - at);
		assert_int_equal(webhook_scan_end(s, &fault), 0);
		assert_true(rig_scans_equal(whole, s));
	}
	for (size_t piece = 1; piece < 40; piece++) {
		CLEANUP(webhook_scan_freep) struct webhook_scan *s = NULL;

		assert_int_equal(rig_scan(GITLAB, json, n, piece, &s, &fault), 0);
		assert_true(rig_scans_equal(whole, s));
	}
}

static void
no_beginning_of_a_payload_is_a_payload(void **state)
{
	CLEANUP_FREE char *json = rig_json(mixed);

	(void)state;
	for (size_t n = 0; n < strlen(json); n++)
		assert_int_equal(verdict(json, n), E_PARSE);
}

static int
scan_mixed(void *arg)
{
	CLEANUP(webhook_scan_freep) struct webhook_scan *s = NULL;
	struct webhook_fault fault = { 0 };
	const char *json = arg;

	return rig_scan(GITLAB, json, strlen(json), 7, &s, &fault);
}

static void
every_failed_allocation_is_told(void **state)
{
	CLEANUP_FREE char *json = rig_json(mixed);

	(void)state;
	assert_true(starve(scan_mixed, json) >= 7);
}

/* ---- against jansson ---- */

struct maker {
	unsigned seed;
	struct buf out;
};

static unsigned
pick(struct maker *m, unsigned n)
{
	return (unsigned)rand_r(&m->seed) % n;
}

static void
make_string(struct maker *m)
{
	static const char *const parts[] = { "a", "bc ", "\\n", "\\\"", "\\\\", "\\/",
		"\\u0041", "\\u00e4", "{", "]", ":,", "\xc3\xa4", "0123456789abcdef" };

	buf_add_byte(&m->out, '"');
	for (unsigned n = pick(m, 5); n > 0; n--)
		buf_add_str(&m->out, parts[pick(m, ARRAY_LEN(parts))]);
	buf_add_byte(&m->out, '"');
}

static void
make_white(struct maker *m)
{
	static const char *const white[] = { "", "", "", " ", "\n", "\t\r " };

	buf_add_str(&m->out, white[pick(m, ARRAY_LEN(white))]);
}

static void make_value(struct maker *m, unsigned depth);

static void
make_container(struct maker *m, unsigned depth, int is_object)
{
	unsigned n = pick(m, 4);

	buf_add_byte(&m->out, is_object ? '{' : '[');
	make_white(m);
	for (unsigned i = 0; i < n; i++) {
		if (i > 0)
			buf_add_byte(&m->out, ',');
		make_white(m);
		if (is_object) {
			make_string(m);
			make_white(m);
			buf_add_byte(&m->out, ':');
			make_white(m);
		}
		make_value(m, depth + 1);
		make_white(m);
	}
	buf_add_byte(&m->out, is_object ? '}' : ']');
}

static void
make_value(struct maker *m, unsigned depth)
{
	static const char *const plain[] = { "true", "false", "null", "0", "-0", "12", "-1.5",
		"0.25", "1e2", "2E-1", "3.5e+1" };
	unsigned kind = pick(m, depth < 6 ? 4 : 2);

	if (kind == 0)
		make_string(m);
	else if (kind == 1)
		buf_add_str(&m->out, plain[pick(m, ARRAY_LEN(plain))]);
	else
		make_container(m, depth, kind == 2);
}

static void
spoil(struct maker *m)
{
	static const char with[] = "{}[]:,\"\\/ untrfals0123456789.eE+-\n\tx\x01";

	for (unsigned n = pick(m, 3); n > 0; n--) {
		size_t at = pick(m, (unsigned)m->out.len);

		if (pick(m, 3) == 0)
			memmove(m->out.data + at, m->out.data + at + 1, --m->out.len - at);
		else
			m->out.data[at] = (uint8_t)with[pick(m, sizeof(with) - 1)];
	}
}

/* What jansson refuses for reasons of its own: sizes of numbers, surrogates, NUL in keys, text
 * that is not UTF-8. */
static int
is_known_difference(const json_error_t *error)
{
	enum json_error_code code = json_error_code(error);

	return code == json_error_numeric_overflow || code == json_error_invalid_utf8 ||
	    code == json_error_null_byte_in_key || strstr(error->text, "Unicode") != NULL;
}

static void
jansson_accepts_and_refuses_the_same(void **state)
{
	struct maker m = { .seed = 20240131, .out = BUF_INIT };
	unsigned accepted = 0, refused = 0;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		json_error_t error;
		json_t *tree;
		int ours;

		buf_reset(&m.out);
		make_container(&m, 0, 1);
		if (i % 4 != 0)
			spoil(&m);
		if (m.out.len == 0 || m.out.data[0] != '{')
			continue;
		ours = verdict((const char *)m.out.data, m.out.len);
		tree = json_loadb((const char *)m.out.data, m.out.len, JSON_ALLOW_NUL, &error);
		if (tree != NULL ? ours != 0 : ours == 0 && !is_known_difference(&error))
			fail_msg("%d: %.*s", ours, (int)m.out.len, (const char *)m.out.data);
		*(tree != NULL ? &accepted : &refused) += 1;
		json_decref(tree);
	}
	buf_done(&m.out);
	assert_true(accepted > 2000 && refused > 2000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_grammar_of_json_is_accepted),
		cmocka_unit_test(what_is_not_json_is_refused),
		cmocka_unit_test(the_fault_says_what_is_wrong),
		cmocka_unit_test(sixty_four_containers_may_nest_and_one_more_may_not),
		cmocka_unit_test(containers_close_as_they_were_opened_at_every_depth),
		cmocka_unit_test(text_is_kept_unescaped),
		cmocka_unit_test(keys_may_be_written_with_escapes),
		cmocka_unit_test(only_the_members_of_the_forge_are_kept),
		cmocka_unit_test(types_of_members_are_told),
		cmocka_unit_test(members_stand_at_their_path_alone),
		cmocka_unit_test(a_kept_member_must_not_be_given_twice_or_have_broken_text),
		cmocka_unit_test(what_another_forge_uses_may_be_given_twice),
		cmocka_unit_test(a_nul_in_kept_text_is_kept),
		cmocka_unit_test(text_beyond_its_bound_is_cut_and_told),
		cmocka_unit_test(zeros_are_zeros_however_many),
		cmocka_unit_test(big_bodies_take_no_more_memory_than_small_ones),
		cmocka_unit_test(every_split_comes_to_the_same),
		cmocka_unit_test(no_beginning_of_a_payload_is_a_payload),
		cmocka_unit_test(every_failed_allocation_is_told),
		cmocka_unit_test(jansson_accepts_and_refuses_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
