/*
 * cmd/anvil-ingress/routes.h -- the table of routes and the order of checks (http-api 2.3, 2.6).
 */
#ifndef CMD_ANVIL_INGRESS_ROUTES_H
#define CMD_ANVIL_INGRESS_ROUTES_H

#include "cmd/anvil-ingress/exchange.h"

/* Of a TICKET route the handler checks who asks: by ticket, or as a private route does. */
enum route_access { ROUTE_OPEN, ROUTE_PUBLIC, ROUTE_PRIVATE, ROUTE_TICKET };

struct route {
	const char *method, *pattern;
	enum route_access access;
	void (*run)(struct exchange *x);
};

/* Hook of the server: a request's headers are there. */
void routes_on_request(void *ingress, struct http_req *req);

/* Fills x->project from the path's first parameter when it is the user's: 0, or it has been
 * answered with `project_not_found`. */
int routes_find_project(struct exchange *x);
/* Query parameter, NULL when absent; E_INVAL: given twice or malformed, and that is answered. */
int routes_query(
    struct exchange *x, const char *name, const char *expected, const char **ret_value);

/* Handlers, one for each operation of the contract. */
#define ROUTE(method, pattern, operation, access, flags) \
	void route_##operation(struct exchange *x);
#include "gen/http_routes.h"
#undef ROUTE

#endif
