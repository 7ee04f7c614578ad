#include "lib/webhook/payload.h"

#include <string.h>

#include "lib/base/ascii.h"
#include "lib/base/base.h"
#include "lib/base/enc.h"
#include "lib/base/err.h"
#include "lib/base/refname.h"
#include "lib/base/repourl.h"
#include "lib/base/rules.h"
#include "lib/base/utf8.h"

#define ISSUES_MAX    4 /* Repository, ref, commit, before. */
#define SHA_MIN       7
#define SHA_MAX       64
#define CODE_REQUEST  "invalid_request"
#define CODE_REPO_URL "invalid_repo_url"

#define SAY_NAME     "The repository must be told as owner/name."
#define SAY_SHA      "A commit must have 7 to 64 hexadecimal digits."
#define SAY_REF      "A ref must have 1 to 255 bytes and no control characters."
#define SAY_LONG_URL "The URL must have at most 2,048 bytes."

struct maker {
	struct codec *c;
	const struct webhook_scan *scan;
	const struct webhook_forge *forge;
	struct verified_payload *v;
	/* The member of each that counts, and what it holds. */
	enum webhook_member url_at, commit_at;
	struct webhook_value url, ref, commit, before;
};

static void
add_issue(struct maker *m, enum webhook_member at, const char *expected, const char *say,
    const char *code)
{
	struct codec *c = m->c;

	must(c->nissues < ISSUES_MAX);
	c->issues[c->nissues++] = (struct codec_issue) {
		.path = webhook_member_path(at),
		.expected = expected,
		.message = say,
		.code = code,
	};
	c->nbad++;
}

/* ---- which member counts ---- */

static int
is_text(struct str_view v, const char *word)
{
	return v.n == strlen(word) && memcmp(v.p, word, v.n) == 0;
}

/* 1 when ${at} is absent or the text ${word}. */
static int
may_be(const struct maker *m, enum webhook_member at, const char *word)
{
	struct webhook_value v = webhook_scan_value(m->scan, at);

	if (v.type == WEBHOOK_TYPE_STRING)
		return is_text((struct str_view) { v.p, v.n }, word);
	return v.type == WEBHOOK_TYPE_ABSENT;
}

static enum event_kind
kind_of(const struct maker *m, struct str_view event_name)
{
	if (m->forge->ping != NULL && is_text(event_name, m->forge->ping))
		return EVENT_KIND_PING;
	/* Only GitLab's row has the two members; they are absent everywhere else. */
	if (is_text(event_name, m->forge->push) &&
	    may_be(m, WEBHOOK_MEMBER_OBJECT_KIND, "push") &&
	    may_be(m, WEBHOOK_MEMBER_EVENT_NAME, "push"))
		return EVENT_KIND_PUSH;
	return EVENT_KIND_OTHER;
}

static int
is_there(struct webhook_value v)
{
	return v.type != WEBHOOK_TYPE_ABSENT && v.type != WEBHOOK_TYPE_NULL;
}

/* Of several the first text counts; of one alone, whatever it is. */
static void
choose_url(struct maker *m)
{
	const struct webhook_forge *f = m->forge;

	m->url_at = f->urls[0];
	m->url = webhook_scan_value(m->scan, m->url_at);
	for (size_t i = 1; i < f->nurls && m->url.type != WEBHOOK_TYPE_STRING; i++) {
		struct webhook_value v = webhook_scan_value(m->scan, f->urls[i]);

		if (v.type != WEBHOOK_TYPE_STRING)
			continue;
		m->url_at = f->urls[i];
		m->url = v;
	}
}

static void
choose_commit(struct maker *m)
{
	m->commit_at = WEBHOOK_MEMBER_CHECKOUT_SHA;
	m->commit = webhook_scan_value(m->scan, m->commit_at);
	if (is_there(m->commit))
		return;
	m->commit_at = WEBHOOK_MEMBER_AFTER;
	m->commit = webhook_scan_value(m->scan, m->commit_at);
}

/* ---- shapes ---- */

static void
check_url_shape(struct maker *m)
{
	struct webhook_value outer = webhook_scan_value(m->scan, WEBHOOK_MEMBER_REPOSITORY);

	if (m->url.type == WEBHOOK_TYPE_STRING)
		return;
	if (m->v->event_kind == EVENT_KIND_PUSH)
		add_issue(
		    m, m->url_at, "String", "A push must name its repository.", CODE_REQUEST);
	else if (m->forge->nurls > 1)
		return; /* None of several is a text: the repository is absent. */
	else if (is_there(m->url))
		add_issue(m, m->url_at, "String", "The repository must be told as text.",
		    CODE_REQUEST);
	else if (is_there(outer) && outer.type != WEBHOOK_TYPE_OBJECT)
		add_issue(m, WEBHOOK_MEMBER_REPOSITORY, "Object",
		    "The repository must be an object.", CODE_REQUEST);
}

