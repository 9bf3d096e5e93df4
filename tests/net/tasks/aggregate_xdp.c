/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The same packets to the XDP program (BPF_PROG_TEST_RUN, no interface) and to the pool of the
 * dataplane: what becomes of each, and every byte of the answers, must be equal.
 *
 *     aggregate_xdp OBJECT PACKETS SEED
 *
 * Members run real jobs over a network that loses and doubles; one packet of eight is odd. Root.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "switch/aggregate_job.h"
#include "ebpf/aggregate.h"
#include "internal/program/arguments.h"
#include "switch/bridge.h"

enum {
	MEMBERS = 3,
	GROUPS = 20,
	BYTES = 400000,
	XDP_RETURN_DROP = 1,
	XDP_RETURN_PASS = 2,
	XDP_RETURN_REDIRECT = 4
};

struct both {
	struct aggregate_pool pool;
	struct bpf_object *object;
	int program;
	uint64_t random, now_ns;
	struct aggregate_job job[MEMBERS];
	uint8_t source[MEMBERS][BYTES], target[MEMBERS][BYTES];
	uint32_t round, ended, version; /* version: of group 2's policy */
	uint64_t verdicts[AGGREGATE_VERDICTS];
};

static uint64_t draw(struct both *b)
{
	b->random ^= b->random << 13;
	b->random ^= b->random >> 7;
	b->random ^= b->random << 17;
	return b->random;
}

static void fail(const char *what)
{
	printf("%s\n", what);
	exit(1);
}

static int map_of(struct both *b, const char *name)
{
	return bpf_object__find_map_fd_by_name(b->object, name);
}

static void load(struct both *b, const char *path)
{
	static const char *const names[AGGREGATE_XDP_STAGES] = {"sar_take"};
	b->object = bpf_object__open_file(path, NULL);
	if (!b->object || bpf_object__load(b->object) < 0)
		fail("the program does not load");
	for (uint32_t i = 0; i < AGGREGATE_XDP_GROUPS; i++)
		bpf_map_update_elem(map_of(b, "places"), NULL, &i, BPF_ANY);
	for (uint32_t i = 0; i < AGGREGATE_XDP_STAGES; i++) {
		int fd = bpf_program__fd(bpf_object__find_program_by_name(b->object, names[i]));
		if (bpf_map_update_elem(map_of(b, "stages"), &i, &fd, BPF_ANY) < 0)
			fail("no program for a policy");
	}
	b->program = bpf_program__fd(bpf_object__find_program_by_name(b->object, "sar_aggregate"));
}

/* As a member's kernel sends it to 10.77.255.254. */
static uint32_t make_frame(uint8_t *frame, const uint8_t *packet, uint32_t bytes)
{
	static const uint8_t head[38] = {
		2, 0,	 0, 0,	0,  1, 2, 0,  0,  0, 0, 2,  8,	0,   0x45, 0,	 0,    0,    0,
		0, 0x40, 0, 64, 17, 0, 0, 10, 77, 0, 1, 10, 77, 255, 254,  0x13, 0x88, 0x1d, 0x38};
	memcpy(frame, head, sizeof(head));
	frame[16] = (uint8_t)((28 + bytes) >> 8), frame[17] = (uint8_t)(28 + bytes);
	frame[38] = (uint8_t)((8 + bytes) >> 8), frame[39] = (uint8_t)(8 + bytes);
	frame[40] = frame[41] = 0;
	memcpy(frame + BRIDGE_FRAME_HEADERS, packet, bytes);
	return BRIDGE_FRAME_HEADERS + bytes;
}

static int expected(enum aggregate_verdict v)
{
	if (v == AGGREGATE_PASS)
		return XDP_RETURN_PASS;
	return v >= AGGREGATE_COMPLETE ? XDP_RETURN_REDIRECT : XDP_RETURN_DROP;
}

/* Types that the XDP program refuses are not the pool's to compare. */
static bool only_pool(const uint8_t *packet)
{
	const struct aggregate_header *h = (const struct aggregate_header *)packet;
	uint8_t type = h->operation >> 4;
	return h->kind == AGGREGATE_CONTRIBUTION &&
	       ((h->operation & 15) != REDUCE_SUM ||
		(type != REDUCE_I32 && type != AGGREGATE_BLOCK));
}

