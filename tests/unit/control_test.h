/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of control include first. */
#ifndef SARISSA_TESTS_UNIT_CONTROL_TEST_H
#define SARISSA_TESTS_UNIT_CONTROL_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <stdio.h>
#include <cmocka.h>

#endif
