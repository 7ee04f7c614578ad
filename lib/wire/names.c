#include <string.h>

#include "lib/base/base.h"
#include "lib/base/err.h"
#include "lib/wire/rpc.h"

static const struct {
	enum rpc_role role;
	const char *name;
} role_names[] = {
	{ ROLE_SUPERVISOR, "supervisor" },
	{ ROLE_INGRESS, "ingress" },
	{ ROLE_PROJECT, "project" },
	{ ROLE_RUN, "run" },
	{ ROLE_CTL, "ctl" },
};

const char *
rpc_role_name(uint32_t role)
{
	for (size_t i = 0; i < ARRAY_LEN(role_names); i++)
		if ((uint32_t)role_names[i].role == role)
			return role_names[i].name;
	return "";
}

int
rpc_role_parse(const char *name, enum rpc_role *ret_role)
{
	for (size_t i = 0; i < ARRAY_LEN(role_names); i++) {
		if (strcmp(role_names[i].name, name) == 0) {
			*ret_role = role_names[i].role;
			return 0;
		}
	}
	return E_INVAL;
}

const struct rpc_method *
rpc_method_find(const struct rpc_method *rows, size_t nrows, const char *name)
{
	for (size_t i = 0; i < nrows; i++)
		if (strcmp(rows[i].name, name) == 0)
			return &rows[i];
	return NULL;
}
