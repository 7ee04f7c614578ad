#include "cmd/anvild/history.h"

#include <stddef.h>

#include "cmd/anvild/process.h"
#include "cmd/anvild/supervisor.h"

static int
history_trim(struct turn *t)
{
	CLEANUP(stmt_resetp) struct stmt *st = sup_stmt(t, SUP_HISTORY_TRIM);
	int r = stmt_bind(st, "i", (int64_t)HISTORY_ROWS);

	return r < 0 ? r : stmt_run(st);
}

int
history_add(struct turn *t, const struct history_entry *e)
{
	CLEANUP(stmt_resetp) struct stmt *st = sup_stmt(t, SUP_HISTORY_ADD);
	int64_t pid = e->pid, status = 0, signal = 0;
	int r;

	if (e->end != NULL) {
		status = e->end->exit_status;
		signal = e->end->signal;
	}
	r = stmt_bind(st, "issIIIIs", t->now_ms, e->address, e->event, pid > 0 ? &pid : NULL,
	    e->uptime_ms >= 0 ? &e->uptime_ms : NULL,
	    e->end != NULL && e->end->exited ? &status : NULL,
	    e->end != NULL && e->end->signaled ? &signal : NULL, e->reason);
	if (r == 0)
		r = stmt_run(st);
	return r < 0 ? r : history_trim(t);
}
