/*
 * test/soak/view.h -- somebody who watches a run, by Server-Sent Events or by WebSocket, and
 * comes again with the number of the next line when the connection ends before the run.
 */
#ifndef TEST_SOAK_VIEW_H
#define TEST_SOAK_VIEW_H

#include <stddef.h>
#include <stdint.h>

#include "test/soak/soak.h"

struct view {
	struct soak *s;
	char run[ID_SIZE];
	int64_t next;  /* Line that comes next; 0: any.                     */
	int64_t first; /* Of what this view has seen; 0: nothing.           */
	int ended;     /* The end of the run has been told.                 */
	long connections;
};

/* One connection, until it ends or ${limit_ms} have gone by.  v->ended tells whether to come
 * again. */
void view_events(struct view *v, long limit_ms);
void view_socket(struct view *v, long limit_ms);

/* A thread: watches one run after the other until s->loading ends.  ${load}: struct load. */
void *view_thread(void *load);

#endif
