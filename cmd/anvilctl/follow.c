#include "cmd/anvilctl/follow.h"

#include <stdio.h>
#include <string.h>

#include "cmd/anvilctl/rows.h"
#include "gen/ingress.h"
#include "gen/project.h"
#include "gen/run.h"
#include "gen/supervisor.h"
#include "lib/base/err.h"

#define PIECE_BYTES (256 * 1024)
#define PATIENCE_MS 10000 /* For a run's process that comes and goes. */

struct follower {
	struct ctl *ctl;
	const struct place *run;
	char address[RPC_ADDRESS_SIZE];
	int64_t at;      /* Next byte of the log.               */
	int mid_line;    /* The last piece ended inside a line. */
	int told_queued; /* The wait has been announced.        */
	enum run_status status;
	struct mono_time good; /* When it last went well. */
	/* When the log is printed as rows instead. */
	int as_rows;
	struct rows rows;
	int64_t next_seq;  /* That has not been printed.             */
	int64_t until_seq; /* Without the end: that was all; 0: ask. */
	/* While the run tells us of what it stores. */
	struct arena *arena; /* Owned: for events. */
	int listening;       /* Events are those of our subscription. */
	int ended;           /* That was all. */
	int behind;          /* The next lines are in the full log alone. */
};

static int
is_over(enum run_status s)
{
	return s == RUN_STATUS_PASSED || s == RUN_STATUS_FAILED || s == RUN_STATUS_CANCELED;
}

/* ---- printing ---- */

static void
print_piece(struct follower *f, const char *p, size_t n)
{
	while (n > 0) {
		const char *end = memchr(p, '\n', n);
		size_t len = end != NULL ? (size_t)(end - p) : n;
		enum tone tone = !f->mid_line && rows_is_header(p, len) ? TONE_STRONG
									: TONE_PLAIN;

		(void)fputs(text_tone_begin(tone, f->ctl->color), stdout);
		(void)fwrite(p, 1, len, stdout);
		(void)fputs(text_tone_end(tone, f->ctl->color), stdout);
		if (end != NULL)
			(void)fputc('\n', stdout);
		f->mid_line = end == NULL;
		len += end != NULL;
		p += len;
		n -= len;
	}
}

/* ${text} was filled, or ${err} says why not. */
static void
print_rows(struct follower *f, const struct buf *text, int err)
{
	if (err < 0)
		f->behind = 1;
	else if (text->len > 0)
		(void)fwrite(text->data, 1, text->len, stdout);
}

static void
print_item(struct follower *f, const struct run_item *item)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;

	if (item->type == RUN_ITEM_TYPE_GAP) {
		print_rows(f, &text, rows_add_gap(item->from_seq, item->to_seq, &text));
		f->next_seq = item->to_seq + 1;
		return;
	}
	print_rows(f, &text, rows_add(&f->rows, item->event, &text));
	f->next_seq = item->event->seq + 1;
}

/* ---- asking ---- */

/* The log from where we are to its present end.  *ret_seq: the line that comes next.
 * 0 or an error. */
static int
read_log(struct follower *f, int64_t *ret_seq)
{
	struct run_read_log_params params = { .max_bytes = PIECE_BYTES };
	struct run_read_log_result piece;
	int r;

	do {
		params.from_byte = f->at;
		piece = (struct run_read_log_result) { .kind = 0 };
		r = CTL_TRY(f->ctl, f->address, run_read_log, &params, &piece);
		if (r < 0)
			return r;
		if (!f->ctl->json)
			print_piece(f, piece.u.text.text.p, piece.u.text.text.n);
		if (piece.u.text.next_byte <= f->at && !piece.u.text.has_next_seq)
			return E_CORRUPT;
		f->at = piece.u.text.next_byte;
		client_forget(f->ctl->client);
	} while (!piece.u.text.has_next_seq);
	(void)fflush(stdout);
	*ret_seq = piece.u.text.next_seq;
	return 0;
}

