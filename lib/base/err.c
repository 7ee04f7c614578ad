#include "lib/base/err.h"

#include <errno.h>
#include <stddef.h>

#include "lib/base/base.h"

static const struct err_row {
	int num;
	int again;
	const char *symbol;
	const char *text;
} err_rows[] = {
#define ERR(sym, num, again, text) { num, again, #sym, text },
#include "lib/base/err.def"
#undef ERR
};

static const struct err_row *
err_find(int err)
{
	for (size_t i = 0; i < ARRAY_LEN(err_rows); i++)
		if (err_rows[i].num == err)
			return &err_rows[i];
	return NULL;
}

const char *
err_text(int err)
{
	const struct err_row *row = err_find(err);

	if (err == 0)
		return "success";
	return row != NULL ? row->text : "unknown error";
}

const char *
err_symbol(int err)
{
	const struct err_row *row = err_find(err);

	if (err == 0)
		return "OK";
	return row != NULL ? row->symbol : "E_UNKNOWN";
}

int
err_retryable(int err)
{
	const struct err_row *row = err_find(err);

	return row != NULL && row->again;
}

int
err_known(int err)
{
	return err_find(err) != NULL;
}

int
err_from_errno(int errnum)
{
	switch (errnum) {
	case 0: return 0;
	case ENOMEM: return E_NOMEM;
	case ENOENT: return E_NOENT;
	case EEXIST: return E_EXISTS;
	case ENOSPC:
	case EDQUOT: return E_FULL;
	case EAGAIN: return E_BUSY;
	default: return E_SYS;
	}
}
