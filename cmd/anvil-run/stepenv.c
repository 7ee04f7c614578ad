#include "cmd/anvil-run/stepenv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"

int
stepenv_make(struct arena *a, const struct stepenv *e, const char *env[STEPENV_MAX])
{
	const struct record_claim *c = e->claim;
	size_t n = 0;

	env[n++] = "CI=true";
	env[n++] = "ANVIL=true";
	env[n++] = arena_format(a, "ANVIL_RUN_ID=%s", c->run_id);
	env[n++] = arena_format(a, "ANVIL_PROJECT_ID=%s", c->project_id);
	env[n++] = arena_format(a, "ANVIL_PROJECT=%s/%s", c->owner_slug, c->project_slug);
	env[n++] = arena_format(a, "ANVIL_BRANCH=%s", c->branch);
	env[n++] = arena_format(a, "ANVIL_COMMIT_SHA=%s", e->commit_sha);
	env[n++] = arena_format(a, "ANVIL_TRIGGER=%s", trigger_type_name(c->trigger_type));
	env[n++] = arena_format(a, "ANVIL_STEP_NAME=%s", e->name);
	env[n++] = arena_format(a, "ANVIL_STEP_POSITION=%zu", e->position);
	env[n++] = arena_format(a, "HOME=%s", e->home);
	env[n++] = "USER=anvil";
	env[n++] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
	env[n++] = "LANG=C.UTF-8";
	env[n++] = arena_format(a, "TMPDIR=%s", e->tmp);
	for (size_t i = 0; i < n; i++)
		if (env[i] == NULL)
			return E_NOMEM;
	env[n] = NULL;
	must(n < STEPENV_MAX);
	return 0;
}

/* ---- ends ---- */

static void
fail_with(struct step_end *ret, int64_t code, int64_t signal)
{
	ret->code = FAILURE_CODE_STEP_FAILED;
	ret->exit = (struct record_exit) { { 1, code }, signal };
}

static void
judge_exit(const struct sandbox_result *res, const char *name, struct step_end *ret)
{
	ret->passed = res->code == 0;
	fail_with(ret, res->code, 0);
	if (!ret->passed)
		ret->message = mem_format(
		    "Step \"%s\" failed with exit code %d.", name, res->code);
}

static void
judge_signal(const struct sandbox_result *res, const char *name, struct step_end *ret)
{
	const char *abbrev = sigabbrev_np(res->code);

	fail_with(ret, 128 + res->code, res->code);
	ret->message = mem_format("Step \"%s\" failed with exit code %d (signal %d, %s%s).",
	    name, 128 + res->code, res->code, abbrev != NULL ? "SIG" : "unknown",
	    abbrev != NULL ? abbrev : "");
}

void
step_end_done(struct step_end *end)
{
	end->message = mem_free(end->message);
}

void
step_end_judge(const struct sandbox_result *res, const char *name, const char *dir,
    int64_t memory_bytes, struct step_end *ret)
{
	*ret = (struct step_end) { .passed = 0 };
	switch (res->end) {
	case SANDBOX_EXITED: judge_exit(res, name, ret); break;
	case SANDBOX_SIGNALED: judge_signal(res, name, ret); break;
	case SANDBOX_NO_DIRECTORY:
		fail_with(ret, 1, 0);
		/* Whole, for all its length: the store cuts what it has redacted. */
		ret->message = mem_format(
		    "Step \"%s\" could not start: working directory %s is gone.", name, dir);
		break;
	case SANDBOX_BROKEN:
		fail_with(ret, 1, 0);
		ret->code = FAILURE_CODE_SANDBOX_FAILED;
		ret->message = mem_format("Sandbox could not start: %s. %s",
		    res->problem.reason, res->problem.remedy);
		break;
	}
	if (!res->oom || ret->passed)
		return;
	ret->code = FAILURE_CODE_OUT_OF_MEMORY;
	free(ret->message);
	ret->message = mem_format(
	    "Step \"%s\" ran out of memory (limit %lld).", name, (long long)memory_bytes);
}

/* A process may call itself what it likes: what would break the line or colour it is not taken
 * over. */
static const char *
plain_name(const char *name, char out[SANDBOX_NAME_SIZE])
{
	size_t n = 0;

	for (; name[n] != '\0' && n + 1 < SANDBOX_NAME_SIZE; n++)
		out[n] = (unsigned char)name[n] < ' ' || name[n] == 0x7f ? '?' : name[n];
	out[n] = '\0';
	return out;
}

void
step_left_line(const struct sandbox_result *res, const char *name, char *out, size_t size)
{
	size_t named = min_size(res->nleft, SANDBOX_LEFT_MAX), at;
	char plain[SANDBOX_NAME_SIZE];
	int n = snprintf(out, size, "Killed %zu process%s left by step \"%s\":", res->nleft,
	    res->nleft == 1 ? "" : "es", name);

	for (size_t i = 0; i < named && n > 0; i++) {
		at = min_size(strlen(out), size - 1);
		n = snprintf(out + at, size - at, "%s %s (%d)", i == 0 ? "" : ",",
		    plain_name(res->left[i].name, plain), (int)res->left[i].pid);
	}
}
