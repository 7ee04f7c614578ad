/* anvilctl webhook ...: which forges may start runs of a project.  Secrets come from a prompt
 * or standard input, never from the command line, and new ones are told once. */
#include <stdio.h>

#include "cmd/anvilctl/commands.h"
#include "cmd/anvilctl/forge.h"
#include "cmd/anvilctl/resolve.h"
#include "cmd/anvilctl/secret.h"
#include "gen/ingress.h"
#include "gen/project.h"

/* The project and the forge that the words name. */
struct hook_place {
	struct place where;
	enum provider provider;
};

static int
find_place(struct ctl *ctl, const struct args *args, struct hook_place *ret)
{
	int r = forge_parse(args->words[1], &ret->provider);

	return r != 0 ? r : resolve_project(ctl, args->words[0], &ret->where);
}

static int
say_refused(const struct hook_place *p, const char *message)
{
	return ctl_fail(
	    "webhook of %s, %s: %s", p->where.name, provider_name(p->provider), message);
}

static int
say_gone(const struct place *where)
{
	return ctl_fail("there is no project %s any more", where->name);
}

static int
ask_list(struct ctl *ctl, const struct place *at, const enum provider *provider,
    struct webhook_list_result *ret)
{
	struct place where = *at;
	struct webhook_list_params params = { .project_id = where.project_id,
		.has_provider = provider != NULL,
		.provider = provider != NULL ? *provider : PROVIDER_GITHUB };
	int r = PLACE_CALL(ctl, &where, webhook_list, WEBHOOK_LIST, &params, ret);

	if (r == 0 && ret->kind != WEBHOOK_LIST_LIST)
		return ctl_fail("%s does not have %s now; try again", where.shard, where.name);
	return r;
}

/* ---- set ---- */

/* Without an option a new webhook is on, and another stays as it is. */
static int
find_enabled(
    struct ctl *ctl, const struct args *args, const struct hook_place *p, int *ret_enabled)
{
	struct webhook_list_result list = { .kind = 0 };
	int r;

	*ret_enabled = args_value(args, "--disable") == NULL;
	if (args_value(args, "--enable") != NULL || args_value(args, "--disable") != NULL)
		return 0;
	r = ask_list(ctl, &p->where, &p->provider, &list);
	if (r == 0 && list.u.list.nwebhooks > 0)
		*ret_enabled = list.u.list.webhooks[0].webhook.enabled;
	return r;
}

static void
print_webhook(const struct hook_place *p, const struct webhook_row *w, const char *done)
{
	(void)printf("webhook of %s for %s: %s, %s", p->where.name, forge_name(p->provider),
	    done, w->enabled ? "enabled" : "disabled");
	if (w->config != NULL)
		(void)printf(", %s", w->config->instance_url);
	(void)printf("\n");
}

static int
print_put(const struct ctl *ctl, const struct hook_place *p,
    const struct ingress_set_webhook_result *done)
{
	const struct ingress_set_webhook_created *made = &done->u.created;

	if (done->kind == INGRESS_SET_WEBHOOK_REFUSED)
		return say_refused(p, done->u.refused.message);
	if (done->kind == INGRESS_SET_WEBHOOK_NOT_FOUND)
		return say_gone(&p->where);
	if (ctl->json)
		return ctl_print_json(ctl, NULL);
	if (done->kind == INGRESS_SET_WEBHOOK_UPDATED) {
		print_webhook(p, &done->u.updated.webhook, "changed");
		(void)printf("It delivers to %s\n", done->u.updated.delivery_url);
		return CTL_OK;
	}
	print_webhook(p, &made->webhook, "made");
	forge_tell_form(stdout, p->provider, made->delivery_url, made->generated_secret);
	if (made->generated_secret != NULL)
		(void)printf("The secret is told here only.\n");
	return CTL_OK;
}

static int
set_run(struct ctl *ctl, const struct args *args)
{
	CLEANUP(buf_wipe) struct buf secret = BUF_INIT;
	struct ingress_set_webhook_params params = { .instance_url = args_value(
							 args, "--instance-url") };
	struct ingress_set_webhook_result done = { .kind = 0 };
	struct hook_place p;
	int r;

	if (args_value(args, "--enable") != NULL && args_value(args, "--disable") != NULL) {
		(void)ctl_fail("--enable and --disable exclude each other");
		return CTL_USAGE;
	}
	r = find_place(ctl, args, &p);
	if (r == 0)
		r = find_enabled(ctl, args, &p, &params.enabled);
	if (r == 0 && args_value(args, "--secret-stdin") != NULL)
		r = secret_read("Secret of the webhook", 0, &secret);
	if (r != 0)
		return r;
	params.project_id = p.where.project_id;
	params.provider = p.provider;
	params.has_instance_url = params.instance_url != NULL;
	params.secret = (const char *)secret.data;
	params.has_secret = params.secret != NULL;
	r = CTL_CALL(ctl, "ingress", ingress_set_webhook, &params, &done);
	return r != 0 ? r : print_put(ctl, &p, &done);
}

static const struct option_row set_options[] = {
	{ "--enable", 0, NULL, "let it start runs; a new one does" },
	{ "--disable", 0, NULL, "keep it, but refuse what it delivers" },
	{ "--instance-url", 0, "URL", "where the forge is, when it is not the public one" },
	{ "--secret-stdin", 0, NULL, "read the secret of a new one (prompt or input)" },
};

