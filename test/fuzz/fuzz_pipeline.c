/*
 * Any bytes as `.anvil.yml`.  Either a pipeline comes out that keeps every rule, or a report
 * whose message is UTF-8 and has as many lines as it says.
 */
#include <string.h>

#include "lib/base/err.h"
#include "lib/base/utf8.h"
#include "lib/pipeline/pipeline.h"

#define MAX_S 3600

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_pipeline(const struct pipeline *p)
{
	must(p->nsteps <= PIPELINE_STEPS_MAX);
	must(p->timeout_seconds >= 1 && p->timeout_seconds <= MAX_S);
	must(p->working_directory[0] != '\0' && p->working_directory[0] != '/');
	must(strcmp(p->working_directory, "..") != 0);
	for (size_t i = 0; i < p->nsteps; i++) {
		must(p->steps[i].name != NULL && p->steps[i].command != NULL);
		must(strlen(p->steps[i].name) - 1 < 64);
		must(!utf8_has_control(p->steps[i].name, strlen(p->steps[i].name)));
		must(strlen(p->steps[i].command) - 1 < 4096);
	}
}

static void
check_report(const struct pipeline_report *report)
{
	CLEANUP(buf_done) struct buf message = BUF_INIT;
	size_t nlines = 1;

	must(report->nissues > 0 && report->nissues <= PIPELINE_ISSUES_MAX);
	for (size_t i = 1; i < report->nissues; i++)
		must(report->issues[i - 1].line <= report->issues[i].line);
	must(pipeline_report_message(report, &message) == 0);
	must(utf8_valid((const char *)message.data, message.len));
	for (size_t i = 0; i < message.len; i++)
		nlines += message.data[i] == '\n';
	must(nlines <= pipeline_report_nlines(report));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct pipeline_terms terms = { .max_timeout_seconds = MAX_S };
	CLEANUP(arena_freep) struct arena *arena = arena_new();
	const struct pipeline *p = NULL;
	const struct pipeline_report *report = NULL;
	int r = pipeline_parse(
	    arena, ".anvil.yml", (const char *)data, size, &terms, &p, &report);

	must(r == 0 || r == E_INVAL);
	if (r == 0)
		check_pipeline(p);
	else
		check_report(report);
	return 0;
}
