/*
 * lib/base/id.h -- identifiers (spec http-api 1.1) and random numbers.
 */
#ifndef LIB_BASE_ID_H
#define LIB_BASE_ID_H

#include <stddef.h>
#include <stdint.h>

#define ID_DIGITS     22 /* base 62 digits behind the prefix                */
#define ID_SIZE       27 /* "run_" + digits + NUL: every prefix has 4 bytes */
#define ID_HEX32_SIZE 33 /* 128 random bits: lease, spawn and move ids      */

#define ID_USER    "usr_"
#define ID_PROJECT "prj_"
#define ID_RUN     "run_"
#define ID_INVITE  "inv_"
#define ID_WEBHOOK "whk_"

/* Fills from the kernel; a machine without randomness ends the process. */
void id_random(void *p, size_t n);

/* A new id: ${prefix} is one of the ID_ words above.  Ids of one process ascend. */
void id_make(const char *prefix, char out[ID_SIZE]);
/* 1 when ${text} has the shape of an id with this prefix. */
int id_check(const char *prefix, const char *text);

/* 32 lower-case hexadecimal digits from 128 random bits. */
void id_hex32(char out[ID_HEX32_SIZE]);
int id_hex32_check(const char *text);

/* 22 characters for X-Request-Id: the digits of an id without a prefix. */
void id_request(char out[ID_DIGITS + 1]);

#endif
