/*
 * lib/actor/actor.h -- the skeleton of every process of anvil.
 *
 * A program is a desc (what it is), handlers (generated prototypes), and this main():
 *
 *	static const struct proc_option options[] = {
 *		{ "SHARD", NULL, "number of the shard", 1 },
 *	};
 *	static const struct proc_role role = { "anvil-project", "one shard of projects",
 *		options, ARRAY_LEN(options), 0 };
 *	static const struct actor_desc desc = { .role = ROLE_PROJECT,
 *		.methods = project_methods, .nmethods = &project_methods_count,
 *		.document = project_document, .store = &shard_store, .inspect = shard_inspect };
 *
 *	int
 *	main(int argc, char *argv[])
 *	{
 *		struct proc *p = proc_start(&role, argc, argv);
 *		struct shard_config c;
 *		struct shard *s;
 *
 *		if (shard_config_read(proc_config(p), proc_option(p, "SHARD"), &c) < 0)
 *			proc_die(p, "bad configuration");
 *		if (proc_wants_check(p))
 *			return shard_check(&c);
 *		s = shard_new(proc_actor(p, &desc, &c.place, c.data_dir), &c);
 *		if (s == NULL)
 *			proc_die(p, "out of memory");
 *		return proc_run(p, s);
 *	}
 */
#ifndef LIB_ACTOR_ACTOR_H
#define LIB_ACTOR_ACTOR_H

#include "lib/actor/backup.h"
#include "lib/actor/check.h"
#include "lib/actor/crash.h"
#include "lib/actor/host.h"
#include "lib/actor/proc.h"
#include "lib/actor/timer.h"
#include "lib/actor/trace.h"
#include "lib/actor/turn.h"
#include "lib/actor/worker.h"

#endif
