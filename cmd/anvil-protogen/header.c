#include <string.h>

#include "cmd/anvil-protogen/gen.h"

static void
write_enum(const struct gtype *t, struct buf *out)
{
	const char *upper = name_upper(t->cname);

	buf_printf(out, "\nenum %s {\n", t->cname);
	for (size_t i = 0; i < t->nwords; i++)
		buf_printf(out, "\t%s_%s,\n", upper, name_upper(name_snake(t->words[i])));
	buf_printf(out, "\t%s_COUNT,\n};\n", upper);
	buf_printf(out, "/* The word of the contract; never NULL. */\n");
	buf_printf(out, "const char *%s_name(enum %s v);\n", t->cname, t->cname);
	buf_printf(out, "/* 0 or E_INVAL. */\n");
	buf_printf(out, "int %s_parse(const char *text, enum %s *ret);\n", t->cname, t->cname);
}

static int
is_pointer(const struct gfield *f)
{
	return (f->type->kind == G_OBJECT || f->type->kind == G_UNION) &&
	    (f->nullable || !f->required);
}

/* The reason why a field is not simply there, for its comment. */
static const char *
presence(const struct gfield *f)
{
	if (f->def != NULL)
		return "";
	if (f->required)
		return f->nullable ? "may be null" : "";
	return f->nullable ? "may be absent or null" : "may be absent";
}

/* Whether `has_x` stands before the member (the same decision as in tables.c). */
static int
has_flag(const struct gfield *f)
{
	if (f->def != NULL || (f->required && !f->nullable))
		return 0;
	switch (f->type->kind) {
	case G_STRING:
	case G_VIEW:
	case G_OBJECT:
	case G_UNION: return !f->required && f->nullable;
	default: return 1;
	}
}

static void
write_member(const struct gfield *f, struct buf *out)
{
	const struct gtype *t = f->type;
	const char *why = presence(f);

	if (has_flag(f))
		buf_printf(out, "\tint has_%s;\n", f->cname);
	if (t->kind == G_ARRAY) {
		const char *item = name_ctype(t->item);

		if (t->item->kind == G_STRING)
			buf_printf(out, "\tconst char *const *%s;", f->cname);
		else
			buf_printf(out, "\tconst %s*%s;", item, f->cname);
		buf_printf(out, "\n\tsize_t n%s;", f->cname);
	} else if (is_pointer(f)) {
		buf_printf(out, "\tconst %s*%s;", name_ctype(t), f->cname);
	} else {
		buf_printf(out, "\t%s%s;", name_ctype(t), f->cname);
	}
	if (*why != '\0')
		buf_printf(out, " /* %s */", why);
	if (t->kind == G_ANY)
		buf_printf(out, "\n\tconst char *%s_text; /* to encode JSON text instead */",
		    f->cname);
	buf_add_byte(out, '\n');
}

static void
write_struct(const struct gtype *t, struct buf *out)
{
	if (t->is_variant && t->nfields == 0)
		return;
	buf_printf(out, "\nstruct %s {\n", t->cname);
	for (size_t i = 0; i < t->nfields; i++)
		write_member(&t->fields[i], out);
	if (t->nfields == 0)
		buf_printf(out, "\tchar none;\n");
	buf_printf(out, "};\n");
}

static void
write_union(const struct gtype *t, struct buf *out)
{
	const char *upper = name_upper(t->kind_stem);
	size_t nfull = 0;

	buf_printf(out, "\nenum %s_kind {\n", t->kind_stem);
	for (size_t i = 0; i < t->nvariants; i++) {
		buf_printf(out, "\t%s_%s%s,\n", upper,
		    name_upper(name_snake(t->variants[i].name)), i == 0 ? " = 1" : "");
		nfull += t->variants[i].type->nfields != 0;
	}
	buf_printf(out, "};\nstruct %s {\n\tenum %s_kind kind;\n", t->cname, t->kind_stem);
	if (nfull != 0) {
		buf_printf(out, "\tunion {\n");
		for (size_t i = 0; i < t->nvariants; i++)
			if (t->variants[i].type->nfields != 0)
				buf_printf(out, "\t\tstruct %s %s;\n",
				    t->variants[i].type->cname, t->variants[i].cname);
		buf_printf(out, "\t} u;\n");
	}
	buf_printf(out, "};\n");
}

/* Decoder and encoder of a type that others use by name. */
static void
write_functions(const struct gtype *t, struct buf *out)
{
	buf_printf(out, "extern const struct codec_type %s_codec;\n", t->cname);
	if ((t->kind != G_OBJECT && t->kind != G_UNION) || t->is_variant)
		return;
	buf_printf(out,
	    "static inline int\n%s_decode(struct codec *c, const json_t *j, struct %s *ret)\n"
	    "{\n\treturn codec_decode(c, &%s_codec, j, ret);\n}\n",
	    t->cname, t->cname, t->cname);
	buf_printf(out,
	    "static inline int\n%s_encode(struct buf *out, const struct %s *v)\n"
	    "{\n\treturn codec_encode(out, &%s_codec, v);\n}\n",
	    t->cname, t->cname, t->cname);
}

void
header_write(const struct gen *g, struct buf *out)
{
	const char *upper = name_upper(g->name);

	buf_printf(out, "#ifndef GEN_%s_H\n#define GEN_%s_H\n\n", upper, upper);
	buf_printf(out, "#include <jansson.h>\n#include <stddef.h>\n#include <stdint.h>\n\n");
	if (g->doc != g->types)
		buf_printf(out, "#include \"gen/types.h\"\n");
	buf_printf(out, "#include \"lib/wire/wire.h\"\n");
	for (size_t i = 0; i < g->norder; i++) {
		const struct gtype *t = g->order[i];

		if (t->kind == G_ENUM)
			write_enum(t, out);
		else if (t->kind == G_OBJECT)
			write_struct(t, out);
		else if (t->kind == G_UNION)
			write_union(t, out);
		if (t->is_public)
			write_functions(t, out);
	}
	if (g->context != NULL)
		stubs_header(g, out);
	if (g->doc != g->types)
		buf_printf(out,
		    "\n/* The whole document as JSON text, to be served. */\n"
		    "const char *%s_document(void);\n",
		    g->name);
	if (g->noperations != 0)
		http_header(g, out);
	buf_printf(out, "\n#endif\n");
}
