/* cmd/anvil-project/main.c -- one shard of projects: configuration, ledger, queue, leases.
 * Opens project-<n>.db and nothing else; holds secrets only as ciphertext, and no key. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/anvil-project/check.h"
#include "cmd/anvil-project/intake.h"
#include "cmd/anvil-project/leases.h"
#include "cmd/anvil-project/move.h"
#include "cmd/anvil-project/shard.h"
#include "gen/project_methods.h"
#include "lib/base/mem.h"
#include "lib/config/config.h"
#include "lib/wire/wire.h"

#define SHARD_LAST 63
#define CHECK_PAGE 100

static void
on_peer_down(void *ctx, struct rpc_peer *p)
{
	const struct shard *s = ctx;

	if (rpc_peer_role(p) == ROLE_RUN)
		leases_channel_gone(s->leases, p);
}

/* Everything claimed is looked at again: its process may have ended meanwhile. */
static void
on_supervisor_up(void *ctx, struct link *l)
{
	struct shard *s = ctx;

	s->supervisor = l;
	leases_ask_all(s->leases);
	shard_recheck(s);
}

static void
on_end(void *ctx)
{
	shard_free(ctx);
}

static void
on_drain(void *ctx)
{
	const struct shard *s = ctx;

	moves_leave(s->moves);
	intakes_leave(s->intakes);
	actor_drained(s->actor);
}

static const struct proc_option options[] = {
	{ "SHARD", NULL, "number of the shard, 0 to 63", 1 },
};
static const struct proc_role role = { "anvil-project",
	"one shard of anvil's projects: ledger, queue, leases; started by anvild", options,
	ARRAY_LEN(options), 0 };
static const struct actor_desc desc = { .role = ROLE_PROJECT,
	.methods = project_methods,
	.nmethods = &project_methods_count,
	.document = project_document,
	.store = &ledger_store,
	.store_is_truth = 1,
	.inspect = shard_inspect,
	.checks = &shard_checks,
	.on_drain = on_drain,
	.on_end = on_end,
	.on_peer_down = on_peer_down,
	.on_supervisor_up = on_supervisor_up };

/* A project that it has given away counts until the other shard serves it and all know. */
static int
print_moves(struct store *s, struct arena *a, struct buf *out)
{
	struct ledger_move *rows;
	size_t n;
	int r = ledger_moves(s, a, &rows, &n);

	for (size_t i = 0; r == 0 && i < n; i++)
		if (rows[i].where == LEDGER_MOVED)
			(void)buf_printf(out, "%s\"%s on its way to shard %d\"",
			    out->data[out->len - 1] != '[' ? "," : "", rows[i].project_id,
			    (int)rows[i].to);
	return r;
}

/* "owner/project" of all that lives in it, so that nobody takes the shard away from them. */
static int
print_projects(const char *path, struct buf *out)
{
	CLEANUP(store_closep) struct store *s = NULL;
	CLEANUP(arena_freep) struct arena *a = arena_new();
	const char *after = "";
	size_t n = CHECK_PAGE;
	int r = a == NULL ? E_NOMEM : store_open_reader(&ledger_store, path, 0, &s);

	while (r == 0 && n == CHECK_PAGE) {
		struct ledger_project *p;

		r = ledger_project_list(s, a, after, CHECK_PAGE, &p, &n);
		for (size_t i = 0; r == 0 && i < n; i++) {
			/* Slugs need no escapes. */
			(void)buf_printf(out, "%s\"%s/%s\"", *after != '\0' ? "," : "",
			    p[i].owner_slug, p[i].project_slug);
			after = p[i].project_id;
		}
	}
	return r == 0 && out->failed ? E_NOMEM : r < 0 ? r : print_moves(s, a, out);
}

static int
check(const struct actor_place *place)
{
	CLEANUP(buf_done) struct buf more = BUF_INIT;
	struct actor_store_check what = { .program = "anvil-project",
		.store = place->address,
		.path = place->store_path,
		.lock_path = place->lock_path,
		.look = ledger_inspect };
	int r = 0;

	buf_add_str(&more, ",\"projects\":[");
	if (access(place->store_path, F_OK) == 0)
		r = print_projects(place->store_path, &more);
	buf_add_byte(&more, ']');
	what.more = buf_cstr(&more) != NULL ? (const char *)more.data : "";
	return actor_check_store(&what) | (r < 0);
}

static struct config *
read_config(struct proc *p)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct config *c = NULL;

	if (json_text_dump(&text, proc_config(p)) < 0 ||
	    config_from_json((const char *)text.data, text.len, &c) < 0)
		proc_die(p, "bad configuration");
	return c;
}

int
main(int argc, char *argv[])
{
	struct proc *p = proc_start(&role, argc, argv);
	int64_t number = proc_option_int(p, "SHARD", 0, SHARD_LAST, -1);
	CLEANUP(config_freep) struct config *c = read_config(p);
	CLEANUP_FREE char *store = mem_format("%s/project-%d.db", c->data_dir, (int)number);
	CLEANUP_FREE char *lock = mem_format("%s/project-%d.db.lock", c->data_dir, (int)number);
	CLEANUP_FREE char *address = mem_format("project/%d", (int)number);
	struct actor_place place = { .address = address,
		.runtime_dir = c->runtime_dir,
		.lock_path = lock,
		.store_path = store };
	struct shard *s;
	struct actor *a;

	if (store == NULL || lock == NULL || address == NULL)
		proc_die(p, "out of memory");
	if (proc_wants_check(p)) {
		(void)proc_free(p);
		return check(&place);
	}
	a = proc_actor(p, &desc, &place, c->data_dir);
	s = shard_new(a, number);
	if (s == NULL)
		proc_die(p, "out of memory");
	actor_set_ctx(a, s);
	if (actor_outage(a) == NULL && shard_begin(s) < 0)
		proc_die(p, "the store cannot be read");
	return proc_run(p, s);
}
