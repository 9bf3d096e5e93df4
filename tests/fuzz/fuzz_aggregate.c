/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets into the aggregator's pool, and into the job of a member: each packet is a length and a
 * mode, then its first bytes. Most are sealed, so they pass the check, and are of a member of a
 * group that is there.
 */
#include <string.h>
#include "aggregate.h"
#include "switch/aggregate_job.h"

enum { WINDOW = 8, GROUPS = 3, MEMBERS = 3, PAYLOAD = 64, SOURCE_BYTES = 3000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static _Alignas(64) struct aggregate_slot slots[GROUPS * AGGREGATE_BANKS * WINDOW];
static struct aggregate_pool pool;
static struct aggregate_job job;

static void begin(uint8_t dtype)
{
	static uint8_t source[SOURCE_BYTES], target[SOURCE_BYTES];
	struct aggregate_job_spec spec = {.source = source,
					  .target = target,
					  .bytes = SOURCE_BYTES,
					  .group = 1,
					  .window = WINDOW,
					  .payload = PAYLOAD,
					  .members = MEMBERS,
					  .op = REDUCE_SUM,
					  .dtype = dtype};
	memset(slots, 0, sizeof(slots));
	aggregate_init(&pool, GROUPS, WINDOW, slots, KERNEL_C);
	aggregate_job_init(&job, &spec, 1);
}

static void answer(const struct aggregate_answer *a, uint64_t now_ns)
{
	uint8_t out[AGGREGATE_PACKET_MAX];
	uint32_t bytes = aggregate_write(a, out);
	aggregate_job_take(&job, now_ns, out, bytes);
}

static void packet(const uint8_t *from, uint32_t has, uint32_t bytes, unsigned mode,
		   uint64_t now_ns)
{
	uint8_t p[AGGREGATE_PACKET_MAX + 8] = {0};
	struct aggregate_answer a;
	struct aggregate_source at = {.port = mode & (AGGREGATE_PORTS_MAX - 1)};
	memcpy(p, from, has < bytes ? has : bytes);
	if (mode & 64 && bytes >= AGGREGATE_HEADER) {
		struct aggregate_header *h = (struct aggregate_header *)p;
		h->group = 1;
		h->members = MEMBERS;
		h->slot = (uint16_t)(h->chunk % WINDOW);
		if (h->kind == AGGREGATE_INSTALL) {
			struct aggregate_place place = {.token = 1 + h->member};
			bytes = sizeof(*h) + sizeof(place);
			memcpy(p + sizeof(*h), &place, sizeof(place));
		} else {
			h->bitmap = 1 + h->member;
		}
	}
	if (mode & 128 && bytes >= AGGREGATE_HEADER)
		aggregate_seal(p, bytes / 4 * 4);
	if (aggregate_take(&pool, now_ns, at, p, bytes, &a) >= AGGREGATE_COMPLETE)
		answer(&a, now_ns);
	if (aggregate_intact(p, bytes))
		aggregate_job_take(&job, now_ns, p, bytes);
	aggregate_job_next(&job, now_ns, p);
	while (aggregate_expire(&pool, now_ns, &a))
		answer(&a, now_ns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t now_ns = 1000000000;
	begin(size > 0 && data[0] & 1 ? AGGREGATE_BLOCK : REDUCE_I32);
	while (size >= 3) {
		uint32_t bytes = (uint32_t)data[0] << 3, mode = data[1], has = data[2];
		bytes += mode & 32 ? data[2] : 0; /* not a multiple of 8 */
		data += 3, size -= 3;
		has = has < size ? has : (uint32_t)size;
		bytes = bytes <= AGGREGATE_PACKET_MAX + 8 ? bytes : AGGREGATE_PACKET_MAX + 8;
		packet(data, has, bytes, mode, now_ns);
		now_ns += (uint64_t)has * 10000;
		data += has, size -= has;
	}
	aggregate_timeout(&pool);
	aggregate_job_status(&job, now_ns);
	return 0;
}
