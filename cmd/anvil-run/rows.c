#include "cmd/anvil-run/rows.h"

#include <stdio.h>

const struct step_row *
rows_steps(struct arena *a, const char *run_id, const struct record_step *steps, size_t n)
{
	struct step_row *rows = arena_calloc(a, n + 1, sizeof(*rows));

	for (size_t i = 0; rows != NULL && i < n; i++) {
		const struct record_step *s = &steps[i];

		rows[i] = (struct step_row) {
			.id = arena_format(a, "%s:step:%lld", run_id, (long long)s->position),
			.run_id = run_id,
			.position = s->position,
			.name = s->name,
			.command = s->command,
			.status = s->status,
			.has_started_at = s->started_at_ms.set,
			.started_at = s->started_at_ms.v,
			.has_finished_at = s->finished_at_ms.set,
			.finished_at = s->finished_at_ms.v,
			.has_exit_code = s->exit_code.set,
			.exit_code = s->exit_code.v,
		};
		if (rows[i].id == NULL)
			return NULL;
	}
	return rows;
}

struct log_row
rows_line(const char *run_id, const struct record_row *line, char id[ROWS_ID_SIZE])
{
	(void)snprintf(id, ROWS_ID_SIZE, "%s:log:%lld", run_id, (long long)line->seq);
	return (struct log_row) {
		.id = id,
		.run_id = run_id,
		.seq = line->seq,
		.stream = line->stream,
		.chunk = { line->chunk, line->n },
		.created_at = line->created_at_ms,
	};
}

struct run_live
rows_live(const struct record_run *run)
{
	return (struct run_live) {
		.status = run->status,
		.has_current_step = run->current_step.set,
		.current_step = run->current_step.v,
		.has_started_at = run->started_at_ms.set,
		.started_at = run->started_at_ms.v,
		.has_finished_at = run->finished_at_ms.set,
		.finished_at = run->finished_at_ms.v,
		.has_exit_code = run->exit_code.set,
		.exit_code = run->exit_code.v,
		.error_message = run->error_message,
		.has_failure_code = run->has_failure_code,
		.failure_code = run->failure_code,
	};
}
