/* What the keys of `.anvil.yml` mean, and what may stand behind them. */
#include <string.h>

#include "lib/base/ascii.h"
#include "lib/base/err.h"
#include "lib/base/rules.h"
#include "lib/base/utf8.h"
#include "lib/pipeline/pipeline.h"
#include "lib/pipeline/report.h"
#include "lib/ytree/ytree.h"

#define VERSION          1
#define DEPTH_MAX        INT32_MAX
#define STEP_NAME_MAX    64
#define STEP_COMMAND_MAX 4096

static const char *const root_keys[] = { "version", "checkout", "run" };
static const char *const checkout_keys[] = { "depth" };
static const char *const run_keys[] = { "workingDirectory", "timeoutSeconds", "steps" };
static const char *const step_keys[] = { "name", "run" };

struct validation {
	struct ytree_issues *issues;
	struct pipeline *out;
	int64_t max_timeout_seconds;
};

/* 1 when ${node} is a map, whose keys are then checked; else that is reported. */
static int
enter_map(struct validation *v, const struct ytree_node *node, const char *const *known,
    size_t nknown)
{
	if (node->kind != YTREE_MAP) {
		ytree_expected(v->issues, node, "map");
		return 0;
	}
	ytree_check_keys(v->issues, node, known, nknown);
	return 1;
}

static const struct ytree_node *
need(struct validation *v, const struct ytree_node *map, const char *key)
{
	const struct ytree_node *node = ytree_get(map, key);

	if (node == NULL)
		ytree_missing(v->issues, map, key);
	return node;
}

static void
check_version(struct validation *v, const struct ytree_node *node)
{
	int64_t n;

	if (ytree_int(node, &n) < 0 || n != VERSION)
		ytree_expected(v->issues, node, "integer 1");
}

static void
check_checkout(struct validation *v, const struct ytree_node *node)
{
	const struct ytree_node *depth;
	int64_t n;

	if (!enter_map(v, node, checkout_keys, ARRAY_LEN(checkout_keys)))
		return;
	depth = ytree_get(node, "depth");
	if (depth == NULL)
		return;
	if (ytree_int(depth, &n) < 0 || n > DEPTH_MAX)
		ytree_expected(v->issues, depth, "CheckoutDepth");
	else
		v->out->depth = (uint32_t)n;
}

/* Relative, and never out of the workspace by its spelling alone. */
static int
is_repo_relative(const char *p, size_t n)
{
	size_t from = 0;

	if (n == 0 || memchr(p, '\\', n) != NULL || utf8_has_control(p, n))
		return 0;
	if (n >= 2 && ascii_is_alpha(p[0]) && p[1] == ':')
		return 0;
	for (size_t i = 0; i <= n; i++) {
		if (i < n && p[i] != '/')
			continue;
		if (i == from || (i - from == 2 && p[from] == '.' && p[from + 1] == '.'))
			return 0;
		from = i + 1;
	}
	return 1;
}

static void
check_directory(struct validation *v, const struct ytree_node *node)
{
	if (!ytree_is_text(node) || !is_repo_relative(node->text, node->len)) {
		ytree_expected(v->issues, node, "RepoRelativePath");
		return;
	}
	v->out->working_directory = node->text;
	v->out->directory_line = node->line;
	v->out->directory_column = node->column;
}

static void
check_timeout(struct validation *v, const struct ytree_node *node)
{
	int64_t n;

	if (ytree_int(node, &n) < 0 || n < 1 || n > v->max_timeout_seconds)
		ytree_expected(v->issues, node, "RunTimeoutSeconds");
	else
		v->out->timeout_seconds = n;
}

static void
check_name(struct validation *v, const struct ytree_node *node, struct pipeline_step *step)
{
	if (!ytree_is_text(node) || node->len > STEP_NAME_MAX ||
	    rule_is_blank(node->text, node->len) || utf8_has_control(node->text, node->len))
		ytree_expected(v->issues, node, "RepoConfigStepName");
	else
		step->name = node->text;
}

