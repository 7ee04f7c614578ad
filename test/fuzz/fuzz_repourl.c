/*
 * Any bytes as a URL.  What comes out is never too long, holds no control and no byte beyond
 * ASCII, and is a fixed point of all rules but the one about ".git".
 */
#include <string.h>

#include "lib/base/base.h"
#include "lib/base/repourl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_text(const char *url)
{
	size_t n = strlen(url);

	must(n > 0 && n <= REPOURL_MAX);
	must(url[n - 1] != '/');
	for (size_t i = 0; i < n; i++)
		must(url[i] > 0x20 && url[i] < 0x7f && url[i] != '\\');
}

static void
check_fixed(const char *url, const struct repourl_flags *flags, int as_instance)
{
	char again[REPOURL_SIZE];
	const char *why = NULL;
	int r = as_instance ? repourl_normalise_instance(url, strlen(url), flags, again, &why)
			    : repourl_normalise(url, strlen(url), flags, again, &why);

	must(r == 0);
	must(strcmp(url, again) == 0);
}

/* The first byte chooses the settings. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct repourl_flags flags;
	char out[REPOURL_SIZE];
	const char *why = NULL;

	if (size == 0)
		return 0;
	flags.allow_http = data[0] & 1;
	flags.allow_private_hosts = data[0] >> 1 & 1;
	flags.allow_local = data[0] >> 2 & 1;
	if (repourl_normalise((const char *)data + 1, size - 1, &flags, out, &why) == 0) {
		check_text(out);
		check_fixed(out, &flags, strncmp(out, "file:", 5) != 0);
	} else {
		must(why != NULL);
	}
	if (repourl_normalise_instance((const char *)data + 1, size - 1, &flags, out, &why) ==
	    0) {
		check_text(out);
		check_fixed(out, &flags, 1);
	}
	return 0;
}