static void
check_text_shape(
    struct maker *m, enum webhook_member at, struct webhook_value v, const char *expected)
{
	if (is_there(v) && v.type != WEBHOOK_TYPE_STRING)
		add_issue(m, at, expected, "This member must be text, or null.", CODE_REQUEST);
}

static void
check_shapes(struct maker *m)
{
	check_url_shape(m);
	check_text_shape(m, WEBHOOK_MEMBER_REF, m->ref, "String");
	if (m->v->event_kind != EVENT_KIND_PUSH)
		return;
	check_text_shape(m, m->commit_at, m->commit, "CommitSha");
	check_text_shape(m, WEBHOOK_MEMBER_BEFORE, m->before, "CommitSha");
}

/* ---- rules: each puts its member into the payload, or adds an issue.  0 or E_NOMEM. ---- */

static int
put_copy(struct maker *m, const char *p, size_t n, const char **ret)
{
	*ret = arena_strndup(m->c->arena, p, n);
	return *ret != NULL ? 0 : E_NOMEM;
}

static int
normalise(struct maker *m, const char *in, size_t n, char out[REPOURL_SIZE])
{
	const struct rule_ctx *rules = m->c->rules;
	struct repourl_flags flags = { 0 };
	const char *say = NULL;
	int r;

	if (rules != NULL)
		flags = (struct repourl_flags) { .allow_http = rules->allow_http,
			.allow_private_hosts = rules->allow_private_hosts,
			.allow_local = rules->allow_local };
	r = repourl_normalise(in, n, &flags, out, &say);
	if (r == E_INVAL)
		add_issue(m, m->url_at, "RepositoryUrl", say, CODE_REPO_URL);
	return r;
}

/* 1 when there is one slash in ${n} bytes, with text on both sides. */
static int
has_two_segments(const char *p, size_t n)
{
	const char *slash = n > 0 ? memchr(p, '/', n) : NULL;
	size_t left = slash != NULL ? (size_t)(slash - p) : 0;

	return left > 0 && left + 1 < n && memchr(slash + 1, '/', n - left - 1) == NULL;
}

/* A name that the rules of URLs bend, such as "./name", is none. */
static int
put_full_name(struct maker *m, char out[REPOURL_SIZE])
{
	size_t skip = strlen(m->forge->base) + 1; /* To the name. */
	char *full;
	int r;

	if (!has_two_segments(m->url.p, m->url.n)) {
		add_issue(m, m->url_at, "String", SAY_NAME, CODE_REQUEST);
		return E_INVAL;
	}
	full = arena_alloc(m->c->arena, skip + m->url.n + 1);
	if (full == NULL)
		return E_NOMEM;
	memcpy(full, m->forge->base, skip - 1);
	full[skip - 1] = '/';
	memcpy(full + skip, m->url.p, m->url.n);
	r = normalise(m, full, skip + m->url.n, out);
	if (r == 0 && !has_two_segments(out + skip, strlen(out + skip))) {
		add_issue(m, m->url_at, "String", SAY_NAME, CODE_REQUEST);
		r = E_INVAL;
	}
	return r;
}

static int
put_url(struct maker *m, const char *project_url)
{
	char out[REPOURL_SIZE];
	int r;

	if (m->url.type != WEBHOOK_TYPE_STRING)
		return put_copy(m, project_url, strlen(project_url), &m->v->repository_url);
	if (m->url.too_long) {
		add_issue(m, m->url_at, "RepositoryUrl", SAY_LONG_URL, CODE_REPO_URL);
		return 0;
	}
	r = m->url_at == WEBHOOK_MEMBER_REPOSITORY_FULL_NAME
	    ? put_full_name(m, out)
	    : normalise(m, m->url.p, m->url.n, out);
	if (r == 0)
		r = put_copy(m, out, strlen(out), &m->v->repository_url);
	return r == E_INVAL ? 0 : r;
}

