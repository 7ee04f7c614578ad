#include "lib/actor/trace.h"

#include <stddef.h>
#include <string.h>

#include "lib/base/base.h"

static const char *const trace_names[] = {
#define TRACE(sym, name, text) name,
	TRACE_BITS
#undef TRACE
};

/* One word for the process, so that a test of it costs nothing. */
static unsigned trace_mask;

void
trace_set(const char *words)
{
	unsigned mask = 0;

	while (words != NULL && *words != '\0') {
		size_t n = strcspn(words, ",");

		for (size_t i = 0; i < ARRAY_LEN(trace_names); i++)
			if (strlen(trace_names[i]) == n &&
			    memcmp(trace_names[i], words, n) == 0)
				mask |= 1u << i;
		words += n + (words[n] == ',');
	}
	trace_mask = mask;
}

int
trace_on(enum trace_bit bit)
{
	return (trace_mask & (unsigned)bit) != 0;
}
