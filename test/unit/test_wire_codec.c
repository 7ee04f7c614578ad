/* test/unit/test_wire_codec.c -- every kind of field, through tables as the generator writes them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/wire/codec.h"
#include "lib/wire/json.h"

/* ---- one of each ---- */

enum colour { COLOUR_RED, COLOUR_GREEN };

struct cage {
	const char *label;
	int has_size;
	int64_t size; /* may be absent */
};

enum beast_kind { BEAST_CAT = 1, BEAST_FISH };
struct beast_cat {
	int64_t lives;
};
struct beast {
	enum beast_kind kind;
	union {
		struct beast_cat cat;
	} u;
};

struct zoo {
	const char *slug;
	const char *nick; /* may be null */
	struct str_view raw;
	int64_t at;
	enum colour colour;
	int has_count;
	int64_t count; /* may be null */
	double ratio;  /* 0.5 when absent ... as an integer default: 3 */
	int open;
	const json_t *any;
	const char *any_text;
	const struct cage *cages;
	size_t ncages;
	const char *const *tags;
	size_t ntags;
	struct cage home;
	const struct cage *spare; /* may be null */
	int has_token;
	const char *token; /* may be absent or null */
	struct beast beast;
	const char *path; /* ".x" when absent */
};

static const struct codec_type slug = { .kind = CODEC_STRING,
	.name = "Slug",
	.size = sizeof(char *),
	.max = INT64_MAX,
	.shape = CODEC_SHAPE_SLUG };
static const struct codec_type text8 = {
	.kind = CODEC_STRING, .name = "Text8", .size = sizeof(char *), .min = 1, .max = 8
};
static const struct codec_type bytes4 = { .kind = CODEC_STRING,
	.name = "String",
	.size = sizeof(char *),
	.max = INT64_MAX,
	.max_bytes = 4 };
static const struct codec_type path_type = { .kind = CODEC_STRING,
	.name = "ConfigPath",
	.size = sizeof(char *),
	.max = INT64_MAX,
	.rule = "ConfigPath",
	.code = "invalid_config_path" };
static const struct codec_type view = {
	.kind = CODEC_VIEW, .name = "String", .size = sizeof(struct str_view), .max = INT64_MAX
};
static const struct codec_type when = {
	.kind = CODEC_TIME, .name = "Time", .size = sizeof(int64_t), .max = INT64_MAX
};
static const char *const colour_names[] = { "red", "green" };
static const struct codec_words colour_words = { colour_names, 2 };
static const struct codec_type colour_type = { .kind = CODEC_ENUM,
	.name = "Colour",
	.size = sizeof(enum colour),
	.words = &colour_words };
static const struct codec_type small = {
	.kind = CODEC_INTEGER, .name = "Small", .size = sizeof(int64_t), .min = 1, .max = 10
};
static const struct codec_type ratio_type = { .kind = CODEC_NUMBER,
	.name = "Number",
	.size = sizeof(double),
	.min = 0,
	.max = 100,
	.code = "invalid_ratio" };
static const struct codec_type boolean = {
	.kind = CODEC_BOOLEAN, .name = "Boolean", .size = sizeof(int)
};
static const struct codec_type any_type = {
	.kind = CODEC_ANY, .name = "Any", .size = 2 * sizeof(void *)
};

static const struct codec_field cage_fields[] = {
	{ .key = "\"label\":",
	    .key_len = 8,
	    .type = &text8,
	    .flags = CODEC_REQUIRED,
	    .at = offsetof(struct cage, label) },
	{ .key = "\"size\":",
	    .key_len = 7,
	    .type = &small,
	    .flags = CODEC_HAS,
	    .at = offsetof(struct cage, size),
	    .has = offsetof(struct cage, has_size) },
};
static const struct codec_type cage_type = { .kind = CODEC_OBJECT,
	.name = "Object",
	.size = sizeof(struct cage),
	.fields = cage_fields,
	.nfields = 2 };
