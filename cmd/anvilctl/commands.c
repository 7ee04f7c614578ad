#include "cmd/anvilctl/commands.h"

#include <string.h>

#include "lib/base/base.h"

const struct command *const commands[] = {
	&command_ps,
	&command_health,
	&command_history,
	&command_inspect,
	&command_call,
	&command_queue,
	&command_run,
	&command_logs,
	&command_why,
	&command_cancel,
	&command_abandon,
	&command_deliveries,
	&command_project_create,
	&command_project_list,
	&command_project_show,
	&command_project_move,
	&command_project_give,
	&command_project_rm,
	&command_webhook_set,
	&command_webhook_rotate,
	&command_webhook_list,
	&command_webhook_rm,
	&command_user_bootstrap,
	&command_user_invite,
	&command_user_list,
	&command_user_disable,
	&command_user_enable,
	&command_user_reset_password,
	&command_keys_rotate,
	&command_keys_status,
	&command_reindex,
	&command_drain,
	&command_resume,
	&command_check,
	&command_backup,
	&command_restore,
	&command_lint,
	&command_version,
	NULL,
};

/* ---- help ---- */

#define COLUMN 36 /* Where explanations begin. */

static void
print_pair(FILE *out, const char *left, const char *right)
{
	(void)fprintf(out, "  %-*s  %s\n", COLUMN - 4, left, right);
}

static void
print_commands(FILE *out, const char *group)
{
	size_t n = group != NULL ? strlen(group) : 0;
	char left[128];

	for (size_t i = 0; commands[i] != NULL; i++) {
		const struct command *c = commands[i];

		if (group != NULL && (strncmp(c->name, group, n) != 0 || c->name[n] != ' '))
			continue;
		(void)snprintf(left, sizeof(left), "%s %s", c->name, c->words);
		print_pair(out, left, c->summary);
	}
}

static void
print_options(FILE *out, const struct option_row *rows, size_t n)
{
	char left[128];

	for (size_t i = 0; i < n; i++) {
		char letter[8] = "    ";

		if (rows[i].letter != 0)
			(void)snprintf(letter, sizeof(letter), "-%c, ", rows[i].letter);
		(void)snprintf(left, sizeof(left), "%s%s%s%s", letter, rows[i].name,
		    rows[i].value != NULL ? " " : "",
		    rows[i].value != NULL ? rows[i].value : "");
		print_pair(out, left, rows[i].help);
	}
}

static void
print_common(FILE *out)
{
	(void)fprintf(out, "\nOptions of every command:\n");
	print_options(out, args_globals, GLOBAL_COUNT);
}

void
help_program(FILE *out)
{
	(void)fprintf(out,
	    "usage: anvilctl [-d DIR | -c FILE] COMMAND [...]\n\n"
	    "Asks the processes of anvil, a self-hosted CI runner, and gives them "
	    "orders.\nUse it as the user that anvild runs as, or as root.\n\n"
	    "Commands:\n");
	print_commands(out, NULL);
	print_common(out);
	(void)fprintf(out,
	    "\nPROJECT is owner/project or prj_...; RUN is run_... or the first 8 characters of\n"
	    "an id; ACTOR is an address that `anvilctl ps` shows, a run, or a project.\n"
	    "Without -d and -c: ANVIL_RUNTIME_DIR, /etc/anvil/anvil.yml, built-in defaults.\n"
	    "Exit status: 0 done, 1 refused or failed, 2 usage, 3 nobody can be reached.\n"
	    "See anvilctl(1); `anvilctl COMMAND --help` tells more of each.\n");
}

void
help_group(FILE *out, const char *group)
{
	(void)fprintf(out, "usage: anvilctl %s COMMAND [...]\n\nCommands:\n", group);
	print_commands(out, group);
	print_common(out);
}

void
help_command(FILE *out, const struct command *c)
{
	(void)fprintf(out, "usage: anvilctl %s%s%s%s\n\n%s.\n", c->name,
	    c->noptions > 0 ? " [OPTIONS]" : "", c->words[0] != '\0' ? " " : "", c->words,
	    c->summary);
	if (c->more != NULL)
		(void)fprintf(out, "%s\n", c->more);
	if (c->noptions > 0) {
		(void)fprintf(out, "\nOptions:\n");
		print_options(out, c->options, c->noptions);
	}
	print_common(out);
}
