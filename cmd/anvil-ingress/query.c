#include "cmd/anvil-ingress/query.h"

#include <string.h>

#include "lib/base/ascii.h"
#include "lib/base/err.h"

#define DIGITS_MAX 18

int
query_number(const char *text, int64_t min, int64_t max, int64_t *ret)
{
	size_t n = strlen(text);
	int64_t v = 0;

	if (n == 0 || n > DIGITS_MAX || (text[0] == '0' && n > 1))
		return E_INVAL;
	for (const char *p = text; *p != '\0'; p++) {
		if (!ascii_is_digit(*p))
			return E_INVAL;
		v = v * 10 + (*p - '0');
	}
	if (v < min || v > max)
		return E_INVAL;
	*ret = v;
	return 0;
}

int
query_flag(const char *text, int *ret)
{
	if (strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
		return E_INVAL;
	*ret = text[0] == '1';
	return 0;
}
