#include "test/soak/load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/enc.h"
#include "lib/vault/vault.h"
#include "test/soak/dice.h"

#define AGAIN_OF 64 /* newest deliveries, of which one is sent again */

enum forge { FORGE_NONE, FORGE_GITEA, FORGE_GITLAB, FORGE_GITHUB };

static const char *const forge_names[] = { "", "gitea", "gitlab", "github" };

static const struct {
	const char *slug;
	enum forge forge;
	enum nature nature;
} kinds[] = {
	{ "local", FORGE_NONE, NATURE_PASSES },
	{ "tea", FORGE_GITEA, NATURE_PASSES },
	{ "lab", FORGE_GITLAB, NATURE_PASSES },
	{ "hub", FORGE_GITHUB, NATURE_UNREACHABLE },
	{ "second", FORGE_NONE, NATURE_PASSES },
};

static void
nap(const struct soak *s, struct dice *d, long ms)
{
	long left = dice_between(d, ms / 3, ms * 5 / 3);

	while (left > 0 && atomic_load(&s->loading)) {
		(void)usleep((useconds_t)(left < 50 ? left : 50) * 1000);
		left -= 50;
	}
}

/* ---- preparation ---- */

static void
need(const struct http *h, int status, const char *what)
{
	if (h->status == status)
		return;
	(void)fprintf(stderr, "soak: %s: %d %s\n", what, h->status,
	    h->body.len > 0 ? (const char *)h->body.data : "");
	exit(2);
}

void
load_log_in(struct soak *s)
{
	static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
	struct http h = { .port = s->port };
	char session[64];

	must(pthread_mutex_lock(&one) == 0);
	if (http_json(&h, "POST", "/api/public/auth/login",
		"{\"email\":\"soak@example.org\",\"password\":\"" SOAK_PASSWORD "\"}") == 200 &&
	    http_member(&h, "sessionId", session, sizeof(session)) == 0) {
		memcpy(s->session, session, sizeof(session));
		BOOK_COUNT(&s->book, logins);
	}
	must(pthread_mutex_unlock(&one) == 0);
	http_done(&h);
}

static void
url_of(const struct soak *s, int i, char out[256])
{
	if (kinds[i].forge == FORGE_NONE)
		(void)snprintf(out, 256, "file://%s", s->local);
	else if (kinds[i].forge == FORGE_GITHUB)
		(void)snprintf(out, 256, "https://github.com/soak/soak");
	else
		(void)snprintf(out, 256, "%s/repo", s->git);
}

static void
make_project(struct soak *s, struct http *h, int i)
{
	struct book_project *p = &s->book.projects[i];
	char url[256], body[640], path[128];

	url_of(s, i, url);
	(void)snprintf(p->slug, sizeof(p->slug), SOAK_OWNER "/%s", kinds[i].slug);
	(void)snprintf(p->name, sizeof(p->name), "%s", kinds[i].slug);
	p->nature = kinds[i].nature;
	(void)snprintf(body, sizeof(body),
	    "{\"projectSlug\":\"%s\",\"name\":\"%s\",\"repoUrl\":\"%s\","
	    "\"defaultBranch\":\"main\"}",
	    kinds[i].slug, kinds[i].slug, url);
	need(h, (http_json(h, "POST", "/api/private/projects", body), 201), "a project");
	must(http_member(h, "id", p->id, sizeof(p->id)) == 0);
	if (kinds[i].forge == FORGE_NONE)
		return;
	(void)snprintf(path, sizeof(path), "/api/private/projects/%s/webhooks/%s", p->id,
	    forge_names[kinds[i].forge]);
	if (kinds[i].forge == FORGE_GITHUB)
		(void)snprintf(
		    body, sizeof(body), "{\"enabled\":true,\"secret\":\"" SOAK_SECRET "\"}");
	else
		(void)snprintf(body, sizeof(body),
		    "{\"enabled\":true,\"secret\":\"" SOAK_SECRET
		    "\",\"config\":{\"instanceUrl\":\"%s\"}}",
		    s->git);
	need(h, (http_json(h, "PUT", path, body), 201), "a webhook");
}

