#include "test/soak/operator.h"

#include <stdio.h>

#define SHARDS 2 /* as the configuration has them */

/* What comes behind `anvilctl`. */
static void
command_of(const struct soak *s, const struct act *a, char *out, size_t size)
{
	switch (a->action) {
	case ACT_MOVE:
		(void)snprintf(out, size, "project move %s %d",
		    s->book.projects[a->pick % (uint64_t)s->book.nprojects].slug,
		    (int)(a->pick / 8 % SHARDS));
		break;
	case ACT_REINDEX: (void)snprintf(out, size, "reindex"); break;
	case ACT_BACKUP:
		(void)snprintf(out, size, "backup '%s/backup.%ld'", s->dir, a->at_ms);
		break;
	default: (void)snprintf(out, size, "check --fix");
	}
}

void
operator_acts(const struct soak *s, const struct act *a)
{
	char command[320], line[1600];

	command_of(s, a, command, sizeof(command));
	(void)snprintf(line, sizeof(line),
	    "cd '%s'; rm -rf backup.*; echo \"\\$ %s\"\n"
	    "timeout -s KILL %.1f '%s/anvilctl' -c '%s' %s; echo $? >>operator.ends",
	    s->dir, command, (double)a->length / 1e3, s->programs, s->conf, command);
	procs_operate(s, line);
}

void
operator_count(const struct soak *s, long *ret_ended, long *ret_done)
{
	char path[256], line[16];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/operator.ends", s->dir);
	*ret_ended = *ret_done = 0;
	f = fopen(path, "re");
	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		++*ret_ended;
		*ret_done += line[0] == '0';
	}
	if (f != NULL)
		(void)fclose(f);
}
