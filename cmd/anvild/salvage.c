#include "cmd/anvild/salvage.h"

#include <stdio.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

/* It is small: it is looked at as a whole each time. */
static int
open_whole(const struct actor_desc *desc, const struct actor_place *place, struct actor **ret,
    char **ret_why)
{
	CLEANUP(actor_freep) struct actor *a = NULL;
	int r = actor_new(desc, place, &a, ret_why);

	if (r == 0)
		r = store_check(desc->store, place->store_path, ret_why);
	if (r < 0 && r != E_CORRUPT && a != NULL) {
		free(*ret_why); /* it was opened, which says more than a look that failed */
		*ret_why = NULL;
		r = 0;
	}
	if (r == 0)
		*ret = TAKE_PTR(a);
	return r;
}

/* Store, log and mark; the log's index is made anew from the log. */
static int
put_aside(const char *path, const char *why)
{
	CLEANUP_FREE char *aside = mem_format(
	    "%s.damaged-%lld", path, (long long)clock_wall_ms());
	CLEANUP_FREE char *mark = mem_format("%s.damaged", path);
	CLEANUP_FREE char *log = mem_format("%s-wal", path);
	CLEANUP_FREE char *index = mem_format("%s-shm", path);
	CLEANUP_FREE char *log_aside = aside != NULL ? mem_format("%s-wal", aside) : NULL;

	if (mark == NULL || log == NULL || index == NULL || log_aside == NULL)
		return E_NOMEM;
	/* The log first: a store without it is damaged still, a log without its store would be
	 * taken for the new one's. */
	if (access(log, F_OK) == 0 && rename(log, log_aside) < 0)
		return E_STORAGE;
	if (rename(path, aside) < 0)
		return E_STORAGE;
	(void)unlink(index);
	(void)unlink(mark);
	log_event(LOG_LEVEL_ERROR, "store_replaced", LOG_STR("file", path), LOG_STR("why", why),
	    LOG_STR("kept", aside),
	    LOG_STR("remedy", "none is needed: only the history of processes is gone"));
	return 0;
}

int
salvage_actor_new(const struct actor_desc *desc, const struct actor_place *place,
    struct actor **ret, char **ret_why)
{
	int r = open_whole(desc, place, ret, ret_why);

	if (r != E_CORRUPT || put_aside(place->store_path, *ret_why) < 0)
		return r;
	free(*ret_why);
	*ret_why = NULL;
	return open_whole(desc, place, ret, ret_why);
}
