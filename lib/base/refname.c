#include "lib/base/refname.h"

#include <string.h>

#include "lib/base/base.h"
#include "lib/base/err.h"
#include "lib/base/utf8.h"

#define HEADS     "refs/heads/"
#define HEADS_LEN (sizeof(HEADS) - 1)

static int
starts_with(const char *p, size_t n, const char *word)
{
	size_t len = strlen(word);

	return n >= len && memcmp(p, word, len) == 0;
}

static int
ends_with(const char *p, size_t n, const char *word)
{
	size_t len = strlen(word);

	return n >= len && memcmp(p + n - len, word, len) == 0;
}

/* What is wrong with one component, or NULL. */
static const char *
component_fault(const char *p, size_t n)
{
	if (n == 0)
		return "A name must not begin or end with \"/\" or contain \"//\".";
	if (p[0] == '.')
		return "No part of a name between slashes may begin with \".\".";
	if (ends_with(p, n, ".lock"))
		return "No part of a name between slashes may end in \".lock\".";
	return NULL;
}

/* What is wrong with the characters from ${p} on, or NULL; *ret_len is the length of the
 * first one. */
static const char *
char_fault(const char *p, size_t n, size_t *ret_len)
{
	uint32_t cp = 0;

	*ret_len = utf8_decode(p, n, &cp);
	if (*ret_len == 0)
		return "A name must be valid UTF-8.";
	if (utf8_is_control(cp))
		return "A name must not contain control characters.";
	if (cp < 0x80 && strchr(" ~^:?*[\\", (int)cp) != NULL)
		return "A name must not contain a space or any of ~ ^ : ? * [ \\.";
	if (starts_with(p, n, ".."))
		return "A name must not contain \"..\".";
	if (starts_with(p, n, "@{"))
		return "A name must not contain \"@{\".";
	return NULL;
}

/* What `git check-ref-format` has against all of it, or NULL. */
static const char *
format_fault(const char *p, size_t n)
{
	const char *why = NULL;
	size_t begin = 0, at = 0, len;

	for (; at < n && why == NULL; at += len) {
		why = char_fault(p + at, n - at, &len);
		if (why == NULL && p[at] == '/') {
			why = component_fault(p + begin, at - begin);
			begin = at + 1;
		}
	}
	if (why == NULL)
		why = component_fault(p + begin, n - begin);
	if (why == NULL && p[n - 1] == '.')
		why = "A name must not end in \".\".";
	return why;
}

static int
verdict(const char *why, const char **ret_message)
{
	if (why == NULL)
		return 0;
	if (ret_message != NULL)
		*ret_message = why;
	return E_INVAL;
}

int
refname_check_branch(const char *p, size_t n, const char **ret_message)
{
	const char *why;

	if (n == 0 || n > REFNAME_BRANCH_MAX)
		why = "A branch name must have 1 to 244 bytes.";
	else if (p[0] == '-')
		why = "A branch name must not begin with \"-\".";
	else if ((n == 1 && p[0] == '@') || (n == 4 && memcmp(p, "HEAD", 4) == 0))
		why = "A branch must be named; \"@\" and \"HEAD\" are no branch names.";
	else
		why = format_fault(p, n);
	return verdict(why, ret_message);
}

int
refname_check_full(const char *p, size_t n, const char **ret_message)
{
	const char *why;

	if (n == 0 || n > REFNAME_FULL_MAX)
		why = "A ref must have 1 to 255 bytes.";
	else if (memchr(p, '/', n) == NULL)
		why = "A ref must be written in full, such as refs/heads/main.";
	else
		why = format_fault(p, n);
	return verdict(why, ret_message);
}

const char *
refname_branch_of(const char *p, size_t n, size_t *ret_n)
{
	if (n <= HEADS_LEN || memcmp(p, HEADS, HEADS_LEN) != 0)
		return NULL;
	*ret_n = n - HEADS_LEN;
	return p + HEADS_LEN;
}
