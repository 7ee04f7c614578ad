#include "test/support/webhook_rig.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "test/support/unit.h"

const char *
rig_whk(const struct ledger_rig *rig, int n)
{
	char *id = arena_format(rig->a, "whk_%022d", n);

	assert_non_null(id);
	return id;
}

const char *
rig_sha256(const struct ledger_rig *rig, int n)
{
	char *hex = arena_format(rig->a, "%064x", (unsigned)n);

	assert_non_null(hex);
	return hex;
}

struct ledger_webhook
rig_webhook(const struct ledger_rig *rig, int project, const char *provider, int n)
{
	struct ledger_webhook w = { .webhook_id = rig_whk(rig, n),
		.project_id = rig_prj(rig, project),
		.provider = provider,
		.enabled = 1,
		.instance_url = strcmp(provider, "gitea") == 0 ? "https://git.example" : NULL,
		.secret = { arena_format(rig->a, "c2VjcmV0%d", n), "bm9uY2U", 1 } };

	assert_int_equal(ledger_webhook_create(rig->s, rig->a, &w, rig->now), 0);
	return w;
}

struct ledger_webhook
rig_stored(const struct ledger_rig *rig, int project, const char *provider)
{
	struct ledger_webhook w;

	assert_int_equal(
	    ledger_webhook_get(rig->s, rig->a, rig_prj(rig, project), provider, &w), 0);
	return w;
}

struct ledger_offer
rig_push(const struct ledger_rig *rig, const struct ledger_webhook *w, int n, int run)
{
	return (struct ledger_offer) { .webhook_id = w->webhook_id,
		.version = w->updated_at,
		.delivery = { .project_id = w->project_id,
		    .provider = w->provider,
		    .delivery_id = arena_format(rig->a, "delivery-%d", n),
		    .event_kind = "push",
		    .event_name = "push",
		    .repository_url = "https://git.example/acme/app",
		    .ref = "refs/heads/main",
		    .branch = "main",
		    .commit_sha = "0123456789abcdef0123456789abcdef01234567",
		    .before_sha = "89abcdef0123456789abcdef0123456789abcdef",
		    .body_sha256 = rig_sha256(rig, n),
		    .body_bytes = 1000 + n,
		    .outcome = "accepted",
		    .reason = "run created",
		    .run_id = rig_run(rig, run) } };
}

struct ledger_offer
rig_ping(const struct ledger_rig *rig, const struct ledger_webhook *w, int n)
{
	struct ledger_offer o = rig_push(rig, w, n, 999999);

	o.delivery.event_kind = o.delivery.event_name = "ping";
	o.delivery.ref = o.delivery.branch = NULL;
	o.delivery.commit_sha = o.delivery.before_sha = NULL;
	o.delivery.outcome = "ignored_ping";
	o.delivery.reason = "ping";
	return o;
}

struct ledger_recorded
rig_record(const struct ledger_rig *rig, const struct ledger_offer *o)
{
	struct ledger_at at = rig_at(rig);
	struct ledger_recorded rec;

	assert_int_equal(ledger_record(&at, o, &rec), 0);
	return rec;
}

/* ---- looking ---- */

int
rig_holds(const struct ledger_rig *rig, const char *fmt, ...)
{
	char condition[2048], sql[2200];
	va_list ap;
	int n, r;

	va_start(ap, fmt);
	n = vsnprintf(condition, sizeof(condition), fmt, ap);
	va_end(ap);
	assert_in_range(n, 1, (int)sizeof(condition) - 1);
	/* A store is read by its named statements alone: one that does not hold is an error. */
	(void)snprintf(
	    sql, sizeof(sql), "SELECT CASE WHEN (%s) THEN 1 ELSE json('') END", condition);
	r = store_exec(rig->s, sql);
	if (r != 0 && strstr(store_error(rig->s), "malformed JSON") == NULL)
		fail_msg("%s: %s", condition, store_error(rig->s));
	return r == 0;
}

int
rig_has_deliveries(const struct ledger_rig *rig, int n)
{
	return rig_holds(rig, "(SELECT count(*) FROM project_webhook_deliveries) = %d", n);
}