/* State first, log after it: when the run was over then, the log is whole. */
static int
ask_run(struct follower *f)
{
	struct run_get_detail_params params = { .log_bytes = 0 };
	struct run_get_detail_result detail = { .kind = 0 };
	int64_t seq;
	int r = CTL_TRY(f->ctl, f->address, run_get_detail, &params, &detail);

	if (r < 0)
		return r;
	f->status = detail.u.detail.run.status;
	return read_log(f, &seq);
}

/* ---- being told ---- */

/* Lines, in order, from the one behind what we have.  Returns the newest, or 0. */
static int64_t
take_items(struct follower *f, const struct run_item *items, size_t n)
{
	int64_t seq = 0;

	for (size_t i = 0; i < n && !f->behind; i++) {
		const struct run_item *item = &items[i];

		if (item->type == RUN_ITEM_TYPE_END)
			f->ended = 1;
		if (item->type == RUN_ITEM_TYPE_GAP && f->as_rows)
			print_item(f, item);
		else if (item->type == RUN_ITEM_TYPE_GAP)
			f->behind = 1;
		if (item->type == RUN_ITEM_TYPE_STATE && item->run != NULL)
			f->status = item->run->status;
		if (item->type != RUN_ITEM_TYPE_LOG || item->event == NULL)
			continue;
		if (f->as_rows)
			print_item(f, item);
		else if (!f->ctl->json)
			print_piece(f, item->event->chunk.p, item->event->chunk.n);
		f->at += (int64_t)item->event->chunk.n;
		seq = item->event->seq;
	}
	(void)fflush(stdout);
	return seq;
}

static void
on_event(void *arg, const char *address, const char *method, const json_t *params)
{
	struct follower *f = arg;
	struct run_events_params events = { .subscription = 0 };
	struct codec codec;
	struct run_ack_params ack;

	if (!f->listening || strcmp(address, f->address) != 0 ||
	    strcmp(method, "run.events") != 0)
		return;
	codec_init(&codec, f->arena, NULL);
	codec.lenient = 1;
	/* What cannot be read is in the full log. */
	if (run_events_params_decode(&codec, params, &events) < 0)
		f->behind = 1;
	ack = (struct run_ack_params) { events.subscription,
		take_items(f, events.items, events.nitems) };
	if (ack.seq != 0)
		(void)CTL_NOTIFY(f->ctl, f->address, run_ack, &ack);
	arena_reset(f->arena);
}

static int
has_all(const struct follower *f)
{
	return f->ended || f->behind || (f->until_seq != 0 && f->next_seq >= f->until_seq);
}

/* Lines from ${seq} on until the end, or until they are no longer to be had so. */
static int
listen(struct follower *f, int64_t seq)
{
	struct run_subscribe_params params = { 1, seq };
	struct run_subscribe_result answer = { .kind = 0 };
	struct run_unsubscribe_params stop;
	struct run_unsubscribe_result stopped = { .kind = 0 };
	int r;

	f->ended = f->behind = 0;
	f->listening = 1;
	r = CTL_TRY(f->ctl, f->address, run_subscribe, &params, &answer);
	stop.subscription = answer.u.ok.subscription;
	client_forget(f->ctl->client);
	while (r == 0 && !has_all(f)) {
		r = client_wait(f->ctl->client, f->address);
		f->good = clock_mono();
	}
	f->listening = 0;
	if (r == 0 && !f->ended)
		r = CTL_TRY(f->ctl, f->address, run_unsubscribe, &stop, &stopped);
	return r;
}

/* Rows from the first one on.  Who knows where they end today has seen the state before. */
static int
watch_rows(struct follower *f, int until_end)
{
	struct run_get_detail_params params = { .log_bytes = 0 };
	struct run_get_detail_result detail = { .kind = 0 };
	int r = 0;

	if (!until_end) {
		r = CTL_TRY(f->ctl, f->address, run_get_detail, &params, &detail);
		f->status = detail.u.detail.run.status;
		f->until_seq = detail.u.detail.next_seq;
	}
	if (r == 0 && (until_end || f->next_seq < f->until_seq))
		r = listen(f, f->next_seq);
	return r == 0 && f->behind ? E_CORRUPT : r;
}