static const struct codec_type cages = { .kind = CODEC_ARRAY,
	.name = "Array",
	.size = 2 * sizeof(void *),
	.max = 3,
	.item = &cage_type };
static const struct codec_type tags_type = { .kind = CODEC_ARRAY,
	.name = "Array",
	.size = 2 * sizeof(void *),
	.max = INT64_MAX,
	.item = &bytes4 };

static const struct codec_field cat_fields[] = {
	{ .key = "\"lives\":",
	    .key_len = 8,
	    .type = &small,
	    .flags = CODEC_REQUIRED,
	    .at = offsetof(struct beast_cat, lives) },
};
static const struct codec_type cat_type = { .kind = CODEC_OBJECT,
	.name = "Object",
	.size = sizeof(struct beast_cat),
	.fields = cat_fields,
	.nfields = 1 };
static const struct codec_type fish_type = { .kind = CODEC_OBJECT, .name = "Object" };
static const struct codec_variant beast_variants[] = {
	{ "cat", &cat_type, offsetof(struct beast, u.cat) },
	{ "fish", &fish_type, 0 },
};
static const struct codec_type beast_type = { .kind = CODEC_UNION,
	.name = "Object",
	.size = sizeof(struct beast),
	.tag = "kind",
	.variants = beast_variants,
	.nvariants = 2 };

static const struct codec_extra ratio_extra = { .def_int = 3 };
static const struct codec_extra path_extra = { .def_text = ".x", .blank_code = "blank" };

#define FIELD(member, t, f)                                                             \
	{                                                                               \
		.key = "\"" #member "\":", .key_len = sizeof(#member) + 2, .type = (t), \
		.flags = (f), .at = offsetof(struct zoo, member)                        \
	}
static const struct codec_field zoo_fields[] = {
	FIELD(slug, &slug, CODEC_REQUIRED),
	FIELD(nick, &text8, CODEC_REQUIRED | CODEC_NULLABLE),
	FIELD(raw, &view, CODEC_REQUIRED),
	FIELD(at, &when, CODEC_REQUIRED),
	FIELD(colour, &colour_type, CODEC_REQUIRED),
	{ .key = "\"count\":",
	    .key_len = 8,
	    .type = &small,
	    .flags = CODEC_REQUIRED | CODEC_NULLABLE | CODEC_HAS,
	    .at = offsetof(struct zoo, count),
	    .has = offsetof(struct zoo, has_count) },
	{ .key = "\"ratio\":",
	    .key_len = 8,
	    .type = &ratio_type,
	    .flags = CODEC_DEFAULT,
	    .at = offsetof(struct zoo, ratio),
	    .extra = &ratio_extra },
	FIELD(open, &boolean, CODEC_REQUIRED),
	FIELD(any, &any_type, CODEC_REQUIRED),
	FIELD(cages, &cages, CODEC_REQUIRED),
	FIELD(tags, &tags_type, CODEC_REQUIRED),
	FIELD(home, &cage_type, CODEC_REQUIRED),
	FIELD(spare, &cage_type, CODEC_REQUIRED | CODEC_NULLABLE | CODEC_POINTER),
	{ .key = "\"token\":",
	    .key_len = 8,
	    .type = &bytes4,
	    .flags = CODEC_NULLABLE | CODEC_HAS,
	    .at = offsetof(struct zoo, token),
	    .has = offsetof(struct zoo, has_token) },
	FIELD(beast, &beast_type, CODEC_REQUIRED),
	{ .key = "\"path\":",
	    .key_len = 7,
	    .type = &path_type,
	    .flags = CODEC_DEFAULT,
	    .at = offsetof(struct zoo, path),
	    .extra = &path_extra },
};
static const struct codec_type zoo_type = { .kind = CODEC_OBJECT,
	.name = "Object",
	.size = sizeof(struct zoo),
	.fields = zoo_fields,
	.nfields = ARRAY_LEN(zoo_fields) };

