/*
 * The groups of a run: which hierarchy bounds what.
 *
 * A host may have both versions mounted, with the controllers in the one and cgroup.kill in
 * the other; so each task is given to whoever can do it.
 */
#include "lib/sandbox/cgroup.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"

#define FILE_BYTES 512 /* Of a list of controllers. */

struct cgroup {
	uint32_t magic;
#define CGROUP_MAGIC 0x3c90d7e1
	struct cgdir v2;
	struct cgdir v1_memory;
	struct cgdir v1_pids; /* None where one hierarchy has both controllers. */
	enum cgroup_by memory, processes;
	int can_kill;
	int64_t kills_before; /* OOM kills up to the step's start. */
};

static const char *
word_of(const char *text, const char *word)
{
	const char *at = text;
	size_t n = strlen(word);

	for (; at != NULL && (at = strstr(at, word)) != NULL; at += n)
		if ((at == text || at[-1] == ' ') &&
		    (at[n] == ' ' || at[n] == '\n' || at[n] == '\0'))
			return at;
	return NULL;
}

/* Whether groups in ${base} have the controllers that ${limits} need, and a move into them
 * is allowed. */
static int
serves(const char *base, const struct sandbox_limits *limits)
{
	CLEANUP(io_closep) int fd = io_open_dir(AT_FDCWD, base);
	char enabled[FILE_BYTES];

	if (fd < 0 || faccessat(fd, "cgroup.procs", W_OK, AT_EACCESS) < 0 ||
	    faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) < 0 ||
	    cgdir_read_text(fd, "cgroup.subtree_control", enabled, sizeof(enabled)) < 0)
		return 0;
	return (limits->memory_bytes <= 0 || word_of(enabled, "memory") != NULL) &&
	    (limits->max_processes <= 0 || word_of(enabled, "pids") != NULL);
}

/* The directory above, ${path} cut.  0, or -1: it is outside of what is mounted. */
static int
go_up(char *path)
{
	char *slash = strrchr(path, '/');
	char file[PATH_MAX + 16];

	if (slash == NULL || slash == path)
		return -1;
	*slash = '\0';
	(void)snprintf(file, sizeof(file), "%s/cgroup.procs", path);
	return access(file, F_OK);
}

static int
is_domain(const struct cgdir *g)
{
	char type[64];

	return cgdir_read_text(g->fd, "cgroup.type", type, sizeof(type)) == 0 &&
	    strcmp(type, "domain\n") == 0;
}

/* Our own cgroup, which has controllers for groups within only at the root or by grace of its
 * owner; or the one above, as in a unit with DelegateSubgroup= or in a user's own slice. */
static void
make_v2(struct cgroup *c, struct cgroup_place *place, const struct sandbox_limits *limits)
{
	const struct sandbox_limits none = { 0, 0 };
	char own[PATH_MAX], up[PATH_MAX];

	if (cgroup_find(place, NULL, own, sizeof(own)) < 0)
		return;
	(void)snprintf(up, sizeof(up), "%s", own);
	if (!serves(own, limits) && go_up(up) == 0 && serves(up, limits))
		(void)cgdir_make(&c->v2, up);
	else if (serves(own, &none))
		(void)cgdir_make(&c->v2, own);
	if (c->v2.fd >= 0 && !is_domain(&c->v2))
		cgdir_remove(&c->v2);
}

static int
bound_memory_v2(const struct cgdir *g, int64_t bytes)
{
	if (cgdir_write_number(g, "memory.max", bytes) < 0)
		return 0;
	/* Absent where there is no swap, or no accounting of it. */
	(void)cgdir_write(g, "memory.swap.max", "0");
	(void)cgdir_write(g, "memory.oom.group", "1");
	return 1;
}

static int
bound_memory_v1(struct cgdir *g, struct cgroup_place *place, int64_t bytes)
{
	char base[PATH_MAX];

	if (cgroup_find(place, "memory", base, sizeof(base)) < 0 || cgdir_make(g, base) < 0)
		return 0;
	if (cgdir_write_number(g, "memory.limit_in_bytes", bytes) == 0) {
		(void)cgdir_write_number(g, "memory.memsw.limit_in_bytes", bytes);
		return 1;
	}
	cgdir_remove(g);
	return 0;
}

