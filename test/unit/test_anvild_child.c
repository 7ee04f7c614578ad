/* cmd/anvild/child.c: every state of a resident meets every event. */
#include <string.h>

#include "cmd/anvild/child.h"
#include "gen/supervisor_methods.h"
#include "lib/base/base.h"
#include "test/support/unit.h"

static const char *const wanted[CH_STATES][CH_EVENTS] = {
	/*                 START    READY    EXIT    STOP    TIMEOUT   */
	[CH_DOWN] = { "spawn", "", "", "gone", "" },
	[CH_STARTING] = { "", "is_up", "died", "term", "kill" },
	[CH_UP] = { "", "", "died", "term", "is_well" },
	[CH_BACKOFF] = { "spawn", "", "", "gone", "spawn" },
	[CH_STOPPING] = { "", "", "gone", "", "kill" },
};

static void
every_pair_does_what_the_table_says(void **state)
{
	(void)state;
	for (int s = 0; s < CH_STATES; s++)
		for (int e = 0; e < CH_EVENTS; e++) {
			const char *got = child_reaction(
			    (enum child_state)s, (enum child_event)e);

			if (strcmp(got, wanted[s][e]) != 0)
				fail_msg("state %d, event %d: \"%s\" instead of \"%s\"", s, e,
				    got, wanted[s][e]);
		}
}

/* What keeps a restart from being forgotten: from each state there is a way on. */
static void
no_state_is_a_dead_end(void **state)
{
	(void)state;
	for (int s = 0; s < CH_STATES; s++) {
		int ways = 0;

		for (int e = 0; e < CH_EVENTS; e++)
			ways += *child_reaction((enum child_state)s, (enum child_event)e) != 0;
		assert_true(ways > 0);
	}
	/* Whoever has a process notices its end; whoever waits has a timer. */
	assert_string_not_equal(child_reaction(CH_STARTING, ON_EXIT), "");
	assert_string_not_equal(child_reaction(CH_UP, ON_EXIT), "");
	assert_string_not_equal(child_reaction(CH_STOPPING, ON_EXIT), "");
	assert_string_not_equal(child_reaction(CH_BACKOFF, ON_TIMEOUT), "");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_pair_does_what_the_table_says),
		cmocka_unit_test(no_state_is_a_dead_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
