#include "lib/ledger/check.h"

#include "lib/base/base.h"
#include "lib/base/err.h"
#include "lib/ledger/inside.h"

static const struct store_rule rules[] = {
#define RULE(code, mendable, text, sql) { code, mendable, text, sql },
#include "schema/project.rules.def"
#undef RULE
};

int
ledger_find_problems(struct store *s, int64_t now_ms, struct store_problems *ret)
{
	return store_check_rules(s, rules, ARRAY_LEN(rules), now_ms, ret);
}

int
ledger_inspect(const char *path, int64_t now_ms, struct store_problems *ret)
{
	return store_inspect(&ledger_store, path, ledger_find_problems, now_ms, ret);
}

int
ledger_check(struct store *s, struct arena *a, const char **ret_broken)
{
	struct store_problems found = { .arena = a };
	int r = ledger_find_problems(s, 0, &found);

	*ret_broken = NULL;
	if (r < 0 || found.n == 0)
		return r;
	*ret_broken = arena_format(a, "%s %s", found.rows[0].subject, found.rows[0].text);
	return *ret_broken != NULL ? 0 : E_NOMEM;
}
