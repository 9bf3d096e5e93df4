/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An input of a fuzz target, read as a stream of small choices from its front; when it ends, all
 * choices are zero. For the targets of one process alone; rig.h and control_rig.h have their own.
 */
#ifndef SARISSA_TESTS_FUZZ_INPUT_H
#define SARISSA_TESTS_FUZZ_INPUT_H

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct input {
	const uint8_t *bytes;
	size_t left;
};

#define INPUT_MUST(holds)                                                                \
	do {                                                                             \
		if (!(holds)) {                                                          \
			fprintf(stderr, "%s:%d: not: %s\n", __FILE__, __LINE__, #holds); \
			abort();                                                         \
		}                                                                        \
	} while (0)

static inline void input_copy(struct input *in, void *to, size_t bytes)
{
	size_t take = bytes < in->left ? bytes : in->left;

	memset(to, 0, bytes);
	if (take > 0)
		memcpy(to, in->bytes, take);
	in->bytes += take;
	in->left -= take;
}

static inline uint8_t input_byte(struct input *in)
{
	uint8_t v;

	input_copy(in, &v, sizeof(v));
	return v;
}

static inline uint16_t input_u16(struct input *in)
{
	uint16_t v;

	input_copy(in, &v, sizeof(v));
	return v;
}

static inline uint64_t input_u64(struct input *in)
{
	uint64_t v;

	input_copy(in, &v, sizeof(v));
	return v;
}

/* Writes over up to count places of what is nearly right: 1, 2, 4 or 8 bytes each. */
static inline void input_spoil(struct input *in, void *what, size_t bytes, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		unsigned at = input_u16(in), length = 1u << (at >> 14);
		uint64_t v = 0;

		input_copy(in, &v, length);
		if (length <= bytes)
			memcpy((uint8_t *)what + (at & 0x3fff) % (bytes - length + 1), &v, length);
	}
}

/* The same before and after when none was left open. */
static inline unsigned input_open_fds(void)
{
	unsigned open = 0;

	for (int fd = 0; fd < 128; fd++)
		open += fcntl(fd, F_GETFD) >= 0;
	return open;
}

#endif
