/* anvilctl lint [FILE]: judges an .anvil.yml with the code that runs use. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/anvilctl/commands.h"
#include "cmd/anvilctl/ctl.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/config/config.h"
#include "lib/pipeline/pipeline.h"

#define DEFAULT_FILE     ".anvil.yml"
#define MAX_TIMEOUT_S    3600 /* Of a server on its defaults. */
#define TOO_BIG_READ_MAX (PIPELINE_BYTES_MAX + 1)

/* The server's maximum, when its configuration is named. */
static int
max_timeout(const struct ctl *ctl, int64_t *ret_seconds)
{
	CLEANUP(buf_done) struct buf problems = BUF_INIT;
	CLEANUP(config_freep) struct config *config = NULL;
	const char *path = ctl->globals[GLOBAL_CONFIG];

	*ret_seconds = MAX_TIMEOUT_S;
	if (path == NULL)
		return 0;
	if (config_load(path, &problems, &config) < 0)
		return ctl_fail("%s", problems.len > 0 ? buf_cstr(&problems) : path);
	*ret_seconds = config->runs_max_timeout_seconds;
	return 0;
}

static int
read_file(const char *path, struct buf *out)
{
	CLEANUP(io_closep) int fd = -1;
	int r;

	if (strcmp(path, "-") == 0) {
		r = io_read_all(STDIN_FILENO, TOO_BIG_READ_MAX, out);
	} else {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		r = fd < 0 ? E_SYS : io_read_all(fd, TOO_BIG_READ_MAX, out);
	}
	if (r == E_TOO_BIG)
		return 0; /* what was read is judged, and is too big */
	if (r < 0)
		return ctl_fail("%s: %s", path, r == E_SYS ? strerror(errno) : err_text(r));
	return 0;
}

static int
print_report(const struct ctl *ctl, const struct pipeline_report *report)
{
	size_t n = pipeline_report_nlines(report);
	CLEANUP(json_unrefp) json_t *lines = json_array();

	for (size_t i = 0; i < n; i++) {
		CLEANUP(buf_done) struct buf line = BUF_INIT;

		if (pipeline_report_line(report, i, &line) < 0 || buf_cstr(&line) == NULL)
			return ctl_fail_nomem();
		if (!ctl->json)
			(void)fprintf(i == 0 ? stderr : stdout, "%s\n", (char *)line.data);
		else if (i > 0)
			(void)json_array_append_new(lines, json_string((char *)line.data));
	}
	if (ctl->json) {
		CLEANUP(json_unrefp)
		json_t *j = json_pack("{s:b, s:s, s:O}", "ok", 0, "failureCode",
		    pipeline_failure_code(report), "issues", lines);

		(void)(j != NULL ? ctl_print_json(ctl, j) : ctl_fail_nomem());
	}
	return CTL_REFUSED;
}

static int
print_good(const struct ctl *ctl, const char *file, const struct pipeline *p)
{
	if (ctl->json) {
		CLEANUP(json_unrefp)
		json_t *j = json_pack("{s:b, s:i, s:I}", "ok", 1, "steps", (int)p->nsteps,
		    "timeoutSeconds", (json_int_t)p->timeout_seconds);

		return j != NULL ? ctl_print_json(ctl, j) : ctl_fail_nomem();
	}
	(void)printf("%s: good, %zu step%s, timeout %lld s\n", file, p->nsteps,
	    p->nsteps == 1 ? "" : "s", (long long)p->timeout_seconds);
	return CTL_OK;
}

static int
lint_run(struct ctl *ctl, const struct args *args)
{
	const char *file = args->nwords > 0 ? args->words[0] : DEFAULT_FILE;
	CLEANUP(arena_freep) struct arena *arena = arena_new();
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	const struct pipeline *pipeline;
	const struct pipeline_report *report;
	struct pipeline_terms terms = { .max_timeout_seconds = 0 }; /* Nothing is hidden. */
	int r;

	if (arena == NULL)
		return ctl_fail_nomem();
	r = max_timeout(ctl, &terms.max_timeout_seconds);
	if (r == 0)
		r = read_file(file, &text);
	if (r != 0)
		return r;
	switch (pipeline_parse(arena, strcmp(file, "-") == 0 ? "<stdin>" : file,
	    text.data != NULL ? (const char *)text.data : "", text.len, &terms, &pipeline,
	    &report)) {
	case 0: return print_good(ctl, file, pipeline);
	case E_INVAL: return print_report(ctl, report);
	default: return ctl_fail_nomem();
	}
}

const struct command command_lint = {
	.name = "lint",
	.words = "[FILE]",
	.summary = "checks an .anvil.yml with the code that runs use",
	.more =
	    "Prints file:line:column messages and exits with 1 when there are any.  FILE is\n"
	    ".anvil.yml when not given, `-` standard input.  With -c the maximum timeout is the\n"
	    "server's own.",
	.max_words = 1,
	.run = lint_run,
};
