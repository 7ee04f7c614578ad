#include "test/support/record_claim.h"

const struct record_claim record_claim_of_a_push = {
	.run_id = "run_0123456789abcdefghijAB",
	.project_id = "prj_0123456789abcdefghijAB",
	.owner_slug = "ada",
	.project_slug = "engine",
	.trigger_type = TRIGGER_TYPE_WEBHOOK,
	.branch = "main",
	.commit_sha = "0123456789012345678901234567890123456789",
	.queued_at_ms = RECORD_NOW - 1000,
	.epoch = 3,
	.spawn_id = "00112233445566778899aabbccddeeff",
	.sandbox = "none",
};
