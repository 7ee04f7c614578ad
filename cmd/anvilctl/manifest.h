/*
 * cmd/anvilctl/manifest.h -- manifest.json: what is in a backup (spec operations 4).
 *
 * Written last, so that a backup without it is none.  It says nothing of the host: a backup is
 * restored on any.
 */
#ifndef CMD_ANVILCTL_MANIFEST_H
#define CMD_ANVILCTL_MANIFEST_H

#include <stddef.h>
#include <stdint.h>

#include "cmd/anvilctl/files.h"
#include "lib/base/arena.h"

#define MANIFEST_NAME   "manifest.json"
#define MANIFEST_FORMAT 1

struct manifest_file {
	const char *path; /* relative to the backup */
	struct file_facts facts;
};

/* A run whose store could not be read, and so is not there. */
struct manifest_gap {
	const char *run_id, *message;
};

/* Texts live in the arena. */
struct manifest {
	struct arena *arena; /* Owned. */
	const char *version; /* of anvil */
	int64_t created_at_ms;
	struct manifest_file *files;
	size_t nfiles, files_cap;
	struct manifest_gap *gaps;
	size_t ngaps, gaps_cap;
	int64_t *keys; /* versions of the key that its secrets need */
	size_t nkeys, keys_cap;
};

/* NULL: no memory. */
struct manifest *manifest_new(void);
struct manifest *manifest_free(struct manifest *m);
DEFINE_CLEANUP(struct manifest *, manifest_free)

/* Copies the texts.  0 or E_NOMEM. */
int manifest_add(struct manifest *m, const char *path, const struct file_facts *facts);
int manifest_add_gap(struct manifest *m, const char *run_id, const char *message);
int manifest_add_key(struct manifest *m, int64_t version);

int64_t manifest_bytes(const struct manifest *m);
/* Files of a role; newest schema among them. */
size_t manifest_count(const struct manifest *m, enum file_role role);
int64_t manifest_schema(const struct manifest *m, enum file_role role);

/* Whole, on disk, 0600; or not there.  0 or an error of io_write_file(). */
int manifest_write(const struct manifest *m, int dirfd);
/* 0; E_NOENT, E_NEWER (a later format), E_INVAL, E_NOMEM, E_SYS, with ${why} for people. */
int manifest_read(int dirfd, struct manifest **ret, char why[FILES_WHY_SIZE]);

#endif
