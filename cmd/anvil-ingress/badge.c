#include "cmd/anvil-ingress/badge.h"

#include <stdio.h>
#include <string.h>

#include "cmd/anvil-ingress/answer.h"
#include "cmd/anvil-ingress/exchange.h"
#include "lib/base/err.h"
#include "lib/base/sha256.h"
#include "lib/http/http.h"

#define PREFIX "/badge/"
#define SUFFIX ".svg"

/* ---- the picture ---- */

/* White on each of them has a contrast of 4.5 at least. */
#define DARK  "#444c56"
#define GREY  "#59636e"
#define GREEN "#1a7f37"
#define RED   "#cf222e"
#define BLUE  "#0969da"
#define AMBER "#8f5b00"

#define PAD  6  /* on both sides of a text                                   */
#define LEFT 38 /* the width of the left part, whose text is LEFT - 2 * PAD  */

/* The words of ui 5.  Their widths are as 11 px Verdana has them: whatever font is there is
 * made to fit. */
static const struct look {
	const char *status, *word;
	int width;
	const char *color;
} looks[] = {
	{ NULL, "Idle", 21, GREY },
	{ "queued", "Queued", 43, AMBER },
	{ "starting", "Starting", 44, BLUE },
	{ "running", "Running", 45, BLUE },
	{ "cancel_requested", "Cancel Requested", 98, AMBER },
	{ "canceling", "Canceling", 53, AMBER },
	{ "canceled", "Canceled", 50, GREY },
	{ "passed", "Passed", 38, GREEN },
	{ "failed", "Failed", 32, RED },
};

static const struct look *
look_of(const char *status)
{
	for (size_t i = 1; status != NULL && i < ARRAY_LEN(looks); i++)
		if (strcmp(looks[i].status, status) == 0)
			return &looks[i];
	return &looks[0];
}

static void
draw_text(struct buf *out, int x, int width, const char *text)
{
	(void)buf_printf(
	    out, "<text x=\"%d\" y=\"14\" textLength=\"%d\">%s</text>", x, width, text);
}

void
badge_draw(struct buf *out, const char *status)
{
	const struct look *l = look_of(status);
	int right = l->width + 2 * PAD;

	(void)buf_printf(out,
	    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"20\" role=\"img\""
	    " aria-label=\"anvil: %s\"><title>anvil: %s</title>",
	    LEFT + right, l->word, l->word);
	(void)buf_printf(out,
	    "<path fill=\"" DARK "\" d=\"M%d 0H3a3 3 0 0 0-3 3v14a3 3 0 0 0 3 3h%dz\"/>", LEFT,
	    LEFT - 3);
	(void)buf_printf(out,
	    "<path fill=\"%s\" d=\"M%d 0h%da3 3 0 0 1 3 3v14a3 3 0 0 1-3 3H%dz\"/>", l->color,
	    LEFT, right - 3, LEFT);
	(void)buf_add_str(out,
	    "<g fill=\"#fff\" font-family=\"Verdana,Geneva,DejaVu Sans,sans-serif\""
	    " font-size=\"11\">");
	draw_text(out, PAD, LEFT - 2 * PAD, "anvil");
	draw_text(out, LEFT + PAD, l->width, l->word);
	(void)buf_add_str(out, "</g></svg>\n");
}

/* ---- the answer ---- */

int
badge_is_path(const char *path)
{
	return strncmp(path, PREFIX, strlen(PREFIX)) == 0;
}

/* The slug of the project, which is the name of the file without its end. */
static int
slug_of(struct exchange *x, const char **ret)
{
	const char *file = http_req_segment(x->req, 2);
	size_t n = strlen(file), suffix = strlen(SUFFIX);

	if (n <= suffix || strcmp(file + n - suffix, SUFFIX) != 0)
		return E_NOENT;
	*ret = arena_strndup(x->arena, file, n - suffix);
	return *ret != NULL ? 0 : E_NOMEM;
}

static int
draw_turn(void *arg, struct turn *t)
{
	struct exchange *x = arg;
	const char *slug, *status = NULL;
	struct index_project p;
	int r = slug_of(x, &slug);

	if (r == 0)
		r = index_project_by_slug(
		    t->store, t->arena, http_req_segment(x->req, 1), slug, &p);
	if (r == 0 && (!p.confirmed || !p.badge_public))
		r = E_NOENT;
	if (r < 0)
		return r;
	r = index_run_newest_status(t->store, t->arena, p.id, p.default_branch, &status);
	if (r < 0 && r != E_NOENT)
		return r;
	badge_draw(&x->out, status);
	return x->out.failed ? E_NOMEM : 0;
}

static void
answer_picture(struct exchange *x)
{
	char hex[SHA256_HEX_SIZE], etag[SHA256_HEX_SIZE + 2];
	struct sha256 sum;

	sha256_init(&sum);
	sha256_add(&sum, x->out.data, x->out.len);
	sha256_end_hex(&sum, hex);
	(void)snprintf(etag, sizeof(etag), "\"%s\"", hex);
	x->answered = 1;
	http_answer_add(x->req, "Cache-Control", "no-cache");
	http_answer_add(x->req, "ETag", etag);
	if (answer_is_known(x->req, etag)) {
		http_answer(x->req, 304, NULL, 0);
		return;
	}
	http_answer_add(x->req, "Content-Type", "image/svg+xml");
	http_answer(x->req, 200, x->out.data, x->out.len);
}

void
badge_answer(struct exchange *x)
{
	int r = http_req_segments(x->req) == 3 ? exchange_turn(x, 0, draw_turn) : E_NOENT;

	if (r == E_NOENT)
		answer_error(x, HTTP_CODE_NOT_FOUND);
	else if (r < 0)
		exchange_fail(x, r);
	else
		answer_picture(x);
}