#define FULL                                                                                  \
	"{\"slug\":\"a-B_9\",\"nick\":\"\xc3\xbc\",\"raw\":\"x\\u0000y\","                    \
	"\"at\":\"2026-01-31T09:05:07.042Z\",\"colour\":\"green\",\"count\":7,\"ratio\":2.5," \
	"\"open\":true,\"any\":{\"k\":[1,null]},\"cages\":[{\"label\":\"one\",\"size\":2},"   \
	"{\"label\":\"two\"}],\"tags\":[\"a\",\"\"],\"home\":{\"label\":\"h\"},"              \
	"\"spare\":{\"label\":\"s\",\"size\":10},\"token\":\"tok\","                          \
	"\"beast\":{\"kind\":\"cat\",\"lives\":9},\"path\":\"p/q\"}"
#define LEAST                                                                             \
	"{\"slug\":\"s\",\"nick\":null,\"raw\":\"\",\"at\":\"1970-01-01T00:00:00.000Z\"," \
	"\"colour\":\"red\",\"count\":null,\"ratio\":3,\"open\":false,\"any\":null,"      \
	"\"cages\":[],\"tags\":[],\"home\":{\"label\":\"h\"},\"spare\":null,"             \
	"\"beast\":{\"kind\":\"fish\"},\"path\":\".x\"}"

/* ---- helpers ---- */

struct scene {
	struct arena *arena;
	struct codec codec;
	json_t *json;
	struct zoo zoo;
};

static void
scene_done(struct scene *s)
{
	json_decref(s->json);
	arena_free(s->arena);
}

static int
decode(struct scene *s, const struct codec_type *t, const char *text)
{
	if (s->arena == NULL)
		s->arena = arena_new();
	json_decref(s->json);
	s->json = NULL;
	assert_int_equal(json_text_parse(text, strlen(text), 64, &s->json), 0);
	if (s->codec.arena == NULL)
		codec_init(&s->codec, s->arena, NULL);
	return codec_decode(&s->codec, t, s->json, &s->zoo);
}

/* The text with the value of one member of FULL replaced: ${from} must be in it once. */
static const char *
with(struct scene *s, const char *from, const char *to)
{
	const char *at = strstr(FULL, from);

	assert_non_null(at);
	if (s->arena == NULL)
		s->arena = arena_new();
	return arena_format(
	    s->arena, "%.*s%s%s", (int)(at - FULL), FULL, to, at + strlen(from));
}

static void
assert_issue(const struct codec *c, size_t i, const char *path, const char *expected,
    const char *message, const char *code)
{
	assert_true(i < c->nissues);
	assert_string_equal(c->issues[i].path, path);
	assert_string_equal(c->issues[i].expected, expected);
	assert_string_equal(c->issues[i].message, message);
	assert_string_equal(c->issues[i].code, code);
}

static void
assert_one_issue(const char *from, const char *to, const char *path, const char *expected,
    const char *message, const char *code)
{
	CLEANUP(scene_done) struct scene s = { 0 };

	assert_int_equal(decode(&s, &zoo_type, with(&s, from, to)), E_PARAMS);
	assert_int_equal(s.codec.nissues, 1);
	assert_issue(&s.codec, 0, path, expected, message, code);
}

/* ---- tests ---- */

