#include <string.h>

#include "cmd/anvil-protogen/gen.h"

/* ---- X.h ---- */

static void
write_handler(const struct gen *g, const struct gmethod *m, struct buf *out)
{
	buf_printf(out, "int %s(struct %s *ctx, struct turn *t,\n    const struct %s *params",
	    m->cname, g->context, m->params->cname);
	if (!m->notification)
		buf_printf(out, ", struct %s *ret", m->result->cname);
	buf_printf(out, ");\n");
}

static void
write_stub_prototype(const struct gmethod *m, struct buf *out)
{
	if (m->notification) {
		buf_printf(out,
		    "int %s_send(struct rpc_peer *p, const struct rpc_call_opts *opts,\n"
		    "    const struct %s *params);\n",
		    m->cname, m->params->cname);
		return;
	}
	buf_printf(out, "typedef void %s_fn(void *arg, int err, const struct %s *result);\n",
	    m->cname, m->result->cname);
	buf_printf(out,
	    "int %s_call(struct rpc_peer *p, const struct rpc_call_opts *opts,\n"
	    "    const struct %s *params, %s_fn *cb, void *arg);\n",
	    m->cname, m->params->cname, m->cname);
}

void
stubs_header(const struct gen *g, struct buf *out)
{
	buf_printf(out,
	    "\n/* Handlers: 0 and ${ret} (zeroed before) filled, TURN_PARKED, or an error. */\n"
	    "struct %s;\nstruct turn;\n",
	    g->context);
	for (size_t i = 0; i < g->nmethods; i++)
		if (!g->methods[i].outgoing)
			write_handler(g, &g->methods[i], out);
	buf_printf(out,
	    "\n/* Calls: 0, then ${cb} runs once, later, with a result when err is 0, borrowed\n"
	    " * until it returns; or an error of rpc_send(), then ${cb} never runs. */\n");
	for (size_t i = 0; i < g->nmethods; i++)
		write_stub_prototype(&g->methods[i], out);
	buf_printf(out,
	    "\n/* Defined by %s_methods.h, which one file of the actor's program includes. */\n"
	    "extern const struct rpc_method %s_methods[];\n"
	    "extern const size_t %s_methods_count;\n"
	    "/* What can be called, without the handlers. */\n"
	    "extern const struct rpc_contract %s_contract[];\n"
	    "extern const size_t %s_contract_count;\n",
	    g->name, g->name, g->name, g->name, g->name);
}

/* ---- X.c ---- */

static void
write_send(const struct gmethod *m, struct buf *out)
{
	buf_printf(out,
	    "\nint\n%s_send(struct rpc_peer *p, const struct rpc_call_opts *opts,\n"
	    "    const struct %s *params)\n{\n"
	    "\treturn stub_notify(p, \"%s\", &%s_codec, params, opts);\n}\n",
	    m->cname, m->params->cname, m->name, m->params->cname);
}

static void
write_call(const struct gmethod *m, struct buf *out)
{
	buf_printf(out,
	    "\nstatic void\n%s_on_answer(void *arg, const struct rpc_answer *answer)\n{\n"
	    "\tstruct stub_call *call = arg;\n"
	    "\tstruct %s result;\n"
	    "\tint err;\n\n"
	    "\tmemset(&result, 0, sizeof(result));\n"
	    "\terr = stub_answer(call, answer, &%s_codec, &result);\n"
	    "\t((%s_fn *)call->fn)(call->arg, err, err < 0 ? NULL : &result);\n"
	    "\tstub_done(call);\n}\n",
	    m->cname, m->result->cname, m->result->cname, m->cname);
	buf_printf(out,
	    "\nint\n%s_call(struct rpc_peer *p, const struct rpc_call_opts *opts,\n"
	    "    const struct %s *params, %s_fn *cb, void *arg)\n{\n"
	    "\tconst struct stub_call call = { (stub_fn *)cb, arg, NULL };\n\n"
	    "\treturn stub_send(p, \"%s\", &%s_codec, params, opts, %s_on_answer, &call);\n}\n",
	    m->cname, m->params->cname, m->cname, m->name, m->params->cname, m->cname);
}

