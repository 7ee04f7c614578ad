#include "lib/wire/hello.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/json_text.h"

#define PROTOCOL_OLDEST (RPC_PROTOCOL - 1)

int
link_socket_name(const char *address, char out[RPC_ADDRESS_SIZE + 8])
{
	size_t n = strlen(address);
	char name[RPC_ADDRESS_SIZE];

	if (n == 0 || n >= sizeof(name) || address[0] == '.' ||
	    strspn(address,
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./") != n)
		return E_INVAL;
	if (strncmp(address, "run/", 4) == 0)
		address += 4;
	(void)snprintf(name, sizeof(name), "%s", address);
	for (char *slash = name; (slash = strchr(slash, '/')) != NULL;)
		*slash = '-';
	if (name[0] == '\0' || name[0] == '.')
		return E_INVAL;
	(void)snprintf(out, RPC_ADDRESS_SIZE + 8, "%s.sock", name);
	return 0;
}

uint32_t
link_address_role(const char *address)
{
	enum rpc_role role;
	char word[16];
	size_t n = strcspn(address, "/");

	if (n >= sizeof(word))
		return 0;
	memcpy(word, address, n);
	word[n] = '\0';
	return rpc_role_parse(word, &role) == 0 ? (uint32_t)role : 0;
}

int
hello_write_params(struct buf *out, enum rpc_role role, const char *address)
{
	buf_printf(out, "{\"role\":\"%s\",\"address\":", rpc_role_name((uint32_t)role));
	json_text_string(out, address, strlen(address));
	buf_printf(out, ",\"pid\":%ld,\"protocol\":%d}", (long)getpid(), RPC_PROTOCOL);
	return out->failed ? E_NOMEM : 0;
}

int
hello_write_result(struct buf *out, const char *address)
{
	buf_add_str(out, "{\"address\":");
	json_text_string(out, address, strlen(address));
	buf_printf(
	    out, ",\"pid\":%ld,\"protocol\":%d,\"version\":", (long)getpid(), RPC_PROTOCOL);
	json_text_string(out, base_version(), strlen(base_version()));
	buf_add_byte(out, '}');
	return out->failed ? E_NOMEM : 0;
}

static int
read_protocol(const json_t *object, int64_t *ret_protocol)
{
	const json_t *j = json_object_get(object, "protocol");

	if (!json_is_integer(j))
		return E_PARAMS;
	*ret_protocol = json_integer_value(j);
	return *ret_protocol > RPC_PROTOCOL || *ret_protocol < PROTOCOL_OLDEST ? E_PROTOCOL : 0;
}

int
hello_read_params(const json_t *params, struct hello *ret)
{
	const char *role = json_string_value(json_object_get(params, "role"));
	const char *address = json_string_value(json_object_get(params, "address"));
	const json_t *pid = json_object_get(params, "pid");
	int r = read_protocol(params, &ret->protocol);

	/* The number first: another protocol may have other members. */
	if (r < 0)
		return r;
	if (role == NULL || rpc_role_parse(role, &ret->role) < 0 || address == NULL ||
	    strlen(address) >= RPC_ADDRESS_SIZE ||
	    link_address_role(address) != (uint32_t)ret->role || !json_is_integer(pid) ||
	    json_integer_value(pid) <= 0 || json_integer_value(pid) > INT_MAX ||
	    json_object_size(params) != 4)
		return E_PARAMS;
	ret->address = address;
	ret->pid = (pid_t)json_integer_value(pid);
	return 0;
}

int
hello_read_result(const json_t *result, const char **ret_address)
{
	const char *address = json_string_value(json_object_get(result, "address"));
	int64_t protocol;
	int r = read_protocol(result, &protocol);

	if (r < 0)
		return r;
	if (address == NULL)
		return E_PARAMS;
	*ret_address = address;
	return 0;
}

int
hello_check_uid(const struct rpc_peer *p)
{
	pid_t pid;
	uid_t uid;

	return rpc_peer_cred(p, &pid, &uid) == 0 && (uid == geteuid() || uid == 0) ? 0
										   : E_DENIED;
}

int
hello_sockaddr(int dirfd, const char *name, struct sockaddr_un *ret)
{
	int n;

	memset(ret, 0, sizeof(*ret));
	ret->sun_family = AF_UNIX;
	n = snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/%s", dirfd, name);
	return n < 0 || (size_t)n >= sizeof(ret->sun_path) ? E_INVAL : 0;
}
