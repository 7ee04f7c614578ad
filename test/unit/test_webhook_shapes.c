/*
 * test/unit/test_webhook_shapes.c -- deliveries in the shapes that the forges document, from the
 * body to what they come to.
 */
#include <string.h>

#include "lib/base/base.h"
#include "lib/base/mem.h"
#include "test/support/forge_rig.h"
#include "test/support/unit.h"

#define SHA1   "6113728f27ae82c7b1a177c8d03f9e96e0adf246"
#define SHA2   "da1560886d4f094c3e6c9ef40349f7d38b5d27d7"
#define ZEROS  "0000000000000000000000000000000000000000"
#define SHA256 "9b1d7e3c5a2f40688f6e0c1d2b3a495867788990a1b2c3d4e5f60718293a4b5c"

struct shape {
	const char *what;
	const char *event;
	const char *body; /* With ' for every ". */
	/* Wanted.  NULL: null. */
	enum event_kind kind;
	enum outcome outcome;
	const char *url, *ref, *branch, *commit, *before;
};

static void
text_is(const struct shape *sh, const char *member, const char *got, const char *want)
{
	if (got == NULL ? want != NULL : want == NULL || strcmp(got, want) != 0)
		fail_msg("%s: %s is %s", sh->what, member, got != NULL ? got : "null");
}

static void
check_one(enum provider provider, const struct shape *sh, const char *project_url, size_t piece)
{
	const struct webhook_forge *f = webhook_forge_of(provider);
	CLEANUP(webhook_scan_freep) struct webhook_scan *s = NULL;
	CLEANUP(arena_freep) struct arena *arena = arena_new();
	CLEANUP_FREE char *json = rig_json(sh->body);
	struct webhook_fault fault = { 0 };
	struct delivery_candidate candidate;
	struct verified_payload v;
	struct codec c;

	codec_init(&c, arena, NULL);
	if (rig_scan(f, json, strlen(json), piece, &s, &fault) != 0)
		fail_msg("%s: %s %s", sh->what, fault.path, fault.message);
	if (rig_make(&c, f, s, sh->event, project_url, &v) != 0)
		fail_msg("%s: %s: %s", sh->what, c.issues[0].path, c.issues[0].message);
	assert_int_equal(v.provider, provider);
	text_is(sh, "deliveryId", v.delivery_id, "d-1");
	text_is(sh, "eventName", v.event_name, sh->event);
	text_is(sh, "bodySha256", v.body_sha256, RIG_SHA256);
	assert_int_equal(v.body_bytes, 7);
	text_is(sh, "eventKind", event_kind_name(v.event_kind), event_kind_name(sh->kind));
	text_is(sh, "repositoryUrl", v.repository_url, sh->url);
	text_is(sh, "ref", v.ref, sh->ref);
	text_is(sh, "branch", v.branch, sh->branch);
	text_is(sh, "commitSha", v.commit_sha, sh->commit);
	text_is(sh, "beforeSha", v.before_sha, sh->before);
	assert_int_equal(webhook_classify(arena, &v, "main", &candidate), 0);
	text_is(sh, "outcome", outcome_name(candidate.outcome), outcome_name(sh->outcome));
}

static void
check_all(enum provider provider, const struct shape *rows, size_t n, const char *project_url)
{
	for (size_t i = 0; i < n; i++)
		for (size_t piece = 0; piece < 3; piece++)
			check_one(provider, &rows[i], project_url, piece);
}

/* ---- GitHub ---- */

#define GH_OWNER                                                                               \
	"'owner':{'name':'Codertocat','email':'21031067+Codertocat@users.noreply.github.com'," \
	"'login':'Codertocat','id':21031067,'node_id':'MDQ6VXNlcjIxMDMxMDY3',"                 \
	"'url':'https://api.github.com/users/Codertocat','type':'User','site_admin':false}"
