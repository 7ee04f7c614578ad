/*
 * lib/base/err.h -- the one space of error numbers.
 *
 * 0 is success, every failure is a negative number of err.def.  Errors of other libraries
 * are translated where that library is wrapped.  JSON-RPC errors carry the same numbers.
 */
#ifndef LIB_BASE_ERR_H
#define LIB_BASE_ERR_H

enum err_code {
#define ERR(sym, num, again, text) sym = (num),
#include "lib/base/err.def"
#undef ERR
};

/* Text of ${err} for people; never NULL.  Unknown numbers get a fixed text. */
const char *err_text(int err);

/* Symbol of ${err}, such as "E_NOMEM"; never NULL. */
const char *err_symbol(int err);

/* 1 when the same request may succeed later without anybody changing it. */
int err_retryable(int err);

/* 1 when ${err} is a number of err.def. */
int err_known(int err);

/* Translates an errno value: ENOMEM, ENOENT, EEXIST, ENOSPC/EDQUOT, EAGAIN, else E_SYS. */
int err_from_errno(int errnum);

#endif