/* The full log first, then what comes.  A run that has no store yet has no log. */
static int
watch(struct follower *f)
{
	int64_t seq = 1;
	int r;

	do {
		r = read_log(f, &seq);
		if (r == 0 || r == E_NOENT)
			r = listen(f, seq);
	} while (r == 0 && f->behind);
	return r;
}

/* ---- the ledger, and who answers ---- */

/* The ledger's word, for a run without a process. */
static int
ask_ledger(struct follower *f)
{
	struct project_find_run_params params = { .run_id = f->run->run_id };
	struct project_find_run_result found = { .kind = 0 };
	int r = CTL_TRY(f->ctl, f->run->shard, project_find_run, &params, &found);

	if (r == 0 && found.kind != PROJECT_FIND_RUN_FOUND)
		r = E_NOENT;
	if (r < 0)
		return r;
	f->status = found.u.found.run.status;
	if (!is_over(f->status) && !f->told_queued && !f->ctl->json)
		(void)fprintf(
		    stderr, "%s is %s...\n", f->run->run_id, run_status_name(f->status));
	f->told_queued = 1;
	return 0;
}

/* Makes the run's actor answer.  1: it does; 0: there is nothing to ask yet; or an error. */
static int
wake(struct follower *f)
{
	struct supervisor_serve_run_params params = { .run_id = f->run->run_id };
	struct supervisor_serve_run_result woken = { .kind = 0 };
	int r;

	if (client_connect(f->ctl->client, f->address) == 0)
		return 1;
	r = CTL_TRY(f->ctl, "supervisor", supervisor_serve_run, &params, &woken);
	if (r == 0 && woken.kind == SUPERVISOR_SERVE_RUN_BUSY)
		r = E_BUSY;
	return r < 0 ? r : woken.kind != SUPERVISOR_SERVE_RUN_ABSENT;
}

/* One look, which with ${until_end} may last as long as the run: 0 or an error; the address
 * that failed is in ${ret_who}. */
static int
look(struct follower *f, int until_end, const char **ret_who)
{
	int r = wake(f);

	*ret_who = "supervisor";
	if (r < 0)
		return r;
	*ret_who = r == 1 ? f->address : f->run->shard;
	if (r == 0)
		return ask_ledger(f);
	if (f->as_rows)
		return watch_rows(f, until_end);
	return until_end ? watch(f) : ask_run(f);
}

static int
follow(struct follower *f, int until_end)
{
	f->good = clock_mono();
	for (;;) {
		const char *who = "";
		int r = look(f, until_end, &who);
		/* Processes are restarted, and a run that has ended leaves. */
		int passing = err_retryable(r) || r == E_NOENT;

		if (r < 0 && (!passing || mono_diff_ms(f->good, clock_mono()) > PATIENCE_MS))
			return ctl_explain(f->ctl, who, r);
		if (r == 0)
			f->good = clock_mono();
		if (r == 0 && (!until_end || is_over(f->status)))
			return 0;
		client_forget(f->ctl->client);
		client_pause(f->ctl->client, FOLLOW_POLL_MS);
	}
}

static int
follow_as(struct ctl *ctl, const struct place *run, int until_end, int as_rows,
    enum run_status *ret_status)
{
	struct follower f = { .ctl = ctl,
		.run = run,
		.status = RUN_STATUS_QUEUED,
		.as_rows = as_rows,
		.next_seq = 1 };
	int r;

	(void)snprintf(f.address, sizeof(f.address), "run/%s", run->run_id);
	f.arena = arena_new();
	if (f.arena == NULL)
		return ctl_fail_nomem();
	client_on_event(ctl->client, on_event, &f);
	r = follow(&f, until_end);
	client_on_event(ctl->client, NULL, NULL);
	arena_free(f.arena);
	*ret_status = f.status;
	return r;
}

