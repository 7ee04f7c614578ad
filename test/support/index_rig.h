/*
 * test/support/index_rig.h -- an ingress.db in a scratch directory, in one transaction that is
 * never committed.
 */
#ifndef TEST_SUPPORT_INDEX_RIG_H
#define TEST_SUPPORT_INDEX_RIG_H

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/index/index.h"
#include "lib/store/store.h"

#define INDEX_RIG_NOW INT64_C(1700000000000)

struct index_rig {
	char *dir;
	struct store *s;
	struct arena *a;
};

/* For cmocka: *state becomes the rig. */
int index_rig_setup(void **state);
int index_rig_teardown(void **state);

/* An id or a hash by number; from the arena. */
const char *index_rig_id(const struct index_rig *g, const char *prefix, int n);
const char *index_rig_hash(const struct index_rig *g, int n);

/* Values by number: user ${n}, project ${n} of user ${owner}, queued manual run ${n}. */
struct index_user index_rig_user(const struct index_rig *g, int n);
struct index_project index_rig_project(const struct index_rig *g, int n, int owner);
struct index_run index_rig_run(const struct index_rig *g, int n, int project);
/* Rows of the same; failure ends the test. */
void index_rig_add_user(struct index_rig *g, int n);
void index_rig_add_project(struct index_rig *g, int n, int owner);

#endif
