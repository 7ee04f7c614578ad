/* anvilctl keys rotate, anvilctl keys status: versions of the key, and what depends on them. */
#include <stdio.h>

#include "cmd/anvilctl/commands.h"
#include "cmd/anvilctl/ctl.h"
#include "cmd/anvilctl/keys_text.h"
#include "gen/ingress.h"
#include "gen/supervisor.h"

static int
rotate_run(struct ctl *ctl, const struct args *args)
{
	struct supervisor_rotate_keys_params params = { 0 };
	struct supervisor_rotate_keys_result done = { .kind = 0 };
	int r = ctl_open(ctl);

	(void)args;
	if (r == 0)
		r = CTL_CALL(ctl, "supervisor", supervisor_rotate_keys, &params, &done);
	if (r != 0)
		return r;
	if (done.kind == SUPERVISOR_ROTATE_KEYS_REFUSED)
		return ctl_fail("the key was not rotated: %s", done.u.refused.message);
	if (ctl->json)
		return ctl_print_json(ctl, NULL);
	(void)printf("version %lld of the key is current; secrets are sealed anew under it, "
		     "`anvilctl keys status` tells how far that is\n",
	    (long long)done.u.rotated.version);
	return 0;
}

static int
print_status(const struct ctl *ctl, const struct ingress_keys_status_status *s)
{
	static const char *const heads[] = { ">VERSION", "KEY", ">SECRETS" };
	CLEANUP(table_freep) struct table *t = table_new(heads, ARRAY_LEN(heads));
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	int r;

	if (t == NULL || keys_text(s, &text) < 0)
		return ctl_fail_nomem();
	for (size_t i = 0; i < s->nversions; i++) {
		const struct key_version *v = &s->versions[i];

		table_add(t, TONE_PLAIN, "%lld", (long long)v->version);
		if (!v->present)
			table_add(t, TONE_BAD, "missing");
		else if (s->has_current && v->version == s->current)
			table_add(t, TONE_GOOD, "current");
		else
			table_add(t, TONE_PLAIN, "present");
		table_add(t, TONE_PLAIN, "%lld", (long long)v->secrets);
	}
	r = ctl_print_table(ctl, t, "there is no key and no secret");
	if (r == 0)
		(void)fputs(buf_cstr(&text), stdout);
	return r;
}

static int
status_run(struct ctl *ctl, const struct args *args)
{
	struct ingress_keys_status_params params = { 0 };
	struct ingress_keys_status_result res = { .kind = 0 };
	int r = ctl_open(ctl);

	(void)args;
	if (r == 0)
		r = CTL_CALL(ctl, "ingress", ingress_keys_status, &params, &res);
	if (r != 0)
		return r;
	r = ctl->json ? ctl_print_json(ctl, NULL) : print_status(ctl, &res.u.status);
	return r == 0 && res.u.status.failed > 0 ? CTL_REFUSED : r;
}

const struct command command_keys_rotate = {
	.name = "keys rotate",
	.words = "",
	.summary = "adds a version of the key and seals all secrets anew under it",
	.more =
	    "The keys file has it before this ends; the secrets follow in the background, while\n"
	    "everything goes on.  Older versions stay in the file until you remove them.",
	.run = rotate_run,
};

const struct command command_keys_status = {
	.name = "keys status",
	.words = "",
	.summary = "tells which versions of the key are there, and what depends on them",
	.more =
	    "Says which versions may be removed from the keys file, and what a removed one has\n"
	    "left behind.  Exits with 1 when some secret cannot be opened.",
	.run = status_run,
};
