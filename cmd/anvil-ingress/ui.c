#include "cmd/anvil-ingress/ui.h"

#include <string.h>

#include "cmd/anvil-ingress/answer.h"
#include "cmd/anvil-ingress/exchange.h"
#include "cmd/anvil-ingress/ingress.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/http/http.h"

#define DOCUMENT "/index.html"
#define FILES    "/assets/"
#define BASE     "<base href=\"/\">"

static const struct ui_file *
find(const char *path)
{
	for (size_t i = 0; i < ui_nfiles; i++)
		if (strcmp(ui_files[i].path, path) == 0)
			return &ui_files[i];
	return NULL;
}

/* ---- the document ---- */

static void
add_escaped(struct buf *out, const char *text)
{
	for (; *text != '\0'; text++) {
		switch (*text) {
		case '&': (void)buf_add_str(out, "&amp;"); break;
		case '"': (void)buf_add_str(out, "&quot;"); break;
		case '<': (void)buf_add_str(out, "&lt;"); break;
		default: (void)buf_add(out, text, 1);
		}
	}
}

/* The path of a URL, with a slash at its end. */
static void
add_base(struct buf *out, const char *public_url)
{
	const char *host = strstr(public_url, "://");
	const char *path = host != NULL ? strchr(host + 3, '/') : NULL;

	add_escaped(out, path != NULL ? path : "/");
	if (path != NULL && path[strlen(path) - 1] != '/')
		(void)buf_add_str(out, "/");
}

/* Modules import one another: named in the head they come at once, and not level by level. */
static void
add_modules(struct buf *out)
{
	for (size_t i = 0; i < ui_nfiles; i++)
		if (strncmp(ui_files[i].type, "text/javascript", 15) == 0)
			(void)buf_printf(out, "\n<link rel=\"modulepreload\" href=\"%s\">",
			    ui_files[i].path + 1);
}

struct http_blob *
ui_document(const char *public_url, const char *version)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	const struct ui_file *f = find(DOCUMENT);
	const char *base = f != NULL ? strstr(f->begin, BASE) : NULL;

	must(base != NULL);
	(void)buf_add(&out, f->begin, (size_t)(base - f->begin));
	(void)buf_add_str(&out, "<base href=\"");
	add_base(&out, public_url);
	(void)buf_add_str(&out, "\">\n<meta name=\"anvil-version\" content=\"");
	add_escaped(&out, version);
	(void)buf_add_str(&out, "\">");
	add_modules(&out);
	base += strlen(BASE);
	(void)buf_add(&out, base, (size_t)(f->end - base));
	return out.failed ? NULL : http_blob_new_copy(out.data, out.len);
}

/* ---- answers ---- */

static void
answer_file(struct exchange *x, const struct ui_file *f)
{
	CLEANUP(http_blob_unrefp) struct http_blob *b = NULL;

	http_answer_add(x->req, "Cache-Control", "no-cache");
	http_answer_add(x->req, "ETag", f->etag);
	if (answer_is_known(x->req, f->etag)) {
		http_answer(x->req, 304, NULL, 0);
		return;
	}
	b = http_blob_new_static(f->begin, (size_t)(f->end - f->begin));
	if (b == NULL) {
		http_answer_clear(x->req);
		answer_error(x, HTTP_CODE_INTERNAL_ERROR);
		return;
	}
	http_answer_add(x->req, "Content-Type", f->type);
	http_answer_blob(x->req, 200, b);
}

void
ui_answer(struct exchange *x)
{
	const char *path = http_req_path(x->req);
	int is_file = strncmp(path, FILES, strlen(FILES)) == 0;
	const struct ui_file *f = is_file ? find(path) : NULL;

	if (is_file && f == NULL) {
		answer_error(x, HTTP_CODE_NOT_FOUND);
		return;
	}
	x->answered = 1;
	if (f != NULL) {
		answer_file(x, f);
		return;
	}
	http_answer_add(x->req, "Cache-Control", "no-cache");
	http_answer_add(x->req, "Content-Type", "text/html; charset=utf-8");
	http_answer_blob(x->req, 200, x->in->document);
}
