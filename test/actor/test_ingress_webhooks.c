/*
 * test/actor/test_ingress_webhooks.c -- webhooks are made, changed, rotated and removed, over HTTP
 * and by RPC, by one or by several at once.  The real anvild, ingress and two shards.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/enc.h"
#include "lib/base/err.h"
#include "lib/base/id.h"
#include "lib/base/io.h"
#include "lib/vault/vault.h"
#include "test/support/edge_rig.h"
#include "test/support/unit.h"

#define PROJECTS "/api/private/projects"
#define AT_ONCE  4
#define SECRETS  64
#define FILE_MAX (64u << 20)

static struct edge_rig rig;
static struct edge_rig *const g = &rig;

/* Every secret that was told or given, to be looked for where none may be. */
static char secrets[SECRETS][64];
static size_t nsecrets;

/* Each test comes from an address of its own, signed out. */
static int
begin(void **state)
{
	(void)state;
	edge_move(g);
	g->session[0] = '\0';
	return 0;
}

static const char *
remember(const char *secret)
{
	assert_true(nsecrets < SECRETS);
	(void)snprintf(secrets[nsecrets], sizeof(secrets[0]), "%s", secret);
	return secrets[nsecrets++];
}

/* Path of the webhooks of a new project with that repository. */
static void
project_with(const char *slug, const char *url, char out[128])
{
	(void)edge_ask(g, 201, "POST", PROJECTS,
	    edge_fmt("{\"projectSlug\":\"%s\",\"name\":\"n\",\"repoUrl\":\"%s\","
		     "\"defaultBranch\":\"main\"}",
		slug, url));
	(void)snprintf(out, 128, PROJECTS "/%s/webhooks", edge_text(g, "project.id"));
}

static const char *
of(const char *webhooks, const char *rest)
{
	return edge_fmt("%s/%s", webhooks, rest);
}

/* ---- one after the other ---- */

static void
a_webhook_is_made_listed_and_its_secret_told_once(void **state)
{
	char path[128];
	const char *secret;

	(void)state;
	edge_sign_in(g, "ada");
	project_with("engine", "https://github.com/ada/engine", path);
	(void)edge_ask(g, 200, "GET", path, NULL);
	assert_string_equal(edge_value(g, "webhooks"), "[]");
	(void)edge_ask(g, 201, "PUT", of(path, "github"), "{\"enabled\":true}");
	secret = remember(edge_text(g, "generatedSecret"));
	assert_true(vault_token_check(secret));
	assert_true(id_check(ID_WEBHOOK, edge_text(g, "webhook.id")));
	assert_string_equal(edge_text(g, "webhook.provider"), "github");
	assert_string_equal(edge_value(g, "webhook.enabled"), "true");
	assert_string_equal(edge_value(g, "webhook.config"), "null");
	assert_string_equal(edge_value(g, "webhook.recentDeliveries"), "[]");
	assert_string_equal(edge_value(g, "webhook.recentRefusals"), "[]");
	assert_string_equal(edge_text(g, "webhook.deliveryUrl"),
	    "http://anvil.example:8470/api/public/hooks/github/ada/engine");
	assert_string_equal(edge_header(g, "Cache-Control"), "no-store");
	(void)edge_ask(g, 200, "GET", path, NULL);
	assert_string_equal(edge_text(g, "webhooks.0.provider"), "github");
	assert_string_equal(edge_text(g, "webhooks.1"), "(none)");
	assert_null(strstr((const char *)g->body.data, secret));
	(void)edge_ask(g, 200, "PUT", of(path, "github"), "{\"enabled\":false}");
	assert_string_equal(edge_value(g, "generatedSecret"), "null");
	assert_string_equal(edge_value(g, "webhook.enabled"), "false");
	(void)edge_ask(g, 204, "DELETE", of(path, "github"), NULL);
	assert_int_equal(g->body.len, 0);
	edge_refused(g, 404, "webhook_not_found", "DELETE", of(path, "github"), NULL);
	(void)edge_ask(g, 200, "GET", path, NULL);
	assert_string_equal(edge_value(g, "webhooks"), "[]");
}

