/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of the client library share: a fake node, connected, per test. */
#ifndef SARISSA_TESTS_CLIENT_TEST_H
#define SARISSA_TESTS_CLIENT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "client_fake.h"
#include "sarissa/sarissa.h"

/* Skips the test that is running, and prints why for scripts/test. */
#define SKIP(why)                                              \
	do {                                                   \
		print_message("skip %s: %s\n", __func__, why); \
		skip();                                        \
	} while (0)

struct client {
	struct fake fake;
	sar *s;
};

static inline int client_setup(void **state)
{
	struct client *c = calloc(1, sizeof(*c));
	fake_start(&c->fake);
	*state = c;
	return sar_open(c->fake.path, &c->s);
}

static inline int client_teardown(void **state)
{
	struct client *c = *state;
	sar_close(c->s);
	fake_stop(&c->fake);
	free(c);
	return 0;
}

#define test_client(name) cmocka_unit_test_setup_teardown(name, client_setup, client_teardown)

static inline sar_id test_id(const char *name)
{
	return sar_id_of(name, strlen(name));
}

static inline struct object_id test_object(const char *name)
{
	struct object_id object;
	sar_id id = test_id(name);
	memcpy(object.bytes, id.bytes, sizeof(object.bytes));
	return object;
}

static inline uint8_t *test_pattern(uint64_t size)
{
	uint8_t *data = malloc(size + 1);
	for (uint64_t i = 0; i < size; i++)
		data[i] = fake_pattern(i);
	return data;
}

#endif
