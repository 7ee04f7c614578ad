#include "test/support/forge_fuzz.h"

#include <string.h>

#include "lib/base/err.h"
#include "lib/base/utf8.h"
#include "test/support/forge_rig.h"

#define PROJECT "https://github.com/octo/hello"

static struct webhook_scan *
scan_split(
    const struct webhook_forge *f, const uint8_t *p, size_t n, unsigned seed, size_t most)
{
	struct webhook_scan *s = webhook_scan_new(f);

	must(s != NULL);
	for (size_t at = 0; at < n;) {
		size_t len = min_size(n - at, (size_t)rand_r(&seed) % (most + 1));

		webhook_scan_feed(s, p + at, len);
		at += len;
	}
	return s;
}

static void
check_splits(const struct webhook_forge *f, const uint8_t *p, size_t n, unsigned seed,
    const struct webhook_scan *whole, const struct webhook_fault *want)
{
	static const size_t most[] = { 1, 9, 64 };

	for (size_t i = 0; i < ARRAY_LEN(most); i++) {
		CLEANUP(webhook_scan_freep)
		struct webhook_scan *s = scan_split(f, p, n, seed, most[i]);
		struct webhook_fault fault = { 0 };

		if (webhook_scan_end(s, &fault) == 0)
			must(want == NULL && rig_scans_equal(whole, s));
		else
			must(want != NULL && fault.path == want->path &&
			    fault.message == want->message);
	}
}

/* The value at a path such as "repository.full_name". */
static const json_t *
at_path(const json_t *tree, const char *path)
{
	const char *dot = strchr(path, '.');
	char outer[32];

	if (dot == NULL)
		return json_object_get(tree, path);
	must((size_t)(dot - path) < sizeof(outer));
	memcpy(outer, path, (size_t)(dot - path));
	outer[dot - path] = '\0';
	return json_object_get(json_object_get(tree, outer), dot + 1);
}

static enum webhook_type
type_of(const json_t *j)
{
	if (j == NULL)
		return WEBHOOK_TYPE_ABSENT;
	if (json_is_null(j))
		return WEBHOOK_TYPE_NULL;
	if (json_is_string(j))
		return WEBHOOK_TYPE_STRING;
	return json_is_object(j) ? WEBHOOK_TYPE_OBJECT : WEBHOOK_TYPE_OTHER;
}

static void
check_member(const struct webhook_scan *s, enum webhook_member m, const json_t *tree)
{
	const json_t *j = at_path(tree, webhook_member_path(m));
	struct webhook_value v = webhook_scan_value(s, m);
	int whole = m != WEBHOOK_MEMBER_PROJECT && m != WEBHOOK_MEMBER_REPOSITORY;

	must(v.type == type_of(j));
	if (v.type != WEBHOOK_TYPE_STRING || !whole)
		return;
	must(v.too_long ? v.n < json_string_length(j) : v.n == json_string_length(j));
	must(memcmp(v.p, json_string_value(j), v.n) == 0);
	must(v.is_zeros ==
	    (v.n > 0 && strspn(json_string_value(j), "0") == json_string_length(j)));
}

static void
check_tree(const struct webhook_forge *f, const uint8_t *p, size_t n,
    const struct webhook_scan *s, int accepted)
{
	CLEANUP(json_unrefp) json_t *tree = NULL;

	if (json_text_parse((const char *)p, n, WEBHOOK_DEPTH_MAX, &tree) < 0 ||
	    !json_is_object(tree))
		return;
	must(accepted);
	for (int m = 0; m < WEBHOOK_MEMBER_COUNT; m++)
		if ((f->members >> m & 1) != 0)
			check_member(s, (enum webhook_member)m, tree);
}

/* The strict decoder of the contract is the judge; ${again} is room for one more value. */
static void
check_contract(struct arena *arena, const struct codec_type *t, const void *v, void *again)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT, same = BUF_INIT;
	CLEANUP(json_unrefp) json_t *tree = NULL;
	struct codec c;

	must(codec_encode(&text, t, v) == 0);
	must(json_text_parse((const char *)text.data, text.len, 8, &tree) == 0);
	codec_init(&c, arena, NULL);
	must(codec_decode(&c, t, tree, again) == 0);
	must(codec_encode(&same, t, again) == 0);
	must(strcmp(buf_cstr(&text), buf_cstr(&same)) == 0);
}

static void
check_candidate(struct arena *arena, const struct verified_payload *v)
{
	struct delivery_candidate candidate, again;

	must(webhook_classify(arena, v, "main", &candidate) == 0);
	check_contract(arena, &delivery_candidate_codec, &candidate, &again);
	must(candidate.outcome != OUTCOME_QUEUE_FULL);
	must((candidate.outcome == OUTCOME_ACCEPTED) ==
	    (v->event_kind == EVENT_KIND_PUSH && v->branch != NULL &&
		strcmp(v->branch, "main") == 0 && v->commit_sha != NULL));
}

static void
check_payload(const struct webhook_forge *f, const struct webhook_scan *s, const char *event)
{
	CLEANUP(arena_freep) struct arena *arena = arena_new();
	struct verified_payload v, again;
	struct codec c;
	int r;

	codec_init(&c, arena, NULL);
	r = rig_make(&c, f, s, event, PROJECT, &v);
	if (r < 0) {
		must(c.nissues > 0);
		must(strcmp(c.issues[0].code,
			 r == E_INVAL ? "invalid_repo_url" : "invalid_request") == 0);
		must(r == E_INVAL || r == E_PARAMS);
		return;
	}
	must(c.nissues == 0);
	check_contract(arena, &verified_payload_codec, &v, &again);
	must(webhook_same_repository(v.repository_url, v.repository_url));
	if (f->provider == PROVIDER_GITHUB)
		must(webhook_config_fits(PROVIDER_GITHUB, NULL, v.repository_url));
	check_candidate(arena, &v);
}

void
forge_fuzz(enum provider provider, const uint8_t *data, size_t size)
{
	const struct webhook_forge *f = webhook_forge_of(provider);
	CLEANUP(webhook_scan_freep) struct webhook_scan *s = NULL;
	struct webhook_fault fault = { 0 };
	unsigned seed;
	int r;

	if (size < 1)
		return;
	seed = *data++;
	size--;
	r = rig_scan(f, data, size, 0, &s, &fault);
	must(r == 0 || r == E_PARSE);
	check_splits(f, data, size, seed, s, r < 0 ? &fault : NULL);
	check_tree(f, data, size, s, r == 0);
	if (r < 0)
		return;
	check_payload(f, s, f->push);
	check_payload(f, s, "ping");
	check_payload(f, s, "create");
}
