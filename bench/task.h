/* SPDX-License-Identifier: BSD-3-Clause */
/* Declarations that the verbs of a measured task share: see task.c. One thread, but for the gets of
 * one line. */
#ifndef SARISSA_BENCH_TASK_H
#define SARISSA_BENCH_TASK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "sarissa/sarissa.h"

enum { OBJECTS_MAX = 256, WORDS_MAX = OBJECTS_MAX + 7, NUMBERS_MAX = 3, TIMEOUT_S = 300 };

struct span {
	int64_t start_ns, end_ns;
};

struct task;

struct got {
	struct task *task;
	const char *name;
	int64_t at_ns;
	pthread_t thread;
	struct span span;
	sar_buffer buffer;
	int result;
	char detail[256];
};

struct task {
	sar *s;
	uint8_t *data;
	uint64_t bytes;
	uint64_t number[NUMBERS_MAX]; /* those of the line, in its order */
	struct got got[OBJECTS_MAX];
	unsigned got_count;
};

sar_id task_id(const char *name);
void task_print_spans(const struct span *spans, unsigned count);
/* Puts what was filled. 0 or what sar_put() says. */
int task_put_now(struct task *t, const char *name);
/* Gets one object; whatever was got before must have been released. */
int task_take(struct task *t, const char *name);
void task_release(struct task *t);

/* Verbs: print their answer when they return 0. */
int task_reduce(struct task *t, int argc, char **argv);
int task_sources(struct task *t, int argc, char **argv);

#endif
