#include "cmd/anvilctl/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

void
progress_init(struct progress *p, int json)
{
	*p = (struct progress) { .on = !json && isatty(STDERR_FILENO) };
}

void
progress_say(struct progress *p, const char *fmt, ...)
{
	struct mono_time now = clock_mono();
	va_list ap;

	if (!p->on || (p->shown && mono_diff_ms(p->last, now) < PROGRESS_EVERY_MS))
		return;
	p->last = now;
	p->shown = 1;
	(void)fputs("\r\033[K", stderr);
	va_start(ap, fmt);
	(void)vfprintf(stderr, fmt, ap);
	va_end(ap);
	(void)fflush(stderr);
}

void
progress_end(struct progress *p)
{
	if (!p->shown)
		return;
	p->shown = 0;
	(void)fputs("\r\033[K", stderr);
	(void)fflush(stderr);
}
