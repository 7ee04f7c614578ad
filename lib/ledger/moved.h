/*
 * lib/ledger/moved.h -- what goes along with a project to another shard (private to move.c and
 * import.c).
 */
#ifndef LIB_LEDGER_MOVED_H
#define LIB_LEDGER_MOVED_H

#include "lib/ledger/inside.h"

struct ledger_moved_table {
	const char *name;
	size_t ncolumns;
	size_t nnested; /* The last column is a list of rows of so many; 0: it is not. */
	enum ledger_stmt read;
};

/* What a part may hold, in the order in which it is written. */
#define LEDGER_MOVED_TABLES 5
extern const struct ledger_moved_table ledger_moved_tables[LEDGER_MOVED_TABLES];

#endif
