#include "lib/record/forms.h"

#include <string.h>

#include "lib/base/enc.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/record/redact.h"

/* Users that checkout pairs with a bare token: public words, no secrets. */
static const char *const fixed_users[] = { "x-access-token", "oauth2" };

/* What an encoder may leave as it is besides letters, digits and `-._`: `~` alone (RFC 3986),
 * encodeURIComponent(), the user information of a URL, a path, encodeURI(); a form, and those
 * that know no `~`. */
static const char *const kept_sets[] = { "~", "~!'()*", "~!$&'()*+,;=", "~/",
	"~!#$&'()*+,/:;=?@", "*", "" };

static void
add(struct forms *f, const void *p, size_t n)
{
	uint32_t end;

	if (n < REDACT_MIN_BYTES)
		return;
	(void)buf_add(&f->bytes, p, n);
	end = (uint32_t)f->bytes.len;
	(void)buf_add(&f->ends, &end, sizeof(end));
}

/* The same digits in the URL alphabet. */
static void
add_both_alphabets(struct forms *f, char *text, size_t n)
{
	add(f, text, n);
	for (size_t i = 0; i < n; i++)
		text[i] = text[i] == '+' ? '-' : text[i] == '/' ? '_' : text[i];
	add(f, text, n);
}

/* ${p} as a whole value, with and without padding. */
static int
add_base64(struct forms *f, const char *p, size_t n)
{
	size_t full = (n + 2) / 3 * 4, bare = (n * 4 + 2) / 3;
	CLEANUP_FREE char *text = mem_alloc(full + 1);

	if (text == NULL)
		return E_NOMEM;
	base64_encode(p, n, text);
	add_both_alphabets(f, text, full);
	if (bare != full) {
		base64_encode(p, n, text);
		add_both_alphabets(f, text, bare);
	}
	mem_wipe(text, full);
	return 0;
}

/* ${p} somewhere inside a longer value: the digits that it alone decides, for each of the
 * three places where it can begin. */
static int
add_base64_inside(struct forms *f, const char *p, size_t n)
{
	CLEANUP_FREE char *padded = mem_calloc(1, n + 2);
	CLEANUP_FREE char *text = mem_alloc((n + 4) / 3 * 4 + 1);

	if (padded == NULL || text == NULL)
		return E_NOMEM;
	for (size_t before = 0; before < 3; before++) {
		size_t from = (before * 8 + 5) / 6, to = (before + n) * 8 / 6;

		memcpy(padded + before, p, n);
		base64_encode(padded, before + n, text);
		add_both_alphabets(f, text + from, to - from);
		padded[before] = 0;
	}
	mem_wipe(padded, n + 2);
	mem_wipe(text, (n + 4) / 3 * 4);
	return 0;
}

/* `user:secret` as the Authorization header of Basic carries it. */
static int
add_basic(struct forms *f, const char *user, const char *p, size_t n)
{
	size_t nuser = strlen(user), size = nuser + 1 + n;
	CLEANUP_FREE char *pair = mem_alloc(size);
	int r;

	if (pair == NULL)
		return E_NOMEM;
	memcpy(pair, user, nuser);
	pair[nuser] = ':';
	memcpy(pair + nuser + 1, p, n);
	r = add_base64(f, pair, size);
	mem_wipe(pair, size);
	return r;
}

static int
is_unreserved(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	    c == '-' || c == '.' || c == '_';
}

static int
add_percent(struct forms *f, const char *p, size_t n, const char *kept, const char *digits)
{
	CLEANUP_FREE char *text = mem_alloc(3 * n);
	size_t len = 0;

	if (text == NULL)
		return E_NOMEM;
	for (size_t i = 0; i < n; i++) {
		uint8_t c = (uint8_t)p[i];

		if (is_unreserved(p[i]) || (c != 0 && strchr(kept, c) != NULL)) {
			text[len++] = p[i];
			continue;
		}
		text[len++] = '%';
		text[len++] = digits[c >> 4];
		text[len++] = digits[c & 15];
	}
	add(f, text, len);
	mem_wipe(text, 3 * n);
	return 0;
}

static int
add_all_forms(struct forms *f, const char *p, size_t n)
{
	int r = add_base64(f, p, n);

	add(f, p, n);
	if (r == 0 && n >= REDACT_MIN_BYTES)
		r = add_base64_inside(f, p, n);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(fixed_users); i++)
		r = add_basic(f, fixed_users[i], p, n);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(kept_sets); i++) {
		r = add_percent(f, p, n, kept_sets[i], "0123456789ABCDEF");
		if (r == 0)
			r = add_percent(f, p, n, kept_sets[i], "0123456789abcdef");
	}
	return r;
}

static int
is_fixed_user(const char *p, size_t n)
{
	for (size_t i = 0; i < ARRAY_LEN(fixed_users); i++)
		if (n == strlen(fixed_users[i]) && memcmp(p, fixed_users[i], n) == 0)
			return 1;
	return 0;
}

int
forms_make(const char *token, size_t n, struct forms *f)
{
	const char *colon = memchr(token, ':', n);
	size_t nuser = colon != NULL ? (size_t)(colon - token) : 0;
	int r;

	/* More than all forms take, so that growing leaves no copies behind in freed memory. */
	r = buf_reserve(&f->bytes, 160 * n + 2048);
	if (r == 0)
		r = buf_reserve(&f->ends, 512);
	if (r == 0)
		r = add_all_forms(f, token, n);
	if (r == 0 && nuser != 0 && !is_fixed_user(token, nuser))
		r = add_all_forms(f, token, nuser);
	if (r == 0 && colon != NULL && nuser + 1 < n)
		r = add_all_forms(f, colon + 1, n - nuser - 1);
	return r == 0 && (f->bytes.failed || f->ends.failed) ? E_NOMEM : r;
}