static void
checks_come_in_their_order(void **state)
{
	static const char *const bad[][4] = {
		{ "invalid_json", "{", "", "" },
		{ "invalid_json", "", "", "" },
		{ "invalid_request", "[]", ":Object", "" },
		{ "invalid_request", "{}", "enabled:Boolean", "" },
		{ "invalid_request", "{\"enabled\":1,\"secret\":null,\"x\":0}",
		    "enabled:Boolean secret:WebhookSecret x:absent", "" },
		{ "invalid_request", "{\"enabled\":true,\"config\":{}}",
		    "config.instanceUrl:InstanceUrl", "" },
		{ "invalid_instance_url",
		    "{\"enabled\":true,\"config\":{\"instanceUrl\":\"ftp://x\"},\"secret\":\"\"}",
		    "config.instanceUrl:InstanceUrl secret:WebhookSecret", "" },
		{ "invalid_webhook_secret", "{\"enabled\":true,\"secret\":\" s3cr3t\"}",
		    "secret:WebhookSecret", "s3cr3t" },
	};
	char path[128], other[128];

	(void)state;
	edge_sign_in(g, "eve");
	project_with("x", "https://github.com/eve/x", other);
	edge_refused(g, 404, "project_not_found", "PUT",
	    PROJECTS "/prj_0000000000000000000000/webhooks/svn", "!");
	edge_sign_in(g, "bob");
	project_with("x", "https://github.com/bob/x", path);
	edge_refused(g, 404, "project_not_found", "GET", other, NULL);
	edge_refused(g, 404, "project_not_found", "PUT", of(other, "github"), "!");
	edge_refused(g, 404, "project_not_found", "DELETE", of(other, "github"), NULL);
	edge_refused(
	    g, 404, "project_not_found", "POST", of(other, "github/rotate-secret"), NULL);
	edge_refused(g, 404, "webhook_not_found", "PUT", of(path, "svn"), "!");
	edge_refused(g, 404, "webhook_not_found", "PUT", of(path, "GitHub"), "!");
	edge_refused(g, 404, "webhook_not_found", "DELETE", of(path, "svn"), NULL);
	edge_refused(g, 404, "webhook_not_found", "POST", of(path, "svn/rotate-secret"), NULL);
	edge_refused(
	    g, 404, "webhook_not_found", "POST", of(path, "github/rotate-secret"), "!");
	edge_refused(g, 405, "method_not_allowed", "GET", of(path, "github"), NULL);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		edge_refused(g, 400, bad[i][0], "PUT", of(path, "github"), bad[i][1]);
		if (strcmp(edge_issues(g), bad[i][2]) != 0)
			fail_msg("%s: %s", bad[i][1], edge_issues(g));
		assert_true(bad[i][3][0] == '\0' ||
		    strstr((const char *)g->body.data, bad[i][3]) == NULL);
	}
	(void)edge_ask(g, 200, "GET", path, NULL);
	assert_string_equal(edge_value(g, "webhooks"), "[]");
	g->session[0] = '\0';
	edge_refused(g, 401, "missing_authorization", "PUT", of(path, "svn"), "!");
	edge_refused(g, 401, "missing_authorization", "GET", path, NULL);
}

