/*
 * cmd/anvilctl/files.h -- files of a backup: their digests, what the head of a store says, and
 * the trees that they lie in.
 */
#ifndef CMD_ANVILCTL_FILES_H
#define CMD_ANVILCTL_FILES_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/sha256.h"

#define FILES_WHY_SIZE 512

/* The files of which a backup consists, by their names. */
enum file_role {
	FILE_SUPERVISOR, /* supervisor.db        */
	FILE_INGRESS,    /* ingress.db           */
	FILE_PROJECT,    /* project-N.db         */
	FILE_RUN,        /* runs/RUN_ID/run.db   */
	FILE_LOG,        /* runs/RUN_ID/log.zst  */
	FILE_ROLE_COUNT
};

/* FILE_ROLE_COUNT: ${path} is none of them. */
enum file_role file_role_of(const char *path);
const char *file_role_name(enum file_role role);
/* Number of the shard whose store this is; -1: it is none. */
int file_shard(const char *path);

struct file_facts {
	int64_t bytes;
	char sha256[SHA256_HEX_SIZE];
	int64_t version; /* of a store's schema; 0 for a log */
};

/* Reads all of ${path} beneath ${dirfd}; with ${to_fd} >= 0 it is written there as well, and
 * brought to disk.  A store has to have the head of a whole, marked copy.  0 or an error, with
 * ${why} for people. */
int file_facts(
    int dirfd, const char *path, int to_fd, struct file_facts *ret, char why[FILES_WHY_SIZE]);

/* Calls ${fn} for everything below ${dir} that is no folder, and for folders too with ${folders},
 * after what is in them; ${path} is relative.  Stops at the first result that is not 0, and
 * returns it. */
int files_walk(const char *dir, int folders,
    int (*fn)(void *arg, const char *path, int is_file), void *arg);
/* Removes ${dir} and all that is in it.  0 or an error. */
int files_remove_tree(const char *dir);
/* fsync of a folder by its path. */
int files_sync_folder(const char *dir);

#endif
