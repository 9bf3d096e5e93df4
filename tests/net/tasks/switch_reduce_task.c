/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One member's part in a sar_switch_reduce of floats whose sum depends on the order, for tests:
 *
 *     switch_reduce_task ADDRESS GROUP MEMBER MEMBERS BYTES TYPE
 *
 * TYPE is f32 or block. Puts its source, joins, prints "joined", waits for a line, reduces, and
 * prints a line of JSON: a sum over the result's bytes, and whether the switch made it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "internal/program/arguments.h"
#include "sarissa/sarissa.h"

#define SECONDS 1000000000ll

static int fail(int error)
{
	printf("{\"error\": %d, \"text\": \"%s\"}\n", error, sar_error_detail());
	return 3;
}

static sar_id part(char name[64], uint32_t group, unsigned member)
{
	int n = snprintf(name, 64, "switch/%u/%u", group, member);
	return sar_id_of(name, (size_t)n);
}

static int put(sar *s, const sar_switch_options *join, uint64_t bytes)
{
	float *values = malloc(bytes);
	char name[64];
	for (uint64_t i = 0; i < bytes / sizeof(float); i++)
		values[i] = (float)((i * 7919 + join->member * 104729) % 10007) / 997.0f;
	int r = sar_put(s, part(name, join->group, join->member), name, values, bytes);
	free(values);
	return r;
}

static uint64_t digest(const uint8_t *bytes, uint64_t size) /* FNV-1a */
{
	uint64_t sum = 0xcbf29ce484222325;
	for (uint64_t i = 0; i < size; i++)
		sum = (sum ^ bytes[i]) * 0x100000001b3;
	return sum;
}

static int reduce(sar *s, sar_switch *w, const sar_switch_options *join, uint32_t flags)
{
	sar_reduction how = {.op = SAR_SUM, .dtype = SAR_F32, .flags = flags};
	sar_switch_result result = {0};
	sar_buffer sum = {0};
	sar_id sources[64];
	char name[64];
	for (unsigned i = 0; i < join->members; i++)
		sources[i] = part(name, join->group, i);
	snprintf(name, sizeof(name), "switch/%u/sum", join->group);
	int r = sar_switch_reduce(s, w, sar_id_of(name, strlen(name)), name, sources, join->members,
				  &how, 30 * SECONDS, &sum, &result);
	if (r < 0)
		return fail(r);
	printf("{\"digest\": %llu, \"switch\": %u}\n",
	       (unsigned long long)digest(sum.data, sum.size), result.through);
	sar_release(s, &sum);
	return 0;
}

int main(int argc, char **argv)
{
	sar_switch_options join = {0};
	sar_switch *w;
	char line[16];
	sar *s;
	if (argc != 7) {
		fprintf(stderr, "switch_reduce_task ADDRESS GROUP MEMBER MEMBERS BYTES TYPE\n");
		return 2;
	}
	join.address = argv[1];
	join.group = (uint32_t)argument_need("GROUP", argv[2], 0, UINT32_MAX);
	join.member = (uint32_t)argument_need("MEMBER", argv[3], 0, 63);
	join.members = (uint32_t)argument_need("MEMBERS", argv[4], 1, 64);
	int r = sar_open(NULL, &s);
	if (r == 0)
		r = put(s, &join, argument_need("BYTES", argv[5], 4, 1ull << 30) / 4 * 4);
	if (r == 0)
		r = sar_switch_join(&join, &w);
	if (r < 0)
		return fail(r);
	printf("joined\n");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 2;
	int status = reduce(s, w, &join, strcmp(argv[6], "block") == 0 ? SAR_REDUCE_BLOCK : 0);
	sar_switch_leave(w);
	sar_close(s);
	return status;
}