static void
the_configuration_has_to_fit_forge_and_repository(void **state)
{
	static const char url[] = "{\"enabled\":true,\"config\":{\"instanceUrl\":\"%s\"}}";
	static const char code[] = "invalid_webhook_provider_config";
	char own[128], hub[128], lab[128];

	(void)state;
	edge_sign_in(g, "conway");
	project_with("own", "https://git.example.com:8443/forge/a/b", own);
	project_with("hub", "https://github.com/a/b", hub);
	project_with("lab", "https://gitlab.com/a/b", lab);
	edge_refused(g, 400, code, "PUT", of(own, "github"), "{\"enabled\":true}");
	edge_refused(g, 400, code, "PUT", of(own, "gitlab"), "{\"enabled\":true}");
	assert_string_equal(edge_issues(g), "config:Object");
	edge_refused(
	    g, 400, code, "PUT", of(own, "gitea"), "{\"enabled\":true,\"config\":null}");
	edge_refused(g, 400, code, "PUT", of(own, "gitea"),
	    edge_fmt(url, "https://git.example.com:8443/for"));
	assert_string_equal(edge_issues(g), "config.instanceUrl:InstanceUrl");
	edge_refused(
	    g, 400, code, "PUT", of(hub, "github"), edge_fmt(url, "https://github.com"));
	assert_string_equal(edge_issues(g), "config:Null");
	edge_refused(g, 400, code, "PUT", of(hub, "gitlab"),
	    "{\"enabled\":true,\"secret\":\"s\",\"config\":null}");
	(void)edge_ask(g, 201, "PUT", of(own, "gitea"),
	    edge_fmt(url, " https://Git.example.com:8443/forge/ "));
	(void)remember(edge_text(g, "generatedSecret"));
	assert_string_equal(
	    edge_text(g, "webhook.config.instanceUrl"), "https://git.example.com:8443/forge");
	(void)edge_ask(g, 201, "PUT", of(lab, "gitlab"), edge_fmt(url, "https://gitlab.com/"));
	(void)remember(edge_text(g, "generatedSecret"));
	assert_string_equal(edge_value(g, "webhook.config"), "null");
	/* Absent keeps what is stored, null clears it. */
	(void)edge_ask(g, 200, "PUT", of(own, "gitea"), "{\"enabled\":false}");
	assert_string_equal(
	    edge_text(g, "webhook.config.instanceUrl"), "https://git.example.com:8443/forge");
	edge_refused(
	    g, 400, code, "PUT", of(own, "gitea"), "{\"enabled\":true,\"config\":null}");
	(void)edge_ask(g, 200, "GET", own, NULL);
	assert_string_equal(edge_value(g, "webhooks.0.enabled"), "false");
	/* Now the repository cannot go elsewhere. */
	(void)edge_ask(g, 400, "PATCH", edge_fmt("%.*s", (int)(strlen(own) - 9), own),
	    "{\"repoUrl\":\"https://example.com/a/b\"}");
	assert_string_equal(
	    edge_text(g, "error.code"), "project_repo_url_conflicts_with_webhook");
	assert_string_equal(edge_text(g, "error.details.providers.0"), "gitea");
}

static void
every_change_moves_the_version_and_a_refused_one_nothing(void **state)
{
	char path[128], at[32];

	(void)state;
	edge_sign_in(g, "grace");
	project_with("cobol", "https://github.com/grace/cobol", path);
	(void)edge_ask(g, 201, "PUT", of(path, "github"),
	    edge_fmt("{\"enabled\":true,\"secret\":\"%s\"}", remember("grace's own secret")));
	assert_string_equal(edge_value(g, "generatedSecret"), "null");
	(void)snprintf(at, sizeof(at), "%s", edge_text(g, "webhook.updatedAt"));
	for (int i = 0; i < 3; i++) {
		(void)edge_ask(g, 200, "PUT", of(path, "github"), "{\"enabled\":true}");
		assert_true(strcmp(edge_text(g, "webhook.updatedAt"), at) > 0);
		(void)snprintf(at, sizeof(at), "%s", edge_text(g, "webhook.updatedAt"));
	}
	edge_refused(g, 400, "invalid_webhook_secret", "PUT", of(path, "github"),
	    "{\"enabled\":false,\"secret\":\"another\"}");
	assert_string_equal(edge_issues(g), "secret:absent");
	(void)edge_ask(g, 200, "GET", path, NULL);
	assert_string_equal(edge_text(g, "webhooks.0.updatedAt"), at);
	assert_string_equal(edge_value(g, "webhooks.0.enabled"), "true");
	(void)edge_ask(g, 200, "POST", of(path, "github/rotate-secret"), NULL);
	assert_true(vault_token_check(remember(edge_text(g, "secret"))));
	assert_int_equal(json_object_size(g->json), 1);
	(void)edge_ask(g, 200, "GET", path, NULL);
	assert_true(strcmp(edge_text(g, "webhooks.0.updatedAt"), at) > 0);
}

/* ---- what a secret is good for ---- */

/* The status of a signed ping. */
static int
ping(const char *to, const char *secret, const char *id)
{
	static const char body[] = "{\"zen\":\"Keep it logically awesome.\"}";
	uint8_t mac[VAULT_SHA256_BYTES];
	struct vault_hmac h;
	char hex[VAULT_SHA256_HEX_SIZE];

	vault_hmac_init(&h, secret, strlen(secret));
	vault_hmac_update(&h, body, sizeof(body) - 1);
	vault_hmac_final(&h, mac);
	hex_encode(mac, sizeof(mac), hex);
	return edge_ask_with(g, 0, "POST", to,
	    edge_fmt("Content-Type: application/json\r\nX-GitHub-Event: ping\r\n"
		     "X-GitHub-Delivery: %s\r\nX-Hub-Signature-256: sha256=%s\r\n",
		id, hex),
	    body);
}

