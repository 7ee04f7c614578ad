/* supervisor.checkRuns: the process that looks at the records of ended runs, and its report. */
#include <string.h>
#include <unistd.h>

#include "cmd/anvild/errand.h"
#include "cmd/anvild/supervisor.h"
#include "gen/supervisor.h"

#define PAGE_BYTES ((size_t)256 << 10)

int
supervisor_check_runs(struct supervisor *s, struct turn *t,
    const struct supervisor_check_runs_params *p, struct supervisor_check_runs_result *ret)
{
	(void)p;
	if (s->stopping)
		return turn_fail(t, E_DRAINING, "the supervisor is stopping");
	if (errand_is_under_way(s->checks)) {
		ret->kind = SUPERVISOR_CHECK_RUNS_BUSY;
		return 0;
	}
	ret->kind = SUPERVISOR_CHECK_RUNS_STARTED;
	return errand_start(s->checks, t, "--check-all", NULL, -1);
}

/* Whole lines from there on, as many as there are or as go into an answer. */
static int
read_lines(int report, struct arena *a, int64_t from, const char **ret)
{
	char *text = arena_alloc(a, PAGE_BYTES + 1);
	ssize_t n = text != NULL ? pread(report, text, PAGE_BYTES, (off_t)from) : -1;

	if (n < 0)
		return text == NULL ? E_NOMEM : E_SYS;
	while (n > 0 && text[n - 1] != '\n')
		n--;
	text[n] = '\0';
	*ret = text;
	return 0;
}

int
supervisor_check_status(struct supervisor *s, struct turn *t,
    const struct supervisor_check_status_params *p, struct supervisor_check_status_result *ret)
{
	struct supervisor_check_status_status *status = &ret->u.status;
	int r, report = errand_report(s->checks);

	ret->kind = report >= 0 ? SUPERVISOR_CHECK_STATUS_STATUS : SUPERVISOR_CHECK_STATUS_NONE;
	if (report < 0)
		return 0;
	/* Asked before the report is read: what it then has is all. */
	status->running = errand_is_under_way(s->checks);
	r = read_lines(report, t->arena, p->from, &status->lines);
	if (r < 0)
		return r;
	status->next = p->from + (int64_t)strlen(status->lines);
	status->failed = errand_failure(s->checks);
	return 0;
}
