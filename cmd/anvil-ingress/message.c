#include "cmd/anvil-ingress/message.h"

#include <string.h>

#include "cmd/anvil-ingress/rows.h"
#include "gen/http.h"
#include "lib/base/clock.h"
#include "lib/base/json_text.h"
#include "lib/http/http.h"

/* ---- texts ---- */

void
message_log(struct buf *out, const struct log_row *row)
{
	const struct http_log_event event = rows_line(row);

	(void)buf_add_str(out, "{\"type\":\"log\",\"event\":");
	(void)http_log_event_encode(out, &event);
	(void)buf_add_byte(out, '}');
}

static void
add_name(struct buf *out, const char *name)
{
	(void)buf_add_str(out, ",\"");
	(void)buf_add_str(out, name);
	(void)buf_add_str(out, "\":");
}

static void
add_int(struct buf *out, const char *name, int has, int64_t v)
{
	add_name(out, name);
	if (has)
		(void)buf_add_int(out, v);
	else
		(void)buf_add_str(out, "null");
}

static void
add_text(struct buf *out, const char *name, const char *text)
{
	add_name(out, name);
	if (text != NULL)
		(void)json_text_string(out, text, strlen(text));
	else
		(void)buf_add_str(out, "null");
}

static void
add_time(struct buf *out, const char *name, int has, int64_t ms)
{
	char text[CLOCK_TEXT_SIZE];

	if (has)
		clock_format(ms, text);
	add_text(out, name, has ? text : NULL);
}

void
message_state(
    struct buf *out, const struct run_live *run, const struct step_row *steps, size_t nsteps)
{
	(void)buf_add_str(out, "{\"type\":\"state\",\"run\":{\"status\":\"");
	(void)buf_add_str(out, run_status_name(run->status));
	(void)buf_add_byte(out, '"');
	add_int(out, "currentStep", run->has_current_step, run->current_step);
	add_time(out, "startedAt", run->has_started_at, run->started_at);
	add_time(out, "finishedAt", run->has_finished_at, run->finished_at);
	add_int(out, "exitCode", run->has_exit_code, run->exit_code);
	add_text(out, "errorMessage", run->error_message);
	add_text(out, "failureCode",
	    run->has_failure_code ? failure_code_name(run->failure_code) : NULL);
	(void)buf_add_str(out, "},\"steps\":[");
	for (size_t i = 0; i < nsteps; i++) {
		const struct http_run_step step = rows_step(&steps[i]);

		if (i > 0)
			(void)buf_add_byte(out, ',');
		(void)http_run_step_encode(out, &step);
	}
	(void)buf_add_str(out, "]}");
}

void
message_gap(struct buf *out, int64_t from_seq, int64_t to_seq)
{
	(void)buf_printf(out, "{\"type\":\"gap\",\"fromSeq\":%lld,\"toSeq\":%lld}",
	    (long long)from_seq, (long long)to_seq);
}

void
message_end(struct buf *out, const char *reason)
{
	(void)buf_printf(out, "{\"type\":\"end\",\"reason\":\"%s\"}", reason);
}

/* ---- frames ---- */

static struct http_blob *
event_of(const char *type, int64_t id, const struct buf *json)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;

	/* A JSON text of ours has no line break in it. */
	(void)buf_reserve(&text, json->len + 64);
	if (id != 0)
		(void)buf_printf(&text, "id: %lld\n", (long long)id);
	(void)buf_printf(&text, "event: %s\ndata: ", type);
	(void)buf_add(&text, json->data, json->len);
	(void)buf_add_str(&text, "\n\n");
	return text.failed ? NULL : http_blob_new_copy(text.data, text.len);
}

struct http_blob *
message_frame(enum message_format f, const char *type, int64_t id, const struct buf *json)
{
	must(f != MESSAGE_TEXT);
	if (json->failed)
		return NULL;
	return f == MESSAGE_WS ? ws_frame_text(json->data, json->len)
			       : event_of(type, id, json);
}

struct http_blob *
message_log_frame(enum message_format f, const struct log_row *row)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT;

	if (f == MESSAGE_TEXT)
		return http_blob_new_copy(row->chunk.p, row->chunk.n);
	(void)buf_reserve(&json, row->chunk.n + row->chunk.n / 8 + 256);
	message_log(&json, row);
	return message_frame(f, "log", row->seq, &json);
}
