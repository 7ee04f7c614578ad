#include "cmd/anvilctl/follow.h"

#include <stdio.h>
#include <string.h>

#include "gen/project.h"
#include "gen/run.h"
#include "gen/supervisor.h"
#include "lib/base/ascii.h"
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
};

static int
is_over(enum run_status s)
{
	return s == RUN_STATUS_PASSED || s == RUN_STATUS_FAILED || s == RUN_STATUS_CANCELED;
}

/* ---- printing ---- */

/* `Step 2/3: name`, the headers that the run writes itself. */
static int
is_header(const char *p, size_t n)
{
	size_t i = 5;

	if (n < 10 || memcmp(p, "Step ", 5) != 0)
		return 0;
	while (i < n && (ascii_is_digit(p[i]) || p[i] == '/'))
		i++;
	return i > 5 && i < n && p[i] == ':';
}

static void
print_piece(struct follower *f, const char *p, size_t n)
{
	while (n > 0) {
		const char *end = memchr(p, '\n', n);
		size_t len = end != NULL ? (size_t)(end - p) : n;
		enum tone tone = !f->mid_line && is_header(p, len) ? TONE_STRONG : TONE_PLAIN;

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

/* ---- asking ---- */

/* The log from where we are to its present end.  0 or an error. */
static int
read_log(struct follower *f)
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
		if (piece.u.text.next_byte <= f->at)
			break;
		f->at = piece.u.text.next_byte;
		client_forget(f->ctl->client);
	} while (!piece.u.text.complete);
	(void)fflush(stdout);
	return 0;
}

/* State first, log after it: when the run was over then, the log is whole. */
static int
ask_run(struct follower *f)
{
	struct run_get_detail_params params = { .log_bytes = 0 };
	struct run_get_detail_result detail = { .kind = 0 };
	int r = CTL_TRY(f->ctl, f->address, run_get_detail, &params, &detail);

	if (r < 0)
		return r;
	f->status = detail.u.detail.run.status;
	return read_log(f);
}

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
	if (r < 0)
		return r;
	return woken.kind == SUPERVISOR_SERVE_RUN_LIVE ||
	    woken.kind == SUPERVISOR_SERVE_RUN_SERVING;
}

/* One look: 0 or an error; the address that failed is in ${ret_who}. */
static int
look(struct follower *f, const char **ret_who)
{
	int r = wake(f);

	*ret_who = "supervisor";
	if (r < 0)
		return r;
	*ret_who = r == 1 ? f->address : f->run->shard;
	return r == 1 ? ask_run(f) : ask_ledger(f);
}

int
follow_log(struct ctl *ctl, const struct place *run, int until_end, enum run_status *ret_status)
{
	struct follower f = { .ctl = ctl, .run = run, .status = RUN_STATUS_QUEUED };
	struct mono_time good = clock_mono();

	(void)snprintf(f.address, sizeof(f.address), "run/%s", run->run_id);
	for (;;) {
		const char *who = "";
		int r = look(&f, &who);
		/* Processes are restarted, and a run that has ended leaves. */
		int passing = err_retryable(r) || r == E_NOENT;

		if (r < 0 && (!passing || mono_diff_ms(good, clock_mono()) > PATIENCE_MS))
			return ctl_explain(ctl, who, r);
		if (r == 0)
			good = clock_mono();
		if (r == 0 && (!until_end || is_over(f.status)))
			break;
		client_forget(ctl->client);
		client_pause(ctl->client, FOLLOW_POLL_MS);
	}
	*ret_status = f.status;
	return 0;
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

int
follow_outcome(struct ctl *ctl, const struct place *run)
{
	struct run_get_detail_params params = { .log_bytes = 0 };
	struct run_get_detail_result detail = { .kind = 0 };
	char address[RPC_ADDRESS_SIZE];
	int r = resolve_wake(ctl, run->run_id, address);

	if (r == 0)
		r = CTL_CALL(ctl, address, run_get_detail, &params, &detail);
	if (r != 0)
		return r;
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
