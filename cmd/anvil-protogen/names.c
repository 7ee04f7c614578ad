#include <ctype.h>
#include <string.h>

#include "cmd/anvil-protogen/gen.h"

char *
name_snake(const char *name)
{
	char *out = gen_alloc(2 * strlen(name) + 1, 1), *to = out;

	for (const char *p = name; *p != '\0'; p++) {
		unsigned char c = (unsigned char)*p;

		if (isupper(c) && p != name &&
		    (islower((unsigned char)p[-1]) || isdigit((unsigned char)p[-1])))
			*to++ = '_';
		*to++ = (char)(isalnum(c) ? tolower(c) : '_');
	}
	return out;
}

char *
name_upper(const char *snake)
{
	char *out = gen_format("%s", snake);

	for (char *p = out; *p != '\0'; p++)
		*p = (char)toupper((unsigned char)*p);
	return out;
}

char *
name_member(const char *name)
{
	static const char *const words[] = { "auto", "break", "case", "char", "const",
		"continue", "default", "do", "double", "else", "enum", "extern", "float", "for",
		"goto", "if", "inline", "int", "long", "register", "return", "short", "signed",
		"sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void",
		"volatile", "while" };
	char *snake = name_snake(name);

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcmp(snake, words[i]) == 0)
			return gen_format("%s_", snake);
	return snake;
}

const char *
name_ctype(const struct gtype *t)
{
	switch (t->kind) {
	case G_STRING: return "const char *";
	case G_VIEW: return "struct str_view ";
	case G_TIME:
	case G_INTEGER: return "int64_t ";
	case G_ENUM: return gen_format("enum %s ", t->cname);
	case G_NUMBER: return "double ";
	case G_BOOLEAN: return "int ";
	case G_OBJECT:
	case G_UNION: return gen_format("struct %s ", t->cname);
	case G_ANY: return "const json_t *";
	case G_ARRAY: break;
	}
	return "";
}
