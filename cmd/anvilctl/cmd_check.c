/* anvilctl check: is everything that stores, processes and files say true and the same? */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/anvilctl/check.h"
#include "cmd/anvilctl/commands.h"
#include "lib/base/err.h"

#define LOOK_AGAIN_MS 500
#define LOOK_SOON_MS  150

/* ---- looking ---- */

static void
say_waiting(const struct ctl *ctl, const struct findings *f, int64_t wait)
{
	const struct finding *x;
	size_t n = 0;

	if (!ctl->color)
		return;
	for (size_t at = 0; (x = findings_next(f, &at)) != NULL;)
		n++;
	(void)fprintf(stderr, "\rlooking again at %zu things that may be on their way, %lld s ",
	    n, (long long)(wait + 999) / 1000);
}

/* Files after the ledgers: what is made meanwhile is known to them by the next look. */
static int
look_once(struct ctl *ctl, struct findings *f, const struct records *records)
{
	struct look l = { .ctl = ctl, .found = f, .records = records };
	int r = look_gather(&l);

	if (r == 0) {
		look_compare(&l);
		look_records(&l);
		look_files(&l);
		look_keys(&l);
		look_actors(&l);
	}
	look_done(&l);
	client_forget(ctl->client);
	if (r == 0 && f->failed)
		r = ctl_fail_nomem();
	return r;
}

/* Until everything that is left has been so for long enough. */
static int
look_until_still(struct ctl *ctl, struct findings *f)
{
	struct records records = { .total = 0 };
	int64_t wait, pause = LOOK_SOON_MS;
	int r = records_read(&records, ctl);

	if (r == 0)
		r = look_once(ctl, f, &records);
	while (r == 0 && (wait = findings_wait_ms(f)) > 0) {
		say_waiting(ctl, f, wait);
		client_pause(ctl->client, min_i64(wait, pause));
		pause = min_i64(2 * pause, LOOK_AGAIN_MS);
		/* A record may have got its end since. */
		if (findings_have(f, "record_") || findings_have(f, "log_"))
			r = records_read(&records, ctl);
		findings_next_look(f);
		if (r == 0)
			r = look_once(ctl, f, &records);
	}
	if (ctl->color)
		(void)fprintf(stderr, "\r\033[K");
	records_done(&records);
	return r;
}

/* ---- telling ---- */

static int
compare_findings(const void *a, const void *b)
{
	const struct finding *x = *(const struct finding *const *)a;
	const struct finding *y = *(const struct finding *const *)b;
	int r = strcmp(x->code, y->code);

	if (r == 0)
		r = strcmp(x->place, y->place);
	return r != 0 ? r : strcmp(x->subject, y->subject);
}

static const struct finding **
sorted(struct findings *f, size_t *ret_n)
{
	const struct finding **rows = arena_calloc(
	    f->arena, map_count(f->by_key) + 1, sizeof(*rows));
	const struct finding *x;

	*ret_n = 0;
	for (size_t at = 0; rows != NULL && (x = findings_next(f, &at)) != NULL;)
		rows[(*ret_n)++] = x;
	if (rows != NULL)
		qsort(rows, *ret_n, sizeof(struct finding *), compare_findings);
	return rows;
}

static const char *
remedy_of(const struct finding *x)
{
	if (x->mended)
		return "mended";
	if (!x->mendable)
		return "-";
	return x->kind->remedy != NULL ? x->kind->remedy : "mends it";
}

static int
is_sound(const struct finding *const *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!rows[i]->kind->note && !rows[i]->mended)
			return 0;
	return 1;
}

static int
tell_json(const struct ctl *ctl, const struct finding *const *rows, size_t n, size_t left_out)
{
	CLEANUP(json_unrefp) json_t *list = json_array();
	CLEANUP(json_unrefp) json_t *all = NULL;
	int r = list == NULL;

	for (size_t i = 0; r == 0 && i < n; i++)
		r = json_array_append_new(list,
		    json_pack("{s:s, s:s, s:s, s:s, s:b, s:b, s:s*}", "code", rows[i]->code,
			"place", rows[i]->place, "subject", rows[i]->subject, "text",
			rows[i]->text, "mendable", rows[i]->mendable, "mended", rows[i]->mended,
			"remedy", rows[i]->kind->remedy));
	if (r == 0)
		all = json_pack("{s:b, s:O, s:I}", "ok", is_sound(rows, n), "problems", list,
		    "leftOut", (json_int_t)left_out);
	return all != NULL ? ctl_print_json(ctl, all) : ctl_fail_nomem();
}

