/* lib/actor/full.c -- a disk without room takes no actor out of service: what is there is read,
 * and who writes is told.  It is known as long as it lasts. */
#include "lib/actor/full.h"

#include <string.h>
#include <sys/statvfs.h>

#include "lib/actor/inside.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/utf8.h"

#define LOOK_MS    1000
#define ROOM_BYTES (1 << 20) /* with less, the next batch may be as large as the lost one */

#define REMEDY "make room on that disk; it is tried again all the time"

char *
actor_full_text(const struct actor *a)
{
	char *text = a->full.is
	    ? mem_format("%s: no space left on its disk; " REMEDY, a->store_path)
	    : NULL;

	if (text != NULL)
		text[utf8_cut(text, strlen(text), ACTOR_OUTAGE_MAX - 1)] = '\0';
	return text;
}

static void
look_again(struct actor *a)
{
	static const struct timeval soon = { .tv_sec = LOOK_MS / 1000 };

	(void)evtimer_add(&a->full.ev, &soon);
}

static void
set(struct actor *a, int full)
{
	a->full.is = full;
	if (a->full.changed != NULL)
		a->full.changed(a->full.arg);
}

void
full_begin(struct actor *a)
{
	/* What a run cannot store waits in the run, which says so itself. */
	if (a->full.is || a->desc->role == ROLE_RUN)
		return;
	log_event(LOG_LEVEL_WARN, "disk_full", LOG_STR("file", a->store_path),
	    LOG_STR("remedy", REMEDY));
	set(a, 1);
	look_again(a);
}

/* The log of a store may have room of its own for what is small. */
static int
has_room(const struct actor *a)
{
	struct statvfs vfs;

	if (statvfs(a->store_path, &vfs) == 0 &&
	    (uint64_t)vfs.f_bavail * vfs.f_frsize < ROOM_BYTES)
		return 0;
	return store_probe(a->store) == 0;
}

static void
full_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct actor *a = arg;

	(void)fd;
	(void)what;
	OBJ_CHECK(a, ACTOR_MAGIC);
	if (a->stopping)
		return;
	(void)turn_commit(a);
	/* Without a store it is out of service, which says more. */
	if (a->store != NULL && (a->writing || !has_room(a))) {
		look_again(a);
		return;
	}
	log_event(LOG_LEVEL_INFO, "disk_has_room", LOG_STR("file", a->store_path));
	set(a, 0);
}

void
full_init(struct actor *a)
{
	evtimer_assign(&a->full.ev, a->base, full_on_timer, a);
}

void
full_done(struct actor *a)
{
	if (a->full.is)
		(void)event_del(&a->full.ev);
}
