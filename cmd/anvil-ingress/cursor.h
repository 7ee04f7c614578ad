/*
 * cmd/anvil-ingress/cursor.h -- where a page of runs ends, as clients carry it (http-api 1.1).
 */
#ifndef CMD_ANVIL_INGRESS_CURSOR_H
#define CMD_ANVIL_INGRESS_CURSOR_H

#include <stdint.h>

#include "lib/base/id.h"

#define CURSOR_SIZE 64

void cursor_format(int64_t queued_at, const char *run_id, char out[CURSOR_SIZE]);
/* 0, or E_INVAL for anything that cursor_format() has not made. */
int cursor_parse(const char *text, int64_t *ret_queued_at, char ret_run_id[ID_SIZE]);

#endif
