#include "cmd/anvild/keys.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cmd/anvild/supervisor.h"
#include "gen/supervisor.h"
#include "lib/base/crash.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

#define WORD_SIZE 32 /* A version in digits, as ingress answers it. */

struct waiter {
	STAILQ_ENTRY(waiter) entry;
	struct parked *parked;
	int64_t version;
	struct mono_time until;
};

struct keys {
	struct supervisor *sup;
	int fd; /* Our end; -1: there is no ingress.          */
	struct actor_watch *watch;
	struct actor_timer *retry, *patience;
	int64_t theirs; /* Version that ingress has.                  */
	STAILQ_HEAD(, waiter) waiters;
};

/* ---- the file ---- */

/* The folder of the keys file is often root's alone.  Then a new set is whole in this file, in
 * a folder of ours, before it is written over the old one; here after a start, it has still to
 * be written, or written again. */
static int
spare_path(const struct supervisor *s, char out[PATH_MAX])
{
	int n = snprintf(out, PATH_MAX, "%s/keys.next.json", s->config->data_dir);

	return n < PATH_MAX ? 0 : E_INVAL;
}

static int
save(const struct supervisor *s, const struct vault_keys *next, char why[VAULT_WHY_SIZE])
{
	const char *path = s->config->keys_file;
	char spare[PATH_MAX];
	int r = vault_keys_save(next, path, why);

	if (r != E_DENIED || spare_path(s, spare) < 0)
		return r;
	r = vault_keys_save(next, spare, why);
	if (r < 0)
		return r;
	CRASH_POINT("keys_spare_saved");
	r = vault_keys_overwrite(next, path, why);
	if (r == 0 || r == E_DENIED)
		(void)unlink(spare);
	return r;
}

/* The set of an unfinished rotation, unless somebody has put other keys in the file since. */
static void
take_spare(struct supervisor *s, uid_t uid)
{
	CLEANUP(vault_keys_freep) struct vault_keys *spare = NULL;
	char path[PATH_MAX], why[VAULT_WHY_SIZE];

	if (spare_path(s, path) < 0 || vault_keys_load(path, uid, &spare, why) < 0)
		return;
	if (s->keys != NULL && !vault_keys_cover(spare, s->keys))
		return;
	(void)vault_keys_free(s->keys);
	s->keys = TAKE_PTR(spare);
}

int
keys_load(struct supervisor *s, uid_t uid, gid_t gid, char why[VAULT_WHY_SIZE])
{
	const char *path = s->config->keys_file;
	int r = vault_keys_load(path, uid, &s->keys, why);

	if (r == 0 || r == E_PARSE || r == E_INVAL) {
		take_spare(s, uid);
		return s->keys != NULL ? 0 : r;
	}
	if (r != E_NOENT)
		return r;
	r = vault_keys_create(path, &s->keys, why);
	if (r == 0 && geteuid() == 0 && chown(path, uid, gid) < 0)
		r = E_SYS;
	if (r == 0)
		log_event(LOG_LEVEL_INFO, "keys_made", LOG_STR("file", path));
	return r;
}

int
keys_settle(struct supervisor *s, char why[VAULT_WHY_SIZE])
{
	char spare[PATH_MAX];
	int r;

	if (spare_path(s, spare) < 0 || access(spare, F_OK) < 0)
		return 0;
	r = vault_keys_overwrite(s->keys, s->config->keys_file, why);
	CRASH_POINT("keys_settled");
	if (r == 0)
		(void)unlink(spare);
	return r;
}

/* ---- who waits ---- */

