#include <string.h>

#include "lib/base/ascii.h"
#include "lib/base/err.h"
#include "lib/ytree/ytree.h"

const struct ytree_node *
ytree_get(const struct ytree_node *map, const char *key)
{
	size_t n = strlen(key);

	for (const struct ytree_node *at = map->first; at != NULL; at = at->next)
		if (at->key != NULL && at->key->len == n && memcmp(at->key->text, key, n) == 0)
			return at;
	return NULL;
}

int
ytree_is_null(const struct ytree_node *node)
{
	return node->kind == YTREE_SCALAR && node->plain && node->len == 0;
}

int
ytree_is_text(const struct ytree_node *node)
{
	return node->kind == YTREE_SCALAR && !ytree_is_null(node);
}

int
ytree_int(const struct ytree_node *node, int64_t *ret)
{
	int64_t v = 0;

	if (node->kind != YTREE_SCALAR || !node->plain || node->len == 0 ||
	    (node->text[0] == '0' && node->len > 1))
		return E_INVAL;
	for (size_t i = 0; i < node->len; i++)
		if (!ascii_is_digit(node->text[i]) || __builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, node->text[i] - '0', &v))
			return E_INVAL;
	*ret = v;
	return 0;
}
