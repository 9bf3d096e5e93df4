/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What test_queue.py runs on nodes: queues with many operations, and calls of many objects.
 *
 *     queue_task many COUNT            gets of COUNT objects, woken by puts of the same thread
 *     queue_task wait COUNT PREFIX     gets of others' objects, over the descriptor
 *     queue_task put COUNT PREFIX      puts them at once
 *     queue_task all RANK NODES        an allreduce, a gather and a broadcast of all ranks
 *     queue_task member RANK GROUP     one of a group, as Member in test_groups.py
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "sarissa/group.h"
#include "sarissa/sarissa.h"

enum { BYTES = 100, ROUNDS = 3, FLOATS = 100000, SOME = 64, ELEMENTS = 3000 };

static sar *s;

#define MUST(what)                                                                                \
	do {                                                                                      \
		if (!(what)) {                                                                    \
			printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #what, sar_error_detail()); \
			exit(1);                                                                  \
		}                                                                                 \
	} while (0)

static void say(const char *what)
{
	puts(what);
	fflush(stdout);
}

static sar_id id_of(const char *prefix, unsigned i)
{
	char name[64];
	return sar_id_of(name, (size_t)snprintf(name, sizeof(name), "%s/%u", prefix, i));
}

static void fill(uint8_t *bytes, unsigned i)
{
	for (unsigned k = 0; k < BYTES; k++)
		bytes[k] = (uint8_t)(i * 7 + k);
}

static void check(sar_queue *q, const sar_completion *c)
{
	uint8_t bytes[BYTES];
	if (c->result < 0) {
		printf("operation %u: %s\n", c->op, sar_completion_detail(q, c));
		exit(1);
	}
	if (c->op != SAR_OP_GET)
		return;
	sar_buffer b = c->buffer;
	fill(bytes, (unsigned)c->user_data);
	MUST(b.size == BYTES && memcmp(b.data, bytes, BYTES) == 0);
	sar_release(s, &b);
}

static void drain(sar_queue *q, unsigned count)
{
	static sar_completion done[SOME];
	while (count > 0) {
		int n = sar_poll_wait(q, done, SOME, 1, SAR_FOREVER);
		MUST(n > 0);
		for (int i = 0; i < n; i++)
			check(q, &done[i]);
		count -= (unsigned)n;
	}
}

/* Memory of this process alone, in KiB. */
static long private_kib(void)
{
	char line[128];
	long kib = 0;
	FILE *f = fopen("/proc/self/status", "r");
	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "RssAnon: %ld", &kib);
	fclose(f);
	return kib;
}

static void put_all(sar_queue *q, const char *prefix, unsigned count, uint8_t *bytes)
{
	sar_put_item *items = calloc(count, sizeof(*items));
	for (unsigned i = 0; i < count; i++) {
		fill(bytes + (size_t)i * BYTES, i);
		items[i] = (sar_put_item){.id = id_of(prefix, i),
					  .data = bytes + (size_t)i * BYTES,
					  .size = BYTES,
					  .user_data = i};
	}
	MUST(sar_submit_puts(q, items, count) == (int)count);
	free(items);
}

static void get_all(sar_queue *q, const char *prefix, unsigned count)
{
	sar_id *ids = calloc(count, sizeof(*ids));
	uint64_t *users = calloc(count, sizeof(*users));
	for (unsigned i = 0; i < count; i++) {
		ids[i] = id_of(prefix, i);
		users[i] = i;
	}
	MUST(sar_submit_gets(q, ids, count, SAR_FOREVER, users) == (int)count);
	free(ids);
	free(users);
}

static void many(unsigned count)
{
	sar_queue *gets, *puts_;
	uint8_t *bytes = calloc(count, BYTES);
	long first = 0, last = 0;
	MUST(sar_queue_open(s, count, &gets) == 0 && sar_queue_open(s, count, &puts_) == 0);
	for (unsigned round = 0; round < ROUNDS; round++) {
		char prefix[16];
		snprintf(prefix, sizeof(prefix), "many%u", round);
		get_all(gets, prefix, count);
		put_all(puts_, prefix, count, bytes);
		drain(puts_, count);
		drain(gets, count);
		for (unsigned i = 0; i < count; i++)
			MUST(sar_submit_delete(puts_, id_of(prefix, i), i) == 0);
		drain(puts_, count);
		last = private_kib();
		first = round == 0 ? last : first;
	}
	printf("%ld %ld\n", first, last);
	sar_queue_close(gets);
	sar_queue_close(puts_);
	free(bytes);
}

static void wait_all(unsigned count, const char *prefix)
{
	sar_queue *q;
	sar_completion done[SOME];
	MUST(sar_queue_open(s, count, &q) == 0);
	struct pollfd on = {.fd = sar_fd(q), .events = POLLIN};
	get_all(q, prefix, count);
	say("waiting");
	for (unsigned got = 0; got < count;) {
		MUST(poll(&on, 1, -1) == 1);
		int n = sar_poll(q, done, SOME);
		MUST(n >= 0);
		for (int i = 0; i < n; i++)
			check(q, &done[i]);
		got += (unsigned)n;
	}
	sar_queue_close(q);
	say("got");
}

