#include <stdlib.h>
#include <string.h>

#include "lib/actor/inside.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

int
methods_add(struct actor *a, const struct rpc_method *rows, size_t n, int builtin)
{
	for (size_t i = 0; i < n; i++) {
		struct method_entry *m = mem_calloc(1, sizeof(*m));
		int r;

		if (m == NULL)
			return E_NOMEM;
		must(map_get(a->methods, rows[i].name) == NULL);
		m->row = &rows[i];
		m->builtin = builtin;
		r = map_set(a->methods, rows[i].name, m);
		if (r < 0) {
			free(m);
			return r;
		}
	}
	return 0;
}

void
methods_free(struct actor *a)
{
	void *value;

	if (a->methods == NULL)
		return;
	for (size_t at = 0; map_next(a->methods, &at, NULL, &value);) {
		struct method_entry *m = value;

		free(m->classes);
		free(m);
	}
	a->methods = map_free(a->methods);
}

/* Four classes for each power of two; the last one has no upper end. */
static unsigned
class_of(int64_t us)
{
	unsigned log2, quarter;

	if (us < 4)
		return us < 0 ? 0 : (unsigned)us;
	log2 = 63u - (unsigned)__builtin_clzll((unsigned long long)us);
	quarter = (unsigned)(us >> (log2 - 2)) & 3;
	return log2 * 4 - 4 + quarter < STATS_CLASSES ? log2 * 4 - 4 + quarter
						      : STATS_CLASSES - 1;
}

/* Where a class ends. */
static int64_t
class_end(unsigned class)
{
	unsigned log2 = class / 4 + 1;

	return class < 4 ? class + 1 : (int64_t)(4 + class % 4 + 1) << (log2 - 2);
}

void
method_count(struct method_entry *m, const struct rpc_request *req, int err)
{
	m->count++;
	m->errors += err < 0;
	/* Without memory the latency goes uncounted, and nothing else. */
	if (m->classes == NULL)
		m->classes = mem_calloc(STATS_CLASSES, sizeof(*m->classes));
	if (m->classes != NULL)
		m->classes[class_of(mono_diff_us(req->came, clock_mono()))]++;
}

int64_t
method_percentile(const struct method_entry *m, unsigned percent)
{
	uint64_t seen = 0, want, total = 0;

	for (unsigned i = 0; m->classes != NULL && i < STATS_CLASSES; i++)
		total += m->classes[i];
	want = (total * percent + 99) / 100;
	for (unsigned i = 0; total != 0 && i < STATS_CLASSES; i++) {
		seen += m->classes[i];
		if (seen >= want)
			return class_end(i);
	}
	return 0;
}

/* Reads the params; on failure the request has been answered. */
static int
decode(struct actor *a, struct rpc_request *req, struct method_entry *m, void **ret_params)
{
	CLEANUP(buf_done) struct buf data = BUF_INIT;
	struct codec c;
	void *params = arena_alloc(a->arena, m->row->params_size);
	int r = params == NULL ? E_NOMEM : 0;

	codec_init(&c, a->arena, a->desc->rules != NULL ? a->desc->rules(a->ctx) : NULL);
	c.lenient = m->row->notification;
	if (r == 0 && m->row->decode != NULL)
		r = m->row->decode(&c, req->params, params);
	if (r == 0) {
		*ret_params = params;
		return 0;
	}
	method_count(m, req, r);
	if (r == E_PARAMS)
		(void)codec_issues_text(&c, &data);
	rpc_reply_error(req, r, NULL, data.len != 0 ? buf_cstr(&data) : NULL);
	return r;
}

static int
may_run(const struct actor *a, const struct rpc_peer *p, const struct rpc_request *req,
    const struct method_entry *m)
{
	if (m == NULL)
		return E_METHOD;
	if ((m->row->from & rpc_peer_role(p)) == 0)
		return E_DENIED;
	if (m->row->notification != req->notification)
		return E_REQUEST;
	/* Who asks how it goes is told so to the end. */
	return a->draining && m->row->turn != RPC_TURN_NONE ? E_DRAINING : 0;
}

void
actor_on_request(void *arg, struct rpc_peer *p, struct rpc_request *req)
{
	struct actor *a = arg;
	struct method_entry *m = map_get(a->methods, req->method);
	void *params = NULL, *result;
	int r = may_run(a, p, req, m);

	OBJ_CHECK(a, ACTOR_MAGIC);
	if (r < 0) {
		if (m != NULL)
			method_count(m, req, r);
		rpc_reply_error(req, r, NULL, NULL);
		return;
	}
	if (decode(a, req, m, &params) == 0) {
		result = arena_alloc(a->arena, m->row->result_size);
		if (result != NULL)
			turn_serve(a, p, req, m, params, result);
		else
			rpc_reply_error(req, E_NOMEM, NULL, NULL);
	}
	arena_reset(a->arena);
}
