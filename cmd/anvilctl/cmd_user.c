/* anvilctl user ...: accounts, without a browser.  Passwords come from a prompt or standard
 * input, never from the command line, where others could read them. */
#include <stdio.h>

#include "cmd/anvilctl/commands.h"
#include "cmd/anvilctl/ctl.h"
#include "cmd/anvilctl/secret.h"
#include "gen/ingress.h"

#define INVITE_HOURS     168
#define INVITE_HOURS_MAX 720

#define PASSWORD_HELP                                                                      \
	"The password (8 to 1,024 bytes) is asked for, or is the first line of standard\n" \
	"input when that is no terminal."

static int
print_user(const struct ctl *ctl, const struct user_row *u, const char *done)
{
	if (ctl->json)
		return ctl_print_member(ctl, "user");
	(void)printf("%s %s (%s) %s\n", u->slug, u->email, u->user_id, done);
	return CTL_OK;
}

static int
say_unknown(const char *user)
{
	return ctl_fail("there is no user \"%s\"; `anvilctl user list` shows them", user);
}

/* ---- bootstrap ---- */

/* An account that is made anew does not have the projects of the one that is lost. */
static int
print_made(struct ctl *ctl, const struct user_row *u)
{
	struct index_status_params params = { 0 };
	struct index_status_result res = { .kind = 0 };
	int r = print_user(ctl, u, "can log in");

	if (r == 0 && CTL_TRY(ctl, "ingress", index_status, &params, &res) == 0 &&
	    res.u.state.owners_missing > 0)
		(void)fprintf(stderr,
		    "%lld of the projects belong to no account: `anvilctl project give` gives "
		    "them to one\n",
		    (long long)res.u.state.owners_missing);
	return r;
}

static int
bootstrap_run(struct ctl *ctl, const struct args *args)
{
	CLEANUP(buf_wipe) struct buf password = BUF_INIT;
	const char *name = args_value(args, "--name");
	struct user_bootstrap_params params = { .slug = args->words[0],
		.email = args->words[1],
		.display_name = name != NULL ? name : args->words[0] };
	struct user_bootstrap_result done = { .kind = 0 };
	int r = ctl_open(ctl);

	if (r == 0)
		r = secret_read("Password", 1, &password);
	if (r != 0)
		return r;
	params.password = (const char *)password.data;
	r = CTL_CALL(ctl, "ingress", user_bootstrap, &params, &done);
	if (r != 0)
		return r;
	switch (done.kind) {
	case USER_BOOTSTRAP_CREATED: return print_made(ctl, &done.u.created.user);
	case USER_BOOTSTRAP_EMAIL_TAKEN:
		return ctl_fail("a user with the address %s exists already", params.email);
	default:
		return ctl_fail(
		    "a user \"%s\" exists already; choose another slug", params.slug);
	}
}

static const struct option_row bootstrap_options[] = {
	{ "--name", 'n', "NAME", "as others see it; the slug when not given" },
};

const struct command command_user_bootstrap = {
	.name = "user bootstrap",
	.words = "SLUG EMAIL",
	.summary = "makes a user with a password, without an invite",
	.more = "The slug stands in names of projects: slug/project.\n" PASSWORD_HELP,
	.min_words = 2,
	.max_words = 2,
	.options = bootstrap_options,
	.noptions = ARRAY_LEN(bootstrap_options),
	.run = bootstrap_run,
};

/* ---- invite ---- */

static int
invite_run(struct ctl *ctl, const struct args *args)
{
	struct user_invite_params params = { .expires_in_hours = INVITE_HOURS };
	struct user_invite_result done = { .kind = 0 };
	const char *hours = args_value(args, "--hours");
	char until[TEXT_SIZE];
	long n = INVITE_HOURS;
	int r;

	if (hours != NULL && args_number(hours, 1, INVITE_HOURS_MAX, &n) < 0) {
		(void)ctl_fail("--hours: a number from 1 to %d", INVITE_HOURS_MAX);
		return CTL_USAGE;
	}
	params.expires_in_hours = n;
	r = ctl_open(ctl);
	if (r == 0)
		r = CTL_CALL(ctl, "ingress", user_invite, &params, &done);
	if (r != 0 || ctl->json)
		return r != 0 ? r : ctl_print_json(ctl, NULL);
	text_time(done.u.invited.expires_at, until);
	(void)printf("%s\n", done.u.invited.token);
	(void)fprintf(stderr, "good once, until %s UTC; it is told here only\n", until);
	return CTL_OK;
}

