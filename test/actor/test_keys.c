/*
 * test/actor/test_keys.c -- rotations of the key under a steady stream of deliveries, and what is
 * killed in between.  The real anvild, ingress and two shards.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/base.h"
#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "test/support/edge_rig.h"
#include "test/support/sender.h"
#include "test/support/unit.h"

#define PROJECTS    40 /* Some pages in each shard. */
#define PATIENCE_MS 30000
#define LOOK_MS     20

static struct edge_rig rig;
static struct edge_rig *const g = &rig;
static int64_t version = 1; /* That is current. */
static int ndelivered;

/* ---- the key ---- */

struct status {
	int64_t current, failed, silent, resealed;
	int64_t under; /* Secrets under the current version ... */
	int64_t other; /* ... and under all others.             */
	size_t nversions;
	int resealing;
};

static int64_t
number(const json_t *j, const char *name)
{
	return json_integer_value(json_object_get(j, name));
}

/* 0: ingress is not there. */
static int
ask_status(struct status *ret)
{
	int err;
	const json_t *s = edge_rpc(g, "ingress", "ingress.keysStatus", "{}", &err), *v;
	const json_t *list = json_object_get(s, "versions");
	size_t i;

	*ret = (struct status) { .current = number(s, "current"),
		.failed = number(s, "failed"),
		.silent = number(s, "shardsSilent"),
		.resealed = number(s, "resealed"),
		.nversions = json_array_size(list),
		.resealing = json_is_true(json_object_get(s, "resealing")) };
	json_array_foreach (list, i, v)
		*(number(v, "version") == ret->current ? &ret->under : &ret->other) += number(
		    v, "secrets");
	return s != NULL;
}

static void
rotate(void)
{
	int err;
	const json_t *r = edge_rpc(g, "supervisor", "supervisor.rotateKeys", "{}", &err);

	assert_non_null(r);
	assert_string_equal(edge_kind(r), "rotated");
	assert_int_equal(number(r, "version"), ++version);
}

/* One more delivery to one project after the other, until it has got through. */
static void
deliver(int may_fail)
{
	struct mono_time end = mono_add_ms(clock_mono(), PATIENCE_MS);
	struct sender_delivery d = { .event = "ping",
		.body = "{\"zen\":\"x\"}",
		.id = edge_fmt("ping-%d", ndelivered),
		.path = sender_path(
		    PROVIDER_GITHUB, "keys", edge_fmt("p%d", ndelivered % PROJECTS)) };

	ndelivered++;
	if (!may_fail) {
		(void)sender_deliver(g, 200, &d);
		return;
	}
	while (sender_deliver(g, 0, &d) != 200) {
		/* Cut off, or told to come again; never that it is not verified. */
		assert_true(g->status == 0 || g->status == 503);
		assert_true(mono_diff_ms(clock_mono(), end) > 0);
		(void)poll(NULL, 0, LOOK_MS);
	}
}

static void
await_all_current(void)
{
	struct mono_time end = mono_add_ms(clock_mono(), PATIENCE_MS);
	struct status s;

	while (
	    !ask_status(&s) || s.current != version || s.under != PROJECTS || s.silent != 0) {
		if (mono_diff_ms(clock_mono(), end) < 0)
			fail_msg("version %d of %d: %d of %d secrets are under it, %d silent",
			    (int)s.current, (int)version, (int)s.under, PROJECTS,
			    (int)s.silent);
		deliver(1);
		(void)poll(NULL, 0, LOOK_MS);
	}
	assert_int_equal(s.other, 0);
	assert_int_equal(s.failed, 0);
	assert_false(s.resealing);
	assert_int_equal(s.nversions, version);
	for (int i = 0; i < PROJECTS; i++)
		deliver(0);
}

static void
kill_actor(const char *address)
{
	pid_t pid = edge_pid(g, address);

	assert_int_equal(kill(pid, SIGKILL), 0);
}

/* ---- tests ---- */

static void
deliveries_go_on_while_everything_is_sealed_anew(void **state)
{
	struct status s;

	(void)state;
	assert_true(ask_status(&s));
	assert_int_equal(s.under, PROJECTS);
	for (int n = 0; n < 4; n++) {
		struct sender_delivery d = { .event = "ping",
			.body = "{\"zen\":\"half before, half after\"}",
			.id = edge_fmt("half-%d", n),
			.path = sender_path(PROVIDER_GITHUB, "keys", edge_fmt("p%d", n)) };
		struct buf rest = BUF_INIT;
		int fd = sender_begin(g, &d, 9, &rest);

		deliver(0);
		rotate();
		deliver(0);
		if (n % 2 == 0)
			await_all_current();
		sender_finish(g, fd, &rest);
		buf_done(&rest);
		assert_int_equal(g->status, 200);
		assert_string_equal(edge_text(g, "outcome"), "ignored_ping");
	}
	await_all_current();
}

