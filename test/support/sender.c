#include "test/support/sender.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/base/enc.h"
#include "lib/vault/vault.h"
#include "lib/webhook/webhook.h"
#include "test/support/unit.h"

static const char *const repositories[PROVIDER_COUNT] = { "https://github.com/Example/Hello",
	"https://gitlab.com/Example/Hello", "https://git.example.com/Example/Hello" };

/* ---- projects ---- */

const char *
sender_path(enum provider provider, const char *owner, const char *slug)
{
	return edge_fmt("/api/public/hooks/%s/%s/%s", provider_name(provider), owner, slug);
}

void
sender_webhook(struct edge_rig *g, enum provider provider, const char *project)
{
	const char *config = provider == PROVIDER_GITEA
	    ? ",\"config\":{\"instanceUrl\":\"https://git.example.com\"}"
	    : "";

	(void)edge_ask(g, 201, "PUT",
	    edge_fmt("%s/webhooks/%s", project, provider_name(provider)),
	    edge_fmt("{\"enabled\":true,\"secret\":\"" SENDER_SECRET "\"%s}", config));
}

const char *
sender_project(struct edge_rig *g, enum provider provider, const char *slug, char out[96])
{
	(void)edge_ask(g, 201, "POST", "/api/private/projects",
	    edge_fmt("{\"projectSlug\":\"%s\",\"name\":\"%s\",\"repoUrl\":\"%s\","
		     "\"defaultBranch\":\"main\"}",
		slug, slug, repositories[provider]));
	(void)snprintf(out, 96, "/api/private/projects/%s", edge_text(g, "project.id"));
	sender_webhook(g, provider, out);
	return out;
}

/* ---- deliveries ---- */

const char *
sender_push(enum provider provider, const char *branch, const char *sha)
{
	static const char *const repository[PROVIDER_COUNT] = {
		"\"repository\":{\"full_name\":\"example/hello\"}",
		"\"project\":{\"git_http_url\":\"https://gitlab.com/Example/Hello.git\"}",
		"\"repository\":{\"clone_url\":\"https://git.example.com/Example/Hello.git\"}",
	};

	return edge_fmt("{\"ref\":\"refs/heads/%s\",\"before\":\"%040d\",\"after\":\"%s\",%s}",
	    branch, 0, sha, repository[provider]);
}

static void
add_header(struct buf *b, const char *name, const char *value)
{
	if (value[0] != '\0')
		buf_printf(b, "%s: %s\r\n", name, value);
}

static const char *
make_proof(const struct webhook_forge *f, const struct sender_delivery *d, const char *body)
{
	const char *secret = d->secret != NULL ? d->secret : SENDER_SECRET;
	const char *is_signed = d->is_signed != NULL ? d->is_signed : body;
	uint8_t digest[VAULT_SHA256_BYTES];
	char digits[VAULT_SHA256_HEX_SIZE];
	struct vault_hmac h;

	if (f->proof == WEBHOOK_PROOF_TOKEN)
		return secret;
	vault_hmac_init(&h, secret, strlen(secret));
	vault_hmac_update(&h, is_signed, strlen(is_signed));
	vault_hmac_final(&h, digest);
	hex_encode(digest, sizeof(digest), digits);
	return edge_fmt("%s%s", f->proof_prefix, digits);
}

static void
add_chunks(struct buf *out, const char *body, size_t n, size_t chunk)
{
	for (size_t at = 0; at < n; at += chunk) {
		size_t len = min_size(chunk, n - at);

		buf_printf(out, "%zx\r\n", len);
		buf_add(out, body + at, len);
		buf_add_str(out, "\r\n");
	}
	buf_add_str(out, "0\r\n\r\n");
}

/* The request, all of it; the length of its head. */
static size_t
write_request(struct edge_rig *g, const struct sender_delivery *d, struct buf *out)
{
	static unsigned nids;
	const struct webhook_forge *f = webhook_forge_of(d->provider);
	const char *body = d->body != NULL ? d->body
					   : sender_push(d->provider, "main", SENDER_SHA);
	size_t n = strlen(body), head;

	buf_printf(out,
	    "POST %s HTTP/1.1\r\nHost: anvil.example:8470\r\nConnection: close\r\n"
	    "X-Forwarded-For: %s\r\n%s",
	    d->path, g->address, d->more != NULL ? d->more : "");
	add_header(out, "Content-Type",
	    d->content_type != NULL ? d->content_type : "application/json");
	add_header(out, f->event_header, d->event != NULL ? d->event : f->push);
	add_header(
	    out, f->id_headers[0], d->id != NULL ? d->id : edge_fmt("delivery-%u", ++nids));
	add_header(out, f->proof_header, d->proof != NULL ? d->proof : make_proof(f, d, body));
	if (d->chunk == 0)
		buf_printf(out, "Content-Length: %zu\r\n\r\n", n);
	else
		buf_add_str(out, "Transfer-Encoding: chunked\r\n\r\n");
	head = out->len;
	if (d->chunk == 0)
		buf_add(out, body, n);
	else
		add_chunks(out, body, n, d->chunk);
	assert_false(out->failed);
	return head;
}

/* ---- connections ---- */

/* A server that refuses early may close before it has read everything. */
static void
send_some(int fd, const struct buf *b, size_t from, size_t to)
{
	while (from < to) {
		ssize_t n = send(fd, b->data + from, to - from, MSG_NOSIGNAL);

		if (n <= 0)
			return;
		from += (size_t)n;
	}
}

int
sender_begin(struct edge_rig *g, const struct sender_delivery *d, size_t n, struct buf *rest)
{
	size_t head;
	int fd;

	edge_move(g);
	head = write_request(g, d, rest);
	assert_true(head + n <= rest->len);
	fd = edge_dial(g);
	assert_true(fd >= 0);
	send_some(fd, rest, 0, head + n);
	buf_consume(rest, head + n);
	return fd;
}

void
sender_send(int fd, const struct buf *rest)
{
	send_some(fd, rest, 0, rest->len);
}

void
sender_finish(struct edge_rig *g, int fd, const struct buf *rest)
{
	sender_send(fd, rest);
	edge_receive(g, fd);
}

int
sender_deliver(struct edge_rig *g, int status, const struct sender_delivery *d)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	size_t piece;
	int fd;

	edge_move(g);
	(void)write_request(g, d, &b);
	piece = d->piece != 0 ? d->piece : b.len;
	fd = edge_dial(g);
	assert_true(fd >= 0);
	for (size_t at = 0; at < b.len; at += piece)
		send_some(fd, &b, at, min_size(at + piece, b.len));
	edge_receive(g, fd);
	if (status != 0 && g->status != status)
		fail_msg(
		    "%s: %d and not %d: %s", d->path, g->status, status, buf_cstr(&g->body));
	return g->status;
}

void
sender_refused(
    struct edge_rig *g, int status, const char *code, const struct sender_delivery *d)
{
	(void)sender_deliver(g, 0, d);
	if (g->status != status || strcmp(edge_text(g, "error.code"), code) != 0)
		fail_msg("%d %s and not %d %s: %s", g->status, edge_text(g, "error.code"),
		    status, code, buf_cstr(&g->body));
	assert_int_equal(json_object_size(g->json), 1);
	assert_int_equal(json_object_size(json_object_get(g->json, "error")), 3);
	assert_non_null(buf_cstr(&g->body));
	assert_null(strstr((const char *)g->body.data, SENDER_SECRET));
	assert_null(strstr((const char *)g->body.data, "smuggled"));
	assert_null(strstr(g->head, "smuggled"));
}