#define GH_REPOSITORY                                                                         \
	"'repository':{'id':186853002,'node_id':'MDEwOlJlcG9zaXRvcnkxODY4NTMwMDI=',"          \
	"'name':'Hello-World','full_name':'Codertocat/Hello-World','private':false," GH_OWNER \
	","                                                                                   \
	"'html_url':'https://github.com/Codertocat/Hello-World','description':null,"          \
	"'fork':false,'url':'https://github.com/Codertocat/Hello-World',"                     \
	"'created_at':1557933565,'updated_at':'2019-05-15T15:20:41Z','pushed_at':1557933657," \
	"'git_url':'git://github.com/Codertocat/Hello-World.git',"                            \
	"'ssh_url':'git@github.com:Codertocat/Hello-World.git',"                              \
	"'clone_url':'https://github.com/Codertocat/Hello-World.git','size':0,"               \
	"'homepage':null,'language':'Ruby','license':null,'default_branch':'main'}"
#define GH_USER                                                   \
	"'pusher':{'name':'Codertocat','email':'c@example.com'}," \
	"'sender':{'login':'Codertocat','id':21031067,'type':'User','site_admin':false}"
#define GH_COMMIT                                                                           \
	"{'id':'" SHA2 "','tree_id':'" SHA1                                                 \
	"','distinct':true,'message':'Say \\u00fc\\n\\ud83d',"                              \
	"'timestamp':'2019-05-15T15:20:33Z','author':{'name':'C','username':'Codertocat'}," \
	"'added':['ref'],'removed':[],'modified':['after','before']}"
#define GH_URL "https://github.com/Codertocat/Hello-World"

#define GH_PUSH(ref, before, after, created, deleted, forced, commits, head)                     \
	"{'ref':'" ref "','before':'" before "','after':'" after "'," GH_REPOSITORY              \
	"," GH_USER ",'created':" created ",'deleted':" deleted ",'forced':" forced              \
	",'base_ref':null,"                                                                      \
	"'compare':'https://github.com/Codertocat/Hello-World/compare/a...b','commits':" commits \
	",'head_commit':" head "}"