void
stubs_code(const struct gen *g, struct buf *out)
{
	if (g->context == NULL)
		return;
	for (size_t i = 0; i < g->nmethods; i++)
		if (g->methods[i].notification)
			write_send(&g->methods[i], out);
		else
			write_call(&g->methods[i], out);
	buf_printf(out, "\nconst struct rpc_contract %s_contract[] = {\n", g->name);
	for (size_t i = 0; i < g->nmethods; i++) {
		const struct gmethod *m = &g->methods[i];

		buf_printf(out, "\t{ \"%s\", &%s_codec, ", m->name, m->params->cname);
		if (m->notification)
			buf_printf(out, "NULL },\n");
		else
			buf_printf(out, "&%s_codec },\n", m->result->cname);
	}
	buf_printf(out, "};\nconst size_t %s_contract_count = ARRAY_LEN(%s_contract);\n",
	    g->name, g->name);
}

/* ---- X_methods.h ---- */

static void
write_row_functions(const struct gmethod *m, struct buf *out)
{
	buf_printf(out,
	    "\nstatic int\n%s_row_decode(struct codec *c, const json_t *params, void *ret)\n{\n"
	    "%s\treturn codec_decode(c, &%s_codec, params, ret);\n}\n",
	    m->cname, m->notification ? "\tc->lenient = 1;\n" : "", m->params->cname);
	buf_printf(out,
	    "\nstatic int\n%s_row_run(void *ctx, struct turn *t, const void *params, void *ret)\n"
	    "{\n%s\treturn %s(ctx, t, params%s);\n}\n",
	    m->cname, m->notification ? "\t(void)ret;\n" : "", m->cname,
	    m->notification ? "" : ", ret");
	if (!m->notification)
		buf_printf(out,
		    "\nstatic int\n%s_row_encode(struct buf *out, const void *result)\n{\n"
		    "\treturn codec_encode(out, &%s_codec, result);\n}\n",
		    m->cname, m->result->cname);
}

static void
write_row(const struct gmethod *m, struct buf *out)
{
	static const char *const roles[] = { "SUPERVISOR", "INGRESS", "PROJECT", "RUN", "CTL" };
	const char *between = "";

	buf_printf(out, "\t{\n\t    .name = \"%s\",\n\t    .from = ", m->name);
	for (unsigned i = 0; i < ARRAY_LEN(roles); i++)
		if (m->from & 1u << i) {
			buf_printf(out, "%sROLE_%s", between, roles[i]);
			between = " | ";
		}
	buf_printf(out,
	    ",\n\t    .turn = RPC_TURN_%s,\n\t    .notification = %d,\n"
	    "\t    .params_size = sizeof(struct %s),\n",
	    m->turn, m->notification, m->params->cname);
	if (!m->notification)
		buf_printf(out,
		    "\t    .result_size = sizeof(struct %s),\n\t    .encode = %s_row_encode,\n",
		    m->result->cname, m->cname);
	buf_printf(out, "\t    .decode = %s_row_decode,\n\t    .run = %s_row_run,\n\t},\n",
	    m->cname, m->cname);
}

void
stubs_methods(const struct gen *g, struct buf *out)
{
	buf_printf(out,
	    "/* Included by one file of the program that has the handlers. */\n"
	    "#include \"gen/%s.h\"\n",
	    g->name);
	for (size_t i = 0; i < g->nmethods; i++)
		if (!g->methods[i].outgoing)
			write_row_functions(&g->methods[i], out);
	buf_printf(out, "\nconst struct rpc_method %s_methods[] = {\n", g->name);
	for (size_t i = 0; i < g->nmethods; i++)
		if (!g->methods[i].outgoing)
			write_row(&g->methods[i], out);
	buf_printf(out, "};\nconst size_t %s_methods_count = ARRAY_LEN(%s_methods);\n", g->name,
	    g->name);
}