int
follow_log(struct ctl *ctl, const struct place *run, int until_end, enum run_status *ret_status)
{
	return follow_as(ctl, run, until_end, 0, ret_status);
}

int
follow_rows(
    struct ctl *ctl, const struct place *run, int until_end, enum run_status *ret_status)
{
	return follow_as(ctl, run, until_end, 1, ret_status);
}

/* ---- the end ---- */

static void
print_steps(const struct ctl *ctl, const struct run_get_detail_detail *d)
{
	static const char *const heads[] = { "STEP", "STATUS", ">TIME", ">EXIT" };
	CLEANUP(table_freep) struct table *t = table_new(heads, ARRAY_LEN(heads));

	for (size_t i = 0; t != NULL && i < d->nsteps; i++) {
		const struct step_row *s = &d->steps[i];
		int timed = s->has_started_at && s->has_finished_at;

		table_add(t, TONE_PLAIN, "%s", s->name);
		table_add_word(t, step_status_name(s->status));
		table_add_duration(t, timed ? s->finished_at - s->started_at : -1);
		if (s->has_exit_code)
			table_add(t, TONE_PLAIN, "%lld", (long long)s->exit_code);
		else
			table_add(t, TONE_PLAIN, "-");
	}
	if (d->nsteps > 0) {
		(void)printf("\n");
		(void)ctl_print_table(ctl, t, "");
	}
}

static void
print_outcome(const struct ctl *ctl, const struct run_get_detail_detail *d)
{
	const struct run_state *run = &d->run;
	char text[TEXT_SIZE];

	(void)printf("\n");
	ctl_print_tone(
	    ctl, text_tone(run_status_name(run->status)), run_status_name(run->status));
	if (run->has_started_at && run->has_finished_at) {
		text_duration(run->finished_at - run->started_at, text);
		(void)printf(" in %s", text);
	}
	(void)printf("  %s", run->id);
	if (run->commit_sha != NULL)
		(void)printf("  %.12s", run->commit_sha);
	(void)printf("\n");
	if (d->has_failure_code)
		(void)printf("%s: ", failure_code_name(d->failure_code));
	if (d->error_message != NULL)
		(void)printf("%s", d->error_message);
	if (d->has_failure_code || d->error_message != NULL)
		(void)printf("\n");
}

/* 0 or an error, unexplained. */
static int
try_outcome(struct follower *f, struct run_get_detail_result *ret)
{
	struct run_get_detail_params params = { .log_bytes = 0 };
	int r = wake(f);

	*ret = (struct run_get_detail_result) { .kind = 0 };
	if (r <= 0)
		return r < 0 ? r : E_NOENT;
	r = CTL_TRY(f->ctl, f->address, run_get_detail, &params, ret);
	/* The process that has ended the run goes about now. */
	return r == E_NOENT ? E_LINK : r;
}

int
follow_outcome(struct ctl *ctl, const struct place *run)
{
	struct follower f = { .ctl = ctl, .run = run };
	struct mono_time limit = mono_add_ms(clock_mono(), PATIENCE_MS);
	struct run_get_detail_result detail;
	int r;

	(void)snprintf(f.address, sizeof(f.address), "run/%s", run->run_id);
	while (err_retryable(r = try_outcome(&f, &detail)) &&
	    mono_diff_us(clock_mono(), limit) > 0)
		client_pause(ctl->client, FOLLOW_POLL_MS);
	if (r == E_NOENT)
		return resolve_wake(ctl, run->run_id, f.address); /* which says why */
	if (r < 0)
		return ctl_explain(ctl, f.address, r);
	if (ctl->json) {
		r = ctl_print_json(ctl, NULL);
	} else {
		print_steps(ctl, &detail.u.detail);
		print_outcome(ctl, &detail.u.detail);
	}
	if (r != 0)
		return r;
	return detail.u.detail.run.status == RUN_STATUS_PASSED ? CTL_OK : CTL_REFUSED;
}