static void
only_the_newest_secret_verifies(void **state)
{
	static const char to[] = "/api/public/hooks/github/edsger/the";
	const char *first, *second;
	char path[128];

	(void)state;
	edge_sign_in(g, "edsger");
	project_with("the", "https://github.com/edsger/the", path);
	assert_int_equal(ping(to, "x", "d0"), 404);
	(void)edge_ask(g, 201, "PUT", of(path, "github"), "{\"enabled\":true}");
	first = remember(edge_text(g, "generatedSecret"));
	assert_int_equal(ping(to, first, "d1"), 200);
	assert_int_equal(ping(to, "x", "d2"), 401);
	(void)edge_ask(g, 200, "POST", of(path, "github/rotate-secret"), NULL);
	second = remember(edge_text(g, "secret"));
	assert_int_equal(ping(to, first, "d3"), 401);
	assert_int_equal(ping(to, second, "d4"), 200);
	(void)edge_ask(g, 200, "PUT", of(path, "github"), "{\"enabled\":false}");
	assert_string_equal(edge_text(g, "webhook.recentDeliveries.0.deliveryId"), "d4");
	assert_string_equal(edge_text(g, "webhook.recentDeliveries.1.deliveryId"), "d1");
	assert_int_equal(ping(to, second, "d5"), 404);
	(void)edge_ask(g, 200, "PUT", of(path, "github"), "{\"enabled\":true}");
	assert_int_equal(ping(to, second, "d6"), 200);
	(void)edge_ask(g, 204, "DELETE", of(path, "github"), NULL);
	assert_int_equal(ping(to, second, "d7"), 404);
	/* What was delivered stays known to one that is made anew. */
	(void)edge_ask(g, 201, "PUT", of(path, "github"),
	    edge_fmt("{\"enabled\":true,\"secret\":\"%s\"}", second));
	assert_string_equal(edge_text(g, "webhook.recentDeliveries.0.deliveryId"), "d6");
	assert_int_equal(ping(to, second, "d6"), 200);
	assert_string_equal(edge_value(g, "duplicate"), "true");
}

/* ---- several at once ---- */

/* What a process of its own was answered. */
struct told {
	int status;
	char code[40];
};

static int
begin_asking(const char *method, const char *path, const char *body, pid_t *ret_pid)
{
	struct told t = { 0 };
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	*ret_pid = fork();
	assert_true(*ret_pid >= 0);
	if (*ret_pid == 0) {
		t.status = edge_ask(g, 0, method, path, body);
		(void)snprintf(t.code, sizeof(t.code), "%s", edge_text(g, "error.code"));
		_exit(io_write_all(fds[1], &t, sizeof(t)) < 0);
	}
	close(fds[1]);
	return fds[0];
}

static struct told
end_asking(int fd, pid_t pid)
{
	struct told t = { 0 };
	int status;

	assert_int_equal(read(fd, &t, sizeof(t)), sizeof(t));
	close(fd);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	return t;
}

/* Asks ${n} times at once; how many of the answers were a 201. */
static int
create_at_once(const char *path, const char *body, struct told told[AT_ONCE])
{
	int fds[AT_ONCE], created = 0;
	pid_t pids[AT_ONCE];

	for (int i = 0; i < AT_ONCE; i++)
		fds[i] = begin_asking("PUT", path, body, &pids[i]);
	for (int i = 0; i < AT_ONCE; i++) {
		told[i] = end_asking(fds[i], pids[i]);
		created += told[i].status == 201;
	}
	return created;
}

static void
of_several_creates_one_wins(void **state)
{
	struct told told[AT_ONCE];
	char path[128];

	(void)state;
	edge_sign_in(g, "tim");
	project_with("web", "https://github.com/tim/web", path);
	for (int round = 0; round < 3; round++) {
		assert_int_equal(create_at_once(of(path, "github"),
				     "{\"enabled\":true,\"secret\":\"tim's\"}", told),
		    1);
		for (int i = 0; i < AT_ONCE; i++)
			assert_true(told[i].status == 201 ||
			    strcmp(told[i].code, "webhook_create_conflict") == 0 ||
			    strcmp(told[i].code, "invalid_webhook_secret") == 0);
		(void)edge_ask(g, 204, "DELETE", of(path, "github"), NULL);
		assert_int_equal(
		    create_at_once(of(path, "github"), "{\"enabled\":true}", told), 1);
		for (int i = 0; i < AT_ONCE; i++)
			assert_true(told[i].status == 201 || told[i].status == 200 ||
			    strcmp(told[i].code, "webhook_create_conflict") == 0);
		(void)edge_ask(g, 200, "GET", path, NULL);
		assert_string_equal(edge_text(g, "webhooks.1"), "(none)");
		(void)edge_ask(g, 204, "DELETE", of(path, "github"), NULL);
	}
}

