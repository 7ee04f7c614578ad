/*
 * test/soak/book.h -- the ledger of truth: all that anvil has acknowledged to anybody, written
 * down by whoever was told, and compared at the end.
 *
 * All threads write here; each call takes the one lock.  What cannot be true together is a loss
 * and is told at once.
 */
#ifndef TEST_SOAK_BOOK_H
#define TEST_SOAK_BOOK_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/id.h"
#include "lib/base/map.h"

#define PROJECTS_MAX 8

/* What a run does when nobody disturbs it, by its branch. */
enum nature { NATURE_UNKNOWN, NATURE_PASSES, NATURE_FAILS, NATURE_UNREACHABLE };

/* What excuses an end that is not its nature. */
enum excuse {
	EXCUSE_HIT = 1,    /* One of its processes was killed or stopped for long. */
	EXCUSE_CANCEL = 4, /* Somebody canceled it.                                */
	EXCUSE_SHUT = 8,   /* It lived while anvil was told to end its runs.       */
};

struct book_run {
	char id[ID_SIZE];
	int project;  /* -1: nobody has said.                             */
	int answered; /* A 202, or a 200 of its delivery, named it.       */
	unsigned excuse;
	enum nature nature;
	double at_us;      /* When it was heard of first.                 */
	char terminal[16]; /* Status of its end that somebody was told.   */
	uint64_t *lines;   /* By seq; 0: nobody has seen it.  Owned.      */
	size_t nlines;
	int turn; /* Its number among the runs of its project by the first beacon, from 1. */
	int begun, ended; /* Beacons of its first and its last step.     */
};

struct book_delivery {
	char id[48];
	int project;
	const char *branch;
	char run[ID_SIZE]; /* "": no answer named one.                          */
	int settled;       /* Its outcome is known, with or without a run.      */
	int doubtful;      /* Sent without an answer: there may be a run.       */
};

struct book_project {
	char id[ID_SIZE], slug[32];
	enum nature nature; /* Of its default branch. */
	int turns;
	char current[ID_SIZE]; /* Whose beacon came last.               */
	char name[64];         /* Acknowledged last.                    */
	char maybe[64][64];    /* Tried since, without an answer.       */
	unsigned nmaybe;
};

/* When stores of runs could not be written, by the clock that anvil sees. */
struct book_window {
	int64_t from_ms, to_ms;
};

struct book_counts {
	long deliveries, redelivered, ignored, full, forged, unanswered;
	long manual, manual_unanswered, cancels, changes, logins;
	long viewers, reconnects, lines, beacons, restarts;
};

struct book {
	pthread_mutex_t lock;
	struct map *by_id; /* struct book_run */
	struct book_run **runs;
	size_t nruns, cap;
	struct book_delivery *deliveries;
	size_t ndeliveries, cap_deliveries;
	struct book_project projects[PROJECTS_MAX];
	int nprojects;
	struct book_window *windows;
	size_t nwindows;
	struct book_counts n;
	long losses;
};

void book_init(struct book *b);
void book_done(struct book *b);
/* Says what was lost, with the time; the soak fails. */
void book_loss(struct book *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* A line on standard output with the time. */
void book_say(const char *fmt, ...) PRINTF_LIKE(1, 2);
double book_now_us(void);
#define BOOK_COUNT(b, what) ((void)__atomic_add_fetch(&(b)->n.what, 1, __ATOMIC_RELAXED))

/* The run, made when it is new. */
struct book_run *book_run(struct book *b, const char *id);
/* An answer has named it. */
void book_accepted(struct book *b, const char *id, int project, enum nature nature);
void book_excuse(struct book *b, const char *id, enum excuse why);
/* ... for every run that is not known to have ended. */
void book_excuse_all(struct book *b, enum excuse why);
void book_window(struct book *b, int64_t from_ms, int64_t to_ms);
/* 1: the store of a run that lived then may have been one of them. */
int book_in_window(const struct book *b, int64_t from_ms, int64_t to_ms);
/* Somebody was told that it ended so; another end is a loss. */
void book_ended(struct book *b, const char *id, const char *status);
/* Somebody has seen this line of its log. */
void book_line(struct book *b, const char *id, int64_t seq, uint64_t hash);
/* What its steps say: "begin", "tick" or "end". */
void book_beacon(struct book *b, const char *slug, const char *id, const char *word);

/* One of the newest ${n} runs that nobody saw end, by ${pick}; 0: there is none. */
int book_some_run(struct book *b, size_t n, uint64_t pick, char ret[ID_SIZE]);

size_t book_new_delivery(struct book *b, const char *id, int project, const char *branch);
/* An answer to it; ${run} NULL: it starts none. */
void book_delivered(struct book *b, size_t i, const char *run, enum nature nature);
/* No answer. */
void book_doubt(struct book *b, size_t i);

#endif
