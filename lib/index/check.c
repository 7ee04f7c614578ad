#include "lib/index/check.h"

#include "lib/base/base.h"
#include "lib/index/index.h"
#include "lib/index/stmts.h"

static const struct store_rule rules[] = {
#define RULE(code, mendable, text, sql) { code, mendable, text, sql },
#include "schema/ingress.rules.def"
#undef RULE
};

int
index_find_problems(struct store *s, int64_t now_ms, struct store_problems *ret)
{
	return store_check_rules(s, rules, ARRAY_LEN(rules), now_ms, ret);
}

int
index_inspect(const char *path, int64_t now_ms, struct store_problems *ret)
{
	return store_inspect(&index_store, path, index_find_problems, now_ms, ret);
}
