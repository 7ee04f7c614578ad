#include <string.h>

#include <jansson.h>

#include "lib/base/err.h"
#include "lib/config/config.h"
#include "lib/config/settings.h"
#include "lib/wire/wire.h"

#define DEPTH_MAX 4

static int
take_int(struct config *c, const struct setting *s, const json_t *j)
{
	if (!json_is_integer(j) || json_integer_value(j) < s->min ||
	    json_integer_value(j) > s->max)
		return E_INVAL;
	*setting_int(c, s) = json_integer_value(j);
	return 0;
}

static int
take_bool(struct config *c, const struct setting *s, const json_t *j)
{
	if (!json_is_boolean(j))
		return E_INVAL;
	*setting_bool(c, s) = json_is_true(j);
	return 0;
}

static int
check_text(struct config *c, const struct setting *s, const json_t *j, const char **ret)
{
	const char *text = json_string_value(j);

	if (text == NULL || strlen(text) != json_string_length(j))
		return E_INVAL;
	return s->check(c->arena, text, strlen(text), ret);
}

static int
take_list(struct config *c, const struct setting *s, const json_t *j)
{
	size_t n = json_array_size(j);
	const char **items;
	int r = 0;

	if (!json_is_array(j) || (int64_t)n < s->min || (int64_t)n > s->max)
		return E_INVAL;
	items = arena_calloc(c->arena, n, sizeof(*items));
	if (items == NULL)
		return E_NOMEM;
	for (size_t i = 0; r == 0 && i < n; i++)
		r = check_text(c, s, json_array_get(j, i), &items[i]);
	if (r == 0)
		*setting_list(c, s) = (struct config_list) { n, items };
	return r;
}

static int
take(struct config *c, const struct setting *s, const json_t *root)
{
	const json_t *j = root;

	if (s->section[0] != '\0')
		j = json_object_get(j, s->section);
	j = json_object_get(j, s->key);
	if (j == NULL)
		return 0;
	switch (s->type) {
	case SETTING_INT: return take_int(c, s, j);
	case SETTING_BOOL: return take_bool(c, s, j);
	case SETTING_LIST: return take_list(c, s, j);
	case SETTING_TEXT: break;
	}
	return check_text(c, s, j, setting_text(c, s));
}

int
config_from_json(const char *text, size_t n, struct config **ret_config)
{
	CLEANUP(config_freep) struct config *c = settings_new();
	CLEANUP(json_unrefp) json_t *root = NULL;
	int r;

	if (c == NULL)
		return E_NOMEM;
	r = json_text_parse(text, n, DEPTH_MAX, &root);
	if (r == 0 && !json_is_object(root))
		r = E_INVAL;
	for (size_t i = 0; r == 0 && i < nsettings; i++)
		r = take(c, &settings[i], root);
	if (r < 0)
		return r == E_NOMEM ? r : E_INVAL;
	*ret_config = TAKE_PTR(c);
	return 0;
}
