#include "lib/actor/options.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int
is_word(const struct proc_option *row)
{
	return row->name[0] != '-';
}

static void
print_help(const struct proc_role *role)
{
	printf("usage: %s", role->program);
	for (size_t i = 0; i < role->noptions; i++) {
		const struct proc_option *row = &role->options[i];

		printf(row->required ? " %s%s%s" : " [%s%s%s]", row->name,
		    row->value != NULL ? " " : "", row->value != NULL ? row->value : "");
	}
	printf(" [--check]\n\n%s.\nStarted by anvild alone; see anvild(8).\n\n", role->summary);
	for (size_t i = 0; i < role->noptions; i++) {
		const struct proc_option *row = &role->options[i];
		int n = printf("  %s %s", row->name, row->value != NULL ? row->value : "");

		printf("%*s%s\n", n < 24 ? 24 - n : 1, "", row->help);
	}
	printf("  --check               opens the store, reports its state, and ends\n"
	       "  -V, --version         prints the version\n"
	       "  -h, --help            prints this\n");
}

void
options_usage(const struct proc_role *role, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "%s: ", role->program);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\nTry `%s --help`.\n", role->program);
	exit(PROC_EXIT_USAGE);
}

static size_t
find_option(const struct proc_role *role, const char *arg)
{
	for (size_t i = 0; i < role->noptions; i++)
		if (strcmp(role->options[i].name, arg) == 0)
			return i;
	options_usage(role, "unknown option %s", arg);
}

/* The next row for a word that has none yet. */
static size_t
find_word(const struct options *o, const struct proc_role *role, const char *arg)
{
	for (size_t i = 0; i < role->noptions; i++)
		if (is_word(&role->options[i]) && o->values[i] == NULL)
			return i;
	options_usage(role, "unexpected argument %s", arg);
}

void
options_read(struct options *o, const struct proc_role *role, int argc, char *argv[])
{
	must(role->noptions <= PROC_OPTIONS_MAX);
	*o = (struct options) { .check = 0 };
	for (int i = 1; i < argc; i++) {
		size_t row;

		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			print_help(role);
			exit(0);
		}
		if (strcmp(argv[i], "--version") == 0 || strcmp(argv[i], "-V") == 0) {
			printf("%s %s\n", role->program, base_version());
			exit(0);
		}
		if (strcmp(argv[i], "--check") == 0) {
			o->check = 1;
			continue;
		}
		if (argv[i][0] != '-') {
			o->values[find_word(o, role, argv[i])] = argv[i];
			continue;
		}
		row = find_option(role, argv[i]);
		if (role->options[row].value == NULL)
			o->values[row] = "";
		else if (++i < argc)
			o->values[row] = argv[i];
		else
			options_usage(role, "%s needs a value", argv[i - 1]);
	}
	for (size_t i = 0; i < role->noptions; i++)
		if (role->options[i].required && o->values[i] == NULL)
			options_usage(role, "%s is missing", role->options[i].name);
}