void
load_prepare(struct soak *s)
{
	struct http h = { .port = s->port, .session = s->session };

	load_log_in(s);
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (s->git != NULL || kinds[i].forge == FORGE_NONE)
			make_project(s, &h, s->book.nprojects++);
	http_done(&h);
}

/* ---- deliveries ---- */

static void
body_of(const struct soak *s, const struct book_delivery *d, char *out, size_t size)
{
	char ref[160], repository[320];

	(void)snprintf(ref, sizeof(ref),
	    "\"ref\":\"refs/heads/%s\",\"before\":\"%040d\",\"after\":\"%s\"", d->branch, 0,
	    s->commit);
	if (kinds[d->project].forge == FORGE_GITHUB)
		(void)snprintf(repository, sizeof(repository),
		    "\"repository\":{\"full_name\":\"soak/soak\"}");
	else if (kinds[d->project].forge == FORGE_GITEA)
		(void)snprintf(repository, sizeof(repository),
		    "\"repository\":{\"clone_url\":\"%s/repo.git\"}", s->git);
	else
		(void)snprintf(repository, sizeof(repository),
		    "\"object_kind\":\"push\",\"project\":{\"git_http_url\":\"%s/repo.git\"}",
		    s->git);
	(void)snprintf(out, size, "{%s,%s,\"commits\":[]}", ref, repository);
}

static void
headers_of(
    const struct book_delivery *d, const char *body, const char *secret, char *out, size_t size)
{
	uint8_t mac[VAULT_SHA256_BYTES];
	char hex[2 * VAULT_SHA256_BYTES + 1];
	struct vault_hmac h;

	vault_hmac_init(&h, secret, strlen(secret));
	vault_hmac_update(&h, body, strlen(body));
	vault_hmac_final(&h, mac);
	hex_encode(mac, sizeof(mac), hex);
	switch (kinds[d->project].forge) {
	case FORGE_GITHUB:
		(void)snprintf(out, size,
		    "Content-Type: application/json\r\nX-GitHub-Event: push\r\n"
		    "X-GitHub-Delivery: %s\r\nX-Hub-Signature-256: sha256=%s\r\n",
		    d->id, hex);
		break;
	case FORGE_GITLAB:
		(void)snprintf(out, size,
		    "Content-Type: application/json\r\nX-Gitlab-Event: Push Hook\r\n"
		    "Idempotency-Key: %s\r\nX-Gitlab-Token: %s\r\n",
		    d->id, secret);
		break;
	default:
		(void)snprintf(out, size,
		    "Content-Type: application/json\r\nX-Gitea-Event: push\r\n"
		    "X-Gitea-Delivery: %s\r\nX-Gitea-Signature: %s\r\n",
		    d->id, hex);
	}
}

static int
post_delivery(
    const struct soak *s, struct http *h, const struct book_delivery *d, const char *secret)
{
	const struct book_project *p = &s->book.projects[d->project];
	char body[1024], headers[512], path[128];

	body_of(s, d, body, sizeof(body));
	headers_of(d, body, secret, headers, sizeof(headers));
	(void)snprintf(path, sizeof(path), "/api/public/hooks/%s/%s",
	    forge_names[kinds[d->project].forge], p->slug);
	h->session = NULL;
	return http_call(h, "POST", path, headers, body, strlen(body));
}

static int
is_full(const struct http *h)
{
	return strstr((const char *)h->body.data, "queue_full") != NULL;
}