/* Gives a packet to both; its answer, if there is one, is at out. */
static enum aggregate_verdict compare(struct both *b, const uint8_t *packet, uint32_t bytes,
				      uint8_t *out, uint32_t *out_bytes)
{
	uint8_t frame[1600], got[2048], want[1600];
	uint32_t address, length = make_frame(frame, packet, bytes);
	struct aggregate_answer a;
	LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = frame, .data_size_in = length,
		    .data_out = got, .data_size_out = sizeof(got), .repeat = 1);
	if (only_pool(packet))
		return AGGREGATE_BAD;
	memcpy(&address, frame + 30, 4);
	struct aggregate_source from = {.origin = address};
	enum aggregate_verdict v = aggregate_take(&b->pool, b->now_ns, from, packet, bytes, &a);
	if (bpf_prog_test_run_opts(b->program, &run) < 0)
		fail("BPF_PROG_TEST_RUN fails");
	b->verdicts[v]++;
	if ((int)run.retval != expected(v)) {
		printf("verdict %d of the pool, XDP returns %u (kind %#x, member %u)\n", v,
		       run.retval, packet[0], packet[2]);
		exit(1);
	}
	if (v < AGGREGATE_COMPLETE)
		return v;
	*out_bytes = aggregate_write(&a, want + BRIDGE_FRAME_HEADERS);
	bridge_write_headers(want, *out_bytes, a.header.group, a.origin);
	if (run.data_size_out != BRIDGE_FRAME_HEADERS + *out_bytes ||
	    memcmp(want, got, run.data_size_out) != 0) {
		printf("verdict %d: answers of %u and %u bytes differ\n", v,
		       BRIDGE_FRAME_HEADERS + *out_bytes, run.data_size_out);
		for (uint32_t i = 0; i < run.data_size_out; i++)
			if (want[i] != got[i])
				printf("  byte %u: %02x, XDP %02x\n", i, want[i], got[i]);
		exit(1);
	}
	memcpy(out, want + BRIDGE_FRAME_HEADERS, *out_bytes);
	return v;
}

static void start(struct both *b)
{
	bool block = b->round & 1;
	uint32_t bytes = (uint32_t)(draw(b) % (BYTES / 8) + 1) * 8;
	for (unsigned m = 0; m < MEMBERS; m++) {
		for (uint32_t i = 0; i < bytes / 4; i++) {
			float f = (float)(int32_t)draw(b);
			uint32_t v = (uint32_t)draw(b);
			memcpy(b->source[m] + 4 * i, block ? (void *)&f : (void *)&v, 4);
		}
		struct aggregate_job_spec spec = {.source = b->source[m],
						  .target = b->target[m],
						  .bytes = bytes,
						  .group = 1,
						  .round = b->round,
						  .window = AGGREGATE_XDP_WINDOW,
						  .payload = 1440,
						  .member = (uint8_t)m,
						  .members = MEMBERS,
						  .token = 1 + m,
						  .op = REDUCE_SUM,
						  .dtype = block ? AGGREGATE_BLOCK : REDUCE_I32};
		aggregate_job_init(&b->job[m], &spec, b->now_ns);
	}
	b->round++;
}

/* All members ask for the group, under the same key and with the token 1 + member. */
static void install(struct both *b, uint32_t group, uint32_t version, uint8_t quorum)
{
	uint8_t out[AGGREGATE_PACKET_MAX];
	uint32_t bytes;
	struct {
		struct aggregate_header h;
		struct aggregate_place place;
	} p;
	struct aggregate_policy policy = {.quorum = quorum};
	for (uint8_t m = 0; m < MEMBERS; m++) {
		p.h = (struct aggregate_header){.kind = AGGREGATE_INSTALL,
						.member = m,
						.members = MEMBERS,
						.group = group,
						.round = version};
		p.place = (struct aggregate_place){.token = 1 + m};
		memcpy(&p.h.bitmap, &policy, sizeof(policy));
		aggregate_seal(&p, sizeof(p));
		compare(b, (uint8_t *)&p, sizeof(p), out, &bytes);
	}
}

/* One of them with another key, token, number of members or version. */
static void install_odd(struct both *b)
{
	uint8_t out[AGGREGATE_PACKET_MAX];
	uint32_t bytes;
	struct {
		struct aggregate_header h;
		struct aggregate_place place;
	} p = {.h = {.kind = AGGREGATE_INSTALL,
		     .member = (uint8_t)(draw(b) % MEMBERS),
		     .members = (uint8_t)(MEMBERS + draw(b) % 2),
		     .group = 100 + (uint32_t)draw(b) % GROUPS,
		     .round = (uint32_t)draw(b) % 6}};
	struct aggregate_policy policy = {.quorum = 1};
	memcpy(&p.h.bitmap, &policy, sizeof(policy));
	p.place = (struct aggregate_place){.key = draw(b) % 2, .token = draw(b) % 4};
	aggregate_seal(&p, sizeof(p));
	compare(b, (uint8_t *)&p, sizeof(p), out, &bytes);
}

