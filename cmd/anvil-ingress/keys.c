#include "cmd/anvil-ingress/keys.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cmd/anvil-ingress/reseal.h"
#include "lib/base/crash.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

#define KEYS_TEXT_MAX 16384 /* 64 versions of some 80 bytes */

struct key_socket {
	struct ingress *in;
	int fd;
	struct actor_watch *watch;
};

int
keys_read_start(struct ingress *in)
{
	CLEANUP(buf_wipe) struct buf text = BUF_INIT;
	char why[VAULT_WHY_SIZE];
	int r;

	if (proc_keys(in->proc) == NULL)
		return 0;
	/* A buffer that grows leaves copies behind. */
	r = buf_reserve(&text, KEYS_TEXT_MAX);
	if (r == 0)
		r = json_text_dump(&text, proc_keys(in->proc));
	if (r == 0)
		r = vault_keys_parse((const char *)text.data, text.len, &in->keys, why);
	if (r < 0 && r != E_NOMEM) {
		log_event(LOG_LEVEL_ERROR, "keys_unusable", LOG_STR("why", why));
		r = 0;
	}
	return r;
}

/* ---- newer ones ---- */

/* The descriptor of one message; -1: it brought none, which is also how a process without room
 * for another descriptor learns of it.  0, E_EOF, E_BUSY: there is no message. */
static int
receive(int fd, int *ret_set)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	char mark;
	struct iovec iov = { &mark, 1 };
	struct msghdr msg = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = sizeof(control.room) };
	ssize_t n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	const struct cmsghdr *c;

	*ret_set = -1;
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? E_BUSY : E_EOF;
	c = CMSG_FIRSTHDR(&msg);
	if (c != NULL && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(ret_set, CMSG_DATA(c), sizeof(int));
	return n == 0 ? E_EOF : 0;
}

/* Which version is current here; 0: what came could not be taken, send it anew. */
static void
answer(const struct key_socket *k, int64_t version)
{
	char word[32];
	int n = snprintf(word, sizeof(word), "%lld", (long long)version);

	(void)send(k->fd, word, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void
take(struct key_socket *k, int set)
{
	struct ingress *in = k->in;
	struct vault_keys *keys = NULL;
	char why[VAULT_WHY_SIZE] = "no descriptor came with them";
	int r = set < 0 ? E_NOENT : vault_keys_read_fd(set, &keys, why);

	if (r < 0) {
		log_event(LOG_LEVEL_ERROR, "keys_not_taken",
		    LOG_STR("errorCode", err_symbol(r)), LOG_STR("why", why));
		answer(k, 0);
		return;
	}
	/* Nobody keeps a set or a key of it from one round of the loop to the next. */
	(void)vault_keys_free(in->keys);
	in->keys = keys;
	CRASH_POINT("keys_taken");
	log_event(LOG_LEVEL_INFO, "keys_taken", LOG_INT("version", vault_keys_current(keys)),
	    LOG_INT("versions", vault_keys_count(keys)));
	answer(k, vault_keys_current(keys));
	reseal_kick_all(in->reseal);
}

static void
on_readable(void *arg, int fd, enum watch_what what)
{
	struct key_socket *k = arg;
	CLEANUP(io_closep) int set = -1;
	int r = receive(fd, &set);

	(void)what;
	if (r == E_BUSY)
		return;
	if (r < 0)
		/* The supervisor has gone; the lifeline says what follows from that. */
		actor_watch_pause(k->watch);
	else
		take(k, set);
}

struct key_socket *
keys_listen(struct ingress *in)
{
	struct key_socket *k = mem_calloc(1, sizeof(*k));

	if (k == NULL)
		return NULL;
	k->in = in;
	k->fd = in->keys_fd;
	in->keys_fd = -1;
	if (k->fd < 0)
		return k;
	if (io_set_cloexec(k->fd, 1) == 0)
		k->watch = actor_watch_new(in->actor, k->fd, WATCH_READ, on_readable, k);
	return k->watch != NULL ? k : keys_unlisten(k);
}

struct key_socket *
keys_unlisten(struct key_socket *k)
{
	if (k == NULL)
		return NULL;
	k->watch = actor_watch_free(k->watch);
	io_close(&k->fd);
	free(k);
	return NULL;
}