static const struct shape github[] = {
	{ "a push", "push",
	    GH_PUSH("refs/heads/main", SHA1, SHA2, "false", "false", "false", "[" GH_COMMIT "]",
		GH_COMMIT),
	    EVENT_KIND_PUSH, OUTCOME_ACCEPTED, GH_URL, "refs/heads/main", "main", SHA2, SHA1 },
	{ "a forced push without commits", "push",
	    GH_PUSH("refs/heads/main", SHA1, SHA2, "false", "false", "true", "[]", GH_COMMIT),
	    EVENT_KIND_PUSH, OUTCOME_ACCEPTED, GH_URL, "refs/heads/main", "main", SHA2, SHA1 },
	{ "a merge", "push",
	    GH_PUSH("refs/heads/main", SHA1, SHA2, "false", "false", "false",
		"[" GH_COMMIT "," GH_COMMIT "," GH_COMMIT "]", GH_COMMIT),
	    EVENT_KIND_PUSH, OUTCOME_ACCEPTED, GH_URL, "refs/heads/main", "main", SHA2, SHA1 },
	{ "a new default branch", "push",
	    GH_PUSH("refs/heads/main", ZEROS, SHA2, "true", "false", "false", "[]", GH_COMMIT),
	    EVENT_KIND_PUSH, OUTCOME_ACCEPTED, GH_URL, "refs/heads/main", "main", SHA2, NULL },
	{ "the default branch deleted", "push",
	    GH_PUSH("refs/heads/main", SHA1, ZEROS, "false", "true", "false", "[]", "null"),
	    EVENT_KIND_PUSH, OUTCOME_IGNORED_EVENT, GH_URL, "refs/heads/main", "main", NULL,
	    SHA1 },
	{ "another branch deleted", "push",
	    GH_PUSH("refs/heads/fix/it", SHA1, ZEROS, "false", "true", "false", "[]", "null"),
	    EVENT_KIND_PUSH, OUTCOME_IGNORED_BRANCH, GH_URL, "refs/heads/fix/it", "fix/it",
	    NULL, SHA1 },
	{ "another branch", "push",
	    GH_PUSH("refs/heads/main/2", ZEROS, SHA2, "true", "false", "false", "[]", "null"),
	    EVENT_KIND_PUSH, OUTCOME_IGNORED_BRANCH, GH_URL, "refs/heads/main/2", "main/2",
	    SHA2, NULL },
	{ "a tag", "push",
	    GH_PUSH("refs/tags/main", ZEROS, SHA2, "true", "false", "false", "[]", GH_COMMIT),
	    EVENT_KIND_PUSH, OUTCOME_IGNORED_EVENT, GH_URL, "refs/tags/main", NULL, SHA2,
	    NULL },
	{ "a push of a SHA-256 repository", "push",
	    GH_PUSH("refs/heads/main", ZEROS "000000000000000000000000", SHA256, "true",
		"false", "false", "[]", "null"),
	    EVENT_KIND_PUSH, OUTCOME_ACCEPTED, GH_URL, "refs/heads/main", "main", SHA256,
	    NULL },
	{ "a push where nothing else is what it should be", "push",
	    "{'commits':7,'head_commit':[],'pusher':null,'sender':'x','forced':'yes',"
	    "'size':1e999,'repository':{'id':{},'full_name':'Codertocat/Hello-World',"
	    "'owner':null},'after':'" SHA2 "','ref':'refs/heads/main'}",
	    EVENT_KIND_PUSH, OUTCOME_ACCEPTED, GH_URL, "refs/heads/main", "main", SHA2, NULL },
	{ "a ping", "ping",
	    "{'zen':'Anything added dilutes everything else.','hook_id':109948940,'hook':{"
	    "'type':'Repository','id':109948940,'name':'web','active':true,'events':['*'],"
	    "'config':{'content_type':'json','url':'https://example.com','insecure_ssl':'0'}}," GH_REPOSITORY
	    ",'sender':{'login':'Codertocat'}}",
	    EVENT_KIND_PING, OUTCOME_IGNORED_PING, GH_URL, NULL, NULL, NULL, NULL },
	{ "a ping of an organization", "ping",
	    "{'zen':'Design for failure.','hook_id':1,'hook':{'type':'Organization'},"
	    "'organization':{'login':'Octocoders'}}",
	    EVENT_KIND_PING, OUTCOME_IGNORED_PING, GH_URL, NULL, NULL, NULL, NULL },
	{ "a tag's create", "create",
	    "{'ref':'simple-tag','ref_type':'tag','master_branch':'main','description':null,"
	    "'pusher_type':'user'," GH_REPOSITORY "}",
	    EVENT_KIND_OTHER, OUTCOME_IGNORED_EVENT, GH_URL, "simple-tag", NULL, NULL, NULL },
	{ "a repository's create", "create",
	    "{'ref':null,'ref_type':'repository'," GH_REPOSITORY "}", EVENT_KIND_OTHER,
	    OUTCOME_IGNORED_EVENT, GH_URL, NULL, NULL, NULL, NULL },
	{ "a pull request with commits that do not count", "pull_request",
	    "{'action':'synchronize','number':2,'before':7,'after':'not a commit',"
	    "'pull_request':{'head':{'ref':'x','sha':'" SHA1 "'}}," GH_REPOSITORY "}",
	    EVENT_KIND_OTHER, OUTCOME_IGNORED_EVENT, GH_URL, NULL, NULL, NULL, NULL },
	{ "a workflow's dispatch", "workflow_dispatch",
	    "{'inputs':null,'ref':'refs/heads/main','repository':null,'workflow':'x.yml'}",
	    EVENT_KIND_OTHER, OUTCOME_IGNORED_EVENT, GH_URL, "refs/heads/main", "main", NULL,
	    NULL },
	{ "a push under another name", "Push",
	    GH_PUSH("refs/heads/main", SHA1, SHA2, "false", "false", "false", "[]", "null"),
	    EVENT_KIND_OTHER, OUTCOME_IGNORED_EVENT, GH_URL, "refs/heads/main", "main", NULL,
	    NULL },
};

static void
deliveries_of_github_come_to_what_they_should(void **state)
{
	(void)state;
	check_all(PROVIDER_GITHUB, github, ARRAY_LEN(github), GH_URL);
}

/* ---- GitLab ---- */

