/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes that other nodes send: pieces of an input, each {2 bytes length, 1 byte from which node,
 * bytes}, go through the decoder; what it takes must encode to something that decodes alike, and is
 * handled by a control core.
 */
#include <stdlib.h>
#include <string.h>
#include "control_rig.h"
#include "internal/ipc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t arena[2][CODEC_ARENA_BYTES] __attribute__((aligned(64)));
static uint8_t scratch[CODEC_SCRATCH_BYTES] __attribute__((aligned(64)));
static uint8_t once[MSG_BYTES_MAX], twice[MSG_BYTES_MAX];

static void round_trip(const struct message *m)
{
	size_t length = codec_encode(m, scratch, once, sizeof(once));
	struct message back;

	if (length == 0 || codec_decode(once, length, arena[1], &back))
		abort();
	if (codec_encode(&back, scratch, twice, sizeof(twice)) != length ||
	    memcmp(once, twice, length))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rig_input in = {data, size};
	struct rig *r = rig_begin();

	rig_open(r, 0);
	for (int i = 0; i < 64 && in.left > 0; i++) {
		size_t length = rig_take(&in, 2);
		uint32_t from = (uint32_t)rig_take(&in, 1);
		struct message m;

		length = length < in.left ? length : in.left;
		if (codec_decode(in.bytes, length, arena[0], &m) == 0) {
			round_trip(&m);
			if (from & 0x80) /* as the answer to something that was asked */
				m.request = r->sent[from / 8 % 16];
			control_message(r->core, rig_conn(1 + from % 2), &m, r->now_ns);
		}
		rig_turn(r, from & 0x40 ? 2000000000 : 1000);
		in.bytes += length;
		in.left -= length;
	}
	rig_end(r);
	return 0;
}
