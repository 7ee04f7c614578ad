/*
 * cmd/anvild/notify.h -- the service manager's notification protocol.
 *
 * One datagram to $NOTIFY_SOCKET; a library is not worth its dependencies for that.
 */
#ifndef CMD_ANVILD_NOTIFY_H
#define CMD_ANVILD_NOTIFY_H

/* Sends ${state}, such as "READY=1"; nothing when nobody asked for it. */
void notify_send(const char *state);

#endif
