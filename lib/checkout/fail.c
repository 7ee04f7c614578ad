/*
 * From whatever went wrong to the failure codes and texts of spec run 13.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "lib/base/err.h"
#include "lib/checkout/co.h"

#define DISK_FULL_TEXT "The server's disk is full."

/* Nothing is cut here: the text may quote a server that knows the token, and the parent can
 * take only whole secrets out of it. */
static int __attribute__((format(printf, 4, 0))) fail(struct co *co,
    enum checkout_failure failure, const char *prefix, const char *fmt, va_list ap)
{
	size_t at = (size_t)snprintf(co->text, sizeof(co->text), "%s", prefix);
	int n = vsnprintf(co->text + at, sizeof(co->text) - at, fmt, ap);

	if (n < 0 || (size_t)n >= sizeof(co->text) - at)
		(void)snprintf(co->text + at, sizeof(co->text) - at,
		    "for a reason that is too long to be told (%d bytes)", n);
	co->failure = failure;
	return E_SYS;
}

int
co_fail(struct co *co, enum checkout_failure failure, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)fail(co, failure, "", fmt, ap);
	va_end(ap);
	return E_SYS;
}

int
co_fail_reason(struct co *co, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)fail(co, CHECKOUT_CHECKOUT_FAILED, CHECKOUT_FAILED_PREFIX, fmt, ap);
	va_end(ap);
	return E_SYS;
}

int
co_fail_errno(struct co *co, const char *what)
{
	if (errno == ENOSPC || errno == EDQUOT)
		return co_fail(co, CHECKOUT_DISK_FULL, DISK_FULL_TEXT);
	return co_fail_reason(co, "%s: %s", what, strerror(errno));
}

/* Within a limit it is the repository that asks for too much, or its server. */
static int
fail_no_memory(struct co *co)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_DATA, &l) == 0 && l.rlim_cur != RLIM_INFINITY)
		return co_fail_reason(
		    co, "out of memory (limit %llu bytes)", (unsigned long long)l.rlim_cur);
	return co_fail(co, CHECKOUT_INTERNAL, "out of memory");
}

int
co_fail_err(struct co *co, int err, const char *what)
{
	if (err == E_FULL)
		return co_fail(co, CHECKOUT_DISK_FULL, DISK_FULL_TEXT);
	if (err == E_NOMEM)
		return fail_no_memory(co);
	return co_fail_reason(co, "%s: %s", what, err_text(err));
}

static int
is_damage(int klass)
{
	return klass == GIT_ERROR_ODB || klass == GIT_ERROR_ZLIB || klass == GIT_ERROR_SHA ||
	    klass == GIT_ERROR_INDEXER || klass == GIT_ERROR_OBJECT ||
	    klass == GIT_ERROR_TREE || klass == GIT_ERROR_REFERENCE ||
	    klass == GIT_ERROR_REPOSITORY || klass == GIT_ERROR_TAG;
}

int
co_fail_git(struct co *co)
{
	const git_error *e = git_error_last();
	const char *text = e != NULL && e->message != NULL ? e->message : "unknown error";
	int klass = e != NULL ? e->klass : GIT_ERROR_NONE;

	if (co->refused ||
	    (co->req.token != NULL && klass == GIT_ERROR_HTTP &&
		(strstr(text, "status code: 401") != NULL ||
		    strstr(text, "status code: 403") != NULL)))
		return co_fail(co, CHECKOUT_CREDENTIAL_REFUSED, "%s",
		    co->req.token != NULL
			? "The repository refused the credential."
			: "The repository needs a credential; the project has none.");
	if (klass == GIT_ERROR_NOMEMORY)
		return co_fail_err(co, E_NOMEM, text);
	if (strstr(text, strerror(ENOSPC)) != NULL || strstr(text, strerror(EDQUOT)) != NULL)
		return co_fail_err(co, E_FULL, text);
	(void)co_fail_reason(co, "%s", text);
	return is_damage(klass) ? E_CORRUPT : E_SYS;
}
