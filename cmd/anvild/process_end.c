#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "cmd/anvild/methods.h"
#include "cmd/anvild/process.h"
#include "gen/types.h"
#include "lib/base/err.h"
#include "lib/base/json_text.h"
#include "lib/wire/wire.h"

#define END_DEPTH_MAX 4

void
process_end_text(const struct process_end *end, char out[96])
{
	if (end->exited) {
		(void)snprintf(out, 96, "exit status %d", end->exit_status);
	} else if (end->signaled) {
		const char *name = sigabbrev_np(end->signal);

		(void)snprintf(
		    out, 96, "signal %d (SIG%s)", end->signal, name != NULL ? name : "?");
	} else if (end->rebooted) {
		(void)snprintf(out, 96, "machine restarted");
	} else if (end->abandoned) {
		(void)snprintf(out, 96, "given up by the operator");
	} else if (end->error[0] != '\0') {
		(void)snprintf(out, 96, "%s", end->error);
	} else {
		(void)snprintf(out, 96, "ended while not watched");
	}
}

int
process_end_json(const struct process_end *end, struct buf *out)
{
	if (end->exited)
		return buf_printf(out, "{\"exitStatus\":%d}", end->exit_status);
	if (end->signaled)
		return buf_printf(out, "{\"signal\":%d}", end->signal);
	if (end->rebooted)
		return buf_add_str(out, "{\"rebooted\":true}");
	if (end->abandoned)
		return buf_add_str(out, "{\"abandoned\":true}");
	if (end->error[0] == '\0')
		return buf_add_str(out, "{\"unknown\":true}");
	buf_add_str(out, "{\"error\":");
	json_text_string(out, end->error, strlen(end->error));
	return buf_add_byte(out, '}');
}

int
process_end_parse(const char *text, struct process_end *ret)
{
	struct process_end end = { 0 };
	json_t *tree = NULL;
	const json_t *v;
	int r = json_text_parse(text, strlen(text), END_DEPTH_MAX, &tree);

	if (r < 0)
		return r;
	if ((v = json_object_get(tree, "exitStatus")) != NULL) {
		end.exited = 1;
		end.exit_status = (int)json_integer_value(v);
	} else if ((v = json_object_get(tree, "signal")) != NULL) {
		end.signaled = 1;
		end.signal = (int)json_integer_value(v);
	} else if (json_object_get(tree, "rebooted") != NULL) {
		end.rebooted = 1;
	} else if (json_object_get(tree, "abandoned") != NULL) {
		end.abandoned = 1;
	} else if (json_is_string(v = json_object_get(tree, "error"))) {
		(void)snprintf(end.error, sizeof(end.error), "%s", json_string_value(v));
	}
	json_decref(tree);
	*ret = end;
	return 0;
}

void
methods_set_how(struct runner_how *how, const struct process_end *end)
{
	static const struct process_end unknown = { 0 };

	if (end == NULL)
		end = &unknown;
	*how = (struct runner_how) { .has_exit_status = end->exited,
		.exit_status = end->exit_status,
		.has_signal = end->signaled,
		.signal = end->signal,
		.error = end->error[0] != '\0' ? end->error : NULL,
		.has_rebooted = end->rebooted,
		.rebooted = end->rebooted,
		.has_abandoned = end->abandoned,
		.abandoned = end->abandoned };
	how->has_unknown = how->unknown = !end->exited && !end->signaled && !end->rebooted &&
	    !end->abandoned && end->error[0] == '\0';
}