int
load_send(struct soak *s, struct http *h, size_t i)
{
	struct book_delivery d;
	char run[ID_SIZE];
	int named;

	must(pthread_mutex_lock(&s->book.lock) == 0);
	d = s->book.deliveries[i];
	must(pthread_mutex_unlock(&s->book.lock) == 0);
	(void)post_delivery(s, h, &d, SOAK_SECRET);
	named = http_member(h, "runId", run, sizeof(run)) == 0;
	if ((h->status == 200 || h->status == 202) && named)
		book_delivered(&s->book, i, run, kinds[d.project].nature);
	else if (h->status == 200)
		book_delivered(&s->book, i, NULL, 0);
	if (h->status == 0 || (h->status == 503 && !is_full(h)))
		book_doubt(&s->book, i);
	if (h->status == 202 && !named)
		book_loss(&s->book, "a delivery was accepted and no run named");
	if (h->status == 200 && named != (strcmp(d.branch, "main") == 0))
		book_loss(&s->book, "delivery %s to %s: %s", d.id, d.branch,
		    (const char *)h->body.data);
	return h->status;
}

static void
note_delivery(struct soak *s, const struct http *h, int again)
{
	switch (h->status) {
	case 202: BOOK_COUNT(&s->book, deliveries); break;
	case 200:
		if (again)
			BOOK_COUNT(&s->book, redelivered);
		else
			BOOK_COUNT(&s->book, ignored);
		break;
	case 503:
		if (is_full(h)) {
			BOOK_COUNT(&s->book, full);
			break;
		}
		/* fall through */
	case 0: BOOK_COUNT(&s->book, unanswered); break;
	default:
		book_loss(&s->book, "a delivery: %d %s", h->status, (const char *)h->body.data);
	}
}

/* What nobody signed is accepted by nobody. */
static void
forge_one(struct soak *s, struct http *h, const struct book_delivery *d)
{
	int status = post_delivery(s, h, d, "incorrect horse");

	if (status != 401 && status != 503 && status != 0)
		book_loss(&s->book, "a forged delivery: %d", status);
	BOOK_COUNT(&s->book, forged);
}

static int
a_forge(const struct soak *s, struct dice *d)
{
	int i;

	do {
		i = (int)dice_below(d, (unsigned)s->book.nprojects);
	} while (kinds[i].forge == FORGE_NONE);
	return i;
}

static void
deliver_once(struct load *l, struct http *h, struct dice *d)
{
	struct soak *s = l->s;
	unsigned what = dice_below(d, 100);
	struct book_delivery odd = { .project = a_forge(s, d), .branch = "main" };
	size_t i, n = s->book.ndeliveries;

	(void)snprintf(odd.id, sizeof(odd.id), "%08llx-%04x-%08x",
	    (unsigned long long)(s->seed & 0xffffffff), l->number,
	    (unsigned)(dice_next(d) >> 32));
	if (what < 4) {
		forge_one(s, h, &odd);
		return;
	}
	if (what < 34 && n > 0) {
		i = n - 1 - dice_below(d, (unsigned)(n < AGAIN_OF ? n : AGAIN_OF));
		(void)load_send(s, h, i);
		note_delivery(s, h, 1);
		return;
	}
	i = book_new_delivery(&s->book, odd.id, odd.project, what < 50 ? "topic" : "main");
	(void)load_send(s, h, i);
	note_delivery(s, h, 0);
}

void *
load_deliver(void *arg)
{
	struct load *l = arg;
	struct dice d = dice_of(l->s->seed, 100 + l->number);
	struct http h = { .port = l->s->port };

	while (l->s->git != NULL && atomic_load(&l->s->loading)) {
		deliver_once(l, &h, &d);
		nap(l->s, &d, l->pause_ms);
	}
	http_done(&h);
	return NULL;
}

/* ---- people ---- */

