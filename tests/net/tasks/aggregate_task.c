/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A member of a group at a switch, for tests and `bench switch`:
 *
 *     aggregate_task ADDRESS GROUP MEMBER MEMBERS BYTES TYPE [ROUNDS [QUORUM DEADLINE_MS]]
 *
 * TYPE is f32, i32, u8 or block. Prints "joined", waits for a line, makes ROUNDS allreduces,
 * compares every element with what all members have, and prints a line of JSON: the nanoseconds of
 * each round, CPU seconds, packets. Exit 3: the switch has failed (the line says so), 4: wrong
 * bytes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include "internal/program/arguments.h"
#include "sarissa/sarissa.h"

enum { ROUNDS_MAX = 100000 };

struct task {
	sar_switch_options join;
	uint64_t bytes;
	bool floats, octets;
	sar_reduction how;
	uint8_t *source, *target;
};

/* Small whole numbers, whose sums are exact in each type. */
static uint32_t value(uint64_t i, uint32_t member, uint32_t round)
{
	return (uint32_t)((i * 7 + i / 360 + member * 13 + round * 31) % 997);
}

static void put_value(const struct task *t, uint8_t *to, uint64_t i, uint32_t v)
{
	float f = (float)v;
	if (t->octets)
		to[i] = (uint8_t)v;
	else
		memcpy(to + 4 * i, t->floats ? (void *)&f : (void *)&v, 4);
}

static void fill(struct task *t, uint32_t round)
{
	uint64_t count = t->octets ? t->bytes : t->bytes / 4;
	for (uint64_t i = 0; i < count; i++)
		put_value(t, t->source, i, value(i, t->join.member, round));
}

static bool right(const struct task *t, uint32_t round, uint64_t in)
{
	uint64_t count = t->octets ? t->bytes : t->bytes / 4;
	uint8_t expect[8];
	for (uint64_t i = 0; i < count; i++) {
		uint32_t sum = 0;
		for (uint32_t m = 0; m < t->join.members; m++)
			sum += in >> m & 1 ? value(i, m, round) : 0;
		put_value(t, expect, 0, sum);
		const uint8_t *got = t->target + (t->octets ? i : 4 * i);
		if (t->how.flags & SAR_REDUCE_BLOCK) {
			float a, b;
			memcpy(&a, got, 4);
			memcpy(&b, expect, 4);
			if (a - b > 0.01f || b - a > 0.01f)
				return false;
		} else if (memcmp(got, expect, t->octets ? 1 : 4) != 0) {
			return false;
		}
	}
	return true;
}

static double cpu_s(void)
{
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static uint64_t monotonic_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int run(struct task *t, sar_switch *w, uint32_t rounds, uint64_t *in)
{
	sar_switch_result r = {0};
	static uint64_t took[ROUNDS_MAX];
	double cpu = 0;
	uint64_t packets = 0, polls = 0, resent = 0, ended = 0;
	for (uint32_t i = 0; i < rounds; i++) {
		if (i > 0)
			fill(t, i);
		double begin = cpu_s();
		int e = sar_switch_allreduce(w, t->source, t->target, t->bytes, &t->how,
					     60 * 1000000000ll, &r);
		ended = monotonic_ns();
		cpu += cpu_s() - begin;
		if (e < 0) {
			printf("{\"error\": %d, \"text\": \"%s\", \"ended_ns\": %llu}\n", e,
			       sar_error_detail(), (unsigned long long)ended);
			return 3;
		}
		if (i + 1 < rounds && !right(t, i, t->join.quorum ? r.in_all : ~0ull)) {
			printf("{\"wrong\": %u}\n", i);
			return 4;
		}
		took[i] = (uint64_t)r.duration_ns;
		packets += r.packets, polls += r.polls, resent += r.resent;
	}
	printf("{\"cpu_s\": %.4f, \"packets\": %llu, \"polls\": %llu, \"resent\": %llu, "
	       "\"in_all\": %llu, \"fewest\": %u, \"ended_ns\": %llu, \"took_ns\": [",
	       cpu, (unsigned long long)packets, (unsigned long long)polls,
	       (unsigned long long)resent, (unsigned long long)r.in_all, r.fewest,
	       (unsigned long long)ended);
	*in = t->join.quorum ? r.in_all : ~0ull;
	for (uint32_t i = 0; i < rounds; i++)
		printf("%s%llu", i ? ", " : "", (unsigned long long)took[i]);
	printf("]}\n");
	return 0;
}

int main(int argc, char **argv)
{
	struct task t = {.how = {.op = SAR_SUM}};
	sar_switch *w;
	char line[16];
	if (argc < 7) {
		fprintf(stderr,
			"aggregate_task ADDRESS GROUP MEMBER MEMBERS BYTES TYPE [ROUNDS [QUORUM MS]]\n");
		return 2;
	}
	t.join.address = argv[1];
	t.join.group = (uint32_t)argument_need("GROUP", argv[2], 0, UINT32_MAX);
	t.join.member = (uint32_t)argument_need("MEMBER", argv[3], 0, 63);
	t.join.members = (uint32_t)argument_need("MEMBERS", argv[4], 1, 64);
	t.bytes = argument_need("BYTES", argv[5], 1, 1ull << 32);
	t.octets = strcmp(argv[6], "u8") == 0;
	t.floats = strcmp(argv[6], "f32") == 0 || strcmp(argv[6], "block") == 0;
	t.how.flags = strcmp(argv[6], "block") == 0 ? SAR_REDUCE_BLOCK : 0;
	t.how.dtype = t.floats ? SAR_F32 : t.octets ? SAR_U8 : SAR_I32;
	uint32_t rounds = argc > 7 ? (uint32_t)argument_need("ROUNDS", argv[7], 1, ROUNDS_MAX) : 1;
	if (argc > 9) {
		t.join.quorum = (uint32_t)argument_need("QUORUM", argv[8], 1, 64);
		t.join.deadline_ns = (int64_t)argument_need("MS", argv[9], 0, 100000) * 1000000;
	}
	t.source = malloc(t.bytes + 8);
	t.target = calloc(1, t.bytes + 8);
	if (sar_switch_join(&t.join, &w) < 0) {
		printf("{\"error\": 1, \"text\": \"%s\"}\n", sar_error_detail());
		return 3;
	}
	fill(&t, 0);
	printf("joined\n");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 2;
	uint64_t in = ~0ull;
	int status = run(&t, w, rounds, &in);
	fflush(stdout);
	/* a member until all others are done, too; then there is time to look at the last round */
	while (fgets(line, sizeof(line), stdin))
		;
	if (status == 0 && !right(&t, rounds - 1, in))
		status = 4;
	sar_switch_leave(w);
	return status;
}
