/*
 * lib/sandbox/cgroup.h -- the control groups that bound the steps of a run (spec run 9);
 * private to lib/sandbox.
 *
 * Groups are made beneath the cgroup that this process is in, or beside it, where somebody has
 * delegated that to us.  Nothing is ever changed in a group that was there before: no
 * controller is enabled, no process moved, because a cgroup with controllers cannot take the
 * processes that systemd starts in it.  What no group can do is left to rlimits.
 *
 * A group is named after the process that made it, so that those of a process that was killed
 * are known.
 */
#ifndef LIB_SANDBOX_CGROUP_H
#define LIB_SANDBOX_CGROUP_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/sandbox/sandbox.h"

enum cgroup_by { CGROUP_NOT, CGROUP_V1, CGROUP_V2 };

struct cgroup; /* One run's. */

/*
 * cgroup_new(limits, spare): sweeps (sandbox_sweep()), makes the groups and sets what they
 * can bound.  ${spare} processes of ours are in them beside those of the step.  NULL: no
 * memory; a host without a usable cgroup is none of its failures.
 */
struct cgroup *cgroup_new(const struct sandbox_limits *limits, int64_t spare);
/* Removes the groups, if nobody is in them; frees. */
struct cgroup *cgroup_free(struct cgroup *c);

/* What holds the limit; CGROUP_NOT: there is no limit, or it is left to rlimits. */
enum cgroup_by cgroup_memory(const struct cgroup *c);
enum cgroup_by cgroup_processes(const struct cgroup *c);

/* Moves the calling process, a child between fork and exec, into the groups.  Only calls what
 * is async-signal-safe.  0, or -1 with errno. */
int cgroup_join(const struct cgroup *c);

/* Marks the start of a step. */
void cgroup_begin(struct cgroup *c);
/* 1: the kernel has killed for want of memory since cgroup_begin(). */
int cgroup_oom(const struct cgroup *c);
/* KILL to all in the group at once, also to those that are just being forked.  0, or E_SYS. */
int cgroup_kill(const struct cgroup *c);

/*
 * cgroup_path(mountinfo, self, controller, out, size): where this process's cgroup is, from
 * the texts of /proc/self/mountinfo and /proc/self/cgroup: that of version 1 with
 * ${controller}, or with NULL that of version 2.  0, or E_NOENT: not mounted, not within what
 * is, or longer than ${size}.
 */
int cgroup_path(
    const char *mountinfo, const char *self, const char *controller, char *out, size_t size);

/* Where this process is: both texts.  0; E_NOENT: this host has no cgroups; E_NOMEM. */
struct cgroup_place {
	struct buf mountinfo, self;
};
#define CGROUP_PLACE_INIT ((struct cgroup_place) { BUF_INIT, BUF_INIT })
int cgroup_place_read(struct cgroup_place *p);
void cgroup_place_done(struct cgroup_place *p);
/* cgroup_path() of it. */
int cgroup_find(struct cgroup_place *p, const char *controller, char *out, size_t size);

/* ---- one group, in one hierarchy ---- */

#define CGDIR_NAME_SIZE 64

struct cgdir {
	int base_fd; /* The directory that it is in; -1: there is no group. */
	int fd;
	int procs_fd; /* cgroup.procs, for writing.                          */
	char name[CGDIR_NAME_SIZE];
};

#define CGDIR_NONE ((struct cgdir) { .base_fd = -1, .fd = -1, .procs_fd = -1 })

/* Makes one beneath ${base}.  0, or E_DENIED: this is not ours to do. */
int cgdir_make(struct cgdir *g, const char *base);
/* Removes it, with groups that a step has made in it, and closes.  Harmless on none. */
void cgdir_remove(struct cgdir *g);
int cgdir_has(const struct cgdir *g, const char *file);
/* 0, or E_SYS. */
int cgdir_write(const struct cgdir *g, const char *file, const char *text);
int cgdir_write_number(const struct cgdir *g, const char *file, int64_t value);
/* The beginning of a small file beneath ${dirfd}, a string.  0, or E_SYS: ${out} is empty. */
int cgdir_read_text(int dirfd, const char *file, char *out, size_t size);
/* The number behind ${key} in ${file}; 0: there is none. */
int64_t cgdir_read_number(const struct cgdir *g, const char *file, const char *key);
/* Kills who is in groups beneath ${base} whose maker is gone, and removes those groups that
 * are empty by now.  Returns how many are not. */
size_t cgdir_sweep(const char *base);

#endif