static void
an_update_that_meets_a_deletion_leaves_what_it_says(void **state)
{
	char path[128];
	pid_t pids[2];
	int fds[2];

	(void)state;
	edge_sign_in(g, "barbara");
	project_with("clu", "https://github.com/barbara/clu", path);
	for (int round = 0; round < 4; round++) {
		struct told put, removed;

		(void)edge_ask(g, 0, "DELETE", of(path, "github"), NULL);
		(void)edge_ask(g, 201, "PUT", of(path, "github"), "{\"enabled\":true}");
		fds[0] = begin_asking(
		    "PUT", of(path, "github"), "{\"enabled\":false}", &pids[0]);
		fds[1] = begin_asking("DELETE", of(path, "github"), NULL, &pids[1]);
		put = end_asking(fds[0], pids[0]);
		removed = end_asking(fds[1], pids[1]);
		assert_int_equal(removed.status, 204);
		assert_true(put.status == 200 || put.status == 201 ||
		    strcmp(put.code, "webhook_not_found") == 0);
		(void)edge_ask(g, 200, "GET", path, NULL);
		/* After the deletion it has made one, before it has changed one or none. */
		assert_string_equal(edge_value(g, "webhooks.0.enabled"),
		    put.status == 201 ? "false" : "(none)");
	}
}

/* ---- anvilctl's side ---- */

static const json_t *
order(const char *method, const char *project, const char *more)
{
	const json_t *res;
	int err;

	res = edge_rpc(g, "ingress", method,
	    edge_fmt("{\"projectId\":\"%s\",\"provider\":\"gitea\"%s}", project, more), &err);
	assert_non_null(res);
	return res;
}

static const char *
text_of(const json_t *j, const char *name)
{
	const char *text = json_string_value(json_object_get(j, name));

	return text != NULL ? text : "(none)";
}

static void
anvilctl_does_the_same_for_the_owner(void **state)
{
	static const char fits[] = ",\"enabled\":true,\"instanceUrl\":\"https://example.com\"";
	char path[128], id[ID_SIZE];
	const json_t *res;

	(void)state;
	edge_sign_in(g, "radia");
	project_with("tree", "https://example.com/a/b", path);
	(void)snprintf(id, sizeof(id), "%s", strstr(path, "prj_"));
	res = order("ingress.rotateWebhook", id, "");
	assert_string_equal(edge_kind(res), "refused");
	assert_string_equal(text_of(res, "code"), "webhook_not_found");
	res = order("ingress.setWebhook", id, ",\"enabled\":true");
	assert_string_equal(text_of(res, "code"), "invalid_webhook_provider_config");
	assert_true(strlen(text_of(res, "message")) > 10);
	res = order("ingress.setWebhook", id, fits);
	assert_string_equal(edge_kind(res), "created");
	assert_true(vault_token_check(remember(text_of(res, "generatedSecret"))));
	assert_string_equal(text_of(res, "deliveryUrl"),
	    "http://anvil.example:8470/api/public/hooks/gitea/radia/tree");
	res = order("ingress.setWebhook", id, ",\"enabled\":false");
	assert_string_equal(edge_kind(res), "updated");
	assert_string_equal(
	    text_of(json_object_get(json_object_get(res, "webhook"), "config"), "instanceUrl"),
	    "https://example.com");
	res = order("ingress.setWebhook", id, ",\"enabled\":true,\"secret\":\"own\"");
	assert_string_equal(text_of(res, "code"), "invalid_webhook_secret");
	res = order("ingress.rotateWebhook", id, "");
	assert_string_equal(edge_kind(res), "rotated");
	assert_true(vault_token_check(remember(text_of(res, "secret"))));
	assert_string_equal(edge_kind(order("ingress.deleteWebhook", id, "")), "deleted");
	res = order("ingress.deleteWebhook", id, "");
	assert_string_equal(text_of(res, "code"), "webhook_not_found");
	res = order("ingress.setWebhook", "prj_0000000000000000000000", fits);
	assert_string_equal(edge_kind(res), "not_found");
	res = order("ingress.deleteWebhook", "prj_0000000000000000000000", "");
	assert_string_equal(edge_kind(res), "not_found");
}