static void
answer_waiters(struct keys *k)
{
	struct mono_time now = clock_mono();
	struct waiter *w, *next;
	int64_t wait_ms = -1;

	for (w = STAILQ_FIRST(&k->waiters); w != NULL; w = next) {
		struct supervisor_rotate_keys_result res = { .kind =
								 SUPERVISOR_ROTATE_KEYS_ROTATED,
			.u.rotated = { .version = w->version } };
		int64_t left_ms = mono_diff_ms(now, w->until);

		next = STAILQ_NEXT(w, entry);
		if (k->fd >= 0 && k->theirs < w->version && left_ms > 0) {
			wait_ms = wait_ms < 0 ? left_ms : min_i64(wait_ms, left_ms);
			continue;
		}
		STAILQ_REMOVE(&k->waiters, w, waiter, entry);
		parked_reply(w->parked, &res);
		free(w);
	}
	if (wait_ms >= 0)
		(void)actor_timer_set(k->patience, wait_ms + 1);
	else
		actor_timer_stop(k->patience);
}

static void
on_patience(void *arg)
{
	answer_waiters(arg);
}

int
keys_wait(struct keys *k, struct parked *parked)
{
	struct waiter *w = mem_calloc(1, sizeof(*w));

	if (w == NULL)
		return E_NOMEM;
	w->parked = parked;
	w->version = vault_keys_current(k->sup->keys);
	w->until = mono_add_ms(clock_mono(), KEYS_WAIT_MS);
	STAILQ_INSERT_TAIL(&k->waiters, w, entry);
	/* From the loop: nobody is answered from inside the turn that asks. */
	return actor_timer_set(k->patience, 0);
}

/* ---- the socket ---- */

static void
disconnect(struct keys *k)
{
	actor_timer_stop(k->retry);
	k->watch = actor_watch_free(k->watch);
	io_close(&k->fd);
	answer_waiters(k);
}

static int
send_set(int fd, int set)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .room = { 0 } };
	char mark = 'k';
	struct iovec iov = { &mark, 1 };
	struct msghdr msg = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = sizeof(control.room) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	ssize_t n;

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &set, sizeof(int));
	do
		n = sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	return n == 1 ? 0 : err_from_errno(errno);
}

/* What is sent once is taken, or answered with another version than is current: then it is
 * sent anew.  An ingress that has ended says so by the end of the socket. */
static void
hand_over(struct keys *k)
{
	CLEANUP(io_closep) int set = -1;
	int r;

	if (k->fd < 0)
		return;
	r = vault_keys_to_memfd(k->sup->keys, &set);
	if (r == 0)
		r = send_set(k->fd, set);
	if (r < 0)
		(void)actor_timer_set(k->retry, KEYS_RETRY_MS);
}

static void
on_retry(void *arg)
{
	hand_over(arg);
}

static void
on_answer(void *arg, int fd, enum watch_what what)
{
	struct keys *k = arg;
	char word[WORD_SIZE];
	ssize_t n = recv(fd, word, sizeof(word) - 1, MSG_DONTWAIT);

	(void)what;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		disconnect(k);
		return;
	}
	word[n] = '\0';
	k->theirs = strtoll(word, NULL, 10);
	if (k->theirs == 0)
		(void)actor_timer_set(k->retry, KEYS_RETRY_MS);
	answer_waiters(k);
}

int
keys_connect(struct keys *k, int *ret_fd)
{
	int ends[2];

	disconnect(k);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return err_from_errno(errno);
	k->watch = actor_watch_new(k->sup->actor, ends[0], WATCH_READ, on_answer, k);
	if (k->watch == NULL) {
		io_close(&ends[0]);
		io_close(&ends[1]);
		return E_NOMEM;
	}
	k->fd = ends[0];
	k->theirs = vault_keys_current(k->sup->keys);
	*ret_fd = ends[1];
	return 0;
}

/* ---- rotation ---- */

/* Whether the file may be built upon.  Versions may have been added, or old ones removed; but a
 * number never gets a second key, and what is sealed under the current one stays readable. */