static int
tell_table(const struct ctl *ctl, const struct finding *const *rows, size_t n, size_t left_out)
{
	static const char *const heads[] = { "CODE", "PLACE", "THING", "PROBLEM", "--FIX" };
	CLEANUP(table_freep) struct table *t = table_new(heads, ARRAY_LEN(heads));
	int r;

	for (size_t i = 0; t != NULL && i < n; i++) {
		table_add(t, TONE_BAD, "%s", rows[i]->code);
		table_add(t, TONE_PLAIN, "%s", rows[i]->place);
		table_add(t, TONE_PLAIN, "%s", rows[i]->subject);
		table_add(t, TONE_PLAIN, "%s", rows[i]->text);
		table_add(
		    t, rows[i]->mended ? TONE_GOOD : TONE_PLAIN, "%s", remedy_of(rows[i]));
	}
	r = ctl_print_table(ctl, t, "nothing is wrong");
	if (left_out > 0)
		(void)printf(
		    "... and %zu more of these, which an actor did not list\n", left_out);
	return r;
}

static int
tell(const struct ctl *ctl, struct findings *f)
{
	const struct finding **rows;
	size_t n;
	int r;

	rows = sorted(f, &n);
	if (rows == NULL)
		return ctl_fail_nomem();
	r = ctl->json ? tell_json(ctl, rows, n, f->left_out)
		      : tell_table(ctl, rows, n, f->left_out);
	for (size_t i = 0; i < n && r != CTL_UNREACHABLE; i++) {
		if (strcmp(rows[i]->code, "actor_unreachable") == 0)
			r = CTL_UNREACHABLE;
		else if (!rows[i]->kind->note && !rows[i]->mended)
			r = CTL_REFUSED;
	}
	return r;
}

/* What the first looks have found and the last has not is mended. */
static void
keep_mended(struct findings *now, const struct findings *before)
{
	const struct finding *x;

	for (size_t at = 0; (x = findings_next(before, &at)) != NULL;)
		if (x->mendable)
			finding_add_mended(now, x);
}

static int
check_and_fix(struct ctl *ctl, struct findings *before, struct findings *after)
{
	int r = findings_init(after) < 0 ? ctl_fail_nomem() : check_mend(ctl, before);

	client_forget(ctl->client);
	if (r == 0)
		r = look_until_still(ctl, after);
	if (r == 0)
		keep_mended(after, before);
	return r;
}

static int
check_run(struct ctl *ctl, const struct args *args)
{
	struct findings before, after = { .look = 0 };
	int down = 0, fix = args_value(args, "--fix") != NULL;
	int r = findings_init(&before);

	r = r < 0 ? ctl_fail_nomem() : check_down(ctl, &before, &down);
	if (r == 0 && !down)
		r = ctl_open(ctl);
	if (r == 0 && !down)
		r = look_until_still(ctl, &before);
	/* Nobody mends another's store. */
	fix = fix && !down && findings_have(&before, "");
	if (r == 0 && fix)
		r = check_and_fix(ctl, &before, &after);
	if (r == 0)
		r = tell(ctl, fix ? &after : &before);
	findings_done(&before);
	findings_done(&after);
	return r;
}

static const struct option_row options[] = {
	{ "--fix", 0, NULL, "has their owners mend what is safe" },
};

const struct command command_check = {
	.name = "check",
	.words = "",
	.summary = "looks for what is wrong in stores, and between them, processes and files",
	.more =
	    "What is found between two of them counts when it stays so for longer than it takes\n"
	    "to come right by itself, some seconds.  Without --fix nothing is changed, and the\n"
	    "last column says what --fix would do.  The codes are in anvilctl(1).\n"
	    "Exit status: 0 nothing is wrong (any more), 1 something is, 3 not all could be\n"
	    "reached.",
	.options = options,
	.noptions = ARRAY_LEN(options),
	.run = check_run,
};
