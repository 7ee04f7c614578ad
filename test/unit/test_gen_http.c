/* test/unit/test_gen_http.c -- bodies of the HTTP API in two passes, codes, answers, document. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "gen/http.h"
#include "lib/base/err.h"
#include "lib/base/rules.h"

struct scene {
	struct arena *arena;
	struct codec codec;
	json_t *json;
};

static void
scene_done(struct scene *s)
{
	json_decref(s->json);
	arena_free(s->arena);
}

static const json_t *
body(struct scene *s, const char *text)
{
	if (s->arena == NULL) {
		s->arena = arena_new();
		codec_init(&s->codec, s->arena, NULL);
	}
	json_decref(s->json);
	s->json = NULL;
	assert_int_equal(json_text_parse(text, strlen(text), 64, &s->json), 0);
	return s->json;
}

static void
assert_issue(
    const struct codec *c, size_t i, const char *path, const char *expected, const char *code)
{
	assert_true(i < c->nissues);
	assert_string_equal(c->issues[i].path, path);
	assert_string_equal(c->issues[i].expected, expected);
	assert_string_equal(c->issues[i].code, code);
}

/* The one issue that the rules have with a member of an otherwise good new project. */
static void
assert_refused(const char *member, const char *value, const char *expected, const char *code)
{
	static const char *const names[] = { "projectSlug", "name", "repoUrl", "defaultBranch",
		"configPath", "repoToken" };
	static const char *const good[] = { "demo", "Demo", "https://example.com/a/b", "main",
		".anvil.yml", "token" };
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	CLEANUP(scene_done) struct scene s = { 0 };
	struct http_create_project_body p;
	const json_t *j;

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		buf_printf(&text, "%s\"%s\":\"%s\"", i == 0 ? "{" : ",", names[i],
		    strcmp(names[i], member) == 0 ? value : good[i]);
	buf_add_byte(&text, '}');
	j = body(&s, buf_cstr(&text));
	assert_int_equal(http_create_project_shapes(&s.codec, j, &p), 0);
	assert_int_equal(http_create_project_rules(&s.codec, j, &p), E_PARAMS);
	assert_int_equal(s.codec.nissues, 1);
	assert_issue(&s.codec, 0, member, expected, code);
	assert_null(strstr(s.codec.issues[0].message, value));
}

static void
a_new_project_is_normalised(void **state)
{
	CLEANUP(scene_done) struct scene s = { 0 };
	struct http_create_project_body p;
	const json_t *j = body(&s,
	    "{\"projectSlug\":\"Demo_1\",\"name\":\"  The demo \","
	    "\"repoUrl\":\" HTTPS://GitHub.com/Example/Repo.git \",\"defaultBranch\":\" main\"}");

	(void)state;
	assert_int_equal(http_create_project_shapes(&s.codec, j, &p), 0);
	assert_int_equal(http_create_project_rules(&s.codec, j, &p), 0);
	assert_string_equal(p.project_slug, "Demo_1");
	assert_string_equal(p.name, "The demo");
	assert_string_equal(p.repo_url, "https://github.com/Example/Repo");
	assert_string_equal(p.default_branch, "main");
	assert_string_equal(p.config_path, ".anvil.yml");
	assert_false(p.has_repo_token);
}

static void
each_rule_has_its_code(void **state)
{
	(void)state;
	assert_refused("name", " \\t ", "ProjectName", "invalid_request");
	assert_refused("repoUrl", "http://example.com/a", "RepositoryUrl", "invalid_repo_url");
	assert_refused("repoUrl", "https://localhost/a", "RepositoryUrl", "invalid_repo_url");
	assert_refused("defaultBranch", "a..b", "BranchName", "invalid_request");
	assert_refused("configPath", "/etc/passwd", "ConfigPath", "invalid_config_path");
	assert_refused("configPath", "  ", "ConfigPath", "invalid_request");
	assert_refused("repoToken", " secret-thing", "RepoToken", "invalid_repo_token");
}

static void
shapes_come_first_and_have_one_code(void **state)
{
	CLEANUP(scene_done) struct scene s = { 0 };
	struct http_create_project_body p;

	(void)state;
	assert_int_equal(http_create_project_shapes(&s.codec,
			     body(&s,
				 "{\"more\":1,\"projectSlug\":\"a b\",\"name\":7,"
				 "\"repoUrl\":\"nonsense\",\"configPath\":null}"),
			     &p),
	    E_PARAMS);
	assert_int_equal(s.codec.nissues, 5);
	assert_issue(&s.codec, 0, "projectSlug", "Slug", "invalid_request");
	assert_issue(&s.codec, 1, "name", "ProjectName", "invalid_request");
	assert_issue(&s.codec, 2, "defaultBranch", "BranchName", "invalid_request");
	assert_issue(&s.codec, 3, "configPath", "ConfigPath", "invalid_request");
	assert_issue(&s.codec, 4, "more", "absent", "invalid_request");

	assert_int_equal(http_create_project_shapes(&s.codec, body(&s, "[1]"), &p), E_PARAMS);
	assert_issue(&s.codec, 0, "", "Object", "invalid_request");
}

