/*
 * test/unit/test_anvild_keys.c -- what a rotation may build upon, what it leaves in files, and
 * what comes over the socket of ingress.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cmd/anvild/keys.h"
#include "cmd/anvild/supervisor.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "test/support/turn_rig.h"
#include "test/support/unit.h"

#define KEY_A "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
#define KEY_B "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
#define ONE   "{\"current\":1,\"keys\":{\"1\":\"" KEY_A "\"}}"

struct test {
	struct fix *fix;
	struct supervisor s;
	struct config config;
	char path[128], spare[128];
	char why[VAULT_WHY_SIZE];
	int theirs; /* The end that ingress has; -1: none. */
};

static int
setup(void **state)
{
	struct test *t = mem_calloc(1, sizeof(*t));
	void *fix;

	assert_non_null(t);
	assert_int_equal(turn_rig_setup(&fix), 0);
	t->fix = fix;
	(void)snprintf(t->path, sizeof(t->path), "%s/keys.json", t->fix->dir);
	(void)snprintf(t->spare, sizeof(t->spare), "%s/keys.next.json", t->fix->dir);
	t->config.keys_file = t->path;
	t->config.data_dir = t->fix->dir;
	t->s.config = &t->config;
	t->s.actor = t->fix->a;
	t->theirs = -1;
	t->s.handover = keys_new(&t->s);
	assert_non_null(t->s.handover);
	*state = t;
	return 0;
}

static int
teardown(void **state)
{
	struct test *t = *state;
	void *fix = t->fix;

	t->s.handover = keys_free(t->s.handover);
	vault_keys_free(t->s.keys);
	io_close(&t->theirs);
	(void)unlink(t->path);
	(void)unlink(t->spare);
	mem_free(t);
	return turn_rig_teardown(&fix);
}

static void
put(const char *path, const char *text)
{
	assert_int_equal(io_write_file(AT_FDCWD, path, text, strlen(text), 0600), 0);
}

static int
load(struct test *t)
{
	t->s.keys = vault_keys_free(t->s.keys);
	return keys_load(&t->s, geteuid(), getegid(), t->why);
}

/* The file has so many versions, this one current. */
static void
expect_file(const struct test *t, int64_t current, size_t n)
{
	CLEANUP(vault_keys_freep) struct vault_keys *k = NULL;
	char why[VAULT_WHY_SIZE];

	assert_int_equal(vault_keys_load(t->path, geteuid(), &k, why), 0);
	assert_int_equal(vault_keys_current(k), current);
	assert_int_equal(vault_keys_count(k), n);
}

static void
expect_refused(struct test *t, const char *says)
{
	CLEANUP(buf_done) struct buf before = BUF_INIT, after = BUF_INIT;
	int64_t current = vault_keys_current(t->s.keys);

	(void)io_read_file(AT_FDCWD, t->path, 100000, &before);
	assert_true(keys_rotate(t->s.handover, t->why) < 0);
	assert_non_null(strstr(t->why, t->path));
	if (strstr(t->why, says) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", t->why, says);
	assert_int_equal(vault_keys_current(t->s.keys), current);
	(void)io_read_file(AT_FDCWD, t->path, 100000, &after);
	assert_int_equal(before.len, after.len);
	if (before.len > 0)
		assert_memory_equal(before.data, after.data, before.len);
}

/* ---- tests ---- */

static void
a_rotation_is_in_the_file_and_in_what_is_forked_next(void **state)
{
	struct test *t = *state;

	assert_int_equal(load(t), 0); /* There was none: one is made. */
	expect_file(t, 1, 1);
	for (int64_t v = 2; v < 5; v++) {
		assert_int_equal(keys_rotate(t->s.handover, t->why), 0);
		assert_int_equal(vault_keys_current(t->s.keys), v);
		expect_file(t, v, (size_t)v);
	}
	assert_int_equal(load(t), 0);
	assert_int_equal(vault_keys_count(t->s.keys), 4);
}

static void
a_file_with_more_or_fewer_of_the_same_keys_is_built_upon(void **state)
{
	struct test *t = *state;

	put(t->path, ONE);
	assert_int_equal(load(t), 0);
	/* Somebody has added one. */
	put(t->path, "{\"current\":4,\"keys\":{\"1\":\"" KEY_A "\",\"4\":\"" KEY_B "\"}}");
	assert_int_equal(keys_rotate(t->s.handover, t->why), 0);
	expect_file(t, 5, 3);
	/* Somebody has removed what is not needed any more. */
	put(t->path, ONE);
	assert_int_equal(load(t), 0);
	assert_int_equal(keys_rotate(t->s.handover, t->why), 0);
	assert_int_equal(keys_rotate(t->s.handover, t->why), 0);
	{
		CLEANUP(buf_wipe) struct buf text = BUF_INIT;
		char *key;

		assert_int_equal(io_read_file(AT_FDCWD, t->path, 1000, &text), 0);
		assert_non_null(buf_cstr(&text));
		key = strstr((char *)text.data, "\"1\":");
		assert_non_null(key);
		memset(key, ' ', strcspn(key, ",") + 1);
		put(t->path, (const char *)text.data);
	}
	assert_int_equal(keys_rotate(t->s.handover, t->why), 0);
	expect_file(t, 4, 3);
	assert_false(vault_keys_have(t->s.keys, 1));
}

static void
a_file_of_other_keys_is_left_alone(void **state)
{
	struct test *t = *state;
	struct buf many = BUF_INIT;

	put(t->path, "{\"current\":2,\"keys\":{\"1\":\"" KEY_A "\",\"2\":\"" KEY_B "\"}}");
	assert_int_equal(load(t), 0);
	put(t->path, "{\"current\":2,\"keys\":{\"1\":\"" KEY_B "\",\"2\":\"" KEY_B "\"}}");
	expect_refused(t, "has other keys");
	/* The number of the newest would be given again. */
	put(t->path, ONE);
	expect_refused(t, "has other keys");
	put(t->path, "{\"current\":2,\"keys\":{");
	expect_refused(t, "not JSON");
	assert_int_equal(unlink(t->path), 0);
	expect_refused(t, "No such file");
	buf_printf(&many, "{\"current\":1,\"keys\":{");
	for (int i = 1; i <= VAULT_VERSIONS_MAX; i++)
		buf_printf(&many, "%s\"%d\":\"" KEY_A "\"", i > 1 ? "," : "", i);
	buf_printf(&many, "}}");
	put(t->path, buf_cstr(&many));
	buf_done(&many);
	assert_int_equal(load(t), 0);
	expect_refused(t, "keys status");
}

static void
what_a_crash_interrupted_is_finished_by_the_next_start(void **state)
{
	struct test *t = *state;
	const char *two = "{\"current\":2,\"keys\":{\"1\":\"" KEY_A "\",\"2\":\"" KEY_B "\"}}";
	const char *const files[] = { ONE, "{\"current\": 2, \"ke", "", two };

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		put(t->path, files[i]);
		put(t->spare, two);
		assert_int_equal(load(t), 0);
		assert_int_equal(vault_keys_current(t->s.keys), 2);
		assert_int_equal(keys_settle(&t->s, t->why), 0);
		expect_file(t, 2, 2);
		assert_int_equal(access(t->spare, F_OK), -1);
		assert_int_equal(keys_settle(&t->s, t->why), 0);
	}
	/* Other keys than those of the file are nobody's rotation. */
	put(t->spare, "{\"current\":3,\"keys\":{\"3\":\"" KEY_A "\"}}");
	assert_int_equal(load(t), 0);
	assert_int_equal(keys_settle(&t->s, t->why), 0);
	expect_file(t, 2, 2);
	/* Without them, what is broken is broken. */
	put(t->path, "{\"current\": 2, \"ke");
	assert_int_equal(load(t), E_PARSE);
	assert_non_null(strstr(t->why, t->path));
}

