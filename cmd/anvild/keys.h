/*
 * cmd/anvild/keys.h -- a new version of the key, and its way to ingress (spec webhooks 12).
 *
 * The set that supervisor.h holds is what every process gets that is forked.  Ingress lives
 * longer than that: each has a socket of its own, inherited, over which a newer set comes as a
 * sealed memory file; it answers with the version that it has now.  Keys are in no message.
 */
#ifndef CMD_ANVILD_KEYS_H
#define CMD_ANVILD_KEYS_H

#include <sys/types.h>

#include "lib/vault/vault.h"

#define KEYS_RETRY_MS 1000 /* until a set is handed over anew that could not be taken */
#define KEYS_WAIT_MS  3000 /* for ingress, by who has asked for the rotation          */

struct keys;
struct parked;
struct supervisor;

/* Reads the keys file into s->keys, makes it when there is none, for account ${uid} and ${gid};
 * before we become that.  What a rotation has left unfinished counts as done.  0 or as
 * vault_keys_load(). */
int keys_load(struct supervisor *s, uid_t uid, gid_t gid, char why[VAULT_WHY_SIZE]);
/* Finishes that rotation, as that account. */
int keys_settle(struct supervisor *s, char why[VAULT_WHY_SIZE]);

/* NULL: out of memory. */
struct keys *keys_new(struct supervisor *s);
struct keys *keys_free(struct keys *k);

/* For an ingress that is being forked with the set as it is now: its end of a new socket, the
 * caller's to close.  The one before has ended.  0 or an error. */
int keys_connect(struct keys *k, int *ret_fd);

/* Adds a version and makes it current: in the file first, then for who is forked from now on,
 * then for ingress.  0; else ${why} says what is wrong, and nothing is changed. */
int keys_rotate(struct keys *k, char why[VAULT_WHY_SIZE]);

/* Answers supervisor.rotateKeys when ingress has the set, or after KEYS_WAIT_MS, or at once
 * when there is no ingress: one that starts later has it anyway.  0 or E_NOMEM. */
int keys_wait(struct keys *k, struct parked *waiter);

#endif