static void put(unsigned count, const char *prefix)
{
	sar_queue *q;
	uint8_t *bytes = calloc(count, BYTES);
	MUST(sar_queue_open(s, count, &q) == 0);
	put_all(q, prefix, count, bytes);
	drain(q, count);
	sar_queue_close(q);
	free(bytes);
	say("put");
}

/* All ranks run it; the first one looks at what the others have put as well. */
static void all(unsigned rank, unsigned nodes)
{
	static float part[FLOATS];
	static sar_id ids[SOME];
	static sar_buffer out[SOME];
	static sar_holder holder[SOME];
	sar_reduction how = {.op = SAR_SUM, .dtype = SAR_F32};
	struct iovec iov[2] = {{part, 4000}, {part + 1000, sizeof(part) - 4000}};
	sar_buffer sum;
	for (unsigned i = 0; i < FLOATS; i++)
		part[i] = (float)(rank + 1) * (float)(i % 1000);
	for (unsigned i = 0; i < nodes; i++)
		ids[i] = id_of("part", i);
	MUST(sar_put_iov(s, ids[rank], NULL, iov, 2) == 0);
	MUST(sar_allreduce(s, id_of("sum", 0), "sum", ids, nodes, &how, SAR_FOREVER, &sum) == 0);
	MUST(sum.size == sizeof(part));
	for (unsigned i = 0; i < FLOATS; i++)
		MUST(((float *)sum.data)[i] ==
		     (float)(nodes * (nodes + 1) / 2) * (float)(i % 1000));
	sar_release(s, &sum);
	if (rank == 0) {
		MUST(sar_gather(s, ids, nodes, SAR_FOREVER, out) == 0);
		for (unsigned i = 0; i < nodes; i++) {
			MUST(((float *)out[i].data)[FLOATS - 1] == (float)(i + 1) * 999);
			sar_release(s, &out[i]);
		}
		MUST(sar_broadcast(s, ids[0], NULL, 0, SAR_FOREVER) == 0);
		int n = sar_holders(s, ids[0], holder, SOME);
		MUST(n == (int)nodes);
		for (int i = 0; i < n; i++)
			MUST(holder[i].complete);
	}
	say("right");
}

static sar_completion ended(sar_queue *q, int submitted)
{
	sar_completion c;
	MUST(submitted == 0);
	MUST(sar_poll_wait(q, &c, 1, 1, SAR_FOREVER) == 1);
	if (c.result < 0) {
		printf("operation %u: %s\n", c.op, sar_completion_detail(q, &c));
		exit(1);
	}
	return c;
}

static void member(unsigned rank, const char *group)
{
	static double own[ELEMENTS];
	sar_queue *q;
	sar_member *m;
	sar_group_result result;
	char line[32];
	unsigned pushed = 0;
	for (unsigned i = 0; i < ELEMENTS; i++)
		own[i] = 1;
	for (unsigned i = 0; i < ELEMENTS * rank; i++)
		own[i % ELEMENTS] *= 1000;
	MUST(sar_queue_open(s, 8, &q) == 0);
	ended(q, sar_submit_group_join(q, group, NULL, &m, 0));
	printf("%llu\n", (unsigned long long)sar_member_number(m));
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin) && strcmp(line, "leave\n") != 0) {
		double total[2] = {0};
		for (int left = atoi(line); left > 0; left--, pushed++) {
			ended(q, sar_submit_group_push(q, m, own, sizeof(own), 0));
			sar_completion c =
				ended(q, sar_submit_group_pull(q, m, 30000000000, &result, 0));
			total[0] = ((const double *)c.buffer.data)[0];
			total[1] = ((const double *)c.buffer.data)[ELEMENTS - 1];
			sar_release(s, &c.buffer);
		}
		printf("%.0f %.0f %u 0 0\n", total[0], total[1], pushed);
		fflush(stdout);
	}
	ended(q, sar_submit_group_leave(q, m, 0));
	sar_queue_close(q);
}

int main(int argc, char **argv)
{
	MUST(argc >= 3);
	unsigned count = (unsigned)atoi(argv[2]);
	MUST(sar_open(NULL, &s) == 0);
	if (strcmp(argv[1], "many") == 0)
		many(count);
	else if (strcmp(argv[1], "wait") == 0)
		wait_all(count, argv[3]);
	else if (strcmp(argv[1], "put") == 0)
		put(count, argv[3]);
	else if (strcmp(argv[1], "member") == 0)
		member(count, argv[3]);
	else
		all(count, (unsigned)atoi(argv[3]));
	sar_close(s);
	return 0;
}
