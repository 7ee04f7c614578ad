/* lib/actor/backup.c -- actor.backup: a copy of the store, made beside the loop. */
#include "lib/actor/backup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gen/actor.h"
#include "lib/actor/inside.h"
#include "lib/actor/worker.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

struct backup {
	struct actor *actor;
	struct parked *caller;
	const struct actor_desc *desc; /* constant */
	char *place;                   /* Owned: of the store. */
	char *folder;                  /* Owned. */
	struct mono_time until;        /* 0: no limit */
	_Atomic int stop;
	/* Of the worker, until it is done. */
	struct actor_copied copied;
	char *why;
	int err;
};

static struct backup *
backup_free(struct backup *b)
{
	free(b->place);
	free(b->folder);
	free(b->why);
	return mem_free(b);
}

/* ---- on the worker ---- */

static int
go_on(void *arg)
{
	struct backup *b = arg;

	if (atomic_load(&b->stop))
		return E_DRAINING;
	return b->until.us != 0 && clock_mono().us > b->until.us ? E_DEADLINE : 0;
}

static const char *
name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

static int
copy_store(struct backup *b)
{
	static const struct store_copy_ops ops = { .go_on = go_on };
	const char *name = name_of(b->place);
	CLEANUP_FREE char *to = mem_format("%s/%s", b->folder, name);
	struct store_copied done;
	int r = to != NULL ? store_copy(b->desc->store, b->place, to, &ops, b, &done, &b->why)
			   : E_NOMEM;

	if (r < 0)
		return r;
	b->copied.version = done.version;
	b->copied.nfiles = 1;
	b->copied.files[0].name = name;
	b->copied.files[0].bytes = done.bytes;
	return 0;
}

static void
work(void *arg)
{
	struct backup *b = arg;

	b->err = b->desc->backup != NULL
	    ? b->desc->backup->copy(b->place, b->folder, go_on, b, &b->copied, &b->why)
	    : copy_store(b);
}

/* ---- on the loop ---- */

static void
answer(struct backup *b)
{
	struct copied_file files[ACTOR_COPIES_MAX];
	struct actor_backup_result res = { .kind = ACTOR_BACKUP_OK };

	for (size_t i = 0; i < b->copied.nfiles; i++)
		files[i] = (struct copied_file) { .name = b->copied.files[i].name,
			.bytes = b->copied.files[i].bytes };
	res.u.ok.files = files;
	res.u.ok.nfiles = b->copied.nfiles;
	res.u.ok.schema_version = b->copied.version;
	parked_reply(b->caller, &res);
}

static void
on_done(void *arg, int err)
{
	struct backup *b = arg;
	int r = err < 0 ? err : b->err;

	b->actor->backup = NULL;
	if (r == 0)
		log_event(LOG_LEVEL_INFO, "store_copied", LOG_STR("folder", b->folder),
		    LOG_INT("bytes", b->copied.files[0].bytes));
	else
		log_event(LOG_LEVEL_WARN, "store_copy_failed", LOG_STR("folder", b->folder),
		    LOG_STR("errorCode", err_symbol(r)), LOG_STR("why", b->why));
	if (r == 0)
		answer(b);
	else
		parked_error(b->caller, r, b->why);
	(void)backup_free(b);
}

void
backup_stop(struct actor *a)
{
	if (a->backup != NULL)
		atomic_store(&a->backup->stop, 1);
}

/* ---- the method ---- */

const char *
actor_backup_refusal(const char *folder)
{
	CLEANUP(io_closep) int fd = -1;
	struct stat st;

	if (folder[0] != '/')
		return "is not an absolute path";
	if (strlen(folder) > PATH_MAX - NAME_MAX)
		return "is too long";
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return errno == EACCES ? "cannot be reached by this process"
				       : "is not a folder that this process can open";
	if (st.st_uid != geteuid())
		return "belongs to another user";
	return (st.st_mode & 077) != 0 ? "can be entered by others: mode 0700 is needed" : NULL;
}

static struct backup *
backup_new(struct actor *a, const struct turn *t, const char *folder)
{
	struct backup *b = mem_calloc(1, sizeof(*b));
	const char *place = a->desc->backup != NULL ? a->desc->backup->place(a->ctx)
						    : a->store_path;

	if (b == NULL)
		return NULL;
	b->actor = a;
	b->desc = a->desc;
	b->place = mem_strdup(place);
	b->folder = mem_strdup(folder);
	if (t->deadline_ms > 0)
		b->until = mono_add_ms(clock_mono(), t->deadline_ms);
	return b->place != NULL && b->folder != NULL ? b : backup_free(b);
}

static int
refuse(struct turn *t, struct actor_backup_result *ret, const char *folder, const char *why)
{
	ret->kind = ACTOR_BACKUP_REFUSED;
	ret->u.refused.message = arena_format(t->arena, "%s %s", folder, why);
	return ret->u.refused.message != NULL ? 0 : E_NOMEM;
}

int
actor_backup(struct actor *a, struct turn *t, const struct actor_backup_params *params,
    struct actor_backup_result *ret)
{
	const char *wrong = actor_backup_refusal(params->folder);
	struct backup *b;
	int r;

	if (wrong != NULL)
		return refuse(t, ret, params->folder, wrong);
	if (a->backup != NULL) {
		ret->kind = ACTOR_BACKUP_BUSY;
		return 0;
	}
	if (a->desc->backup == NULL && a->store_path == NULL)
		return refuse(t, ret, params->folder, "stays empty: this actor has no store");
	b = backup_new(a, t, params->folder);
	if (b == NULL)
		return E_NOMEM;
	b->caller = turn_park(t);
	if (b->caller == NULL) {
		(void)backup_free(b);
		return E_NOMEM;
	}
	r = actor_work_aside(a, work, on_done, b);
	if (r < 0) {
		parked_error(b->caller, r, NULL);
		(void)backup_free(b);
	} else {
		a->backup = b;
	}
	return TURN_PARKED;
}
