#include "test/support/forge_rig.h"

#include <string.h>
#include <strings.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"

char *
rig_json(const char *text)
{
	char *copy = mem_strdup(text);

	must(copy != NULL);
	for (char *p = copy; *p != '\0'; p++)
		if (*p == '\'')
			*p = '"';
	return copy;
}

int
rig_scan(const struct webhook_forge *f, const void *text, size_t n, size_t piece,
    struct webhook_scan **ret, struct webhook_fault *ret_fault)
{
	const char *p = text;

	*ret = webhook_scan_new(f);
	if (*ret == NULL)
		return E_NOMEM;
	if (piece == 0)
		piece = n;
	for (size_t at = 0; at < n; at += piece)
		webhook_scan_feed(*ret, p + at, min_size(piece, n - at));
	return webhook_scan_end(*ret, ret_fault);
}

int
rig_scans_equal(const struct webhook_scan *a, const struct webhook_scan *b)
{
	for (int m = 0; m < WEBHOOK_MEMBER_COUNT; m++) {
		struct webhook_value va = webhook_scan_value(a, (enum webhook_member)m);
		struct webhook_value vb = webhook_scan_value(b, (enum webhook_member)m);

		if (va.type != vb.type || va.n != vb.n || memcmp(va.p, vb.p, va.n) != 0 ||
		    va.too_long != vb.too_long || va.is_zeros != vb.is_zeros)
			return 0;
	}
	return 1;
}

int
rig_make(struct codec *c, const struct webhook_forge *f, const struct webhook_scan *s,
    const char *event_name, const char *project_url, struct verified_payload *ret)
{
	struct webhook_claim claim = {
		.proof = { "x", 1 },
		.event_name = { event_name, strlen(event_name) },
		.delivery_id = { "d-1", 3 },
	};
	struct webhook_facts facts = {
		.forge = f,
		.claim = &claim,
		.project_url = project_url,
		.body_sha256 = RIG_SHA256,
		.body_bytes = 7,
	};

	return webhook_payload_make(c, s, &facts, ret);
}

const char *
rig_header(void *arg, const char *name)
{
	const char *const *list = arg;

	for (size_t i = 0; list[i] != NULL; i += 2)
		if (strcasecmp(list[i], name) == 0)
			return list[i + 1];
	return NULL;
}
