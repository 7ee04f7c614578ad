/* cmd/anvild/main.c -- the supervisor: forks, watches, restarts; owns the listening sockets,
 * the master keys and the run slots.  Opens supervisor.db and nothing else. */
#include <stdio.h>

#include "cmd/anvild/check.h"
#include "cmd/anvild/options.h"
#include "cmd/anvild/startup.h"
#include "cmd/anvild/supervisor.h"
#include "cmd/anvild/surplus.h"
#include "gen/supervisor_methods.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

static int
print_config(const struct supervisor *s)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;

	if (config_print(s->config, &b) < 0)
		return 1;
	return fwrite(b.data, 1, b.len, stdout) == b.len ? 0 : 1;
}

static int
check_store(const struct supervisor *s)
{
	CLEANUP_FREE char *path = mem_format("%s/supervisor.db", s->config->data_dir);
	CLEANUP_FREE char *lock = mem_format("%s/supervisor.db.lock", s->config->data_dir);
	const struct actor_store_check what = { .program = "anvild",
		.store = "supervisor",
		.path = path,
		.lock_path = lock,
		.more = "",
		.look = supervisor_look };

	return path != NULL && lock != NULL ? actor_check_store(&what) : 1;
}

static int
serve(struct supervisor *s)
{
	char why[STARTUP_WHY_SIZE] = "";
	int r = startup_recover(s, why);

	if (r == 0)
		r = startup_listen(s, why);
	if (r < 0 && why[0] == '\0')
		(void)snprintf(
		    why, sizeof(why), "%s/supervisor.db: %s", s->config->data_dir, err_text(r));
	if (r < 0) {
		(void)fprintf(stderr, "anvild: %s\n", why);
		return 1;
	}
	startup_residents(s);
	r = actor_run(s->actor);
	return r == 0 && !s->failed ? 0 : 1;
}

int
main(int argc, char *argv[])
{
	struct supervisor s = { .lock_fd = -1, .lifeline = { -1, -1 } };
	char why[STARTUP_WHY_SIZE];
	struct options o;
	int status;

	options_read(&o, argc, argv);
	log_set_component("supervisor");
	if (o.check)
		o.test_only = 1; /* touch nothing but the store that is checked */
	if (startup_prepare(&s, &o, why) < 0) {
		(void)fprintf(stderr, "anvild: %s\n", why);
		status = 1;
	} else if (o.check) {
		status = check_store(&s);
	} else if (o.test_only) {
		surplus_note(&s);
		status = print_config(&s);
	} else {
		status = serve(&s);
	}
	supervisor_done(&s);
	return status;
}
