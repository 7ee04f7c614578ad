#include "cmd/anvilctl/args.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/ascii.h"
#include "lib/base/base.h"
#include "lib/base/err.h"

const struct option_row args_globals[GLOBAL_COUNT] = {
	[GLOBAL_DIR] = { "--dir", 'd', "DIR", "runtime directory, where the sockets are" },
	[GLOBAL_CONFIG] = { "--config", 'c', "FILE", "configuration that names it" },
	[GLOBAL_JSON] = { "--json", 0, NULL, "the answer as JSON, for programs" },
	[GLOBAL_HELP] = { "--help", 'h', NULL, "this text" },
	[GLOBAL_VERSION] = { "--version", 'V', NULL, "the version of this program" },
};

/* Where the parser stands. */
struct reader {
	struct args *args;
	const struct command *const *commands;
	int argc, at;
	char *const *argv;
	char *why;
	int only_words; /* After `--`. */
};

static int PRINTF_LIKE(2, 3) complain(struct reader *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(r->why, ARGS_WHY_SIZE, fmt, ap);
	va_end(ap);
	return E_INVAL;
}

/* ---- the command ---- */

/* 1 when ${name} is "<group> <something>". */
static int
is_in_group(const char *name, const char *group)
{
	size_t n = strlen(group);

	return strncmp(name, group, n) == 0 && name[n] == ' ';
}

static const struct command *
find_command(const struct reader *r, const char *group, const char *word)
{
	size_t n = group != NULL ? strlen(group) + 1 : 0;

	for (size_t i = 0; r->commands[i] != NULL; i++) {
		const char *name = r->commands[i]->name;

		if ((group == NULL || is_in_group(name, group)) && strcmp(name + n, word) == 0)
			return r->commands[i];
	}
	return NULL;
}

static int
take_command(struct reader *r, const char *word)
{
	struct args *a = r->args;

	a->command = find_command(r, a->group, word);
	if (a->command != NULL) {
		a->group = NULL;
		return 0;
	}
	if (a->group != NULL)
		return complain(r, "%s has no command \"%s\"", a->group, word);
	for (size_t i = 0; r->commands[i] != NULL; i++) {
		if (is_in_group(r->commands[i]->name, word)) {
			a->group = word;
			return 0;
		}
	}
	return complain(r, "there is no command \"%s\"", word);
}

static int
take_word(struct reader *r, const char *word)
{
	struct args *a = r->args;

	if (a->command == NULL)
		return take_command(r, word);
	if (a->nwords >= ARGS_WORDS_MAX || a->nwords >= a->command->max_words)
		return complain(r, "unexpected word \"%s\"", word);
	a->words[a->nwords++] = word;
	return 0;
}

/* ---- options ---- */

static int
matches(const struct option_row *row, const char *arg, size_t n)
{
	if (arg[1] != '-')
		return n == 2 && row->letter != 0 && arg[1] == row->letter;
	return strlen(row->name) == n && memcmp(row->name, arg, n) == 0;
}

static int
set_option(struct reader *r, const struct option_row *row, const char *given, const char **ret)
{
	if (row->value == NULL && given != NULL)
		return complain(r, "%s takes no value", row->name);
	if (row->value != NULL && given == NULL) {
		if (r->at >= r->argc)
			return complain(r, "%s needs a value: %s", row->name, row->value);
		given = r->argv[r->at++];
	}
	*ret = given != NULL ? given : "";
	return 0;
}

static int
take_option(struct reader *r, const char *arg)
{
	const char *equals = arg[1] == '-' ? strchr(arg, '=') : NULL;
	size_t n = equals != NULL ? (size_t)(equals - arg) : strlen(arg);
	const char *given = equals != NULL ? equals + 1 : NULL;
	const struct command *c = r->args->command;

	for (size_t i = 0; c != NULL && i < c->noptions; i++)
		if (matches(&c->options[i], arg, n))
			return set_option(r, &c->options[i], given, &r->args->values[i]);
	for (size_t i = 0; i < GLOBAL_COUNT; i++)
		if (matches(&args_globals[i], arg, n))
			return set_option(r, &args_globals[i], given, &r->args->globals[i]);
	return complain(r, "%s%sunknown option %.*s", c != NULL ? c->name : "",
	    c != NULL ? ": " : "", (int)n, arg);
}

int
args_parse(struct args *ret, const struct command *const *commands, int argc,
    char *const argv[], char why[ARGS_WHY_SIZE])
{
	struct reader r = {
		.args = ret, .commands = commands, .argc = argc, .argv = argv, .why = why
	};
	int err = 0;

	*ret = (struct args) { .command = NULL };
	while (err == 0 && r.at < argc) {
		const char *arg = argv[r.at++];

		if (!r.only_words && strcmp(arg, "--") == 0)
			r.only_words = 1;
		else if (!r.only_words && arg[0] == '-' && arg[1] != '\0')
			err = take_option(&r, arg);
		else
			err = take_word(&r, arg);
	}
	if (err < 0 || ret->command == NULL || ret->globals[GLOBAL_HELP] != NULL)
		return err;
	must(ret->command->noptions <= ARGS_OPTIONS_MAX);
	if (ret->nwords < ret->command->min_words)
		return complain(
		    &r, "%s needs more: %s", ret->command->name, ret->command->words);
	return 0;
}

const char *
args_value(const struct args *args, const char *name)
{
	const struct command *c = args->command;

	for (size_t i = 0; i < c->noptions; i++)
		if (strcmp(c->options[i].name, name) == 0)
			return args->values[i];
	base_bug(__FILE__, __LINE__, "an option that the command does not have");
	return NULL;
}

int
args_number(const char *text, long min, long max, long *ret)
{
	long n = 0;

	if (text[0] == '\0' || strlen(text) > 9)
		return E_INVAL;
	for (const char *p = text; *p != '\0'; p++) {
		if (!ascii_is_digit(*p))
			return E_INVAL;
		n = n * 10 + (*p - '0');
	}
	if (n < min || n > max)
		return E_INVAL;
	*ret = n;
	return 0;
}
