/*
 * test/support/super_rig.h -- a real anvild with its shards and ingress in a directory of its own,
 * and a client that talks to their sockets byte by byte.
 *
 * Made by root, anvild becomes nobody; made by anybody else, it stays who it is.
 */
#ifndef TEST_SUPPORT_SUPER_RIG_H
#define TEST_SUPPORT_SUPER_RIG_H

#include <stddef.h>
#include <sys/types.h>

#include <jansson.h>

#define SUPER_HANDED_MAX 4

struct super_rig {
	char *dir; /* Owned; bin/, s/data, s/run beneath it. */
	char bin[128], data[128], runtime[128], keys[128], config[128], log[128];
	char listen[160]; /* As in the configuration. */
	int shards;
	uid_t uid; /* Of the processes. */
	gid_t gid;
	int notify_fd;
	/* What systemd would give the next anvild: listening sockets and the watchdog's time. */
	int handed[SUPER_HANDED_MAX];
	size_t nhanded;
	const char *watchdog_usec; /* NULL: none. */
	pid_t pid;                 /* 0: none runs. */
	int pidfd;
};

void super_rig_init(struct super_rig *g);
/* Fails the test when a process of it is left. */
void super_rig_done(struct super_rig *g);

/* Writes anvil.yml with ${more} at its end. */
void super_rig_configure(struct super_rig *g, const char *more);
/* Makes a file of the processes' user. */
void super_rig_write(struct super_rig *g, const char *path, const char *text, mode_t mode);
void super_rig_own(const struct super_rig *g, const char *path);

void super_rig_start(struct super_rig *g);
/* Waits for READY=1. */
void super_rig_wait_ready(struct super_rig *g);
/* Waits for the next message to systemd that begins with ${word}, others are passed over; its
 * text, until the next call. */
const char *super_rig_wait_notified(struct super_rig *g, const char *word);
/* Waits for its end; the exit status, or 128 + signal. */
int super_rig_wait(struct super_rig *g, int timeout_ms);
/* Another anvild on the same configuration, to its end; its exit status. */
int super_rig_run_another(struct super_rig *g);
/* SIGTERM; must end with 0, in time. */
void super_rig_stop(struct super_rig *g);
void super_rig_kill(struct super_rig *g);

/* 1 when standard error of all anvilds so far has the text. */
int super_rig_said(const struct super_rig *g, const char *text);
/* Where in it; -1: nowhere. */
long super_rig_said_at(const struct super_rig *g, const char *text);

/* ---- looking ---- */

struct super_actor {
	pid_t pid; /* 0: none */
	char state[16];
	int restarts;
};
/* One row of supervisor.list. */
void super_rig_actor(const struct super_rig *g, const char *address, struct super_actor *ret);
/* Waits until it is up with another pid than ${not_pid}; that pid. */
pid_t super_rig_wait_up(const struct super_rig *g, const char *address, pid_t not_pid);
/* Waits for the end of any process. */
int super_rig_gone(pid_t pid, int timeout_ms);

/* ---- a client ---- */

/* Connects to <name>.sock; -1 when it cannot. */
int super_connect(const struct super_rig *g, const char *name);
/* Raw bytes; 0 or -1. */
int super_send(int fd, const void *p, size_t n);
/* One frame around the text. */
int super_send_text(int fd, const char *text);
/* The next frame; NULL: the connection has ended or nothing came in time. */
json_t *super_receive(int fd, int timeout_ms);
/* hello of that kind; the answer. */
json_t *super_hello(int fd, const char *role, const char *address, long pid);
/* hello as ctl that must be welcome. */
int super_ctl(const struct super_rig *g, const char *name);
/* A request and its answer (notifications skipped); NULL as super_receive(). */
json_t *super_call(int fd, const char *method, const char *params);
/* The same on a connection of its own, must be a result, which is returned. */
json_t *
super_ask(const struct super_rig *g, const char *name, const char *method, const char *params);
/* Code of the error in an answer; 0: it is none. */
int super_error(const json_t *answer);
/* 1 when nothing but the end of the connection comes. */
int super_closed(int fd, int timeout_ms);

#endif