const struct command command_webhook_set = {
	.name = "webhook set",
	.words = "PROJECT PROVIDER",
	.summary = "makes a webhook, or changes it",
	.more =
	    "PROVIDER is github, gitlab or gitea; gitea needs --instance-url.  What has to be\n"
	    "entered in the forge is printed when it is made.  Without --secret-stdin a secret\n"
	    "is made and told this once.  The secret of one that exists is changed by\n"
	    "`anvilctl webhook rotate`.",
	.min_words = 2,
	.max_words = 2,
	.options = set_options,
	.noptions = ARRAY_LEN(set_options),
	.run = set_run,
};

/* ---- rotate ---- */

static int
rotate_run(struct ctl *ctl, const struct args *args)
{
	struct ingress_rotate_webhook_params params;
	struct ingress_rotate_webhook_result done = { .kind = 0 };
	struct hook_place p;
	int r = find_place(ctl, args, &p);

	if (r != 0)
		return r;
	params = (struct ingress_rotate_webhook_params) { .project_id = p.where.project_id,
		.provider = p.provider };
	r = CTL_CALL(ctl, "ingress", ingress_rotate_webhook, &params, &done);
	if (r != 0)
		return r;
	if (done.kind == INGRESS_ROTATE_WEBHOOK_REFUSED)
		return say_refused(&p, done.u.refused.message);
	if (done.kind != INGRESS_ROTATE_WEBHOOK_ROTATED)
		return say_gone(&p.where);
	if (ctl->json)
		return ctl_print_json(ctl, NULL);
	forge_tell_secret(stdout, p.provider, done.u.rotated.secret);
	(void)printf("The secret is told here only.\n");
	return CTL_OK;
}

const struct command command_webhook_rotate = {
	.name = "webhook rotate",
	.words = "PROJECT PROVIDER",
	.summary = "replaces the secret and prints the new one, this once",
	.more = "From then on the old secret verifies nothing.",
	.min_words = 2,
	.max_words = 2,
	.run = rotate_run,
};

/* ---- rm ---- */

static int
rm_run(struct ctl *ctl, const struct args *args)
{
	struct ingress_delete_webhook_params params;
	struct ingress_delete_webhook_result done = { .kind = 0 };
	struct hook_place p;
	int r = find_place(ctl, args, &p);

	if (r != 0)
		return r;
	params = (struct ingress_delete_webhook_params) { .project_id = p.where.project_id,
		.provider = p.provider };
	r = CTL_CALL(ctl, "ingress", ingress_delete_webhook, &params, &done);
	if (r != 0)
		return r;
	if (done.kind == INGRESS_DELETE_WEBHOOK_REFUSED)
		return say_refused(&p, done.u.refused.message);
	if (done.kind != INGRESS_DELETE_WEBHOOK_DELETED)
		return say_gone(&p.where);
	if (ctl->json)
		return ctl_print_json(ctl, NULL);
	(void)printf("webhook of %s for %s: removed, with its secret\n", p.where.name,
	    forge_name(p.provider));
	return CTL_OK;
}

const struct command command_webhook_rm = {
	.name = "webhook rm",
	.words = "PROJECT PROVIDER",
	.summary = "removes a webhook and its secret",
	.more = "Deliveries that were recorded stay, and are still recognised when they are\n"
		"repeated to a webhook that is made later.",
	.min_words = 2,
	.max_words = 2,
	.run = rm_run,
};

/* ---- list ---- */

static void
add_webhook(struct table *t, const struct webhook_entry *e)
{
	const struct webhook_row *w = &e->webhook;

	table_add(t, TONE_PLAIN, "%s", provider_name(w->provider));
	table_add(t, w->enabled ? TONE_GOOD : TONE_DIM, "%s", w->enabled ? "on" : "off");
	table_add(t, TONE_PLAIN, "%s", w->config != NULL ? w->config->instance_url : "-");
	table_add_time(t, w->updated_at);
	table_add_time(t, e->ndeliveries > 0 ? e->deliveries[0].received_at : -1);
	table_add(t, TONE_PLAIN, "%s",
	    e->ndeliveries > 0 ? outcome_name(e->deliveries[0].outcome) : "-");
	table_add_time(t, e->nrefusals > 0 ? e->refusals[0].at : -1);
	table_add(t, TONE_PLAIN, "%s", w->webhook_id);
}

static int
list_run(struct ctl *ctl, const struct args *args)
{
	static const char *const heads[] = { "PROVIDER", "STATE", "INSTANCE", "CHANGED",
		"LAST DELIVERY", "OUTCOME", "LAST REFUSED", "ID" };
	CLEANUP(table_freep) struct table *t = table_new(heads, ARRAY_LEN(heads));
	struct webhook_list_result list = { .kind = 0 };
	struct place where;
	int r = resolve_project(ctl, args->words[0], &where);

	if (r == 0)
		r = ask_list(ctl, &where, NULL, &list);
	if (r != 0 || ctl->json)
		return r != 0 ? r : ctl_print_member(ctl, "webhooks");
	for (size_t i = 0; t != NULL && i < list.u.list.nwebhooks; i++)
		add_webhook(t, &list.u.list.webhooks[i]);
	return ctl_print_table(
	    ctl, t, "no webhooks; `anvilctl webhook set PROJECT PROVIDER` makes one");
}

const struct command command_webhook_list = {
	.name = "webhook list",
	.words = "PROJECT",
	.summary = "lists the webhooks of a project",
	.min_words = 1,
	.max_words = 1,
	.run = list_run,
};
