#include "cmd/anvilctl/keys_text.h"

#include "lib/base/base.h"
#include "lib/base/err.h"

#define PROJECTS_SHOWN 5

static const char *
secrets(int64_t n)
{
	return n == 1 ? "secret" : "secrets";
}

static void
add_projects(const struct key_version *v, struct buf *out)
{
	size_t n = min_size(v->nprojects, PROJECTS_SHOWN);

	for (size_t i = 0; i < n; i++)
		(void)buf_printf(out, "%s%s", i == 0 ? " of " : ", ", v->projects[i]);
	if (v->nprojects > n)
		(void)buf_add_str(out, " and others");
}

static void
add_progress(const struct ingress_keys_status_status *s, struct buf *out)
{
	if (s->resealing)
		(void)buf_add_str(out, "secrets are being sealed anew");
	else if (s->shards_silent == 0)
		(void)buf_add_str(out, "nothing is left to be sealed anew");
	else
		(void)buf_add_str(out, "nothing that is known of is left to be sealed anew");
	(void)buf_printf(out, "; %lld done since ingress began\n", (long long)s->resealed);
	if (s->shards_silent == 0)
		return;
	keys_silent(s, out);
	(void)buf_printf(out, "; %s secrets are not counted here, so keep every version\n",
	    s->nsilent_shards == 1      ? "its"
		: s->nsilent_shards > 1 ? "their"
					: "some");
}

void
keys_silent(const struct ingress_keys_status_status *s, struct buf *out)
{
	for (size_t i = 0; i < s->nsilent_shards; i++)
		(void)buf_printf(out, "%sproject/%lld",
		    i == 0                          ? ""
			: i + 1 < s->nsilent_shards ? ", "
						    : " and ",
		    (long long)s->silent_shards[i]);
	(void)buf_add_str(out,
	    s->nsilent_shards > 0 ? " did not answer (`anvilctl health` may tell why)"
				  : "a project was between two shards");
}

void
keys_missing(const struct key_version *v, struct buf *out)
{
	(void)buf_printf(out, "version %lld is not in the keys file: %lld %s",
	    (long long)v->version, (long long)v->secrets, secrets(v->secrets));
	add_projects(v, out);
	(void)buf_add_str(out,
	    " cannot be opened; put that key back and restart anvild, or set those "
	    "tokens and rotate those webhooks");
}

int64_t
keys_nother(const struct ingress_keys_status_status *s)
{
	int64_t n = s->failed;

	for (size_t i = 0; i < s->nversions; i++)
		if (!s->versions[i].present)
			n -= s->versions[i].secrets;
	return n;
}

void
keys_other(int64_t n, struct buf *out)
{
	(void)buf_printf(out,
	    "%lld %s cannot be opened with the key of their version, which is another than "
	    "they were sealed with; put the former keys back and restart anvild",
	    (long long)n, secrets(n));
}

static void
add_version(
    const struct ingress_keys_status_status *s, const struct key_version *v, struct buf *out)
{
	long long version = v->version, n = v->secrets;

	if (!v->present) {
		keys_missing(v, out);
		(void)buf_add_str(out, "\n");
	} else if (v->version == s->current) {
		return;
	} else if (n > 0) {
		(void)buf_printf(
		    out, "version %lld is still needed for %lld %s", version, n, secrets(n));
		add_projects(v, out);
		(void)buf_add_str(out, "\n");
	} else if (s->shards_silent == 0) {
		(void)buf_printf(out,
		    "version %lld is not needed any more and may be removed from the keys "
		    "file\n",
		    version);
	}
}

int
keys_text(const struct ingress_keys_status_status *s, struct buf *out)
{
	int64_t nother = keys_nother(s);

	if (!s->has_current)
		(void)buf_add_str(
		    out, "ingress has no usable key: nothing can be sealed or opened\n");
	add_progress(s, out);
	for (size_t i = 0; i < s->nversions; i++)
		add_version(s, &s->versions[i], out);
	if (nother > 0) {
		keys_other(nother, out);
		(void)buf_add_str(out, "\n");
	}
	return out->failed ? E_NOMEM : 0;
}
