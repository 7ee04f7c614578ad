/*
 * cmd/anvilctl/check.h -- anvilctl check from the inside: looks, what they find, what counts.
 *
 * A system that works changes between two questions.  So whatever one look finds amiss between
 * two stores counts only when it has been found so, unchanged, for as long as such a thing may
 * take to come right by itself; what an actor says of its own store counts at once.
 *
 *	check_codes.c    every code, how long it may last, what mends it
 *	check_findings.c what was found, look after look
 *	check_gather.c   one look at the ledgers, the index and the processes
 *	check_compare.c  what they say of each other
 *	check_actors.c   what each actor says of its own store
 *	check_records.c  the records of runs that have ended, against the ledgers
 *	check_keys.c     secrets, against the keys that there are
 *	check_files.c    folders, mirrors and sockets, and whose they are
 *	check_fix.c      --fix
 *	check_down.c     when anvild does not run
 */
#ifndef CMD_ANVILCTL_CHECK_H
#define CMD_ANVILCTL_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include "cmd/anvilctl/ctl.h"
#include "gen/actor.h"
#include "gen/ingress.h"
#include "gen/project.h"
#include "gen/supervisor.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/map.h"

#define CHECK_DEADLINE_MS 120000 /* of a look at a large store */

/* ---- codes ---- */

struct check_code {
	const char *code;
	int64_t hold_ms;    /* how long it may be so in a system that works */
	const char *remedy; /* NULL: by nothing that anvil knows            */
	int note;           /* worth knowing, and nothing is wrong          */
};

/* A code that is not listed is an actor's own; never NULL. */
const struct check_code *check_code(const char *code);
/* hold_ms, or so many hundredths of it as a test says in ANVIL_CHECK_HOLD (with ANVIL_FAULTS). */
int64_t check_hold_ms(const struct check_code *c);

/* ---- findings ---- */

struct finding {
	const struct check_code *kind;
	const char *code, *place, *subject, *text;
	int own; /* an actor's word on its own store */
	int mendable, mended;
	struct mono_time since; /* found so, unchanged, in every look */
	unsigned look;          /* that found it last                 */
};

struct findings {
	struct arena *arena; /* Owned. */
	struct map *by_key;  /* Owned.  To struct finding. */
	unsigned look;       /* Of now, from 1 on. */
	int failed;          /* out of memory */
	size_t left_out;     /* that actors did not tell */
};

/* 0 or E_NOMEM. */
int findings_init(struct findings *f);
void findings_done(struct findings *f);
/* All that the last look has not found again is forgotten. */
void findings_next_look(struct findings *f);
/* The place is an address or a folder.  Texts are copied. */
void finding_add(struct findings *f, const char *code, const char *place, const char *subject,
    const char *fmt, ...) PRINTF_LIKE(5, 6);
/* The same by an actor's own word. */
void finding_add_own(struct findings *f, const char *place, const struct check_problem *p);
/* One that was there ${before} and is gone now; nothing when it still is. */
void finding_add_mended(struct findings *f, const struct finding *before);
/* Milliseconds until everything that is there counts; 0: it does. */
int64_t findings_wait_ms(const struct findings *f);
/* 1 when the last look has found something of a code that begins so. */
int findings_have(const struct findings *f, const char *code_prefix);
/* for (size_t at = 0; (x = findings_next(f, &at)) != NULL;) -- of the last look. */
const struct finding *findings_next(const struct findings *f, size_t *at);

/* ---- records ---- */

/* How a run that nobody had open stands in its own store. */
struct record_seen {
	const char *state; /* looked, live, empty */
	const char *project_id, *status, *failure_code;
	int64_t epoch, finished_at;
	int has_exit_code;
	int64_t exit_code;
	const struct check_problem *problems;
	size_t nproblems;
};

/* Of one pass over all folders of runs, which takes longer than a look and outlives it. */
struct records {
	struct arena *arena; /* Owned. */
	struct map *by_run;  /* Owned.  To struct record_seen. */
	size_t total;
};

/* Has all of them looked at, with progress on a terminal.  0 or a status. */
int records_read(struct records *r, struct ctl *ctl);
void records_done(struct records *r);

/* ---- one look ---- */

struct ledger_seen {
	const struct ledger_run_row *run;
	int shard;
	int also; /* another shard that has it; below 0: none */
};
struct owner_seen {
	const struct ledger_project_row *project;
	int shard;
	struct owner_seen *next; /* the same project in another shard */
};

/* What replies have lent lives until client_forget(). */
struct look {
	struct ctl *ctl;
	struct findings *found;
	struct arena *arena; /* Owned. */
	/* Who is there. */
	struct supervisor_list_result actors;
	struct supervisor_list_runs_result processes;
	/* What the ledgers and the index say; maps owned. */
	struct map *ledger_runs;      /* run id -> struct ledger_seen         */
	struct map *ledger_projects;  /* project id -> struct owner_seen      */
	struct map *index_runs;       /* run id -> const struct run_row       */
	struct map *index_projects;   /* id -> const struct index_project_row */
	struct map *processes_by_run; /* of runners: id -> struct run_process */
	struct map *mute;             /* addresses that did not answer        */
	int nshards, has_index;       /* that answered                        */
	int has_all_shards;           /* nothing is unknown for want of one   */
	int index_complete, rebuilding;
	const struct records *records; /* NULL: they were not looked at */
};

/* Asks everybody; what does not answer is a finding.  0, or a status when the supervisor
 * cannot be reached or there is no memory. */
int look_gather(struct look *l);
void look_done(struct look *l);
/* ${a} has answered the last call with ${err}: a finding, and this look asks it no more.  0 or
 * E_NOMEM. */
int look_failed(struct look *l, const struct actor_process *a, int err);
/* Adds what ledgers, index and processes say differently. */
void look_compare(struct look *l);
/* Adds what the records of runs say otherwise than the ledgers, and of themselves. */
void look_records(struct look *l);
/* Adds files that belong to nobody, and records that are not there. */
void look_files(struct look *l);
/* Adds keys that secrets need and that are not there. */
void look_keys(struct look *l);
/* Asks each actor of the look for its own store. */
void look_actors(struct look *l);

/* When anvild does not run: each store is looked at by the program that owns it.  *ret_down: so it
 * is, and that was all that can be done.  0 or a status. */
int check_down(struct ctl *ctl, struct findings *f, int *ret_down);
/* Has everything mended that the last look has found and that is safe to.  0 or a status. */
int check_mend(struct ctl *ctl, const struct findings *f);

#endif
