/*
 * lib/actor/full.h -- whether there is room for what an actor writes; private to this folder.
 */
#ifndef LIB_ACTOR_FULL_H
#define LIB_ACTOR_FULL_H

#include <event2/event_struct.h>

struct actor;

struct full {
	int is;                     /* A commit has found no room, and there is none yet. */
	void (*changed)(void *arg); /* NULL: nobody wants to know.                       */
	void *arg;
	struct event ev; /* The next look. */
};

void full_init(struct actor *a);
void full_done(struct actor *a);
/* A commit has found no room. */
void full_begin(struct actor *a);

#endif
