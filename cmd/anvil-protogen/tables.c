#include <inttypes.h>
#include <string.h>

#include "cmd/anvil-protogen/gen.h"

static const char *const kind_names[] = {
	[G_STRING] = "STRING",
	[G_VIEW] = "VIEW",
	[G_TIME] = "TIME",
	[G_ENUM] = "ENUM",
	[G_INTEGER] = "INTEGER",
	[G_NUMBER] = "NUMBER",
	[G_BOOLEAN] = "BOOLEAN",
	[G_ANY] = "ANY",
	[G_ARRAY] = "ARRAY",
	[G_OBJECT] = "OBJECT",
	[G_UNION] = "UNION",
};

/* The decision of header.c's has_flag() and is_pointer() as flags. */
static unsigned
field_flags(const struct gfield *f, char *out, size_t size)
{
	int pointer = 0, has = f->def == NULL && (!f->required || f->nullable);

	switch (f->type->kind) {
	case G_OBJECT:
	case G_UNION: pointer = f->nullable || !f->required; /* fallthrough */
	case G_STRING:
	case G_VIEW: has = has && !f->required && f->nullable; break;
	default: break;
	}
	(void)snprintf(out, size, "%s%s%s%s%s0", f->required ? "CODEC_REQUIRED | " : "",
	    f->nullable ? "CODEC_NULLABLE | " : "", pointer ? "CODEC_POINTER | " : "",
	    has ? "CODEC_HAS | " : "", f->def != NULL ? "CODEC_DEFAULT | " : "");
	return (unsigned)has;
}

static int64_t
default_int(const struct gfield *f)
{
	if (json_is_integer(f->def))
		return json_integer_value(f->def);
	if (f->type->kind == G_ENUM)
		for (size_t i = 0; i < f->type->nwords; i++)
			if (strcmp(f->type->words[i], json_string_value(f->def)) == 0)
				return (int64_t)i;
	return json_is_true(f->def);
}

static void
write_quoted(struct buf *out, const char *text)
{
	buf_add_byte(out, '"');
	for (; *text != '\0'; text++) {
		if (*text == '"' || *text == '\\')
			buf_add_byte(out, '\\');
		buf_add_byte(out, (uint8_t)*text);
	}
	buf_add_byte(out, '"');
}

static int
has_extra(const struct gfield *f)
{
	return f->code != NULL || f->blank_code != NULL || f->def != NULL;
}

static void
write_extra(const struct gtype *t, const struct gfield *f, struct buf *out)
{
	buf_printf(
	    out, "static const struct codec_extra %s_%s_extra = {\n", t->cname, f->cname);
	if (f->code != NULL)
		buf_printf(out, "\t.code = \"%s\",\n", f->code);
	if (f->blank_code != NULL)
		buf_printf(out, "\t.blank_code = \"%s\",\n", f->blank_code);
	if (f->def != NULL && f->type->kind == G_STRING) {
		buf_printf(out, "\t.def_text = ");
		write_quoted(out, json_string_value(f->def));
		buf_printf(out, ",\n");
	} else if (f->def != NULL) {
		buf_printf(out, "\t.def_int = %" PRId64 ",\n", default_int(f));
	}
	buf_printf(out, "};\n");
}

static void
write_fields(const struct gtype *t, struct buf *out)
{
	char flags[128];

	for (size_t i = 0; i < t->nfields; i++)
		if (has_extra(&t->fields[i]))
			write_extra(t, &t->fields[i], out);
	if (t->nfields != 0)
		buf_printf(out, "static const struct codec_field %s_fields[] = {\n", t->cname);
	for (size_t i = 0; i < t->nfields; i++) {
		const struct gfield *f = &t->fields[i];
		unsigned has = field_flags(f, flags, sizeof(flags));

		buf_printf(out,
		    "\t{ .key = \"\\\"%s\\\":\", .key_len = %zu, .type = &%s_codec,\n", f->name,
		    strlen(f->name) + 3, f->type->cname);
		buf_printf(out, "\t    .flags = %s, .at = offsetof(struct %s, %s),\n", flags,
		    t->cname, f->cname);
		if (has)
			buf_printf(out, "\t    .has = offsetof(struct %s, has_%s),\n", t->cname,
			    f->cname);
		if (has_extra(f))
			buf_printf(out, "\t    .extra = &%s_%s_extra,\n", t->cname, f->cname);
		buf_printf(out, "\t},\n");
	}
	if (t->nfields != 0)
		buf_printf(out, "};\n");
}