static void
every_kind_of_field_comes_in_and_goes_out(void **state)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	CLEANUP(scene_done) struct scene s = { 0 };
	struct zoo *z = &s.zoo;

	(void)state;
	assert_int_equal(decode(&s, &zoo_type, FULL), 0);
	assert_string_equal(z->slug, "a-B_9");
	assert_int_equal(z->raw.n, 3);
	assert_memory_equal(z->raw.p, "x\0y", 3);
	assert_int_equal(z->at, 1769850307042);
	assert_int_equal(z->colour, COLOUR_GREEN);
	assert_true(z->has_count && z->count == 7);
	assert_true(z->ratio == 2.5);
	assert_int_equal(z->open, 1);
	assert_true(json_is_object(z->any));
	assert_int_equal(z->ncages, 2);
	assert_true(z->cages[0].has_size && z->cages[0].size == 2);
	assert_false(z->cages[1].has_size);
	assert_int_equal(z->ntags, 2);
	assert_string_equal(z->tags[0], "a");
	assert_string_equal(z->home.label, "h");
	assert_int_equal(z->spare->size, 10);
	assert_true(z->has_token);
	assert_string_equal(z->token, "tok");
	assert_int_equal(z->beast.kind, BEAST_CAT);
	assert_int_equal(z->beast.u.cat.lives, 9);
	assert_int_equal(codec_encode(&out, &zoo_type, z), 0);
	assert_string_equal(buf_cstr(&out), FULL);
}

static void
nulls_and_absent_members_are_told_apart(void **state)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	CLEANUP(scene_done) struct scene s = { 0 };

	(void)state;
	assert_int_equal(decode(&s, &zoo_type, LEAST), 0);
	assert_null(s.zoo.nick);
	assert_false(s.zoo.has_count);
	assert_null(s.zoo.spare);
	assert_false(s.zoo.has_token);
	assert_int_equal(s.zoo.ncages, 0);
	assert_int_equal(codec_encode(&out, &zoo_type, &s.zoo), 0);
	assert_string_equal(buf_cstr(&out), LEAST);

	/* What may be absent and null is there, without a value, when it is null. */
	assert_int_equal(decode(&s, &zoo_type, with(&s, "\"tok\"", "null")), 0);
	assert_true(s.zoo.has_token);
	assert_null(s.zoo.token);
	buf_reset(&out);
	assert_int_equal(codec_encode(&out, &zoo_type, &s.zoo), 0);
	assert_non_null(strstr(buf_cstr(&out), "\"token\":null"));
}

static void
absent_members_with_a_default_get_it(void **state)
{
	CLEANUP(scene_done) struct scene s = { 0 };

	(void)state;
	assert_int_equal(decode(&s, &zoo_type, with(&s, "\"ratio\":2.5,", "")), 0);
	assert_true(s.zoo.ratio == 3.0);
	assert_int_equal(decode(&s, &zoo_type, with(&s, ",\"path\":\"p/q\"", "")), 0);
	assert_string_equal(s.zoo.path, ".x");
}

static void
members_may_come_in_any_order(void **state)
{
	CLEANUP(scene_done) struct scene s = { 0 };

	(void)state;
	assert_int_equal(decode(&s, &cage_type, "{\"size\":3,\"label\":\"x\"}"), 0);
	assert_int_equal(((struct cage *)(void *)&s.zoo)->size, 3);
}