/* The set that has come; -1 when none has. */
static int
receive(const struct test *t)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	char mark[8];
	struct iovec iov = { mark, sizeof(mark) };
	struct msghdr msg = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = sizeof(control.room) };
	int fd;

	if (recvmsg(t->theirs, &msg, MSG_DONTWAIT) <= 0)
		return -1;
	assert_non_null(CMSG_FIRSTHDR(&msg));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

static void
expect_received(const struct test *t, int64_t version)
{
	CLEANUP(vault_keys_freep) struct vault_keys *k = NULL;
	CLEANUP(io_closep) int fd = receive(t);
	char why[VAULT_WHY_SIZE];

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, "x", 1, 0), -1); /* It is sealed. */
	assert_int_equal(vault_keys_read_fd(fd, &k, why), 0);
	assert_int_equal(vault_keys_current(k), version);
}

static void
each_set_comes_over_the_socket_of_the_newest_ingress(void **state)
{
	struct test *t = *state;
	int before;

	put(t->path, ONE);
	assert_int_equal(load(t), 0);
	assert_int_equal(keys_rotate(t->s.handover, t->why), 0); /* Nobody is there. */
	assert_int_equal(keys_connect(t->s.handover, &t->theirs), 0);
	assert_int_equal(receive(t), -1); /* It has them already. */
	assert_int_equal(keys_rotate(t->s.handover, t->why), 0);
	assert_int_equal(keys_rotate(t->s.handover, t->why), 0);
	expect_received(t, 3);
	expect_received(t, 4);
	assert_int_equal(receive(t), -1);
	assert_int_equal(send(t->theirs, "4", 1, MSG_NOSIGNAL), 1);
	actor_step(t->fix->a);
	/* Another one is forked, for whatever reason. */
	before = t->theirs;
	assert_int_equal(keys_connect(t->s.handover, &t->theirs), 0);
	assert_int_equal(keys_rotate(t->s.handover, t->why), 0);
	expect_received(t, 5);
	assert_int_equal(send(before, "4", 1, MSG_NOSIGNAL), -1);
	io_close(&before);
	/* It dies. */
	io_close(&t->theirs);
	actor_step(t->fix->a);
	assert_int_equal(keys_rotate(t->s.handover, t->why), 0);
	expect_file(t, 6, 6);
}

#define WITH_RIG(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_RIG(a_rotation_is_in_the_file_and_in_what_is_forked_next),
		WITH_RIG(a_file_with_more_or_fewer_of_the_same_keys_is_built_upon),
		WITH_RIG(a_file_of_other_keys_is_left_alone),
		WITH_RIG(what_a_crash_interrupted_is_finished_by_the_next_start),
		WITH_RIG(each_set_comes_over_the_socket_of_the_newest_ingress),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
