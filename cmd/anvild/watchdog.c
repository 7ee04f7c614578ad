#include "cmd/anvild/watchdog.h"

#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "cmd/anvild/notify.h"
#include "cmd/anvild/supervisor.h"
#include "lib/base/mem.h"

struct watchdog {
	uint32_t magic;
#define WATCHDOG_MAGIC 0x7a1e90d4
	int64_t every_ms; /* 0: nobody watches */
	struct actor_timer *timer;
};

/* The variables are meant for the process that WATCHDOG_PID names, when it is set. */
static int64_t
interval_ms(void)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	long long us = usec != NULL ? strtoll(usec, NULL, 10) : 0;

	if (us <= 0 || (pid != NULL && strtol(pid, NULL, 10) != (long)getpid()))
		return 0;
	return max_i64(us / 2000, 1);
}

static void
on_timer(void *arg)
{
	struct watchdog *w = arg;

	OBJ_CHECK(w, WATCHDOG_MAGIC);
	notify_send("WATCHDOG=1");
	(void)actor_timer_set(w->timer, w->every_ms);
}

void
watchdog_begin(struct watchdog *w)
{
	if (w->every_ms != 0)
		on_timer(w);
}

struct watchdog *
watchdog_new(struct supervisor *s)
{
	struct watchdog *w = mem_calloc(1, sizeof(*w));

	if (w == NULL)
		return NULL;
	w->magic = WATCHDOG_MAGIC;
	w->every_ms = interval_ms();
	w->timer = actor_timer_new(s->actor, on_timer, w);
	return w->timer != NULL ? w : watchdog_free(w);
}

struct watchdog *
watchdog_free(struct watchdog *w)
{
	if (w == NULL)
		return NULL;
	actor_timer_free(w->timer);
	w->magic = 0;
	free(w);
	return NULL;
}
