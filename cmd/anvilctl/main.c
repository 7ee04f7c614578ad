/* cmd/anvilctl/main.c -- the socket CLI: asks any actor, over the protocol that they speak among
 * themselves.  Opens no store and holds no key. */
#include <stdio.h>
#include <string.h>

#include "cmd/anvilctl/commands.h"
#include "cmd/anvilctl/ctl.h"

/* For completion: the words that may follow `anvilctl`, a line each. */
static int
print_names(void)
{
	for (size_t i = 0; commands[i] != NULL; i++)
		(void)printf("%s\n", commands[i]->name);
	return CTL_OK;
}

static int
usage(const struct args *args, const char *why)
{
	(void)fprintf(stderr, "anvilctl: %s\ntry: anvilctl %s%s--help\n", why,
	    args->command != NULL     ? args->command->name
		: args->group != NULL ? args->group
				      : "",
	    args->command != NULL || args->group != NULL ? " " : "");
	return CTL_USAGE;
}

static int
run_command(const struct args *args)
{
	struct ctl ctl;
	int status;

	ctl_init(&ctl, args);
	status = args->command->run(&ctl, args);
	ctl_done(&ctl);
	if (fflush(stdout) != 0 && status == CTL_OK)
		status = ctl_fail("standard output: cannot be written");
	return status;
}

int
main(int argc, char *argv[])
{
	char why[ARGS_WHY_SIZE];
	struct args args;

	if (argc == 2 && strcmp(argv[1], "--names") == 0)
		return print_names();
	if (args_parse(&args, commands, argc - 1, argv + 1, why) < 0)
		return usage(&args, why);
	if (args.globals[GLOBAL_VERSION] != NULL) {
		(void)printf("anvilctl %s\n", base_version());
		return CTL_OK;
	}
	if (args.globals[GLOBAL_HELP] != NULL) {
		if (args.command != NULL)
			help_command(stdout, args.command);
		else if (args.group != NULL)
			help_group(stdout, args.group);
		else
			help_program(stdout);
		return CTL_OK;
	}
	if (args.command != NULL)
		return run_command(&args);
	if (args.group != NULL)
		help_group(stderr, args.group);
	else
		help_program(stderr);
	return CTL_USAGE;
}