/* ---- who may die ---- */

static void
wait_for_another_pid(const char *address, pid_t before)
{
	struct mono_time end = mono_add_ms(clock_mono(), 20000);
	pid_t now;

	while ((now = edge_pid(g, address)) == before || now == 0) {
		assert_true(mono_diff_ms(clock_mono(), end) > 0);
		(void)poll(NULL, 0, 20);
	}
}

static void
without_its_shard_a_project_answers_try_again(void **state)
{
	static const char *const shards[] = { "project/0", "project/1" };
	char path[128];
	pid_t pids[2];

	(void)state;
	edge_sign_in(g, "lamport");
	project_with("clock", "https://github.com/lamport/clock", path);
	(void)edge_ask(g, 201, "PUT", of(path, "github"), "{\"enabled\":true}");
	(void)remember(edge_text(g, "generatedSecret"));
	for (size_t i = 0; i < 2; i++)
		pids[i] = edge_pid(g, shards[i]);
	/* Who sleeps restarts nobody. */
	assert_int_equal(kill(g->pid, SIGSTOP), 0);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(kill(pids[i], SIGKILL), 0);
	edge_refused(g, 503, "shard_unavailable", "GET", path, NULL);
	assert_string_equal(edge_header(g, "Retry-After"), "5");
	edge_refused(
	    g, 503, "shard_unavailable", "PUT", of(path, "github"), "{\"enabled\":false}");
	edge_refused(g, 503, "shard_unavailable", "PUT", of(path, "gitlab"),
	    "{\"enabled\":false,\"secret\":\"s\"}");
	edge_refused(
	    g, 503, "shard_unavailable", "POST", of(path, "github/rotate-secret"), NULL);
	edge_refused(g, 503, "shard_unavailable", "DELETE", of(path, "github"), NULL);
	assert_int_equal(kill(g->pid, SIGCONT), 0);
	for (size_t i = 0; i < 2; i++)
		wait_for_another_pid(shards[i], pids[i]);
	edge_await(g);
	(void)edge_ask(g, 200, "GET", path, NULL);
	assert_string_equal(edge_value(g, "webhooks.0.enabled"), "true");
	(void)edge_ask(g, 204, "DELETE", of(path, "github"), NULL);
}

/* ---- where no secret may be ---- */

static void
expect_no_secret_in(const char *name)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	int r = io_read_file(AT_FDCWD, edge_fmt("%s/%s", g->dir, name), FILE_MAX, &b);

	/* A write-ahead log comes and goes; without the others nothing would be looked at. */
	assert_true(r == 0 || (r == E_NOENT && strstr(name, "-wal") != NULL));
	for (size_t i = 0; i < nsecrets && b.len > 0; i++)
		if (memmem(b.data, b.len, secrets[i], strlen(secrets[i])) != NULL)
			fail_msg("%s holds a secret", name);
}

static void
no_secret_is_in_a_log_or_a_store(void **state)
{
	static const char *const files[] = { "log", "data/ingress.db", "data/ingress.db-wal",
		"data/project-0.db", "data/project-0.db-wal", "data/project-1.db",
		"data/project-1.db-wal", "data/supervisor.db", "data/supervisor.db-wal" };

	(void)state;
	assert_true(nsecrets > 5);
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		expect_no_secret_in(files[i]);
}

static int
start_all(void **state)
{
	(void)state;
	edge_start(g);
	return 0;
}

static int
stop_all(void **state)
{
	(void)state;
	return edge_stop(g);
}

int
main(void)
{
#define TEST(fn) cmocka_unit_test_setup(fn, begin)
	const struct CMUnitTest tests[] = {
		TEST(a_webhook_is_made_listed_and_its_secret_told_once),
		TEST(checks_come_in_their_order),
		TEST(the_configuration_has_to_fit_forge_and_repository),
		TEST(every_change_moves_the_version_and_a_refused_one_nothing),
		TEST(only_the_newest_secret_verifies),
		TEST(of_several_creates_one_wins),
		TEST(an_update_that_meets_a_deletion_leaves_what_it_says),
		TEST(anvilctl_does_the_same_for_the_owner),
		TEST(without_its_shard_a_project_answers_try_again),
		TEST(no_secret_is_in_a_log_or_a_store),
	};

	return cmocka_run_group_tests(tests, start_all, stop_all);
}
