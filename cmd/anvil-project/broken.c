#include "cmd/anvil-project/broken.h"

#include "lib/base/id.h"
#include "lib/base/log.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"

struct broken {
	struct map *told; /* By id. */
};

struct broken *
broken_new(void)
{
	struct broken *b = mem_calloc(1, sizeof(*b));

	if (b == NULL)
		return NULL;
	b->told = map_new();
	return b->told != NULL ? b : broken_free(b);
}

struct broken *
broken_free(struct broken *b)
{
	if (b == NULL)
		return NULL;
	map_free(b->told);
	return mem_free(b);
}

void
broken_tell(struct broken *b, const char *id, const char *project_id)
{
	if (map_get(b->told, id) != NULL || map_count(b->told) >= BROKEN_TOLD_MAX ||
	    map_set(b->told, id, b) < 0)
		return;
	log_event(LOG_LEVEL_ERROR, "row_broken",
	    LOG_STR("runId", id_check(ID_PROJECT, id) ? NULL : id),
	    LOG_STR("projectId", project_id));
}
