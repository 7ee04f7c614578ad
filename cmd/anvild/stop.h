/*
 * cmd/anvild/stop.h -- the way out: ingress, then runs when they are to end, then shards.
 *
 * Signals only make it quicker.  Whatever is cut short is found by the next supervisor.
 */
#ifndef CMD_ANVILD_STOP_H
#define CMD_ANVILD_STOP_H

#define STOP_MS      20000 /* without runs: ingress and shards may take 8 s each          */
#define STOP_RUNS_MS 60000 /* with runs: a canceled one has 30 s, its processes 5 s more   */
#define STOP_HARD_MS 5000  /* for what has been sent SIGKILL                               */

struct stop;
struct supervisor;

struct stop *stop_new(struct supervisor *s);
struct stop *stop_free(struct stop *p);

/* SIGTERM or SIGINT: the first stops in order, the second ends running builds as well, the
 * third waits for nobody: runs are killed, and so are the others if they are late. */
void stop_asked(struct stop *p);
/* It has to stop, whoever wants it; no signal counted. */
void stop_begin(struct stop *p);
/* Something has come up or has ended. */
void stop_look(struct stop *p);

#endif
