/* anvilctl reindex: fills the index of projects and runs anew from the shards. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd/anvilctl/commands.h"
#include "cmd/anvilctl/ctl.h"
#include "cmd/anvilctl/text.h"
#include "gen/ingress.h"
#include "lib/base/base.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/id.h"

#define LOOK_MS 150   /* between two looks                              */
#define GONE_MS 30000 /* ingress may be away so long; it goes on then */

static void
pause_ms(long ms)
{
	const struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	(void)nanosleep(&t, NULL);
}

/* ---- what it shows meanwhile ---- */

/* One line of a terminal, written over and over; nothing elsewhere. */
static void
show_progress(const struct index_status_state *s)
{
	if (!isatty(STDERR_FILENO))
		return;
	(void)fprintf(stderr, "\r\033[K%lld of %lld shards read, %lld projects, %lld runs",
	    (long long)s->shards_read, (long long)s->shards, (long long)s->projects,
	    (long long)s->runs);
	for (size_t i = 0; i < s->nwaiting_for; i++)
		(void)fprintf(stderr, "%sproject/%lld", i == 0 ? "; waits for " : ", ",
		    (long long)s->waiting_for[i]);
	(void)fflush(stderr);
}

static void
end_progress(void)
{
	if (isatty(STDERR_FILENO))
		(void)fputs("\r\033[K", stderr);
}

/* ---- the job ---- */

static int
begin(struct ctl *ctl, char job_id[ID_HEX32_SIZE])
{
	struct index_rebuild_params params = { 0 };
	struct index_rebuild_result res = { .kind = 0 };
	int r = CTL_CALL(ctl, "ingress", index_rebuild, &params, &res);

	if (r != 0)
		return r;
	if (res.kind == INDEX_REBUILD_RUNNING && !ctl->json)
		(void)fprintf(stderr, "a rebuild is going on already; this waits for it\n");
	(void)snprintf(job_id, ID_HEX32_SIZE, "%s",
	    res.kind == INDEX_REBUILD_RUNNING ? res.u.running.job_id : res.u.started.job_id);
	return 0;
}

/* Looks until the job has ended; its end is in ${ret}, and in the reply of ${ctl}. */
static int
follow(struct ctl *ctl, const char *job_id, struct index_status_result *ret)
{
	struct index_status_params params = { 0 };
	struct mono_time seen = clock_mono();
	int r;

	for (;;) {
		*ret = (struct index_status_result) { .kind = 0 };
		r = CTL_TRY(ctl, "ingress", index_status, &params, ret);
		if (r == 0) {
			const struct index_status_state *s = &ret->u.state;

			seen = clock_mono();
			/* Another job has begun since: ours has ended before. */
			if (!s->running || s->job_id == NULL || strcmp(s->job_id, job_id) != 0)
				break;
			show_progress(s);
		} else if (!err_retryable(r) || mono_diff_ms(seen, clock_mono()) > GONE_MS) {
			break;
		}
		pause_ms(LOOK_MS);
	}
	end_progress();
	return ctl_explain(ctl, "ingress", r);
}

static void
print_end(const struct index_status_state *s)
{
	char took[TEXT_SIZE];

	text_duration(s->finished_at - s->started_at, took);
	(void)printf("the index has %lld %s and %lld %s of %lld %s; it took %s\n",
	    (long long)s->projects, s->projects == 1 ? "project" : "projects",
	    (long long)s->runs, s->runs == 1 ? "run" : "runs", (long long)s->shards,
	    s->shards == 1 ? "shard" : "shards", took);
	if (s->removed > 0)
		(void)printf("%lld %s that no shard knows %s removed from it\n",
		    (long long)s->removed, s->removed == 1 ? "project" : "projects",
		    s->removed == 1 ? "was" : "were");
	if (s->owners_missing > 0)
		(void)printf("the owners of %lld %s are not among the users: accounts are in "
			     "ingress.db alone; `anvilctl check` names the projects, and "
			     "`anvilctl project give` gives them to a user\n",
		    (long long)s->owners_missing,
		    s->owners_missing == 1 ? "project" : "projects");
}

static int
reindex_run(struct ctl *ctl, const struct args *args)
{
	struct index_status_result res = { .kind = 0 };
	char job_id[ID_HEX32_SIZE];
	int r = ctl_open(ctl);

	if (r == 0)
		r = begin(ctl, job_id);
	if (r != 0)
		return r;
	if (args_value(args, "--no-wait") != NULL) {
		if (ctl->json)
			return ctl_print_json(ctl, NULL);
		(void)printf("the index is being filled; `anvilctl inspect ingress` tells when "
			     "that has ended\n");
		return 0;
	}
	r = follow(ctl, job_id, &res);
	if (r != 0)
		return r;
	if (ctl->json)
		return ctl_print_json(ctl, NULL);
	print_end(&res.u.state);
	return 0;
}

static const struct option_row options[] = {
	{ "--no-wait", 0, NULL, "begins it and ends at once" },
};

const struct command command_reindex = {
	.name = "reindex",
	.words = "",
	.summary = "fills the index of projects and runs anew from the shards",
	.more =
	    "Nothing stands still meanwhile, and nothing is taken away but projects that no shard\n"
	    "knows.  It goes on when it is left alone, also after a restart; a shard that is away\n"
	    "keeps it from ending.  The index repairs itself like this when its store is new or\n"
	    "was restored, so that this is for one that somebody has damaged.",
	.options = options,
	.noptions = ARRAY_LEN(options),
	.run = reindex_run,
};