#define GL_PROJECT                                                                            \
	"'project':{'id':15,'name':'Diaspora','description':'','web_url':"                    \
	"'https://gitlab.example.com/mike/diaspora','avatar_url':null,"                       \
	"'git_ssh_url':'git@gitlab.example.com:mike/diaspora.git',"                           \
	"'git_http_url':'https://gitlab.example.com/mike/diaspora.git','namespace':'Mike',"   \
	"'visibility_level':0,'path_with_namespace':'mike/diaspora','default_branch':'main'," \
	"'homepage':'https://gitlab.example.com/mike/diaspora',"                              \
	"'url':'git@gitlab.example.com:mike/diaspora.git',"                                   \
	"'http_url':'https://gitlab.example.com/mike/diaspora.git'}"
#define GL_REPOSITORY                                                                       \
	"'repository':{'name':'Diaspora','url':'git@gitlab.example.com:mike/diaspora.git'," \
	"'description':'','homepage':'https://gitlab.example.com/mike/diaspora',"           \
	"'git_http_url':'https://gitlab.example.com/mike/diaspora.git',"                    \
	"'git_ssh_url':'git@gitlab.example.com:mike/diaspora.git','visibility_level':0}"
#define GL_URL "https://gitlab.example.com/mike/diaspora"

#define GL_PUSH(kind, name, ref, before, after, checkout)                                      \
	"{'object_kind':'" kind "','event_name':'" name "','before':'" before                  \
	"','after':'" after "','ref':'" ref "','ref_protected':true,'checkout_sha':" checkout  \
	",'user_id':4,"                                                                        \
	"'user_name':'John Smith','user_email':'','project_id':15," GL_PROJECT ",'commits':[{" \
	"'id':'" SHA1 "','message':'Update \\udc00','title':null,'added':['CHANGELOG']}],"     \
	"'total_commits_count':4,'push_options':{}," GL_REPOSITORY "}"

