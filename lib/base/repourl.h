/*
 * lib/base/repourl.h -- URLs of repositories and of Git servers, normalised (spec http-api
 * 11.1).
 *
 * What comes out is what is stored and compared; a stored repository URL is never normalised
 * again, since "b.git.git" would lose its second ".git".
 */
#ifndef LIB_BASE_REPOURL_H
#define LIB_BASE_REPOURL_H

#include <stddef.h>

#define REPOURL_MAX  2048 /* Bytes of a normalised URL.       */
#define REPOURL_SIZE 2049 /* Of the buffer: with its NUL.     */

/* What the operator has allowed: repositories.* of the configuration. */
struct repourl_flags {
	int allow_http;          /* http:// too.                                       */
	int allow_private_hosts; /* IP addresses, localhost, names of one label.       */
	int allow_local;         /* file:///path, for repositories only.               */
};

/*
 * Both normalise ${n} bytes at ${in} (any bytes; no NUL is needed behind them) into ${out},
 * NUL-terminated.  0; E_INVAL with *ret_message a static sentence that says what would be
 * right, and names the setting if one would lift the refusal; or E_NOMEM.  ${out} is void on
 * failure.
 */
int repourl_normalise(const char *in, size_t n, const struct repourl_flags *flags,
    char out[REPOURL_SIZE], const char **ret_message);
/* Of a Git server: the path is optional, ".git" stays, file:// is never allowed. */
int repourl_normalise_instance(const char *in, size_t n, const struct repourl_flags *flags,
    char out[REPOURL_SIZE], const char **ret_message);

#endif