static int
bound_processes_v1(struct cgroup *c, struct cgroup_place *place, int64_t max)
{
	char base[PATH_MAX];

	/* One hierarchy with both controllers: a process is in one group of it. */
	if (cgdir_has(&c->v1_memory, "pids.max"))
		return cgdir_write_number(&c->v1_memory, "pids.max", max) == 0;
	if (cgroup_find(place, "pids", base, sizeof(base)) < 0 ||
	    cgdir_make(&c->v1_pids, base) < 0)
		return 0;
	if (cgdir_write_number(&c->v1_pids, "pids.max", max) == 0)
		return 1;
	cgdir_remove(&c->v1_pids);
	return 0;
}

/* Each limit by the first that can hold it. */
static void
bound(struct cgroup *c, struct cgroup_place *place, int64_t bytes, int64_t max)
{
	if (bytes > 0 && bound_memory_v2(&c->v2, bytes))
		c->memory = CGROUP_V2;
	else if (bytes > 0 && bound_memory_v1(&c->v1_memory, place, bytes))
		c->memory = CGROUP_V1;
	if (max > 0 && cgdir_write_number(&c->v2, "pids.max", max) == 0)
		c->processes = CGROUP_V2;
	else if (max > 0 && bound_processes_v1(c, place, max))
		c->processes = CGROUP_V1;
}

static size_t
sweep(struct cgroup_place *place)
{
	static const char *const v1[] = { "memory", "pids" };
	char base[PATH_MAX];
	size_t left = 0;

	for (size_t i = 0; i < ARRAY_LEN(v1); i++)
		if (cgroup_find(place, v1[i], base, sizeof(base)) == 0)
			left += cgdir_sweep(base);
	if (cgroup_find(place, NULL, base, sizeof(base)) == 0) {
		left += cgdir_sweep(base);
		if (go_up(base) == 0)
			left += cgdir_sweep(base);
	}
	return left;
}

struct cgroup *
cgroup_new(const struct sandbox_limits *limits, int64_t spare)
{
	CLEANUP(cgroup_place_done) struct cgroup_place place = CGROUP_PLACE_INIT;
	struct cgroup *c = mem_calloc(1, sizeof(*c));
	int r = cgroup_place_read(&place);

	if (c == NULL || r == E_NOMEM)
		return mem_free(c);
	c->magic = CGROUP_MAGIC;
	c->v2 = c->v1_memory = c->v1_pids = CGDIR_NONE;
	if (r < 0)
		return c;
	(void)sweep(&place);
	make_v2(c, &place, limits);
	c->can_kill = cgdir_has(&c->v2, "cgroup.kill");
	bound(c, &place, limits->memory_bytes,
	    limits->max_processes > 0 ? limits->max_processes + spare : 0);
	return c;
}

struct cgroup *
cgroup_free(struct cgroup *c)
{
	if (c == NULL)
		return NULL;
	OBJ_CHECK(c, CGROUP_MAGIC);
	c->magic = 0;
	cgdir_remove(&c->v2);
	cgdir_remove(&c->v1_memory);
	cgdir_remove(&c->v1_pids);
	return mem_free(c);
}

enum cgroup_by
cgroup_memory(const struct cgroup *c)
{
	return c->memory;
}

enum cgroup_by
cgroup_processes(const struct cgroup *c)
{
	return c->processes;
}

int
cgroup_join(const struct cgroup *c)
{
	const int fds[] = { c->v2.procs_fd, c->v1_memory.procs_fd, c->v1_pids.procs_fd };

	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		if (fds[i] >= 0 && write(fds[i], "0", 1) < 0)
			return -1;
	return 0;
}

static int64_t
oom_kills(const struct cgroup *c)
{
	switch (c->memory) {
	case CGROUP_V2: return cgdir_read_number(&c->v2, "memory.events", "oom_kill");
	case CGROUP_V1:
		return cgdir_read_number(&c->v1_memory, "memory.oom_control", "oom_kill");
	case CGROUP_NOT: break;
	}
	return 0;
}

void
cgroup_begin(struct cgroup *c)
{
	OBJ_CHECK(c, CGROUP_MAGIC);
	c->kills_before = oom_kills(c);
}

int
cgroup_oom(const struct cgroup *c)
{
	OBJ_CHECK(c, CGROUP_MAGIC);
	return oom_kills(c) > c->kills_before;
}

int
cgroup_kill(const struct cgroup *c)
{
	OBJ_CHECK(c, CGROUP_MAGIC);
	return c->can_kill ? cgdir_write(&c->v2, "cgroup.kill", "1") : E_SYS;
}

size_t
sandbox_sweep(void)
{
	CLEANUP(cgroup_place_done) struct cgroup_place place = CGROUP_PLACE_INIT;

	return cgroup_place_read(&place) < 0 ? 0 : sweep(&place);
}
