/*
 * test/fuzz/fuzz_json.c -- our reader of JSON against jansson's.
 *
 * Both take the same texts and make the same trees, except that ours counts brackets.  What is
 * printed is read back as the same.  Failed allocations are told and leave nothing behind: the
 * first byte says which one fails.
 */
#include <stdint.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/wire/json.h"

#define DEPTH 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
starved(const char *p, size_t n, long which)
{
	json_t *j = NULL;
	int r;

	mem_fault_arm(which);
	r = json_text_parse(p, n, DEPTH, &j);
	must(!mem_fault_hit() || r < 0);
	mem_fault_arm(-1);
	json_decref(j);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(json_unrefp) json_t *ours = NULL, *theirs = NULL, *again = NULL;
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	json_error_t error;
	char why[64];
	const char *p;
	int r;

	if (size < 1)
		return 0;
	json_text_use_mem();
	p = (const char *)data + 1;
	size--;
	r = json_text_parse(p, size, DEPTH, &ours);
	must(r == 0 || r == E_PARSE || r == E_DEEP);
	must((r == 0) == (ours != NULL));
	json_text_why(p, size, DEPTH, why, sizeof(why));
	must((r == 0) == (why[0] == '\0'));
	starved(p, size, data[0]);
	/* jansson loses a NUL that stands behind a number. */
	must(r < 0 || memchr(p, '\0', size) == NULL);
	if (r == E_DEEP || memchr(p, '\0', size) != NULL)
		return 0;
	theirs = json_loadb(
	    p, size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY, &error);
	must((theirs != NULL) == (r == 0));
	if (r < 0)
		return 0;
	must(json_equal(ours, theirs));
	must(json_text_dump(&text, ours) == 0);
	must(json_text_parse((const char *)text.data, text.len, DEPTH, &again) == 0);
	must(json_equal(ours, again));
	return 0;
}