static void
check_command(struct validation *v, const struct ytree_node *node, struct pipeline_step *step)
{
	if (!ytree_is_text(node) || node->len > STEP_COMMAND_MAX ||
	    rule_is_blank(node->text, node->len) || memchr(node->text, '\0', node->len) != NULL)
		ytree_expected(v->issues, node, "RepoConfigStepCommand");
	else
		step->command = node->text;
}

static void
check_step(struct validation *v, const struct ytree_node *node, struct pipeline_step *step)
{
	const struct ytree_node *member;

	if (!enter_map(v, node, step_keys, ARRAY_LEN(step_keys)))
		return;
	if ((member = need(v, node, "name")) != NULL)
		check_name(v, member, step);
	if ((member = need(v, node, "run")) != NULL)
		check_command(v, member, step);
}

static void
check_steps(struct validation *v, const struct ytree_node *node)
{
	struct pipeline_step beyond;

	if (node->kind != YTREE_LIST || node->nchildren > PIPELINE_STEPS_MAX)
		ytree_expected(v->issues, node, "RepoConfigSteps");
	if (node->kind != YTREE_LIST)
		return;
	for (const struct ytree_node *at = node->first; at != NULL; at = at->next)
		check_step(v, at,
		    at->index < PIPELINE_STEPS_MAX ? &v->out->steps[at->index] : &beyond);
	v->out->nsteps = min_size(node->nchildren, PIPELINE_STEPS_MAX);
}

static void
check_run(struct validation *v, const struct ytree_node *node)
{
	const struct ytree_node *member;

	if (!enter_map(v, node, run_keys, ARRAY_LEN(run_keys)))
		return;
	if ((member = ytree_get(node, "workingDirectory")) != NULL)
		check_directory(v, member);
	if ((member = ytree_get(node, "timeoutSeconds")) != NULL)
		check_timeout(v, member);
	if ((member = need(v, node, "steps")) != NULL)
		check_steps(v, member);
}

static void
check_root(struct validation *v, const struct ytree_node *root)
{
	const struct ytree_node *member;

	if (!enter_map(v, root, root_keys, ARRAY_LEN(root_keys)))
		return;
	if ((member = need(v, root, "version")) != NULL)
		check_version(v, member);
	if ((member = ytree_get(root, "checkout")) != NULL)
		check_checkout(v, member);
	if ((member = need(v, root, "run")) != NULL)
		check_run(v, member);
}

int
pipeline_parse(struct arena *arena, const char *file, const char *text, size_t n,
    const struct pipeline_terms *terms, const struct pipeline **ret_pipeline,
    const struct pipeline_report **ret_report)
{
	struct ytree_issues issues = { .arena = arena, .cleaner = terms->cleaner };
	struct pipeline *p = arena_alloc(arena, sizeof(*p));
	struct validation v = { &issues, p, terms->max_timeout_seconds };
	const struct pipeline_report *report;
	struct ytree_node *root;
	int r;

	if (p == NULL)
		return E_NOMEM;
	p->depth = 1;
	p->working_directory = ".";
	p->timeout_seconds = min_i64(PIPELINE_TIMEOUT_S, terms->max_timeout_seconds);
	if (n > PIPELINE_BYTES_MAX) {
		report = pipeline_too_big(arena, file, n);
	} else {
		r = ytree_parse(arena, text, n, &issues, &root);
		if (r == 0)
			check_root(&v, root);
		if (r == E_NOMEM || issues.failed)
			return E_NOMEM;
		if (r == 0 && issues.n == 0) {
			*ret_pipeline = p;
			return 0;
		}
		report = report_of_issues(arena, file, &issues);
	}
	if (report == NULL)
		return E_NOMEM;
	*ret_report = report;
	return E_INVAL;
}
