/*
 * cmd/anvild/place.h -- where anvil lives on this host: folders, their owner and mode, the lock
 * of the runtime directory, and the unprivileged user (spec operations 3, design 8).
 */
#ifndef CMD_ANVILD_PLACE_H
#define CMD_ANVILD_PLACE_H

#include <sys/types.h>

#define PLACE_WHY_SIZE 512
#define PLACE_LOCK_MS  2000 /* the lock of the runtime directory is retried for so long */

/* Whom to become: the account `user:`, or nobody else (uid of the caller). */
struct place_user {
	uid_t uid;
	gid_t gid;
	char name[64];
	char home[256];
};

/* Looks ${name} up; NULL or "" is the caller, who must not be root.
 * 0, E_NOENT, E_DENIED; ${why} says what would be right. */
int place_user_find(const char *name, struct place_user *ret, char why[PLACE_WHY_SIZE]);
/* Groups, group, user, in that order, for good.  0 or E_DENIED. */
int place_user_become(const struct place_user *u, char why[PLACE_WHY_SIZE]);

/* Makes data_dir with runs, cache and crash, and runtime_dir, each 0700 and of ${u}; refuses
 * one that others may enter or that is somebody else's.  0, E_DENIED, E_FULL, E_SYS. */
int place_make_dirs(const char *data_dir, const char *runtime_dir, const struct place_user *u,
    char why[PLACE_WHY_SIZE]);

/* Holds `anvild.lock` of the runtime directory, ${u}'s and with our pid in it.  0, E_LOCKED (the
 * sentence names the other supervisor's pid), E_SYS. */
int place_lock(
    const char *runtime_dir, const struct place_user *u, int *ret_fd, char why[PLACE_WHY_SIZE]);

/* Folder of the other programs: beside this one in a build, else ../libexec/anvil.
 * The caller frees; NULL: none of them holds anvil-ingress. */
char *place_libexec(void);

#endif