static const struct option_row invite_options[] = {
	{ "--hours", 'n', "N", "how long it is good; 168 when not given, at most 720" },
};

const struct command command_user_invite = {
	.name = "user invite",
	.words = "",
	.summary = "makes an invite and prints its token",
	.options = invite_options,
	.noptions = ARRAY_LEN(invite_options),
	.run = invite_run,
};

/* ---- list ---- */

static int
list_run(struct ctl *ctl, const struct args *args)
{
	static const char *const heads[] = { "SLUG", "EMAIL", "NAME", "ID", "CREATED",
		"DISABLED" };
	CLEANUP(table_freep) struct table *t = table_new(heads, ARRAY_LEN(heads));
	struct user_list_params params = { 0 };
	struct user_list_result list = { .kind = 0 };
	int r = ctl_open(ctl);

	(void)args;
	if (r == 0)
		r = CTL_CALL(ctl, "ingress", user_list, &params, &list);
	if (r != 0 || ctl->json)
		return r != 0 ? r : ctl_print_member(ctl, "users");
	for (size_t i = 0; t != NULL && i < list.u.users.nusers; i++) {
		const struct user_row *u = &list.u.users.users[i];

		table_add(t, u->has_disabled_at ? TONE_DIM : TONE_PLAIN, "%s", u->slug);
		table_add(t, TONE_PLAIN, "%s", u->email);
		table_add(t, TONE_PLAIN, "%s", u->display_name);
		table_add(t, TONE_PLAIN, "%s", u->user_id);
		table_add_time(t, u->created_at);
		table_add_time(t, u->has_disabled_at ? u->disabled_at : -1);
	}
	return ctl_print_table(
	    ctl, t, "no users; `anvilctl user bootstrap SLUG EMAIL` makes the first");
}

const struct command command_user_list = {
	.name = "user list",
	.words = "",
	.summary = "lists all users",
	.run = list_run,
};

/* ---- disable, enable, reset-password ---- */

static int
disable_run(struct ctl *ctl, const struct args *args)
{
	struct user_disable_params params = { .user = args->words[0] };
	struct user_disable_result done = { .kind = 0 };
	int r = ctl_open(ctl);

	if (r == 0)
		r = CTL_CALL(ctl, "ingress", user_disable, &params, &done);
	if (r != 0)
		return r;
	if (done.kind != USER_DISABLE_OK)
		return say_unknown(params.user);
	return print_user(ctl, &done.u.ok.user, "is disabled");
}

static int
enable_run(struct ctl *ctl, const struct args *args)
{
	struct user_enable_params params = { .user = args->words[0] };
	struct user_enable_result done = { .kind = 0 };
	int r = ctl_open(ctl);

	if (r == 0)
		r = CTL_CALL(ctl, "ingress", user_enable, &params, &done);
	if (r != 0)
		return r;
	if (done.kind != USER_ENABLE_OK)
		return say_unknown(params.user);
	return print_user(ctl, &done.u.ok.user, "is enabled");
}

static int
reset_password_run(struct ctl *ctl, const struct args *args)
{
	CLEANUP(buf_wipe) struct buf password = BUF_INIT;
	struct user_reset_password_params params = { .user = args->words[0] };
	struct user_reset_password_result done = { .kind = 0 };
	int r = ctl_open(ctl);

	if (r == 0)
		r = secret_read("New password", 1, &password);
	if (r != 0)
		return r;
	params.password = (const char *)password.data;
	r = CTL_CALL(ctl, "ingress", user_reset_password, &params, &done);
	if (r != 0)
		return r;
	if (done.kind != USER_RESET_PASSWORD_OK)
		return say_unknown(params.user);
	return print_user(ctl, &done.u.ok.user, "has a new password and no session");
}

const struct command command_user_disable = {
	.name = "user disable",
	.words = "USER",
	.summary = "ends the access of a user (slug, address or id) at once",
	.min_words = 1,
	.max_words = 1,
	.run = disable_run,
};

const struct command command_user_enable = {
	.name = "user enable",
	.words = "USER",
	.summary = "gives a user access again",
	.min_words = 1,
	.max_words = 1,
	.run = enable_run,
};

const struct command command_user_reset_password = {
	.name = "user reset-password",
	.words = "USER",
	.summary = "sets a password and ends the user's sessions",
	.more = PASSWORD_HELP,
	.min_words = 1,
	.max_words = 1,
	.run = reset_password_run,
};
