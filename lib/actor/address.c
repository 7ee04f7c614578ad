/* lib/actor/address.c -- the socket stays where others look for it.  systemd empties the runtime
 * directory, or makes a new one, while runs go on; whoever sweeps /run may do worse. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/actor/inside.h"
#include "lib/base/io.h"
#include "lib/base/log.h"

#define LOOK_MS 1000

/* The descriptor keeps its number: the listener and all links follow. */
static void
follow_directory(struct actor *a)
{
	CLEANUP(io_closep) int fd = -1;
	struct stat ours, named;

	if (fstat(a->dirfd, &ours) < 0 || stat(a->runtime_dir, &named) < 0 ||
	    (ours.st_dev == named.st_dev && ours.st_ino == named.st_ino))
		return;
	fd = io_open_dir(AT_FDCWD, a->runtime_dir);
	if (fd >= 0)
		(void)dup3(fd, a->dirfd, O_CLOEXEC);
}

static void
look(struct actor *a)
{
	follow_directory(a);
	/* What fails now, such as a directory that is not there yet, is tried at the next look. */
	if (listener_check(a->listener) == 1)
		log_event(LOG_LEVEL_WARN, "socket_bound_again", LOG_STR("dir", a->runtime_dir));
}

static void
address_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct actor *a = arg;

	(void)fd;
	(void)what;
	OBJ_CHECK(a, ACTOR_MAGIC);
	if (a->draining || a->ended)
		return; /* nobody new is let in */
	look(a);
	address_begin(a);
}

void
address_init(struct actor *a)
{
	evtimer_assign(&a->ev_address, a->base, address_on_timer, a);
}

void
address_begin(struct actor *a)
{
	static const struct timeval look = { .tv_sec = LOOK_MS / 1000 };

	(void)evtimer_add(&a->ev_address, &look);
}
