/*
 * lib/index/index.h -- what ingress keeps: accounts, and the index of projects and runs.
 *
 * Plain functions over ingress.db (spec http-api 14, project 13).  Texts in what they return
 * live in the arena given.  Each returns 0, or E_NOENT where there is no such row, or a
 * storage error (E_STORAGE, E_FULL, E_CORRUPT, E_NOMEM); others are named at the function.
 */
#ifndef LIB_INDEX_INDEX_H
#define LIB_INDEX_INDEX_H

#include "lib/index/accounts.h"
#include "lib/index/check.h"
#include "lib/index/projects.h"
#include "lib/index/rebuild.h"
#include "lib/index/runs.h"

struct store_desc;

/* ingress.db, for store_open(). */
extern const struct store_desc index_store;

#endif