static void
who_is_killed_right_after_a_rotation_goes_on_with_it(void **state)
{
	static const char *const victims[] = { "ingress", "project/0", "project/1" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(victims); i++) {
		rotate();
		kill_actor(victims[i]);
		deliver(1);
		await_all_current();
	}
}

static void
who_is_killed_in_the_middle_goes_on_with_it(void **state)
{
	static const char *const victims[] = { "ingress", "project/0", "ingress", "project/1" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(victims); i++) {
		struct status s = { .under = 0 };
		struct mono_time end = mono_add_ms(clock_mono(), PATIENCE_MS);

		rotate();
		/* Some have been, or all: it is not waited for. */
		while (s.under < 5 && mono_diff_ms(clock_mono(), end) > 0)
			(void)ask_status(&s);
		assert_int_equal(s.current, version);
		kill_actor(victims[i]);
		deliver(1);
		await_all_current();
	}
}

static void
an_ingress_that_takes_nothing_has_the_keys_when_it_is_started_anew(void **state)
{
	pid_t pid = edge_pid(g, "ingress");

	(void)state;
	assert_int_equal(kill(pid, SIGSTOP), 0);
	rotate();
	rotate();
	assert_int_equal(kill(pid, SIGKILL), 0);
	deliver(1);
	await_all_current();
	/* And one that only was slow has them as it goes on. */
	pid = edge_pid(g, "ingress");
	assert_int_equal(kill(pid, SIGSTOP), 0);
	rotate();
	assert_int_equal(kill(pid, SIGCONT), 0);
	await_all_current();
	assert_int_equal(edge_pid(g, "ingress"), pid);
}

static void
rotations_one_upon_the_other_end_with_the_newest(void **state)
{
	(void)state;
	for (int i = 0; i < 10; i++) {
		rotate();
		deliver(i > 3);
		if (i == 3)
			kill_actor("project/0");
	}
	await_all_current();
}

/* Neither a key nor a secret, and nobody had to go without. */
static void
nothing_of_it_is_in_the_log(void **state)
{
	CLEANUP(buf_done) struct buf log = BUF_INIT, keys = BUF_INIT;
	CLEANUP_FREE char *path = mem_format("%s/log", g->dir);
	CLEANUP_FREE char *file = mem_format("%s/keys.json", g->dir);
	json_t *j = NULL;
	const char *name;
	const json_t *key;

	(void)state;
	assert_int_equal(io_read_file(AT_FDCWD, path, 64u << 20, &log), 0);
	assert_int_equal(io_read_file(AT_FDCWD, file, 1u << 20, &keys), 0);
	assert_int_equal(json_text_parse((const char *)keys.data, keys.len, 8, &j), 0);
	assert_int_equal(json_object_size(json_object_get(j, "keys")), version);
	assert_int_equal(number(j, "current"), version);
	json_object_foreach (json_object_get(j, "keys"), name, key)
		assert_null(strstr(buf_cstr(&log), json_string_value(key)));
	json_decref(j);
	assert_null(strstr(buf_cstr(&log), SENDER_SECRET));
	assert_null(strstr(buf_cstr(&log), "secret_not_opened"));
	assert_null(strstr(buf_cstr(&log), "webhook_secret_unreadable"));
	assert_non_null(strstr(buf_cstr(&log), "\"event\":\"keys_rotated\""));
	assert_non_null(strstr(buf_cstr(&log), "\"event\":\"keys_resealed\""));
}

/* ---- the rig ---- */

static int
setup(void **state)
{
	char project[96];

	(void)state;
	edge_start(g);
	edge_sign_in(g, "keys");
	for (int i = 0; i < PROJECTS; i++)
		(void)sender_project(g, PROVIDER_GITHUB, edge_fmt("p%d", i), project);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	return edge_stop(g);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(deliveries_go_on_while_everything_is_sealed_anew),
		cmocka_unit_test(who_is_killed_right_after_a_rotation_goes_on_with_it),
		cmocka_unit_test(who_is_killed_in_the_middle_goes_on_with_it),
		cmocka_unit_test(
		    an_ingress_that_takes_nothing_has_the_keys_when_it_is_started_anew),
		cmocka_unit_test(rotations_one_upon_the_other_end_with_the_newest),
		cmocka_unit_test(nothing_of_it_is_in_the_log),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
