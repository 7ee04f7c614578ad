#include "lib/pipeline/report.h"

#include <inttypes.h>
#include <string.h>

#include "lib/base/err.h"

_Static_assert(PIPELINE_ISSUES_MAX == YTREE_ISSUES_MAX, "a report holds a whole list");

static const struct {
	const char *title;
	int with_file; /* The title ends with the file, and no issue follows. */
	const char *tail;
	const char *code;
} classes[] = {
	[PIPELINE_SIZE] = { "Repository config failed size validation", 0, "",
	    "config_invalid" },
	[PIPELINE_YAML] = { "Repository config is not valid YAML", 0, "", "config_invalid" },
	[PIPELINE_VALIDATION] = { "Repository config failed validation", 0, "",
	    "config_invalid" },
	[PIPELINE_NOT_FOUND] = { "Repository config not found: ", 1, "", "config_not_found" },
	[PIPELINE_NOT_REGULAR] = { "Repository config not found: ", 1, " (not a regular file)",
	    "config_not_found" },
};

/* ---- making ---------------------------------------------------------------------------- */

static struct pipeline_report *
report_new(struct arena *arena, enum pipeline_class class, const char *file)
{
	struct pipeline_report *r = arena_alloc(arena, sizeof(*r));
	const char *copy = arena_strdup(arena, file);

	if (r == NULL || copy == NULL)
		return NULL;
	r->class = class;
	r->file = copy;
	return r;
}

const struct pipeline_report *
report_of_issues(struct arena *arena, const char *file, const struct ytree_issues *issues)
{
	struct pipeline_report *r = report_new(
	    arena, issues->nyaml > 0 ? PIPELINE_YAML : PIPELINE_VALIDATION, file);

	if (r == NULL)
		return NULL;
	for (size_t i = 0; i < issues->n; i++)
		r->issues[i] = (struct pipeline_issue) { .line = issues->at[i].line,
			.column = issues->at[i].column,
			.path = issues->at[i].path,
			.text = issues->at[i].text };
	r->nissues = issues->n;
	r->nmore = issues->nmore;
	return r;
}

const struct pipeline_report *
pipeline_too_big(struct arena *arena, const char *file, uint64_t size)
{
	struct pipeline_report *r = report_new(arena, PIPELINE_SIZE, file);
	const char *text = arena_format(
	    arena, "%" PRIu64 " bytes, %d are allowed", size, PIPELINE_BYTES_MAX);

	if (r == NULL || text == NULL)
		return NULL;
	r->issues[0] = (struct pipeline_issue) { .path = "", .text = text };
	r->nissues = 1;
	return r;
}

const struct pipeline_report *
pipeline_not_found(struct arena *arena, const char *file)
{
	return report_new(arena, PIPELINE_NOT_FOUND, file);
}

const struct pipeline_report *
pipeline_not_regular(struct arena *arena, const char *file)
{
	return report_new(arena, PIPELINE_NOT_REGULAR, file);
}

const struct pipeline_report *
pipeline_no_directory(struct arena *arena, const char *file, const struct pipeline *p,
    const struct pipeline_terms *terms)
{
	CLEANUP(buf_done) struct buf dir = BUF_INIT;
	struct pipeline_report *r = report_new(arena, PIPELINE_VALIDATION, file);
	const char *text = NULL;

	(void)ytree_put_cut(&dir, &terms->cleaner, p->working_directory,
	    strlen(p->working_directory), YTREE_VALUE_MAX);
	if (buf_cstr(&dir) != NULL)
		text = arena_format(arena,
		    "expected RepoRelativePath, got \"%s\", which is no directory of the repository",
		    (const char *)dir.data);
	if (r == NULL || text == NULL)
		return NULL;
	r->issues[0] = (struct pipeline_issue) { .line = p->directory_line,
		.column = p->directory_column,
		.path = "run.workingDirectory",
		.text = text };
	r->nissues = 1;
	return r;
}

/* ---- reading ---------------------------------------------------------------------------- */

const char *
pipeline_failure_code(const struct pipeline_report *r)
{
	return classes[r->class].code;
}

size_t
pipeline_report_nlines(const struct pipeline_report *r)
{
	return 1 + r->nissues + (r->nmore > 0 ? 1 : 0);
}

static void
put_title(const struct pipeline_report *r, struct buf *out)
{
	buf_add_str(out, classes[r->class].title);
	if (classes[r->class].with_file)
		buf_add_str(out, r->file);
	buf_add_str(out, classes[r->class].tail);
}

static void
put_issue(const struct pipeline_report *r, const struct pipeline_issue *issue, struct buf *out)
{
	buf_add_str(out, r->file);
	if (issue->line > 0)
		buf_printf(out, ":%zu:%zu", issue->line, issue->column);
	if (issue->path[0] != '\0')
		buf_printf(out, ": %s", issue->path);
	buf_printf(out, ": %s", issue->text);
}

int
pipeline_report_line(const struct pipeline_report *r, size_t i, struct buf *out)
{
	must(i < pipeline_report_nlines(r));
	if (i == 0)
		put_title(r, out);
	else if (i <= r->nissues)
		put_issue(r, &r->issues[i - 1], out);
	else
		buf_printf(out, "and %zu more", r->nmore);
	return out->failed ? E_NOMEM : 0;
}

int
pipeline_report_message(const struct pipeline_report *r, struct buf *out)
{
	for (size_t i = 0; i < pipeline_report_nlines(r); i++) {
		if (i > 0)
			buf_add_byte(out, '\n');
		(void)pipeline_report_line(r, i, out);
	}
	return out->failed ? E_NOMEM : 0;
}
