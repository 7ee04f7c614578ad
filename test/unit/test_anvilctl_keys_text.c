#include <string.h>

#include "cmd/anvilctl/keys_text.h"
#include "lib/base/base.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "test/support/unit.h"

#define MANY 7

static const char *const projects[MANY] = { "prj_a", "prj_b", "prj_c", "prj_d", "prj_e",
	"prj_f", "prj_g" };

/* One old version, and version 2, which is current. */
static void
expect(const struct ingress_keys_status_status *s, const char *text)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;

	assert_int_equal(keys_text(s, &b), 0);
	assert_string_equal(buf_cstr(&b), text);
}

static void
an_old_version_may_go_when_nothing_is_under_it(void **state)
{
	struct key_version v[] = { { .version = 1, .present = 1 },
		{ .version = 2, .present = 1, .secrets = 9 } };
	const int64_t silent[] = { 1, 4, 5 };
	struct ingress_keys_status_status s = {
		.has_current = 1, .current = 2, .versions = v, .nversions = 2, .resealed = 9
	};

	(void)state;
	expect(&s,
	    "nothing is left to be sealed anew; 9 done since ingress began\n"
	    "version 1 is not needed any more and may be removed from the keys file\n");
	/* Nobody knows what a silent shard has. */
	s.shards_silent = 1;
	s.silent_shards = silent;
	s.nsilent_shards = 1;
	expect(&s,
	    "nothing that is known of is left to be sealed anew; 9 done since ingress began\n"
	    "project/1 did not answer (`anvilctl health` may tell why); its secrets are not "
	    "counted here, so keep every version\n");
	s.shards_silent = 3;
	s.nsilent_shards = 3;
	expect(&s,
	    "nothing that is known of is left to be sealed anew; 9 done since ingress began\n"
	    "project/1, project/4 and project/5 did not answer (`anvilctl health` may tell "
	    "why); their secrets are not counted here, so keep every version\n");
	/* Or what it had has gone to another meanwhile. */
	s.shards_silent = 1;
	s.nsilent_shards = 0;
	expect(&s,
	    "nothing that is known of is left to be sealed anew; 9 done since ingress began\n"
	    "a project was between two shards; some secrets are not counted here, so keep "
	    "every version\n");
}

static void
what_needs_an_old_version_is_named(void **state)
{
	struct key_version v[] = {
		{ .version = 1,
		    .present = 1,
		    .secrets = 8,
		    .projects = projects,
		    .nprojects = MANY },
		{ .version = 2, .present = 1 },
	};
	struct ingress_keys_status_status s = {
		.has_current = 1, .current = 2, .versions = v, .nversions = 2, .resealing = 1
	};

	(void)state;
	expect(&s,
	    "secrets are being sealed anew; 0 done since ingress began\n"
	    "version 1 is still needed for 8 secrets of prj_a, prj_b, prj_c, prj_d, prj_e "
	    "and others\n");
}

static void
what_cannot_be_opened_is_told_with_what_helps(void **state)
{
	struct key_version v[] = {
		{ .version = 1, .secrets = 1, .projects = projects, .nprojects = 1 },
		{ .version = 2, .present = 1, .secrets = 3 },
	};
	struct ingress_keys_status_status s = {
		.has_current = 1, .current = 2, .versions = v, .nversions = 2, .failed = 3
	};

	(void)state;
	expect(&s,
	    "nothing is left to be sealed anew; 0 done since ingress began\n"
	    "version 1 is not in the keys file: 1 secret of prj_a cannot be opened; put that "
	    "key back and restart anvild, or set those tokens and rotate those webhooks\n"
	    "2 secrets cannot be opened with the key of their version, which is another than "
	    "they were sealed with; put the former keys back and restart anvild\n");
	s = (struct ingress_keys_status_status) { .failed = 0 };
	expect(&s,
	    "ingress has no usable key: nothing can be sealed or opened\n"
	    "nothing is left to be sealed anew; 0 done since ingress began\n");
}

static void
no_memory_is_told(void **state)
{
	const struct ingress_keys_status_status s = { .current = 1 };
	struct buf b = BUF_INIT;

	(void)state;
	mem_fault_arm(0);
	assert_int_equal(keys_text(&s, &b), E_NOMEM);
	assert_true(mem_fault_hit());
	mem_fault_arm(-1);
	buf_done(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_old_version_may_go_when_nothing_is_under_it),
		cmocka_unit_test(what_needs_an_old_version_is_named),
		cmocka_unit_test(what_cannot_be_opened_is_told_with_what_helps),
		cmocka_unit_test(no_memory_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
