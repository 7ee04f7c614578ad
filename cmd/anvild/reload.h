/*
 * cmd/anvild/reload.h -- SIGHUP: what a running system takes over of a changed configuration
 * (operations 2).
 */
#ifndef CMD_ANVILD_RELOAD_H
#define CMD_ANVILD_RELOAD_H

struct rpc_peer;
struct supervisor;

/* Reads the configuration again, applies what can be applied and names the rest in the log.
 * One with a mistake changes nothing. */
void reload(struct supervisor *s);
/* Ingress is up: it may have been started before the newest SIGHUP. */
void reload_tell(struct supervisor *s, struct rpc_peer *ingress);

#endif
