#include <string.h>

#include "lib/base/err.h"
#include "lib/record/inside.h"

/* What the CHECKs of the store admit parses. */
enum run_status
record_status_of(const char *name)
{
	enum run_status status = RUN_STATUS_COUNT;

	must(name != NULL && run_status_parse(name, &status) == 0);
	return status;
}

static enum step_status
step_status_of(const char *name)
{
	enum step_status status = STEP_STATUS_COUNT;

	must(name != NULL && step_status_parse(name, &status) == 0);
	return status;
}

static enum trigger_type
trigger_type_of(const char *name)
{
	enum trigger_type type = TRIGGER_TYPE_COUNT;

	must(name != NULL && trigger_type_parse(name, &type) == 0);
	return type;
}

/* Copies of columns; one failed copy is told at the end. */
struct copier {
	struct stmt *st;
	struct arena *a;
	int failed;
};

static const char *
copy_text(struct copier *c, int col)
{
	const char *text = stmt_text(c->st, col);
	char *copy = text != NULL ? arena_strdup(c->a, text) : NULL;

	c->failed |= text != NULL && copy == NULL;
	return copy;
}

static struct record_int
copy_int(struct copier *c, int col)
{
	return (struct record_int) { !stmt_is_null(c->st, col), stmt_int(c->st, col) };
}

int
record_run_get(struct record *r, struct arena *a, struct record_run *ret)
{
	CLEANUP(stmt_resetp) struct stmt *st = NULL;
	struct copier c = { NULL, a, 0 };
	int err;

	OBJ_CHECK(r, RECORD_MAGIC);
	c.st = st = store_stmt(r->store, STMT_META_GET);
	err = stmt_step(st);
	if (err <= 0)
		return err < 0 ? err : E_NOENT;
	*ret = (struct record_run) {
		.run_id = copy_text(&c, 0),
		.project_id = copy_text(&c, 1),
		.owner_slug = copy_text(&c, 2),
		.project_slug = copy_text(&c, 3),
		.trigger_type = trigger_type_of(stmt_text(st, 4)),
		.triggered_by_user_id = copy_text(&c, 5),
		.branch = copy_text(&c, 6),
		.commit_sha = copy_text(&c, 7),
		.queued_at_ms = stmt_int(st, 8),
		.status = record_status_of(stmt_text(st, 9)),
		.current_step = copy_int(&c, 10),
		.started_at_ms = copy_int(&c, 11),
		.finished_at_ms = copy_int(&c, 12),
		.exit_code = copy_int(&c, 13),
		.has_failure_code = !stmt_is_null(st, 14),
		.error_message = copy_text(&c, 15),
		.cancel_requested_at_ms = copy_int(&c, 16),
		.epoch = stmt_int(st, 17),
		.spawn_id = copy_text(&c, 18),
		.sandbox = copy_text(&c, 19),
		.timeout_seconds = copy_int(&c, 20),
	};
	if (ret->has_failure_code)
		must(failure_code_parse(stmt_text(st, 14), &ret->failure_code) == 0);
	return c.failed ? E_NOMEM : 0;
}

int
record_steps_get(struct record *r, struct arena *a, struct record_step **ret, size_t *ret_n)
{
	CLEANUP(stmt_resetp) struct stmt *st = NULL;
	struct copier c = { NULL, a, 0 };
	struct record_step *steps = arena_calloc(a, RECORD_STEPS_MAX, sizeof(*steps));
	size_t n = 0;
	int err;

	OBJ_CHECK(r, RECORD_MAGIC);
	if (steps == NULL)
		return E_NOMEM;
	c.st = st = store_stmt(r->store, STMT_STEP_LIST);
	while ((err = stmt_step(st)) > 0) {
		must(n < RECORD_STEPS_MAX);
		steps[n++] = (struct record_step) {
			.position = stmt_int(st, 0),
			.name = copy_text(&c, 1),
			.command = copy_text(&c, 2),
			.status = step_status_of(stmt_text(st, 3)),
			.started_at_ms = copy_int(&c, 4),
			.finished_at_ms = copy_int(&c, 5),
			.exit_code = copy_int(&c, 6),
			.signal = copy_int(&c, 7),
		};
	}
	if (err < 0 || c.failed)
		return err < 0 ? err : E_NOMEM;
	*ret = steps;
	*ret_n = n;
	return 0;
}
