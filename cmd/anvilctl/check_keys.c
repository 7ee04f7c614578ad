/* Secrets that no key opens. */
#include "cmd/anvilctl/check.h"
#include "cmd/anvilctl/keys_text.h"

static void
add(struct look *l, const char *code, const char *subject, struct buf *text)
{
	if (buf_cstr(text) != NULL)
		finding_add(l->found, code, "ingress", subject, "%s", buf_cstr(text));
	else
		l->found->failed = 1;
}

static void
compare(struct look *l, const struct ingress_keys_status_status *s)
{
	int64_t nother = keys_nother(s);

	for (size_t i = 0; i < s->nversions; i++) {
		const struct key_version *v = &s->versions[i];
		CLEANUP(buf_done) struct buf subject = BUF_INIT, text = BUF_INIT;

		if (v->present)
			continue;
		buf_printf(&subject, "version %lld", (long long)v->version);
		keys_missing(v, &text);
		add(l, "key_missing", buf_cstr(&subject) != NULL ? buf_cstr(&subject) : "",
		    &text);
	}
	if (nother > 0) {
		CLEANUP(buf_done) struct buf text = BUF_INIT;

		keys_other(nother, &text);
		add(l, "key_other", "keys", &text);
	}
}

void
look_keys(struct look *l)
{
	struct ingress_keys_status_params params = { 0 };
	struct ingress_keys_status_result res = { .kind = 0 };

	/* Who is away is a finding already. */
	if (l->has_index && CTL_TRY(l->ctl, "ingress", ingress_keys_status, &params, &res) == 0)
		compare(l, &res.u.status);
}
