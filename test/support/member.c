#include "test/support/member.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/buf.h"

int
member_of(const struct buf *body, const char *name, char *out, size_t size)
{
	char key[64];
	const char *at;
	size_t n;

	(void)snprintf(key, sizeof(key), "\"%s\":\"", name);
	at = body->len == 0 ? NULL : strstr((const char *)body->data, key);
	if (at == NULL)
		return -1;
	at += strlen(key);
	n = strcspn(at, "\"");
	if (n >= size)
		return -1;
	memcpy(out, at, n);
	out[n] = '\0';
	return 0;
}