/* Something that a member would not send, sealed or not. */
static void odd(struct both *b, uint8_t *packet, uint32_t bytes)
{
	uint8_t out[AGGREGATE_PACKET_MAX], changed[AGGREGATE_PACKET_MAX + 8] = {0};
	uint32_t out_bytes;
	struct aggregate_header *h = (struct aggregate_header *)changed;
	memcpy(changed, packet, bytes);
	switch (draw(b) % 12) {
	case 0:
		changed[draw(b) % bytes] ^= (uint8_t)(1 + draw(b) % 255);
		compare(b, changed, bytes, out, &out_bytes);
		return;
	case 1:
		h->kind = (uint8_t)(AGGREGATE_INSTALL + draw(b) % 10);
		h->group = 100 + (uint32_t)draw(b) % GROUPS;
		break;
	case 2:
		h->group = 100 + (uint32_t)draw(b) % GROUPS;
		break;
	case 3:
		h->round -= (uint32_t)draw(b) % 4; /* earlier than what the slot has */
		h->group = 2;
		h->chunk = (uint32_t)draw(b) % 8 * 256;
		h->slot = 0;
		break;
	case 4:
		h->members = (uint8_t)draw(b);
		break;
	case 5:
		h->member = (uint8_t)draw(b);
		break;
	case 6:
		h->flags = (uint8_t)(draw(b) % 3);
		bytes = AGGREGATE_HEADER + (uint32_t)(draw(b) % 181) * 8;
		break;
	case 7:
		h->slot = (uint16_t)draw(b);
		break;
	case 8:
		h->kind = AGGREGATE_POLL;
		bytes = AGGREGATE_HEADER;
		break;
	case 9:
		h->bitmap = draw(b) % 5; /* of nobody, or of another member */
		break;
	case 10:
		install_odd(b);
		return;
	default:
		install(b, 100 + (uint32_t)draw(b) % GROUPS, (uint32_t)draw(b) % 5,
			(uint8_t)(draw(b) % 5));
		return;
	}
	if (h->group == 1 && h->kind == AGGREGATE_CONTRIBUTION && bytes > AGGREGATE_HEADER + 8 &&
	    draw(b) % 2)
		h->group = 2; /* so that the sums of group 1 stay right */
	h->group += h->group == 1 && draw(b) % 2;
	aggregate_seal(changed, bytes);
	if (h->group != 1)
		compare(b, changed, bytes, out, &out_bytes);
}

/* Group 2 gets the same packets, but each only now and then, and another policy under way: its
 * slots keep the one that they were opened with, up to the round that they are of. */
static void swap(struct both *b, const uint8_t *packet, uint32_t bytes)
{
	uint8_t out[AGGREGATE_PACKET_MAX], copy[AGGREGATE_PACKET_MAX];
	uint32_t out_bytes;
	struct aggregate_header *h = (struct aggregate_header *)copy;
	if (draw(b) % 16 == 0)
		install(b, 2, ++b->version, (uint8_t)(1 + draw(b) % MEMBERS));
	if (draw(b) % 3 == 0)
		return;
	memcpy(copy, packet, bytes);
	h->group = 2;
	aggregate_seal(copy, bytes);
	compare(b, copy, bytes, out, &out_bytes);
}

static void step(struct both *b)
{
	uint8_t packet[AGGREGATE_PACKET_MAX], out[AGGREGATE_PACKET_MAX];
	unsigned m = (unsigned)(draw(b) % MEMBERS), whole = 0;
	uint32_t out_bytes, bytes = aggregate_job_next(&b->job[m], b->now_ns, packet);
	b->now_ns += 20000;
	for (unsigned i = 0; i < MEMBERS; i++)
		whole += aggregate_job_status(&b->job[i], b->now_ns) == 1;
	if (whole == MEMBERS) {
		b->ended++;
		start(b);
		return;
	}
	if (bytes == 0) {
		b->now_ns += 500000;
		return;
	}
	swap(b, packet, bytes);
	if (draw(b) % 8 == 0)
		odd(b, packet, bytes);
	if (draw(b) % 20 == 0)
		return;
	for (unsigned times = draw(b) % 20 == 0 ? 2 : 1; times > 0; times--) {
		enum aggregate_verdict v = compare(b, packet, bytes, out, &out_bytes);
		for (unsigned i = 0; v >= AGGREGATE_COMPLETE && i < MEMBERS; i++)
			if ((v == AGGREGATE_COMPLETE || i == m) && draw(b) % 20)
				aggregate_job_take(&b->job[i], b->now_ns, out, out_bytes);
	}
}

int main(int argc, char **argv)
{
	static struct both b;
	if (argc < 4) {
		fprintf(stderr, "aggregate_xdp OBJECT PACKETS SEED\n");
		return 2;
	}
	uint64_t packets = argument_need("PACKETS", argv[2], 1, 1u << 30);
	b.random = argument_need("SEED", argv[3], 0, UINT32_MAX) * 0x9e3779b97f4a7c15ull + 1;
	b.now_ns = 1000000000;
	uint64_t bytes = aggregate_bytes(AGGREGATE_XDP_GROUPS, AGGREGATE_XDP_WINDOW);
	void *memory = aligned_alloc(64, bytes);
	memset(memory, 0, bytes);
	aggregate_init(&b.pool, AGGREGATE_XDP_GROUPS, AGGREGATE_XDP_WINDOW, memory,
		       kernel_level_best());
	load(&b, argv[1]);
	install(&b, 1, 1, MEMBERS);
	install(&b, 2, ++b.version, MEMBERS - 1);
	start(&b);
	for (uint64_t i = 0; i < packets; i++)
		step(&b);
	for (unsigned v = 0; v < AGGREGATE_EXPIRED; v++)
		printf("%llu ", (unsigned long long)b.verdicts[v]);
	printf("\n");
	for (unsigned v = 0; v < AGGREGATE_EXPIRED; v++)
		if (b.verdicts[v] == 0)
			fail("a verdict never came: more packets");
	return b.ended ? 0 : 1;
}
