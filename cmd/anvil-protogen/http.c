#include "cmd/anvil-protogen/gen.h"

/* A body is decoded twice (spec http-api 2.5), into a fresh struct each time. */
static void
write_body(const struct goperation *o, struct buf *out)
{
	static const char *const passes[][2] = { { "shapes", "CODEC_SHAPES" },
		{ "rules", "CODEC_ALL" } };

	for (size_t i = 0; i < ARRAY_LEN(passes); i++)
		buf_printf(out,
		    "static inline int\n"
		    "http_%s_%s(struct codec *c, const json_t *body, struct %s *ret)\n"
		    "{\n\tc->passes = %s;\n\treturn %s_decode(c, body, ret);\n}\n",
		    o->cname, passes[i][0], o->body->cname, passes[i][1], o->body->cname);
}

void
http_code_table(const struct gen *g, struct buf *out)
{
	if (g->ncodes == 0)
		return;
	buf_printf(out,
	    "\nint\nhttp_code_status(enum http_code code)\n{\n"
	    "\tstatic const short status[] = {\n");
	for (size_t i = 0; i < g->ncodes; i++)
		buf_printf(out, "\t\t%d, /* %s */\n", g->codes[i].status, g->codes[i].name);
	buf_printf(out,
	    "\t};\n\n\tmust((size_t)code < ARRAY_LEN(status));\n"
	    "\treturn status[code];\n}\n");
}

void
http_header(const struct gen *g, struct buf *out)
{
	buf_printf(out,
	    "\n/* Status of the answer that carries this error code. */\n"
	    "int http_code_status(enum http_code code);\n");
	buf_printf(out,
	    "\n/* Bodies in two passes (spec http-api 2.5): _shapes, and when that is good and the\n"
	    " * limiter agrees, _rules, which fills ${ret} for use.  E_PARAMS: see c. */\n");
	for (size_t i = 0; i < g->noperations; i++)
		if (g->operations[i].body != NULL)
			write_body(&g->operations[i], out);
}

void
http_routes(const struct gen *g, struct buf *out)
{
	buf_printf(out,
	    "/* Rows ROUTE(method, pattern, operation, access, flags): access is PUBLIC, PRIVATE,\n"
	    " * TICKET or OPEN; flags HTTP_ROUTE_*.  Define ROUTE, include, undefine. */\n");
	for (size_t i = 0; i < g->noperations; i++) {
		const struct goperation *o = &g->operations[i];

		buf_printf(out, "ROUTE(\"%s\", \"%s\", %s, %s, %s)\n", name_upper(o->method),
		    o->path, o->cname, o->access, o->stream ? "HTTP_ROUTE_NO_HEAD" : "0");
	}
}