static void
all_rules_are_listed_and_the_first_gives_the_code(void **state)
{
	CLEANUP(scene_done) struct scene s = { 0 };
	struct http_accept_invite_body p;
	const json_t *j = body(&s,
	    "{\"token\":\"t\",\"email\":\"nobody\",\"displayName\":\"\","
	    "\"slug\":\"ada\",\"password\":\"short\"}");

	(void)state;
	assert_int_equal(http_accept_invite_shapes(&s.codec, j, &p), 0);
	assert_int_equal(http_accept_invite_rules(&s.codec, j, &p), E_PARAMS);
	assert_int_equal(s.codec.nissues, 3);
	assert_issue(&s.codec, 0, "password", "Password", "invalid_password");
	assert_issue(&s.codec, 1, "email", "Email", "invalid_request");
	assert_issue(&s.codec, 2, "displayName", "DisplayName", "invalid_request");
}

static void
a_login_takes_any_password(void **state)
{
	CLEANUP(scene_done) struct scene s = { 0 };
	struct http_login_body p;
	const json_t *j = body(&s, "{\"email\":\" Ada@Example.COM\",\"password\":\"\"}");

	(void)state;
	assert_int_equal(http_login_shapes(&s.codec, j, &p), 0);
	assert_int_equal(http_login_rules(&s.codec, j, &p), 0);
	assert_string_equal(p.email, "ada@example.com");
	assert_string_equal(p.password, "");
	j = body(&s, "{\"email\":\"a@b.c\",\"password\":\"a\\u0000b\"}");
	assert_int_equal(http_login_shapes(&s.codec, j, &p), E_PARAMS);
	assert_issue(&s.codec, 0, "password", "String", "invalid_request");
}

static void
an_update_tells_absent_from_null(void **state)
{
	CLEANUP(scene_done) struct scene s = { 0 };
	struct http_update_project_body p;

	(void)state;
	assert_int_equal(http_update_project_rules(&s.codec, body(&s, "{}"), &p), 0);
	assert_true(p.name == NULL && p.config_path == NULL && !p.has_repo_token);
	assert_int_equal(
	    http_update_project_rules(&s.codec, body(&s, "{\"repoToken\":null}"), &p), 0);
	assert_true(p.has_repo_token && p.repo_token == NULL);
	assert_int_equal(
	    http_update_project_shapes(&s.codec, body(&s, "{\"name\":null}"), &p), E_PARAMS);
	assert_int_equal(
	    http_update_project_shapes(&s.codec, body(&s, "{\"projectSlug\":\"a\"}"), &p),
	    E_PARAMS);
	assert_issue(&s.codec, 0, "projectSlug", "absent", "invalid_request");
}

static void
an_invite_lives_for_hours_with_fractions(void **state)
{
	static const struct {
		const char *text;
		double hours; /* 0: refused. */
	} cases[] = { { "{}", 168 }, { "{\"expiresInHours\":1}", 1 },
		{ "{\"expiresInHours\":1.5}", 1.5 }, { "{\"expiresInHours\":720}", 720 },
		{ "{\"expiresInHours\":720.001}", 0 }, { "{\"expiresInHours\":0.999}", 0 },
		{ "{\"expiresInHours\":-1}", 0 } };
	CLEANUP(scene_done) struct scene s = { 0 };
	struct http_create_invite_body p;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const json_t *j = body(&s, cases[i].text);
		int r;

		assert_int_equal(http_create_invite_shapes(&s.codec, j, &p), 0);
		r = http_create_invite_rules(&s.codec, j, &p);
		assert_int_equal(r, cases[i].hours > 0 ? 0 : E_PARAMS);
		if (r == 0)
			assert_true(p.expires_in_hours == cases[i].hours);
		else
			assert_issue(
			    &s.codec, 0, "expiresInHours", "Number", "invalid_invite_ttl");
	}
	assert_int_equal(
	    http_create_invite_shapes(&s.codec, body(&s, "{\"expiresInHours\":\"1\"}"), &p),
	    E_PARAMS);
	assert_issue(&s.codec, 0, "expiresInHours", "Number", "invalid_request");
}

static void
settings_relax_what_a_url_may_be(void **state)
{
	static const struct rule_ctx relaxed = { .allow_local = 1 };
	CLEANUP(scene_done) struct scene s = { 0 };
	struct http_update_project_body p;
	const json_t *j = body(&s, "{\"repoUrl\":\"file:///srv/git/a\"}");

	(void)state;
	assert_int_equal(http_update_project_rules(&s.codec, j, &p), E_PARAMS);
	s.codec.rules = &relaxed;
	assert_int_equal(http_update_project_rules(&s.codec, j, &p), 0);
	assert_string_equal(p.repo_url, "file:///srv/git/a");
}

