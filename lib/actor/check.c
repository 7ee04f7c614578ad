/* lib/actor/check.c -- actor.check: reading on a worker, then a turn for the rest. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gen/actor.h"
#include "lib/actor/check.h"
#include "lib/actor/inside.h"
#include "lib/actor/worker.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/json_text.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

struct check {
	struct actor *actor;
	struct parked *caller; /* NULL: answered. */
	struct arena *arena;   /* Owned; of the problems. */
	const char *place;     /* In it; NULL: nothing to look at. */
	int fix;
	int64_t now_ms;
	int err; /* of the worker */
	struct store_problems found;
};

static struct check *
check_free(struct check *k)
{
	(void)arena_free(k->arena);
	return mem_free(k);
}

/* ---- on the worker ---- */

static void
look(void *arg)
{
	struct check *k = arg;
	const struct actor_desc *desc = k->actor->desc; /* constant */

	if (k->place == NULL)
		return;
	k->err = desc->checks != NULL && desc->checks->look != NULL
	    ? desc->checks->look(k->place, k->now_ms, &k->found)
	    : store_inspect(desc->store, k->place, NULL, NULL, k->now_ms, &k->found);
}

/* ---- on the loop ---- */

static int
mend_all(struct check *k, struct turn *t)
{
	const struct actor_check *checks = k->actor->desc->checks;
	int r = 0;

	for (size_t i = 0; i < k->found.n && r == 0; i++) {
		struct store_problem *p = &k->found.rows[i];

		if (!p->mendable || p->mended)
			continue;
		r = checks->mend(k->actor->ctx, t, p);
		if (r == 0 && p->mended)
			log_event(LOG_LEVEL_WARN, "problem_mended", LOG_STR("code", p->code),
			    LOG_STR("subject", p->subject), LOG_STR("problem", p->text));
	}
	return r;
}

static int
answer(struct check *k, struct turn *t)
{
	struct check_problem *rows = arena_calloc(t->arena, k->found.n, sizeof(*rows));
	struct actor_check_result result = { .nproblems = k->found.n };

	if (rows == NULL)
		return E_NOMEM;
	for (size_t i = 0; i < k->found.n; i++) {
		const struct store_problem *p = &k->found.rows[i];

		rows[i] = (struct check_problem) { .code = p->code,
			.subject = p->subject,
			.text = p->text,
			.mendable = p->mendable,
			.mended = p->mended };
	}
	result.problems = rows;
	result.left_out = (int64_t)k->found.left_out;
	parked_reply(k->caller, &result);
	k->caller = NULL;
	return 0;
}

static int
finish(void *arg, struct turn *t)
{
	struct check *k = arg;
	const struct actor_check *checks = k->actor->desc->checks;
	int r = 0;

	if (checks != NULL && checks->compare != NULL)
		r = checks->compare(k->actor->ctx, t, &k->found);
	if (r == 0 && k->fix && checks != NULL && checks->mend != NULL)
		r = mend_all(k, t);
	return r < 0 ? r : answer(k, t);
}

static void
on_looked(void *arg, int err)
{
	struct check *k = arg;
	int r = err < 0 ? err : k->err;

	if (r == 0)
		r = actor_turn(k->actor, k->fix, finish, k);
	/* The turn takes the caller when it has answered. */
	if (k->caller != NULL)
		parked_error(k->caller, r < 0 ? r : E_INTERNAL, NULL);
	(void)check_free(k);
}

/* ---- the method ---- */

static struct check *
check_new(struct actor *a, const struct turn *t, int fix)
{
	struct check *k = mem_calloc(1, sizeof(*k));
	const struct actor_check *checks = a->desc->checks;
	const char *place = checks != NULL && checks->place != NULL ? checks->place(a->ctx)
								    : a->store_path;

	if (k == NULL)
		return NULL;
	k->actor = a;
	k->fix = fix;
	k->now_ms = t->now_ms;
	k->arena = arena_new();
	k->found.arena = k->arena;
	if (k->arena != NULL && place != NULL)
		k->place = arena_strdup(k->arena, place);
	return k->arena != NULL && (place == NULL || k->place != NULL) ? k : check_free(k);
}

int
actor_check(struct actor *a, struct turn *t, const struct actor_check_params *params,
    struct actor_check_result *ret)
{
	struct check *k = check_new(a, t, params->fix);
	int r;

	(void)ret;
	if (k == NULL)
		return E_NOMEM;
	k->caller = turn_park(t);
	if (k->caller == NULL) {
		(void)check_free(k);
		return E_NOMEM;
	}
	r = actor_work(a, look, on_looked, k);
	if (r < 0) {
		parked_error(k->caller, r, NULL);
		(void)check_free(k);
	}
	return TURN_PARKED;
}

/* ---- without an actor ---- */

#define EXIT_LOCKED 75

static void
add_member(struct buf *out, const char *name, const char *text)
{
	buf_printf(out, "\"%s\":", name);
	json_text_string(out, text, strlen(text));
}

static void
print_problems(const struct actor_store_check *what, const struct store_problems *found)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;

	buf_printf(&out, "{\"store\":\"%s\",\"version\":\"%s\",\"ok\":%s,\"problems\":[",
	    what->store, base_version(), found->n == 0 ? "true" : "false");
	for (size_t i = 0; i < found->n; i++) {
		const struct store_problem *p = &found->rows[i];

		buf_add_str(&out, i > 0 ? ",{" : "{");
		add_member(&out, "code", p->code);
		buf_add_byte(&out, ',');
		add_member(&out, "subject", p->subject);
		buf_add_byte(&out, ',');
		add_member(&out, "text", p->text);
		buf_printf(&out, ",\"mendable\":%s}", p->mendable ? "true" : "false");
		(void)fprintf(
		    stderr, "%s: %s %s (%s)\n", what->program, p->subject, p->text, p->code);
	}
	buf_printf(&out, "]%s}", what->more);
	(void)printf("%s\n", buf_cstr(&out) != NULL ? (const char *)out.data : "{}");
}

static int
lock_store(const char *lock_path, int *ret_fd)
{
	int r = io_lock_file(AT_FDCWD, lock_path, ret_fd);

	/* A disk that is full, or may not be written, keeps nobody from reading. */
	return r == E_LOCKED ? r : 0;
}

int
actor_check_store(const struct actor_store_check *what)
{
	CLEANUP(arena_freep) struct arena *arena = arena_new();
	struct store_problems found = { .arena = arena };
	CLEANUP(io_closep) int lock = -1;
	int r = arena != NULL ? 0 : E_NOMEM;

	if (r == 0 && access(what->path, F_OK) == 0)
		r = lock_store(what->lock_path, &lock);
	if (r == 0)
		r = what->look(what->path, clock_wall_ms(), &found);
	if (r < 0) {
		(void)fprintf(stderr, "%s: %s: %s\n", what->program, what->path, err_text(r));
		return r == E_LOCKED ? EXIT_LOCKED : 1;
	}
	print_problems(what, &found);
	return found.n != 0;
}