static void
each_bad_value_is_named_with_what_was_expected(void **state)
{
	(void)state;
	assert_one_issue(
	    "\"a-B_9\"", "1", "slug", "Slug", "Must be a string.", "invalid_request");
	assert_one_issue("\"a-B_9\"", "\"a b\"", "slug", "Slug",
	    "Must be 1 to 64 of A-Z, a-z, 0-9, _ and -.", "invalid_request");
	assert_one_issue("\"a-B_9\"", "\"a\\u0000\"", "slug", "Slug",
	    "Must not contain U+0000.", "invalid_request");
	assert_one_issue(
	    "\"a-B_9\"", "null", "slug", "Slug", "Must be a string.", "invalid_request");
	assert_one_issue(
	    "\"slug\":\"a-B_9\",", "", "slug", "Slug", "Is missing.", "invalid_request");
	assert_one_issue("\"\xc3\xbc\"", "\"123456789\"", "nick", "Text8",
	    "Must be 1 to 8 characters.", "invalid_request");
	assert_one_issue("\"\xc3\xbc\"", "\"\"", "nick", "Text8", "Must be 1 to 8 characters.",
	    "invalid_request");
	assert_one_issue("07.042Z", "07Z", "at", "Time",
	    "Must be a time such as 2026-01-31T09:05:07.042Z.", "invalid_request");
	assert_one_issue("\"green\"", "\"blue\"", "colour", "Colour",
	    "Must be one of: red, green.", "invalid_request");
	assert_one_issue("\"green\"", "\"gree\"", "colour", "Colour",
	    "Must be one of: red, green.", "invalid_request");
	assert_one_issue(":7,", ":0,", "count", "Small", "Must be 1 to 10.", "invalid_request");
	assert_one_issue(
	    ":7,", ":11,", "count", "Small", "Must be 1 to 10.", "invalid_request");
	assert_one_issue(
	    ":7,", ":7.0,", "count", "Small", "Must be an integer.", "invalid_request");
	assert_one_issue(
	    ":2.5,", ":100.5,", "ratio", "Number", "Must be 0 to 100.", "invalid_ratio");
	assert_one_issue(
	    ":2.5,", ":null,", "ratio", "Number", "Must be a number.", "invalid_request");
	assert_one_issue(
	    ":true,", ":1,", "open", "Boolean", "Must be true or false.", "invalid_request");
	assert_one_issue(
	    "[\"a\",\"\"]", "{}", "tags", "Array", "Must be a list.", "invalid_request");
	assert_one_issue("\"a\",\"\"]", "\"a\",\"12345\"]", "tags[1]", "String",
	    "Must be at most 4 bytes.", "invalid_request");
	assert_one_issue("\"two\"}", "\"two\"},{\"label\":\"3\"},{\"label\":\"4\"}", "cages",
	    "Array", "Must be 0 to 3 items.", "invalid_request");
	assert_one_issue("{\"label\":\"two\"}", "[]", "cages[1]", "Object",
	    "Must be an object.", "invalid_request");
	assert_one_issue("\"label\":\"one\"", "\"label\":5", "cages[0].label", "Text8",
	    "Must be a string.", "invalid_request");
	assert_one_issue("\"label\":\"s\"", "\"label\":\"s\",\"x\":1", "spare.x", "absent",
	    "There is no such member.", "invalid_request");
	assert_one_issue("\"kind\":\"cat\"", "\"kind\":\"dog\"", "beast.kind", "String",
	    "Is of no known kind.", "invalid_request");
	assert_one_issue(
	    "\"kind\":\"cat\",", "", "beast.kind", "String", "Is missing.", "invalid_request");
	assert_one_issue("\"kind\":\"cat\"", "\"kind\":1", "beast.kind", "String",
	    "Must be a string.", "invalid_request");
	assert_one_issue("\"lives\":9", "\"lives\":\"9\"", "beast.lives", "Small",
	    "Must be an integer.", "invalid_request");
}

static void
a_field_has_its_own_code_and_another_when_it_is_blank(void **state)
{
	CLEANUP(scene_done) struct scene s = { 0 };

	(void)state;
	assert_int_equal(decode(&s, &zoo_type, with(&s, "\"p/q\"", "\"/p\"")), E_PARAMS);
	assert_string_equal(s.codec.issues[0].code, "invalid_config_path");
	assert_int_equal(decode(&s, &zoo_type, with(&s, "\"p/q\"", "\" \"")), E_PARAMS);
	assert_string_equal(s.codec.issues[0].code, "blank");
	/* A rule may change the text. */
	assert_int_equal(decode(&s, &zoo_type, with(&s, "\"p/q\"", "\" p \"")), 0);
	assert_string_equal(s.zoo.path, "p");
}