static const struct shape gitlab[] = {
	{ "a push", "Push Hook",
	    GL_PUSH("push", "push", "refs/heads/main", SHA1, SHA2, "'" SHA2 "'"),
	    EVENT_KIND_PUSH, OUTCOME_ACCEPTED, GL_URL, "refs/heads/main", "main", SHA2, SHA1 },
	{ "a push whose checkout is another commit", "Push Hook",
	    GL_PUSH("push", "push", "refs/heads/main", ZEROS, SHA1, "'" SHA2 "'"),
	    EVENT_KIND_PUSH, OUTCOME_ACCEPTED, GL_URL, "refs/heads/main", "main", SHA2, NULL },
	{ "a push without a checkout", "Push Hook",
	    GL_PUSH("push", "push", "refs/heads/main", SHA1, SHA2, "null"), EVENT_KIND_PUSH,
	    OUTCOME_ACCEPTED, GL_URL, "refs/heads/main", "main", SHA2, SHA1 },
	{ "the default branch deleted", "Push Hook",
	    GL_PUSH("push", "push", "refs/heads/main", SHA1, ZEROS, "null"), EVENT_KIND_PUSH,
	    OUTCOME_IGNORED_EVENT, GL_URL, "refs/heads/main", "main", NULL, SHA1 },
	{ "another branch deleted", "Push Hook",
	    GL_PUSH("push", "push", "refs/heads/x", SHA1, ZEROS, "null"), EVENT_KIND_PUSH,
	    OUTCOME_IGNORED_BRANCH, GL_URL, "refs/heads/x", "x", NULL, SHA1 },
	{ "a tag", "Tag Push Hook",
	    GL_PUSH("tag_push", "tag_push", "refs/tags/v1.0.0", ZEROS, SHA1, "'" SHA2 "'"),
	    EVENT_KIND_OTHER, OUTCOME_IGNORED_EVENT, GL_URL, "refs/tags/v1.0.0", NULL, NULL,
	    NULL },
	{ "a tag that calls itself a push", "Push Hook",
	    GL_PUSH("tag_push", "push", "refs/heads/main", SHA1, SHA2, "null"),
	    EVENT_KIND_OTHER, OUTCOME_IGNORED_EVENT, GL_URL, "refs/heads/main", "main", NULL,
	    NULL },
	{ "a push that calls itself a tag", "Push Hook",
	    GL_PUSH("push", "tag_push", "refs/heads/main", SHA1, SHA2, "null"),
	    EVENT_KIND_OTHER, OUTCOME_IGNORED_EVENT, GL_URL, "refs/heads/main", "main", NULL,
	    NULL },
	{ "a push in a tag's hook", "Tag Push Hook",
	    GL_PUSH("push", "push", "refs/heads/main", SHA1, SHA2, "null"), EVENT_KIND_OTHER,
	    OUTCOME_IGNORED_EVENT, GL_URL, "refs/heads/main", "main", NULL, NULL },
	{ "a push of a system hook", "System Hook",
	    GL_PUSH("push", "push", "refs/heads/main", SHA1, SHA2, "null"), EVENT_KIND_OTHER,
	    OUTCOME_IGNORED_EVENT, GL_URL, "refs/heads/main", "main", NULL, NULL },
	{ "a push that does not name its kind", "Push Hook",
	    "{'ref':'refs/heads/main','checkout_sha':'" SHA2 "'," GL_PROJECT "}",
	    EVENT_KIND_PUSH, OUTCOME_ACCEPTED, GL_URL, "refs/heads/main", "main", SHA2, NULL },
	{ "a push whose kind is no text", "Push Hook",
	    "{'object_kind':1,'ref':'refs/heads/main','after':'" SHA2 "'," GL_PROJECT "}",
	    EVENT_KIND_OTHER, OUTCOME_IGNORED_EVENT, GL_URL, "refs/heads/main", "main", NULL,
	    NULL },
	{ "a push with the second URL", "Push Hook",
	    "{'ref':'refs/heads/main','project':{'git_http_url':null,'http_url':"
	    "'https://gitlab.example.com/mike/diaspora.git'},'after':'" SHA2 "'}",
	    EVENT_KIND_PUSH, OUTCOME_ACCEPTED, GL_URL, "refs/heads/main", "main", SHA2, NULL },
	{ "a push with the third URL", "Push Hook",
	    "{'ref':'refs/heads/main','project':[1]," GL_REPOSITORY ",'after':'" SHA2 "'}",
	    EVENT_KIND_PUSH, OUTCOME_ACCEPTED, GL_URL, "refs/heads/main", "main", SHA2, NULL },
	{ "a merge request", "Merge Request Hook",
	    "{'object_kind':'merge_request','event_type':'merge_request','user':{'id':1}," GL_PROJECT
	    "," GL_REPOSITORY ",'object_attributes':{'id':99,'iid':1,"
	    "'target_branch':'main','source_branch':'x','oldrev':'" SHA1 "'},'labels':[],"
	    "'changes':{'updated_by_id':{'previous':null,'current':1}}}",
	    EVENT_KIND_OTHER, OUTCOME_IGNORED_EVENT, GL_URL, NULL, NULL, NULL, NULL },
	{ "a job", "Job Hook",
	    "{'object_kind':'build','ref':'gitlab-script-trigger','tag':false,'before_sha':'" SHA1
	    "','sha':'" SHA2 "','build_id':1977,'build_started_at':null," GL_REPOSITORY "}",
	    EVENT_KIND_OTHER, OUTCOME_IGNORED_EVENT, GL_URL, "gitlab-script-trigger", NULL,
	    NULL, NULL },
	{ "a group's event without a project", "Member Hook",
	    "{'event_name':'user_add_to_group','group_name':'webhook-test','project':null}",
	    EVENT_KIND_OTHER, OUTCOME_IGNORED_EVENT, GL_URL, NULL, NULL, NULL, NULL },
	{ "an event whose project is odd", "Note Hook",
	    "{'object_kind':'note','project':'x','repository':{'git_http_url':5}}",
	    EVENT_KIND_OTHER, OUTCOME_IGNORED_EVENT, GL_URL, NULL, NULL, NULL, NULL },
	{ "what is a ping elsewhere", "ping", "{}", EVENT_KIND_OTHER, OUTCOME_IGNORED_EVENT,
	    GL_URL, NULL, NULL, NULL, NULL },
};

static void
deliveries_of_gitlab_come_to_what_they_should(void **state)
{
	(void)state;
	check_all(PROVIDER_GITLAB, gitlab, ARRAY_LEN(gitlab), GL_URL);
}

/* ---- Gitea ---- */

