#include "cmd/anvilctl/why.h"

#include <stdlib.h>
#include <string.h>

#include "cmd/anvilctl/forge.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

/* ---- the links of the chain ---- */

/* One of the three; steps come twice. */
struct link {
	int64_t at;
	size_t order; /* Of links of the same moment. */
	const struct delivery_row *delivery;
	const struct why_event *event;
	const struct step_row *step;
	int step_ends;
};

static int
by_time(const void *a, const void *b)
{
	const struct link *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* Steps stand before what the shard has heard of them in the same millisecond. */
static size_t
gather(const struct why *w, struct link *out)
{
	size_t n = 0;

	if (w->history->delivery != NULL)
		out[n++] = (struct link) { .at = w->history->delivery->received_at,
			.delivery = w->history->delivery };
	for (size_t i = 0; w->detail != NULL && i < w->detail->nsteps; i++) {
		const struct step_row *s = &w->detail->steps[i];

		if (s->has_started_at)
			out[n++] = (struct link) { .at = s->started_at, .step = s };
		if (s->has_finished_at)
			out[n++] =
			    (struct link) { .at = s->finished_at, .step = s, .step_ends = 1 };
	}
	for (size_t i = 0; i < w->history->nevents; i++)
		out[n++] = (struct link) { .at = w->history->events[i].at,
			.event = &w->history->events[i] };
	for (size_t i = 0; i < n; i++)
		out[i].order = i;
	qsort(out, n, sizeof(*out), by_time);
	return n;
}

static const struct phrase {
	const char *event, *member, *before;
} phrases[] = {
	{ "accepted", "position", "position " },
	{ "promoted", NULL, "first of its project" },
	{ "dispatch_queued", "how", "asked for a process: " },
	{ "dispatch_failed", "error", "could not be started: " },
	{ "claimed", "spawnId", "the lease is with process " },
	{ "commit_recorded", "commitSha", "" },
	{ "cancel_requested", "by", "by " },
	{ "released", "reason", "gave the lease back: " },
	{ "settled", "status", "the run says " },
	{ "runner_gone", "how", "its process has ended: " },
	{ "taken_over", "how", "ended by the shard: " },
	{ "index_done", NULL, "the list of runs shows its end" },
};

static void
describe_event(const struct why_event *e, struct buf *out)
{
	for (size_t i = 0; i < ARRAY_LEN(phrases); i++) {
		const struct phrase *p = &phrases[i];
		const json_t *value = p->member != NULL ? json_object_get(e->detail, p->member)
							: NULL;

		if (strcmp(e->event, p->event) != 0 || (p->member != NULL && value == NULL))
			continue;
		buf_add_str(out, p->before);
		if (json_is_string(value))
			buf_add_str(out, json_string_value(value));
		else if (value != NULL)
			(void)json_text_dump(out, value);
		return;
	}
	if (json_object_size(e->detail) > 0)
		(void)json_text_dump(out, e->detail);
}

static void
describe_delivery(const struct delivery_row *d, struct buf *out)
{
	const struct verified_payload *p = &d->payload;

	buf_printf(out, "%s %s %s", forge_name(p->provider), p->event_name, p->delivery_id);
	if (p->ref != NULL)
		buf_printf(out, ", %s", p->ref);
	if (p->commit_sha != NULL)
		buf_printf(out, " at %.12s", p->commit_sha);
}

static void
describe_step(const struct link *l, struct buf *out)
{
	const struct step_row *s = l->step;

	buf_printf(out, "%lld \"%s\"", (long long)s->position, s->name);
	if (!l->step_ends)
		return;
	buf_printf(out, " has %s", step_status_name(s->status));
	if (s->has_exit_code)
		buf_printf(out, ", exit code %lld", (long long)s->exit_code);
}

static const char *
describe(const struct link *l, struct buf *out)
{
	if (l->event != NULL) {
		describe_event(l->event, out);
		return l->event->event;
	}
	if (l->step != NULL) {
		describe_step(l, out);
		return l->step_ends ? "step_ended" : "step_begun";
	}
	describe_delivery(l->delivery, out);
	return "delivered";
}

struct table *
why_table(const struct why *w)
{
	static const char *const heads[] = { "TIME", ">AFTER", "EVENT", "DETAIL" };
	size_t nsteps = w->detail != NULL ? w->detail->nsteps : 0, n;
	CLEANUP_FREE struct link *links = mem_calloc(
	    w->history->nevents + 2 * nsteps + 1, sizeof(*links));
	struct table *t = links != NULL ? table_new(heads, ARRAY_LEN(heads)) : NULL;

	if (t == NULL)
		return NULL;
	n = gather(w, links);
	for (size_t i = 0; i < n; i++) {
		CLEANUP(buf_done) struct buf detail = BUF_INIT;
		const char *event = describe(&links[i], &detail);
		const char *text = buf_cstr(&detail);

		table_add_time(t, links[i].at);
		table_add_duration(t, i > 0 ? links[i].at - links[i - 1].at : -1);
		table_add(t, TONE_STRONG, "%s", event);
		table_add(t, TONE_PLAIN, "%s", text != NULL ? text : "(no memory)");
	}
	return t;
}

/* ---- the end ---- */

static const struct why_event *
last_event(const struct project_why_history *h, const char *name)
{
	for (size_t i = h->nevents; i > 0; i--)
		if (strcmp(h->events[i - 1].event, name) == 0)
			return &h->events[i - 1];
	return NULL;
}

static const struct step_row *
failed_step(const struct why *w)
{
	for (size_t i = 0; w->detail != NULL && i < w->detail->nsteps; i++)
		if (w->detail->steps[i].status == STEP_STATUS_FAILED)
			return &w->detail->steps[i];
	return NULL;
}

static void
tell_wait(const struct queue_run *q, struct buf *out)
{
	char text[TEXT_SIZE];

	switch (q->status) {
	case LEDGER_STATUS_PENDING:
		buf_add_str(out, "waits for the runs of its project that are before it");
		break;
	case LEDGER_STATUS_EXECUTABLE:
		if (q->dispatch_status == DISPATCH_STATUS_QUEUED)
			buf_add_str(out, "waits for a process of the supervisor");
		else
			buf_add_str(out, "waits to be started");
		if (q->has_dispatch_retry_at) {
			text_time(q->dispatch_retry_at, text);
			buf_printf(out, ", next at %s", text);
		}
		break;
	case LEDGER_STATUS_CANCEL_REQUESTED:
		buf_printf(out, "is being canceled, by %s",
		    q->cancel_by != NULL ? q->cancel_by : "somebody");
		break;
	default: buf_add_str(out, "is being worked on"); break;
	}
	if (q->last_error != NULL)
		buf_printf(out, "; the last attempt: %s", q->last_error);
}

static void
tell_failure(const struct why *w, struct buf *out)
{
	const struct run_row *run = &w->history->run;
	const struct step_row *s = failed_step(w);

	if (last_event(w->history, "taken_over") != NULL)
		buf_add_str(out, "ended by its shard, since its process was gone");
	else if (run->has_failure_code && run->failure_code == FAILURE_CODE_DISPATCH_FAILED)
		buf_add_str(out, "ended by its shard, since it could not be started");
	else if (run->has_failure_code && run->failure_code == FAILURE_CODE_STEP_FAILED &&
	    s != NULL)
		buf_printf(
		    out, "ended by its step %lld, \"%s\"", (long long)s->position, s->name);
	else
		buf_add_str(out, "ended by itself");
}

int
why_end(const struct why *w, struct buf *out)
{
	const struct project_why_history *h = w->history;

	switch (h->run.status) {
	case RUN_STATUS_PASSED: buf_add_str(out, "ended by itself, with all steps done"); break;
	case RUN_STATUS_CANCELED:
		buf_printf(out, "ended by %s, who canceled it",
		    h->ledger.cancel_by != NULL ? h->ledger.cancel_by : "somebody");
		break;
	case RUN_STATUS_FAILED: tell_failure(w, out); break;
	default: tell_wait(&h->ledger, out); break;
	}
	if (h->run.has_failure_code)
		buf_printf(out, ": %s%s%s", failure_code_name(h->run.failure_code),
		    h->run.error_message != NULL ? ", " : "",
		    h->run.error_message != NULL ? h->run.error_message : "");
	return out->failed ? E_NOMEM : 0;
}