static void
write_variants(const struct gtype *t, struct buf *out)
{
	buf_printf(out, "static const struct codec_variant %s_variants[] = {\n", t->cname);
	for (size_t i = 0; i < t->nvariants; i++) {
		const struct gvariant *v = &t->variants[i];

		buf_printf(out, "\t{ .name = \"%s\", .type = &%s_codec, .at = ", v->name,
		    v->type->cname);
		if (v->type->nfields == 0)
			buf_printf(out, "0 },\n");
		else
			buf_printf(out, "offsetof(struct %s, u.%s) },\n", t->cname, v->cname);
	}
	buf_printf(out, "};\n");
}

static void
write_words(const struct gtype *t, struct buf *out)
{
	buf_printf(out, "static const char *const %s_word[] = {\n", t->cname);
	for (size_t i = 0; i < t->nwords; i++)
		buf_printf(out, "\t\"%s\",\n", t->words[i]);
	buf_printf(out, "};\nstatic const struct codec_words %s_words = { %s_word, %zu };\n",
	    t->cname, t->cname, t->nwords);
	buf_printf(out,
	    "const char *\n%s_name(enum %s v)\n{\n"
	    "\tmust((size_t)v < %zu);\n\treturn %s_word[v];\n}\n",
	    t->cname, t->cname, t->nwords, t->cname);
	buf_printf(out,
	    "int\n%s_parse(const char *text, enum %s *ret)\n{\n"
	    "\tint i = codec_word_find(&%s_words, text);\n\n"
	    "\tif (i < 0)\n\t\treturn i;\n"
	    "\t*ret = (enum %s)i;\n\treturn 0;\n}\n",
	    t->cname, t->cname, t->cname, t->cname);
}

static void
write_limit(struct buf *out, const char *member, int64_t v)
{
	if (v == INT64_MIN)
		buf_printf(out, "\t.%s = INT64_MIN,\n", member);
	else if (v == INT64_MAX)
		buf_printf(out, "\t.%s = INT64_MAX,\n", member);
	else
		buf_printf(out, "\t.%s = %" PRId64 ",\n", member, v);
}

/* sizeof of the C value; for an object without members there is none. */
static void
write_size(const struct gtype *t, struct buf *out)
{
	const char *ctype = name_ctype(t);

	if (t->is_variant && t->nfields == 0)
		return;
	if (t->kind == G_ARRAY || t->kind == G_ANY)
		buf_printf(out, "\t.size = 2 * sizeof(void *),\n");
	else
		buf_printf(out, "\t.size = sizeof(%s),\n", ctype);
}

static void
write_type(const struct gtype *t, struct buf *out)
{
	buf_printf(out, "%sconst struct codec_type %s_codec = {\n\t.kind = CODEC_%s,\n",
	    t->is_public ? "" : "static ", t->cname, kind_names[t->kind]);
	buf_printf(out, "\t.name = \"%s\",\n", t->name);
	write_size(t, out);
	if (t->code != NULL)
		buf_printf(out, "\t.code = \"%s\",\n", t->code);
	if (t->kind != G_OBJECT && t->kind != G_UNION) {
		write_limit(out, "min", t->min);
		write_limit(out, "max", t->max);
	}
	if (t->max_bytes != 0)
		buf_printf(out, "\t.max_bytes = %" PRId64 ",\n", t->max_bytes);
	if (t->shape != NULL)
		buf_printf(out, "\t.shape = CODEC_SHAPE_%s,\n", t->shape);
	if (t->prefix != NULL || t->tag != NULL)
		buf_printf(out, "\t.tag = \"%s\",\n", t->prefix != NULL ? t->prefix : t->tag);
	if (t->rule != NULL)
		buf_printf(out, "\t.rule = \"%s\",\n", t->rule);
	if (t->kind == G_ENUM)
		buf_printf(out, "\t.words = &%s_words,\n", t->cname);
	if (t->kind == G_ARRAY)
		buf_printf(out, "\t.item = &%s_codec,\n", t->item->cname);
	if (t->nfields != 0)
		buf_printf(
		    out, "\t.fields = %s_fields,\n\t.nfields = %zu,\n", t->cname, t->nfields);
	if (t->nvariants != 0)
		buf_printf(out, "\t.variants = %s_variants,\n\t.nvariants = %zu,\n", t->cname,
		    t->nvariants);
	buf_printf(out, "};\n");
}

void
tables_write(const struct gen *g, struct buf *out)
{
	buf_printf(out, "#include \"gen/%s.h\"\n\n#include <string.h>\n", g->name);
	for (size_t i = 0; i < g->norder; i++) {
		const struct gtype *t = g->order[i];

		buf_add_byte(out, '\n');
		if (t->kind == G_ENUM)
			write_words(t, out);
		else if (t->kind == G_UNION)
			write_variants(t, out);
		else if (t->kind == G_OBJECT)
			write_fields(t, out);
		write_type(t, out);
	}
}
