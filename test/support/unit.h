/*
 * test/support/unit.h -- cmocka with the headers that it needs before itself.
 */
#ifndef TEST_SUPPORT_UNIT_H
#define TEST_SUPPORT_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