static int
is_successor(const struct vault_keys *file, const struct vault_keys *ours)
{
	size_t nfile = vault_keys_count(file), nours = vault_keys_count(ours);

	if (vault_keys_cover(file, ours))
		return 1;
	return vault_keys_cover(ours, file) &&
	    vault_keys_current(file) == vault_keys_current(ours) &&
	    vault_keys_version(file, nfile - 1) == vault_keys_version(ours, nours - 1);
}

int
keys_rotate(struct keys *k, char why[VAULT_WHY_SIZE])
{
	CLEANUP(vault_keys_freep) struct vault_keys *next = NULL;
	struct supervisor *s = k->sup;
	const char *path = s->config->keys_file;
	int r = vault_keys_load(path, geteuid(), &next, why);

	if (r < 0)
		return r;
	if (!is_successor(next, s->keys)) {
		(void)snprintf(why, VAULT_WHY_SIZE,
		    "%.300s: has other keys than those that anvild was started with; put them "
		    "back, or restart anvild first",
		    path);
		return E_INVAL;
	}
	r = vault_keys_rotate(next);
	if (r < 0) {
		(void)snprintf(why, VAULT_WHY_SIZE,
		    "%.300s: has %d versions already; remove those that `anvilctl keys status` "
		    "says are not needed",
		    path, VAULT_VERSIONS_MAX);
		return r;
	}
	/* The loop waits for the disk here, as it does for its own commit: whoever dies after
	 * this finds the version in the file. */
	r = save(s, next, why);
	if (r < 0)
		return r;
	CRASH_POINT("keys_rotated");
	(void)vault_keys_free(s->keys);
	s->keys = TAKE_PTR(next);
	log_event(LOG_LEVEL_INFO, "keys_rotated",
	    LOG_INT("version", vault_keys_current(s->keys)), LOG_STR("file", path));
	hand_over(k);
	CRASH_POINT("keys_handed_over");
	return 0;
}

int
supervisor_rotate_keys(struct supervisor *s, struct turn *t,
    const struct supervisor_rotate_keys_params *p, struct supervisor_rotate_keys_result *ret)
{
	char why[VAULT_WHY_SIZE] = "";
	struct parked *waiter;
	int r;

	(void)p;
	if (s->stopping)
		return turn_fail(t, E_DRAINING, "the supervisor is stopping");
	r = keys_rotate(s->handover, why);
	if (r < 0) {
		log_event(LOG_LEVEL_WARN, "keys_not_rotated",
		    LOG_STR("errorCode", err_symbol(r)), LOG_STR("why", why));
		ret->kind = SUPERVISOR_ROTATE_KEYS_REFUSED;
		ret->u.refused.message = arena_strdup(t->arena, why);
		return ret->u.refused.message != NULL ? 0 : E_NOMEM;
	}
	ret->kind = SUPERVISOR_ROTATE_KEYS_ROTATED;
	ret->u.rotated.version = vault_keys_current(s->keys);
	waiter = turn_park(t);
	if (waiter == NULL)
		return 0;
	if (keys_wait(s->handover, waiter) < 0)
		parked_reply(waiter, ret);
	return TURN_PARKED;
}

/* ---- the rest ---- */

struct keys *
keys_new(struct supervisor *s)
{
	struct keys *k = mem_calloc(1, sizeof(*k));

	if (k == NULL)
		return NULL;
	k->sup = s;
	k->fd = -1;
	STAILQ_INIT(&k->waiters);
	k->retry = actor_timer_new(s->actor, on_retry, k);
	k->patience = actor_timer_new(s->actor, on_patience, k);
	return k->retry != NULL && k->patience != NULL ? k : keys_free(k);
}

struct keys *
keys_free(struct keys *k)
{
	if (k == NULL)
		return NULL;
	k->watch = actor_watch_free(k->watch);
	io_close(&k->fd);
	if (k->patience != NULL)
		answer_waiters(k);
	k->retry = actor_timer_free(k->retry);
	k->patience = actor_timer_free(k->patience);
	free(k);
	return NULL;
}
