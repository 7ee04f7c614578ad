/*
 * test/soak/load.h -- the people and forges: who sends deliveries, starts runs, cancels some,
 * changes projects, and writes down what was answered.
 */
#ifndef TEST_SOAK_LOAD_H
#define TEST_SOAK_LOAD_H

#include "test/soak/http.h"
#include "test/soak/soak.h"

#define SOAK_OWNER    "soak"
#define SOAK_SECRET   "correct horse battery staple"
#define SOAK_PASSWORD "a long password"

struct load {
	struct soak *s;
	unsigned number; /* Of the thread. */
	long pause_ms;   /* On average, between two of its acts. */
	pthread_t thread;
};

/* The user, the projects and their webhooks, on a system that is well. */
void load_prepare(struct soak *s);
/* A new session into s->session, when the one of ${h} is refused; tried until it is there or
 * nothing is loaded any more. */
void load_log_in(struct soak *s);

/* Threads until s->loading ends. */
void *load_deliver(void *load);
void *load_trigger(void *load);
void *load_meddle(void *load); /* Cancels, changes. */

/* Sends delivery ${i} of the book as its forge does; the status. */
int load_send(struct soak *s, struct http *h, size_t i);

#endif
