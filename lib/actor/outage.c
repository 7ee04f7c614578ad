/* lib/actor/outage.c -- a store that cannot be used takes its actor out of service, not out of
 * life: whoever asks is told so at once, and it serves again when the cause has gone. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/actor/inside.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/utf8.h"

#define LOOK_MS 2000
#define LOOKS   30 /* until damage is looked at again: it may have been read wrong */

/* What was found damaged stays so until somebody puts other files there. */
struct identity {
	struct {
		dev_t dev;
		ino_t ino;
		off_t size;
		struct timespec mtime;
	} files[2]; /* the store and its log */
};

struct outage {
	int err;
	char *why; /* Owned.  For people. */
	struct identity seen;
	int nlooks; /* since it was found */
};

static void
identify(const char *path, struct identity *ret)
{
	CLEANUP_FREE char *log = mem_format("%s-wal", path);
	const char *names[] = { path, log };
	struct stat st;

	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (names[i] == NULL || stat(names[i], &st) < 0)
			continue;
		ret->files[i].dev = st.st_dev;
		ret->files[i].ino = st.st_ino;
		ret->files[i].size = st.st_size;
		ret->files[i].mtime = st.st_mtim;
	}
}

/* ---- opening ---- */

/* Who holds the lock for the first time has no store yet; ever after, one that is empty or gone
 * has lost what was in it, and must not be taken for a new one. */
static int
check_there(const struct actor *a, char **ret_why)
{
	struct stat st;
	char made;
	int there = stat(a->store_path, &st) == 0;

	if ((there && st.st_size != 0) || (!there && !a->desc->store_is_truth) ||
	    a->lock_fd < 0 || pread(a->lock_fd, &made, 1, 0) != 1)
		return 0;
	*ret_why = mem_format("%s is %s, though it has been in use (to begin anew without what "
			      "was in it, remove %s.lock as well)",
	    a->store_path, there ? "empty" : "gone", a->store_path);
	return E_CORRUPT;
}

/* SQLite would open it for reading, and give the log that it makes the same mode: the store
 * could not be written any more after the mode was set right. */
static int
check_mode(const struct actor *a, char **ret_why)
{
	if (access(a->store_path, W_OK) == 0 || errno == ENOENT)
		return 0;
	*ret_why = mem_format("%s cannot be written: %s", a->store_path, strerror(errno));
	return E_STORAGE;
}

static void
note_made(const struct actor *a)
{
	char made;

	if (a->lock_fd >= 0 && pread(a->lock_fd, &made, 1, 0) == 0)
		(void)io_write_all(a->lock_fd, "made\n", 5);
}

/* A store that was found damaged by an earlier process is looked at as a whole before it
 * serves again: what it came upon may be read by nobody for a long time. */
static int
check_marked(const struct actor *a, char **ret_why)
{
	CLEANUP_FREE char *mark = mem_format("%s.damaged", a->store_path);
	int r;

	if (mark == NULL)
		return E_NOMEM;
	if (access(mark, F_OK) < 0)
		return 0;
	r = store_check(a->desc->store, a->store_path, ret_why);
	if (r == 0)
		(void)unlink(mark);
	return r == E_CORRUPT ? r : 0;
}

/* Whoever had it before may have ended since a commit failed.  Room may come, and what is there
 * can be read meanwhile. */
static int
is_writable(struct store *s, const char *path, char **ret_why)
{
	int r = store_renew_log(s);

	if (r == 0 || r == E_LOCKED)
		r = store_probe(s);
	if (r == 0 || r == E_FULL)
		return 0;
	free(*ret_why);
	*ret_why = mem_format("%s cannot be written: %s", path, store_error(s));
	return r;
}

int
outage_open(const struct actor *a, struct store **ret, char **ret_why)
{
	CLEANUP(store_closep) struct store *s = NULL;
	int r = check_there(a, ret_why);

	if (r == 0)
		r = check_mode(a, ret_why);
	if (r == 0 && a->desc->store->sync == STORE_SYNC_FULL)
		r = store_look_at_log(a->store_path, ret_why);
	if (r == 0)
		r = check_marked(a, ret_why);
	if (r == 0)
		r = store_open(a->desc->store, a->store_path, &s, ret_why);
	if (r == 0 && store_set_aside(s) != NULL)
		log_event(LOG_LEVEL_WARN, "foreign_log_set_aside",
		    LOG_STR("file", a->store_path), LOG_STR("kept", store_set_aside(s)));
	if (r == 0)
		r = is_writable(s, a->store_path, ret_why);
	if (r < 0)
		return r;
	note_made(a);
	*ret = TAKE_PTR(s);
	return 0;
}

/* ---- being out of service ---- */

const char *
actor_outage(const struct actor *a)
{
	return a->outage != NULL ? a->outage->why : NULL;
}

/* What somebody has to do. */
static const char *
remedy_of(int err)
{
	return err == E_CORRUPT
	    ? "stop anvild and restore this file from a backup (anvilctl restore); what "
	      "does not need it goes on meanwhile"
	    : "let the user of anvild write the file and its folder (owner, mode, mount), or "
	      "see to the disk; it is tried again all the time";
}