#define GT_REPOSITORY                                                                      \
	"'repository':{'id':140,'owner':{'id':1,'login':'gitea','full_name':'Gitea'},"     \
	"'name':'webhooks','full_name':'gitea/webhooks','description':'','private':false," \
	"'fork':false,'html_url':'https://gitea.example.com:8443/git/gitea/webhooks',"     \
	"'ssh_url':'ssh://gitea@gitea.example.com/gitea/webhooks.git',"                    \
	"'clone_url':'https://gitea.example.com:8443/git/gitea/webhooks.git',"             \
	"'website':'','stars_count':0,'default_branch':'main',"                            \
	"'created_at':'2017-02-26T04:29:06-05:00'}"
#define GT_URL "https://gitea.example.com:8443/git/gitea/webhooks"

#define GT_PUSH(ref, before, after)                                                        \
	"{\n  'ref': '" ref "',\n  'before': '" before "',\n  'after': '" after "',\n"     \
	"  'compare_url': 'https://gitea.example.com/x/compare/a...b',\n  'commits': [\n"  \
	"    {'id': '" SHA1 "', 'message': 'Webhooks Yay!', 'verification': null}\n  ],\n" \
	"  'total_commits': 1, 'head_commit': null,\n  " GT_REPOSITORY ",\n"               \
	"  'pusher': {'id': 1, 'login': 'gitea', 'username': 'gitea'},\n"                  \
	"  'sender': {'id': 1, 'login': 'gitea'}\n}\n"

static const struct shape gitea[] = {
	{ "a push", "push", GT_PUSH("refs/heads/main", SHA1, SHA2), EVENT_KIND_PUSH,
	    OUTCOME_ACCEPTED, GT_URL, "refs/heads/main", "main", SHA2, SHA1 },
	{ "a new branch", "push", GT_PUSH("refs/heads/x", ZEROS, SHA2), EVENT_KIND_PUSH,
	    OUTCOME_IGNORED_BRANCH, GT_URL, "refs/heads/x", "x", SHA2, NULL },
	{ "the default branch deleted", "push", GT_PUSH("refs/heads/main", SHA1, ZEROS),
	    EVENT_KIND_PUSH, OUTCOME_IGNORED_EVENT, GT_URL, "refs/heads/main", "main", NULL,
	    SHA1 },
	{ "a tag", "push", GT_PUSH("refs/tags/v1.0.0", ZEROS, SHA2), EVENT_KIND_PUSH,
	    OUTCOME_IGNORED_EVENT, GT_URL, "refs/tags/v1.0.0", NULL, SHA2, NULL },
	{ "a SHA-256 branch deleted", "push",
	    GT_PUSH("refs/heads/main", SHA256, ZEROS "000000000000000000000000"),
	    EVENT_KIND_PUSH, OUTCOME_IGNORED_EVENT, GT_URL, "refs/heads/main", "main", NULL,
	    SHA256 },
	{ "a tag's create", "create",
	    "{'sha':'" SHA2 "','ref':'v1.0.0','ref_type':'tag'," GT_REPOSITORY "}",
	    EVENT_KIND_OTHER, OUTCOME_IGNORED_EVENT, GT_URL, "v1.0.0", NULL, NULL, NULL },
	{ "a branch's delete", "delete",
	    "{'ref':'fix','ref_type':'branch','pusher_type':'user'," GT_REPOSITORY "}",
	    EVENT_KIND_OTHER, OUTCOME_IGNORED_EVENT, GT_URL, "fix", NULL, NULL, NULL },
	{ "a package without a repository", "package",
	    "{'action':'created','repository':null,'package':{'id':1}}", EVENT_KIND_OTHER,
	    OUTCOME_IGNORED_EVENT, GT_URL, NULL, NULL, NULL, NULL },
	{ "a ping", "ping", "{" GT_REPOSITORY "}", EVENT_KIND_PING, OUTCOME_IGNORED_PING,
	    GT_URL, NULL, NULL, NULL, NULL },
};

static void
deliveries_of_gitea_come_to_what_they_should(void **state)
{
	(void)state;
	check_all(PROVIDER_GITEA, gitea, ARRAY_LEN(gitea), GT_URL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(deliveries_of_github_come_to_what_they_should),
		cmocka_unit_test(deliveries_of_gitlab_come_to_what_they_should),
		cmocka_unit_test(deliveries_of_gitea_come_to_what_they_should),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