static const char *
ref_fault(const struct maker *m)
{
	const char *say = NULL;

	if (m->ref.too_long || m->ref.n == 0 || utf8_has_control(m->ref.p, m->ref.n))
		return SAY_REF;
	if (m->v->event_kind == EVENT_KIND_PUSH)
		(void)refname_check_full(m->ref.p, m->ref.n, &say);
	return say;
}

static int
put_ref(struct maker *m)
{
	const char *say, *branch;
	size_t n = 0;
	int r;

	if (m->ref.type != WEBHOOK_TYPE_STRING)
		return 0;
	/* GitHub's alerts have an empty one when they are of no branch: as good as none. */
	if (m->ref.n == 0 && !m->ref.too_long && m->v->event_kind != EVENT_KIND_PUSH)
		return 0;
	if ((say = ref_fault(m)) != NULL) {
		add_issue(m, WEBHOOK_MEMBER_REF, "String", say, CODE_REQUEST);
		return 0;
	}
	r = put_copy(m, m->ref.p, m->ref.n, &m->v->ref);
	branch = refname_branch_of(m->ref.p, m->ref.n, &n);
	if (r == 0 && branch != NULL)
		r = put_copy(m, branch, n, &m->v->branch);
	return r;
}

static int
is_sha(struct webhook_value v)
{
	for (size_t i = 0; i < v.n; i++)
		if (!ascii_is_hex(v.p[i]))
			return 0;
	return !v.too_long && v.n >= SHA_MIN && v.n <= SHA_MAX;
}

static int
put_sha(struct maker *m, enum webhook_member at, struct webhook_value v, const char **ret)
{
	char lower[SHA_MAX];

	if (v.type != WEBHOOK_TYPE_STRING || v.is_zeros)
		return 0;
	if (!is_sha(v)) {
		add_issue(m, at, "CommitSha", SAY_SHA, CODE_REQUEST);
		return 0;
	}
	for (size_t i = 0; i < v.n; i++)
		lower[i] = ascii_lower(v.p[i]);
	return put_copy(m, lower, v.n, ret);
}

static int
put_members(struct maker *m, const char *project_url)
{
	int r = put_url(m, project_url);

	if (r == 0)
		r = put_ref(m);
	if (r < 0 || m->v->event_kind != EVENT_KIND_PUSH)
		return r;
	r = put_sha(m, m->commit_at, m->commit, &m->v->commit_sha);
	if (r == 0)
		r = put_sha(m, WEBHOOK_MEMBER_BEFORE, m->before, &m->v->before_sha);
	return r;
}

/* ---- the whole ---- */

static int
put_claimed(struct maker *m, const struct webhook_facts *facts)
{
	const struct webhook_claim *claim = facts->claim;
	int r = put_copy(m, claim->delivery_id.p, claim->delivery_id.n, &m->v->delivery_id);

	if (r == 0)
		r = put_copy(m, claim->event_name.p, claim->event_name.n, &m->v->event_name);
	if (r == 0)
		r = put_copy(
		    m, facts->body_sha256, strlen(facts->body_sha256), &m->v->body_sha256);
	m->v->provider = m->forge->provider;
	m->v->body_bytes = facts->body_bytes;
	return r;
}

static int
make(struct maker *m, const struct webhook_facts *facts)
{
	int r = put_claimed(m, facts);

	if (r < 0)
		return r;
	m->v->event_kind = kind_of(m, facts->claim->event_name);
	m->ref = webhook_scan_value(m->scan, WEBHOOK_MEMBER_REF);
	m->before = webhook_scan_value(m->scan, WEBHOOK_MEMBER_BEFORE);
	choose_url(m);
	choose_commit(m);
	check_shapes(m);
	if (m->c->nissues == 0)
		r = put_members(m, facts->project_url);
	if (r < 0 || m->c->nissues == 0)
		return r;
	return strcmp(m->c->issues[0].code, CODE_REPO_URL) == 0 ? E_INVAL : E_PARAMS;
}

int
webhook_payload_make(struct codec *c, const struct webhook_scan *s,
    const struct webhook_facts *facts, struct verified_payload *ret)
{
	struct verified_payload v = { 0 };
	struct maker m = { .c = c, .scan = s, .forge = facts->forge, .v = &v };
	int r;

	must(facts->claim->bad_header == NULL);
	codec_init(c, c->arena, c->rules);
	c->issues = arena_calloc(c->arena, ISSUES_MAX, sizeof(*c->issues));
	if (c->issues == NULL)
		return E_NOMEM;
	r = make(&m, facts);
	if (r == 0)
		*ret = v;
	return r;
}
