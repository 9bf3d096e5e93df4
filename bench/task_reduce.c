/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The verbs of bench/task that reduce. task.c calls them with the words of a line; each prints one
 * line.
 */
#include <stdio.h>
#include <string.h>

#include "payload.h"
#include "task.h"

static unsigned task_ids(sar_id *out, int count, char **names)
{
	for (int i = 0; i < count; i++)
		out[i] = task_id(names[i]);
	return (unsigned)count;
}

static int task_reduce_call(struct task *t, int argc, char **argv)
{
	sar_id sources[OBJECTS_MAX];
	unsigned count = task_ids(sources, argc - 7, argv + 7);
	const sar_reduction how = {
		.op = SAR_SUM,
		.dtype = SAR_F32,
		.num = (uint32_t)t->number[1],
		.flags = strcmp(argv[3], "spread") == 0 ? SAR_REDUCE_SPREAD : 0,
	};

	return sar_reduce(t->s, task_id(argv[2]), argv[2], sources, count, &how,
			  TIMEOUT_S * 1000000000ll);
}

int task_reduce(struct task *t, int argc, char **argv)
{
	struct span span;

	task_release(t);
	payload_sleep_until((int64_t)t->number[0]);
	span.start_ns = payload_now_ns();
	int r = task_reduce_call(t, argc, argv);
	long long accepted_ns = payload_now_ns() - span.start_ns;
	if (r == 0 && strcmp(argv[5], "-") != 0) {
		payload_sleep_until((int64_t)t->number[2]);
		r = task_put_now(t, argv[5]);
	}
	if (r == 0)
		r = task_take(t, argv[2]);
	span.end_ns = payload_now_ns();
	if (r == 0)
		printf("{\"spans\": [[%lld, %lld]], \"accepted_ns\": %lld}\n",
		       (long long)span.start_ns, (long long)span.end_ns, accepted_ns);
	return r;
}

static int task_place(sar_id id, int count, char **names)
{
	for (int i = 0; i < count; i++) {
		sar_id one = task_id(names[i]);
		if (memcmp(&one, &id, sizeof(id)) == 0)
			return i;
	}
	return -1;
}

int task_sources(struct task *t, int argc, char **argv)
{
	sar_id used[OBJECTS_MAX];
	int count = sar_reduce_sources(t->s, task_id(argv[1]), TIMEOUT_S * 1000000000ll, used,
				       OBJECTS_MAX);

	if (count < 0)
		return count;
	printf("{\"sources\": [");
	for (int i = 0; i < count; i++)
		printf("%s%d", i ? ", " : "", task_place(used[i], argc - 2, argv + 2));
	printf("]}\n");
	return 0;
}
