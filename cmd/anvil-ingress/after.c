#include "cmd/anvil-ingress/after.h"

#include <stdio.h>
#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/base/id.h"
#include "lib/base/mem.h"

struct after {
	struct ingress *in;
	void (*fn)(struct ingress *in, const char *id);
	char id[ID_SIZE];
};

static void
run(void *arg)
{
	CLEANUP_FREE struct after *a = arg;

	a->fn(a->in, a->id);
}

int
after_commit(struct ingress *in, struct turn *t, void (*fn)(struct ingress *in, const char *id),
    const char *id)
{
	struct after *a = mem_calloc(1, sizeof(*a));
	int r;

	if (a == NULL)
		return E_NOMEM;
	a->in = in;
	a->fn = fn;
	(void)snprintf(a->id, sizeof(a->id), "%s", id);
	r = turn_after_commit(t, run, a, free);
	if (r < 0)
		free(a);
	return r;
}
