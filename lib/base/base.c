#include "lib/base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifndef ANVIL_VERSION
#define ANVIL_VERSION "0.0.0"
#endif

/* The crash hook is one word for the whole process, like the signal handlers beside it. */
static void (*bug_hook)(const char *what);

void
base_on_bug(void (*hook)(const char *what))
{
	bug_hook = hook;
}

void
base_bug(const char *file, int line, const char *expr)
{
	char text[512];
	int n = snprintf(text, sizeof(text), "%s:%d: broken promise: %s\n", file, line, expr);

	if (n > 0) {
		size_t len = min_size((size_t)n, sizeof(text) - 1);
		ssize_t done = write(STDERR_FILENO, text, len);

		(void)done;
	}
	if (bug_hook != NULL)
		bug_hook(text);
	abort();
}

const char *
base_version(void)
{
	return ANVIL_VERSION;
}
