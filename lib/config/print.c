#include <stdio.h>
#include <string.h>

#include "lib/base/ascii.h"
#include "lib/base/err.h"
#include "lib/base/json_text.h"
#include "lib/config/config.h"
#include "lib/config/settings.h"

#define MASK "********"

/* 1 when every reader of YAML takes ${text} for a text as it stands. */
static int
is_plain(const char *text)
{
	if (text[0] != '/' && !ascii_is_alpha(text[0]))
		return 0;
	for (const char *p = text; *p != '\0'; p++)
		if (!ascii_is_alpha(*p) && !ascii_is_digit(*p) && strchr("/._-", *p) == NULL)
			return 0;
	return 1;
}

static void
put_text(struct buf *out, const char *text, int as_json)
{
	if (!as_json && is_plain(text))
		buf_add_str(out, text);
	else
		(void)json_text_string(out, text, strlen(text));
}

static void
put_list(struct buf *out, const struct config_list *list, int as_json)
{
	buf_add_byte(out, '[');
	for (size_t i = 0; i < list->n; i++) {
		if (i > 0)
			buf_add_str(out, as_json ? "," : ", ");
		put_text(out, list->at[i], as_json);
	}
	buf_add_byte(out, ']');
}

static void
put_value(struct buf *out, const struct config *c, const struct setting *s, int as_json)
{
	const char *text;

	switch (s->type) {
	case SETTING_INT: buf_add_int(out, setting_get_int(c, s)); break;
	case SETTING_BOOL: buf_add_str(out, setting_get_bool(c, s) ? "true" : "false"); break;
	case SETTING_LIST: put_list(out, setting_get_list(c, s), as_json); break;
	case SETTING_TEXT:
		text = setting_get_text(c, s);
		if (s->secret && !as_json && text[0] != '\0')
			text = MASK;
		put_text(out, text, as_json);
		break;
	}
}

int
config_print(const struct config *c, struct buf *out)
{
	const char *section = "";

	for (size_t i = 0; i < nsettings; i++) {
		const struct setting *s = &settings[i];

		if (strcmp(section, s->section) != 0)
			buf_printf(out, "%s:\n", s->section);
		section = s->section;
		buf_printf(out, "%s%s: ", section[0] != '\0' ? "  " : "", s->key);
		put_value(out, c, s, 0);
		buf_add_byte(out, '\n');
	}
	return out->failed ? E_NOMEM : 0;
}

int
config_to_json(const struct config *c, struct buf *out)
{
	const char *section = "";

	for (size_t i = 0; i < nsettings; i++) {
		const struct setting *s = &settings[i];
		int enters = strcmp(section, s->section) != 0;

		if (enters && section[0] != '\0')
			buf_add_byte(out, '}');
		buf_add_byte(out, i == 0 ? '{' : ',');
		if (enters)
			buf_printf(out, "\"%s\":{", s->section);
		section = s->section;
		buf_printf(out, "\"%s\":", s->key);
		put_value(out, c, s, 1);
	}
	buf_add_str(out, section[0] != '\0' ? "}}" : "}");
	return out->failed ? E_NOMEM : 0;
}

/* ---- comparing ----------------------------------------------------------------------------- */

static int
same_list(const struct config_list *a, const struct config_list *b)
{
	if (a->n != b->n)
		return 0;
	for (size_t i = 0; i < a->n; i++)
		if (strcmp(a->at[i], b->at[i]) != 0)
			return 0;
	return 1;
}

static int
same_value(const struct config *a, const struct config *b, const struct setting *s)
{
	switch (s->type) {
	case SETTING_INT: return setting_get_int(a, s) == setting_get_int(b, s);
	case SETTING_BOOL: return setting_get_bool(a, s) == setting_get_bool(b, s);
	case SETTING_LIST: return same_list(setting_get_list(a, s), setting_get_list(b, s));
	case SETTING_TEXT: break;
	}
	return strcmp(setting_get_text(a, s), setting_get_text(b, s)) == 0;
}

void
config_diff(const struct config *before, const struct config *after,
    void (*fn)(void *arg, const char *path, int live), void *arg)
{
	for (size_t i = 0; i < nsettings; i++) {
		const struct setting *s = &settings[i];
		char path[80];

		if (same_value(before, after, s))
			continue;
		(void)snprintf(path, sizeof(path), "%s%s%s", s->section,
		    s->section[0] != '\0' ? "." : "", s->key);
		fn(arg, path, s->live);
	}
}
