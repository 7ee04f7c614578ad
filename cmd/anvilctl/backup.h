/*
 * cmd/anvilctl/backup.h -- a backup in the making, as cmd_backup.c and backup_runs.c share it.
 */
#ifndef CMD_ANVILCTL_BACKUP_H
#define CMD_ANVILCTL_BACKUP_H

#include <sys/types.h>

#include "cmd/anvilctl/ctl.h"
#include "cmd/anvilctl/files.h"
#include "cmd/anvilctl/manifest.h"
#include "cmd/anvilctl/progress.h"

#define BACKUP_COPY_MS  3600000 /* An actor gets so long for its store. */
#define BACKUP_AWAY_MS  30000   /* One that is being restarted is waited for so long. */
#define BACKUP_AGAIN_MS 200
#define BACKUP_LOOK_MS  5000 /* One that does not say who it is by then will not be copied. */

struct backup {
	struct ctl *ctl;
	char *dir; /* Owned: its true path. */
	int made;  /* Here, and not there before. */
	int dirfd;
	int lock;                  /* That no other backup is made; -1 before. */
	pid_t sweeper;             /* As root: who removes the folder again.   */
	int sweeper_fd;            /* It goes by the end of this.              */
	struct manifest *manifest; /* Owned. */
	struct progress progress;
	size_t nshards;
};

/* ---- backup_place.c ---- */

/* Waits until no other backup is made, makes ${dir}, or takes it when it is empty, and opens
 * b->ctl.  0 or a status; backup_give_up() once b->dir is there. */
int backup_enter(struct backup *b, const char *dir);
/* Takes all of it away again. */
void backup_give_up(struct backup *b);
void backup_leave(struct backup *b);

/* ---- the rest ---- */

/* actor.backup of ${address} into ${folder}.  0, or the error unexplained; E_EXISTS with
 * *ret_why when the actor has refused. */
int backup_ask(struct backup *b, const char *address, const char *folder, const char **ret_why);
/* 1 for an error after which the actor may be there again. */
int backup_is_away(const struct backup *b, int err);

/* Copies every run that there is when it begins; a status, explained. */
int backup_runs(struct backup *b);

#endif