static void
issues_come_in_the_order_of_the_table_with_unknown_members_last(void **state)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	CLEANUP(scene_done) struct scene s = { 0 };

	(void)state;
	assert_int_equal(
	    decode(&s, &cage_type, "{\"zz\":1,\"size\":99,\"a\\\"\":2,\"label\":3}"), E_PARAMS);
	assert_int_equal(codec_issues_text(&s.codec, &out), 0);
	assert_string_equal(buf_cstr(&out),
	    "{\"issues\":["
	    "{\"path\":\"label\",\"expected\":\"Text8\",\"message\":\"Must be a string.\"},"
	    "{\"path\":\"size\",\"expected\":\"Small\",\"message\":\"Must be 1 to 10.\"},"
	    "{\"path\":\"zz\",\"expected\":\"absent\",\"message\":\"There is no such member.\"},"
	    "{\"path\":\"a\\\"\",\"expected\":\"absent\",\"message\":\"There is no such "
	    "member.\"}]}");
	/* The next decoding begins afresh. */
	assert_int_equal(decode(&s, &cage_type, "{\"label\":\"x\"}"), 0);
	assert_int_equal(s.codec.nissues, 0);
}

static void
the_whole_value_has_an_empty_path(void **state)
{
	CLEANUP(scene_done) struct scene s = { 0 };

	(void)state;
	assert_int_equal(decode(&s, &cage_type, "[]"), E_PARAMS);
	assert_issue(&s.codec, 0, "", "Object", "Must be an object.", "invalid_request");
	/* No value at all is an object without members. */
	assert_int_equal(codec_decode(&s.codec, &cage_type, NULL, &s.zoo), E_PARAMS);
	assert_issue(&s.codec, 0, "label", "Text8", "Is missing.", "invalid_request");
	assert_int_equal(codec_decode(&s.codec, &beast_type, NULL, &s.zoo), E_PARAMS);
}

static void
shapes_are_judged_before_rules(void **state)
{
	CLEANUP(scene_done) struct scene s = { 0 };
	const char *bad_rules = with(
	    &s, "\"count\":7,\"ratio\":2.5", "\"count\":70,\"ratio\":250");

	(void)state;
	codec_init(&s.codec, s.arena, NULL);
	s.codec.passes = CODEC_SHAPES;
	assert_int_equal(decode(&s, &zoo_type, bad_rules), 0);
	assert_int_equal(decode(&s, &zoo_type, with(&s, "\"green\"", "\"blue\"")), 0);
	assert_int_equal(decode(&s, &zoo_type, with(&s, "\"p/q\"", "\"\"")), 0);
	assert_int_equal(decode(&s, &zoo_type, with(&s, "\"a-B_9\"", "\"a b\"")), E_PARAMS);
	assert_int_equal(decode(&s, &zoo_type, with(&s, ":7,", ":\"7\",")), E_PARAMS);
	s.codec.passes = CODEC_ALL;
	assert_int_equal(decode(&s, &zoo_type, bad_rules), E_PARAMS);
	assert_int_equal(s.codec.nissues, 2);
	assert_string_equal(s.codec.issues[0].path, "count");
	assert_string_equal(s.codec.issues[1].code, "invalid_ratio");
}

static void
a_lenient_decoder_ignores_what_a_later_release_may_add(void **state)
{
	CLEANUP(scene_done) struct scene s = { 0 };

	(void)state;
	s.arena = arena_new();
	codec_init(&s.codec, s.arena, NULL);
	s.codec.lenient = 1;
	assert_int_equal(
	    decode(&s, &zoo_type, with(&s, "\"label\":\"s\"", "\"label\":\"s\",\"x\":1")), 0);
	assert_int_equal(s.codec.nissues, 0);
	assert_int_equal(
	    decode(&s, &zoo_type, with(&s, "\"kind\":\"cat\"", "\"kind\":\"dog\"")),
	    E_UNSUPPORTED);
	/* What it does know must be right. */
	assert_int_equal(
	    decode(&s, &zoo_type, with(&s, "\"lives\":9", "\"lives\":0")), E_PARAMS);
	assert_int_equal(decode(&s, &zoo_type, with(&s, "\"kind\":\"cat\",", "")), E_PARAMS);
}

