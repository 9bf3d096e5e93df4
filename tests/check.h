/* SPDX-License-Identifier: BSD-3-Clause */
/* For what stands around a test and cannot go on: says where, and aborts. */
#ifndef SARISSA_TESTS_CHECK_H
#define SARISSA_TESTS_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                \
	do {                                                                            \
		if (!(condition)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                        \
		}                                                                       \
	} while (0)

#endif