static void
trigger_once(struct soak *s, struct http *h, struct dice *d)
{
	static const char *const branches[] = { "main", "long", "fail", "loud" };
	int i = (int)dice_below(d, (unsigned)s->book.nprojects);
	unsigned k = dice_below(d, ARRAY_LEN(branches));
	enum nature nature = kinds[i].nature;
	char path[128], body[64], run[ID_SIZE];

	if (nature == NATURE_PASSES && k == 2)
		nature = NATURE_FAILS;
	(void)snprintf(
	    path, sizeof(path), "/api/private/projects/%s/runs", s->book.projects[i].id);
	(void)snprintf(body, sizeof(body), "{\"branch\":\"%s\"}", branches[k]);
	switch (http_json(h, "POST", path, body)) {
	case 202:
		must(http_member(h, "runId", run, sizeof(run)) == 0);
		book_accepted(&s->book, run, i, nature);
		BOOK_COUNT(&s->book, manual);
		break;
	case 409: BOOK_COUNT(&s->book, full); break;
	case 503:
	case 0: BOOK_COUNT(&s->book, manual_unanswered); break;
	case 401: load_log_in(s); break;
	default:
		book_loss(
		    &s->book, "a manual run: %d %s", h->status, (const char *)h->body.data);
	}
}

void *
load_trigger(void *arg)
{
	struct load *l = arg;
	struct dice d = dice_of(l->s->seed, 200 + l->number);
	struct http h = { .port = l->s->port, .session = l->s->session };

	while (atomic_load(&l->s->loading)) {
		trigger_once(l->s, &h, &d);
		nap(l->s, &d, l->pause_ms);
	}
	http_done(&h);
	return NULL;
}

static void
cancel_once(struct soak *s, struct http *h, struct dice *d)
{
	char run[ID_SIZE], path[128], status[32];

	if (!book_some_run(&s->book, 12, dice_next(d), run))
		return;
	/* Before the answer: it may be canceled though none comes. */
	book_excuse(&s->book, run, EXCUSE_CANCEL);
	(void)snprintf(path, sizeof(path), "/api/private/runs/%s/cancel", run);
	if (http_json(h, "POST", path, NULL) == 200 &&
	    http_member(h, "status", status, sizeof(status)) == 0) {
		BOOK_COUNT(&s->book, cancels);
		if (strcmp(status, "canceled") == 0 || strcmp(status, "passed") == 0 ||
		    strcmp(status, "failed") == 0)
			book_ended(&s->book, run, status);
		else if (strncmp(status, "cancel", 6) != 0)
			book_loss(&s->book, "%s was canceled and is %s", run, status);
	} else if (h->status == 404) {
		book_loss(&s->book, "%s is not known when it is canceled", run);
	}
}

/* Only this thread names projects. */
static void
rename_once(struct soak *s, struct http *h, struct dice *d)
{
	struct book_project *p = &s->book.projects[dice_below(d, (unsigned)s->book.nprojects)];
	char path[128], body[128], name[64];

	if (p->nmaybe == ARRAY_LEN(p->maybe))
		return;
	(void)snprintf(
	    name, sizeof(name), "name %llx", (unsigned long long)(dice_next(d) >> 24));
	(void)snprintf(path, sizeof(path), "/api/private/projects/%s", p->id);
	(void)snprintf(body, sizeof(body), "{\"name\":\"%s\"}", name);
	if (http_json(h, "PATCH", path, body) == 200) {
		(void)snprintf(p->name, sizeof(p->name), "%s", name);
		p->nmaybe = 0;
		BOOK_COUNT(&s->book, changes);
	} else if (h->status == 404) {
		book_loss(&s->book, "project %s is not known when it is changed", p->slug);
	} else {
		(void)snprintf(p->maybe[p->nmaybe++], sizeof(p->maybe[0]), "%s", name);
	}
}

void *
load_meddle(void *arg)
{
	struct load *l = arg;
	struct dice d = dice_of(l->s->seed, 300 + l->number);
	struct http h = { .port = l->s->port, .session = l->s->session };

	while (atomic_load(&l->s->loading)) {
		if (dice_below(&d, 3) != 0)
			cancel_once(l->s, &h, &d);
		else
			rename_once(l->s, &h, &d);
		if (h.status == 401)
			load_log_in(l->s);
		nap(l->s, &d, l->pause_ms);
	}
	http_done(&h);
	return NULL;
}