static void
long_names_are_cut_and_many_issues_are_counted(void **state)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	CLEANUP(scene_done) struct scene s = { 0 };

	(void)state;
	buf_add_str(&text, "{\"label\":\"x\",\"");
	for (int i = 0; i < 100; i++)
		buf_add_str(&text, "\xc3\xbc\xc3\xbc");
	buf_add_str(&text, "\":1");
	for (int i = 0; i < 2 * CODEC_ISSUES_MAX; i++)
		buf_printf(&text, ",\"u%d\":1", i);
	buf_add_str(&text, "}");
	assert_int_equal(decode(&s, &cage_type, buf_cstr(&text)), E_PARAMS);
	assert_int_equal(s.codec.nissues, CODEC_ISSUES_MAX);
	assert_int_equal(s.codec.nbad, 2 * CODEC_ISSUES_MAX + 1);
	assert_int_equal(strlen(s.codec.issues[0].path), 128);
}

static void
ready_made_text_stands_for_a_free_value(void **state)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	CLEANUP(scene_done) struct scene s = { 0 };

	(void)state;
	assert_int_equal(decode(&s, &zoo_type, LEAST), 0);
	s.zoo.any_text = "{\"made\":\"elsewhere\"}";
	assert_int_equal(codec_encode(&out, &zoo_type, &s.zoo), 0);
	assert_non_null(strstr(buf_cstr(&out), "\"any\":{\"made\":\"elsewhere\"},"));
}

static void
every_failed_allocation_is_told(void **state)
{
	CLEANUP(json_unrefp) json_t *good = NULL, *bad = NULL;
	long n;

	(void)state;
	assert_int_equal(json_text_parse(FULL, strlen(FULL), 64, &good), 0);
	assert_int_equal(json_text_parse("{\"size\":0,\"x\":1}", 16, 64, &bad), 0);
	for (n = 0;; n++) {
		CLEANUP(arena_freep) struct arena *arena = NULL;
		CLEANUP(buf_done) struct buf out = BUF_INIT;
		struct codec c;
		struct zoo z;
		struct cage cage;
		int r;

		mem_fault_arm(n);
		arena = arena_new();
		r = arena == NULL ? E_NOMEM : 0;
		if (r == 0) {
			codec_init(&c, arena, NULL);
			r = codec_decode(&c, &zoo_type, good, &z);
		}
		if (r == 0)
			r = codec_encode(&out, &zoo_type, &z);
		if (r == 0) {
			r = codec_decode(&c, &cage_type, bad, &cage);
			if (r == E_PARAMS)
				r = codec_issues_text(&c, &out);
		}
		if (!mem_fault_hit())
			break;
		assert_int_equal(r, E_NOMEM);
	}
	mem_fault_arm(-1);
	assert_true(n > 5);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_of_field_comes_in_and_goes_out),
		cmocka_unit_test(nulls_and_absent_members_are_told_apart),
		cmocka_unit_test(absent_members_with_a_default_get_it),
		cmocka_unit_test(members_may_come_in_any_order),
		cmocka_unit_test(each_bad_value_is_named_with_what_was_expected),
		cmocka_unit_test(a_field_has_its_own_code_and_another_when_it_is_blank),
		cmocka_unit_test(
		    issues_come_in_the_order_of_the_table_with_unknown_members_last),
		cmocka_unit_test(the_whole_value_has_an_empty_path),
		cmocka_unit_test(shapes_are_judged_before_rules),
		cmocka_unit_test(a_lenient_decoder_ignores_what_a_later_release_may_add),
		cmocka_unit_test(long_names_are_cut_and_many_issues_are_counted),
		cmocka_unit_test(ready_made_text_stands_for_a_free_value),
		cmocka_unit_test(every_failed_allocation_is_told),
	};

	json_text_use_mem();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
