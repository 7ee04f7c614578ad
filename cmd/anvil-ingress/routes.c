#include "cmd/anvil-ingress/routes.h"

#include <string.h>

#include "cmd/anvil-ingress/answer.h"
#include "cmd/anvil-ingress/auth.h"
#include "cmd/anvil-ingress/badge.h"
#include "cmd/anvil-ingress/limiter.h"
#include "cmd/anvil-ingress/rebuild.h"
#include "cmd/anvil-ingress/ui.h"
#include "lib/base/err.h"
#include "lib/base/id.h"
#include "lib/base/log.h"

#define OPEN    ROUTE_OPEN
#define PUBLIC  ROUTE_PUBLIC
#define PRIVATE ROUTE_PRIVATE
#define TICKET  ROUTE_TICKET

static const struct route routes[] = {
#define ROUTE(method, pattern, operation, access, flags) \
	{ method, pattern, access, route_##operation },
#include "gen/http_routes.h"
#undef ROUTE
};

/* The same rows for the search by path. */
static const struct http_route paths[] = {
#define ROUTE(method, pattern, operation, access, flags) { method, pattern, NULL, flags },
#include "gen/http_routes.h"
#undef ROUTE
};

/* Whether the path lies beneath /api/<area>/, or beneath /api/ (NULL). */
static int
is_under(struct exchange *x, const char *area)
{
	const char *path = http_req_path(x->req);
	int n = http_req_segments(x->req);
	size_t len;

	if (n >= 0)
		return n >= (area != NULL ? 3 : 2) &&
		    strcmp(http_req_segment(x->req, 0), "api") == 0 &&
		    (area == NULL || strcmp(http_req_segment(x->req, 1), area) == 0);
	/* It names no resource, but where it would lie can be told. */
	if (strncmp(path, "/api/", 5) != 0)
		return 0;
	if (area == NULL)
		return 1;
	len = strlen(area);
	return strncmp(path + 5, area, len) == 0 && path[5 + len] == '/';
}

static int
check_address(struct exchange *x)
{
	const char *client = http_req_client(x->req);
	int r = limiter_try(x->in->limit_address, client, clock_mono());

	if (r == 1)
		return 0;
	if (r < 0) {
		exchange_fail(x, r);
		return r;
	}
	if (limiter_just_full(x->in->limit_address, client))
		log_event(
		    LOG_LEVEL_WARN, "public_rate_limited", LOG_STR("clientAddress", client));
	answer_error(x, HTTP_CODE_RATE_LIMITED);
	return E_DENIED;
}

static void
no_such_path(struct exchange *x)
{
	const char *method = http_req_method(x->req);

	/* Outside of the API every path is a page's, a file's or a badge's, only to be read; but
	 * for what is no page to whoever scrapes it. */
	if (is_under(x, NULL) || strcmp(http_req_path(x->req), "/metrics") == 0)
		answer_error(x, HTTP_CODE_NOT_FOUND);
	else if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		answer_error_allow(x, "GET, HEAD");
	else if (badge_is_path(http_req_path(x->req)))
		badge_answer(x);
	else
		ui_answer(x);
}

static void
dispatch(struct exchange *x)
{
	char allow[HTTP_ALLOW_SIZE];
	const struct http_route *row = NULL;
	int r;

	if (is_under(x, "public") && check_address(x) < 0)
		return;
	r = http_route_find(paths, ARRAY_LEN(paths), x->req, &row, allow);
	if (is_under(x, "private") && !(r == 0 && routes[row - paths].access == ROUTE_TICKET) &&
	    auth_check(x) < 0)
		return;
	if (r == E_NOENT) {
		no_such_path(x);
	} else if (r == E_METHOD) {
		answer_error_allow(x, allow);
	} else if (r < 0) {
		exchange_fail(x, r);
	} else {
		x->route = &routes[row - paths];
		x->route->run(x);
	}
}

void
routes_on_request(void *ingress, struct http_req *req)
{
	struct ingress *in = ingress;
	struct exchange *x;

	OBJ_CHECK(in, INGRESS_MAGIC);
	x = exchange_new(in, req);
	if (x == NULL) {
		http_answer_add(req, "Retry-After", "1");
		http_answer(req, 503, NULL, 0);
		return;
	}
	log_set_request(http_req_id(req));
	dispatch(x);
	log_set_request("");
}

/* ---- what handlers share ---- */

static int
project_turn(void *arg, struct turn *t)
{
	struct exchange *x = arg;

	return index_project_get(t->store, x->arena, http_req_param(x->req, 0), &x->project);
}

int
routes_find_project(struct exchange *x)
{
	int r = E_NOENT;

	if (id_check(ID_PROJECT, http_req_param(x->req, 0))) {
		r = exchange_turn(x, 0, project_turn);
		if (r == E_NOENT && rebuild_may_lack(x->in->rebuild)) {
			answer_error(x, HTTP_CODE_SHARD_UNAVAILABLE);
			return r;
		}
	}
	if (r == 0 &&
	    (!x->project.confirmed || strcmp(x->project.owner_user_id, x->user.id) != 0))
		r = E_NOENT;
	if (r == E_NOENT) {
		x->project = (struct index_project) { .id = NULL };
		answer_error(x, HTTP_CODE_PROJECT_NOT_FOUND);
	} else if (r < 0) {
		exchange_fail(x, r);
	}
	return r;
}

int
routes_query(struct exchange *x, const char *name, const char *expected, const char **ret_value)
{
	int r = http_req_query(x->req, name, ret_value);

	if (r == E_NOENT) {
		*ret_value = NULL;
		return 0;
	}
	if (r == E_EXISTS)
		answer_bad_query(x, HTTP_CODE_INVALID_REQUEST, name, expected,
		    "The parameter is given more than once.");
	else if (r == E_INVAL)
		answer_bad_query(x, HTTP_CODE_INVALID_REQUEST, name, expected,
		    "The parameter is not well encoded.");
	else if (r < 0)
		exchange_fail(x, r);
	return r < 0 ? E_INVAL : 0;
}