static void
answers_have_every_member_and_times_as_text(void **state)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	const struct http_log_event event = { .id = "run_x:log:1",
		.run_id = "run_x",
		.seq = 1,
		.stream = LOG_STREAM_STDERR,
		.chunk = { "a\0\n", 3 },
		.created_at = 1769850307042 };
	const struct http_run_detail d = { .run = { .id = "run_x",
					       .project_id = "prj_x",
					       .branch = "main",
					       .queued_at = 1000 },
		.recent_logs = &event,
		.nrecent_logs = 1,
		.has_first_seq = 1,
		.first_seq = 1,
		.detail_available = 1 };

	(void)state;
	assert_int_equal(http_run_detail_encode(&out, &d), 0);
	assert_string_equal(buf_cstr(&out),
	    "{\"run\":{\"id\":\"run_x\",\"projectId\":\"prj_x\",\"triggeredByUserId\":null,"
	    "\"triggerType\":\"manual\",\"branch\":\"main\",\"commitSha\":null,"
	    "\"status\":\"queued\",\"queuedAt\":\"1970-01-01T00:00:01.000Z\","
	    "\"startedAt\":null,\"finishedAt\":null,\"exitCode\":null,\"failureCode\":null},"
	    "\"currentStep\":null,\"errorMessage\":null,\"failureCode\":null,\"steps\":[],"
	    "\"recentLogs\":[{\"id\":\"run_x:log:1\",\"runId\":\"run_x\",\"seq\":1,"
	    "\"stream\":\"stderr\",\"chunk\":\"a\\u0000\\n\","
	    "\"createdAt\":\"2026-01-31T09:05:07.042Z\"}],"
	    "\"firstSeq\":1,\"droppedBytes\":null,\"logBytes\":null,\"detailAvailable\":true}");
}

static void
codes_know_their_status(void **state)
{
	enum http_code code;

	(void)state;
	assert_int_equal(http_code_status(HTTP_CODE_INVALID_JSON), 400);
	assert_int_equal(http_code_status(HTTP_CODE_PROJECT_QUEUE_FULL), 409);
	assert_int_equal(http_code_status(HTTP_CODE_QUEUE_FULL), 503);
	assert_string_equal(http_code_name(HTTP_CODE_RATE_LIMITED), "rate_limited");
	assert_int_equal(http_code_parse("invalid_repo_token", &code), 0);
	assert_int_equal(code, HTTP_CODE_INVALID_REPO_TOKEN);
}

struct row {
	const char *method, *path, *access;
};

static void
the_document_has_every_route_with_its_errors(void **state)
{
#define ROUTE(method, path, operation, access, flags) { method, path, #access },
	static const struct row rows[] = {
#include "gen/http_routes.h"
	};
#undef ROUTE
	const char *text = http_document();
	CLEANUP(json_unrefp) json_t *doc = NULL;
	json_t *paths, *item;
	size_t operations = 0;
	const char *path;

	(void)state;
	assert_int_equal(json_text_parse(text, strlen(text), 64, &doc), 0);
	assert_string_equal(json_string_value(json_object_get(doc, "openapi")), "3.1.0");
	paths = json_object_get(doc, "paths");
	json_object_foreach (paths, path, item)
		operations += json_object_size(item);
	assert_int_equal(ARRAY_LEN(rows), operations);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char method[8] = "";
		const json_t *responses;

		for (size_t k = 0; rows[i].method[k] != '\0'; k++)
			method[k] = (char)(rows[i].method[k] | 0x20);
		responses = json_object_get(
		    json_object_get(json_object_get(paths, rows[i].path), method), "responses");
		assert_non_null(json_object_get(responses, "500"));
		if (strcmp(rows[i].access, "PRIVATE") == 0)
			assert_non_null(json_object_get(responses, "401"));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_project_is_normalised),
		cmocka_unit_test(each_rule_has_its_code),
		cmocka_unit_test(shapes_come_first_and_have_one_code),
		cmocka_unit_test(all_rules_are_listed_and_the_first_gives_the_code),
		cmocka_unit_test(a_login_takes_any_password),
		cmocka_unit_test(an_update_tells_absent_from_null),
		cmocka_unit_test(an_invite_lives_for_hours_with_fractions),
		cmocka_unit_test(settings_relax_what_a_url_may_be),
		cmocka_unit_test(answers_have_every_member_and_times_as_text),
		cmocka_unit_test(codes_know_their_status),
		cmocka_unit_test(the_document_has_every_route_with_its_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