char *
actor_outage_text(const struct actor *a)
{
	char *text = a->outage == NULL
	    ? NULL
	    : mem_format("%s; %s", a->outage->why, remedy_of(a->outage->err));

	if (text != NULL)
		text[utf8_cut(text, strlen(text), ACTOR_OUTAGE_MAX - 1)] = '\0';
	return text;
}

static void
tell(const struct actor *a, int err, const char *why)
{
	if (err == E_CORRUPT)
		log_event(LOG_LEVEL_ERROR, "store_damaged", LOG_STR("file", a->store_path),
		    LOG_STR("why", why), LOG_STR("remedy", remedy_of(err)));
	else
		log_event(LOG_LEVEL_ERROR, "store_unavailable", LOG_STR("file", a->store_path),
		    LOG_STR("errorCode", err_symbol(err)), LOG_STR("why", why),
		    LOG_STR("remedy", remedy_of(err)));
}

static void
look_again(struct actor *a)
{
	static const struct timeval soon = { .tv_sec = LOOK_MS / 1000 };

	(void)evtimer_add(&a->ev_outage, &soon);
}

static void
set(struct actor *a, int err, char *why)
{
	struct outage *o = a->outage;

	identify(a->store_path, &o->seen);
	o->nlooks = 0;
	/* What it was, and still is, was told before. */
	if (o->err != err)
		tell(a, err, why);
	o->err = err;
	if (why == NULL)
		return;
	free(o->why);
	o->why = why;
}

int
outage_begin(struct actor *a, int err, char *why)
{
	a->outage = mem_calloc(1, sizeof(*a->outage));
	if (a->outage != NULL)
		a->outage->why = mem_strdup(err_text(err));
	if (a->outage == NULL || a->outage->why == NULL) {
		free(why);
		a->outage = mem_free(a->outage);
		return E_NOMEM;
	}
	set(a, err, why);
	if (a->base != NULL)
		look_again(a);
	return 0;
}

void
outage_end(struct actor *a)
{
	if (a->outage == NULL)
		return;
	if (a->base != NULL)
		(void)event_del(&a->ev_outage);
	free(a->outage->why);
	a->outage = mem_free(a->outage);
}

/* Goes on with the store, if the program can; else a new process begins with it. */
static void
store_is_back(struct actor *a, struct store *s)
{
	log_event(LOG_LEVEL_INFO, "store_back", LOG_STR("file", a->store_path));
	if (!a->desc->outlives_store) {
		(void)store_close(s);
		actor_stop(a, ACTOR_EXIT_RESTART);
		return;
	}
	a->batch = batch_new(s);
	if (a->batch == NULL) {
		(void)store_close(s);
		look_again(a);
		return;
	}
	a->store = s;
	outage_end(a);
	if (a->desc->on_store_back != NULL)
		a->desc->on_store_back(a->ctx);
}

static void
outage_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct actor *a = arg;
	struct identity now;
	struct store *s = NULL;
	char *why = NULL;
	int r;

	(void)fd;
	(void)what;
	OBJ_CHECK(a, ACTOR_MAGIC);
	if (a->outage == NULL || a->draining || a->stopping)
		return;
	identify(a->store_path, &now);
	if (a->outage->err == E_CORRUPT && ++a->outage->nlooks < LOOKS &&
	    memcmp(&now, &a->outage->seen, sizeof(now)) == 0) {
		look_again(a);
		return;
	}
	r = outage_open(a, &s, &why);
	if (r == 0) {
		free(why);
		store_is_back(a, s);
		return;
	}
	set(a, r, why);
	look_again(a);
}

void
outage_init(struct actor *a)
{
	evtimer_assign(&a->ev_outage, a->base, outage_on_timer, a);
	if (a->outage != NULL)
		look_again(a);
}

/* ---- a store that fails while it serves ---- */

static void
let_store_go(struct actor *a)
{
	a->batch = batch_free(a->batch);
	a->checkpointer = checkpointer_stop(a->checkpointer);
	a->store = store_close(a->store);
}

void
outage_after_commit(struct actor *a)
{
	char *why;

	if (!batch_must_restart(a->batch))
		return;
	if (!a->desc->outlives_store) {
		/* The disk may yet say otherwise: start again from what it holds. */
		actor_stop(a, ACTOR_EXIT_RESTART);
		return;
	}
	why = mem_format("%s: %s", a->store_path, store_error(a->store));
	if (outage_begin(a, E_STORAGE, why) == 0)
		let_store_go(a);
}

/* Tells the next process to look first. */
static void
mark(const struct actor *a)
{
	CLEANUP_FREE char *path = mem_format("%s.damaged", a->store_path);
	const char *why = store_error(a->store);

	if (*why == '\0')
		why = err_text(E_CORRUPT);
	tell(a, E_CORRUPT, why);
	if (path != NULL)
		(void)io_write_file(AT_FDCWD, path, why, strlen(why), 0600);
}

int
outage_look(struct actor *a)
{
	if (a->store == NULL || !store_is_damaged(a->store))
		return 0;
	if (!a->damage_told)
		mark(a);
	a->damage_told = 1;
	if (a->desc->outlives_store)
		return 0;
	actor_stop(a, ACTOR_EXIT_RESTART);
	return E_STORAGE;
}
