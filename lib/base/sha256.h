/*
 * lib/base/sha256.h -- SHA-256 of files, for programs that hold no key and so have no library
 * of cryptography.  What keys are made of is lib/vault's.
 */
#ifndef LIB_BASE_SHA256_H
#define LIB_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define SHA256_SIZE     32
#define SHA256_HEX_SIZE 65 /* in lower-case digits, with the NUL */

struct sha256 {
	uint32_t h[8];
	uint8_t block[64];
	uint64_t nbytes;
};

void sha256_init(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *p, size_t n);
/* The struct may be initialised anew afterwards. */
void sha256_end(struct sha256 *s, uint8_t out[SHA256_SIZE]);
void sha256_end_hex(struct sha256 *s, char out[SHA256_HEX_SIZE]);

#endif
