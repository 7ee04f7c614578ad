/* Any bytes as the body of a delivery of GitLab; see test/support/forge_fuzz.h. */
#include <stddef.h>
#include <stdint.h>

#include "test/support/forge_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	forge_fuzz(PROVIDER_GITLAB, data, size);
	return 0;
}
