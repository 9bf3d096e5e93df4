/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The task of one node in a measured collective: does through libsarissa what it reads on standard
 * input, answers each line with one JSON object. Ends with its input.
 *
 *   fill BYTES SEED          makes the bytes of the object           {"digest"}
 *   fill-f32 BYTES SEED      makes an array of gradient.h            {"digest"}
 *   put AT_NS NAME           puts them, not before AT_NS             {"spans"}
 *   get AT_NS NAME...        gets all of them at once from AT_NS     {"spans"}, in their order
 *   ping AT_NS GIVE TAKE     puts GIVE, then gets TAKE               {"spans"}
 *   pong AT_NS TAKE GIVE     gets TAKE, then puts GIVE               {"spans"}
 *   reduce AT_NS TARGET spread|- NUM OWN|- PUT_AT_NS SOURCE...
 *                            reduces NUM of the sources, puts OWN, not before PUT_AT_NS, when
 *                            it is named, and gets TARGET            {"spans", "accepted_ns"}
 *   sources TARGET SOURCE... which of them TARGET is made of, counted from 0   {"sources"}
 *   check                    releases what was got                   {"digests"}
 *   rm NAME...               removes objects                         {}
 *
 * A span is [start, end] of the calls, CLOCK_MONOTONIC ns: one per object got, or one for the line.
 * {"error"} instead when a call fails.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "gradient.h"
#include "internal/program/arguments.h"
#include "payload.h"
#include "task.h"

struct verb {
	const char *name;
	int words;	     /* at least, the verb included */
	const char *numbers; /* which of them are: digits */
	int (*run)(struct task *t, int argc, char **argv);
};

sar_id task_id(const char *name)
{
	return sar_id_of(name, strlen(name));
}

void task_print_spans(const struct span *spans, unsigned count)
{
	printf("{\"spans\": [");
	for (unsigned i = 0; i < count; i++)
		printf("%s[%lld, %lld]", i ? ", " : "", (long long)spans[i].start_ns,
		       (long long)spans[i].end_ns);
	printf("]}\n");
}

static int task_make_room(struct task *t, uint64_t bytes)
{
	uint8_t *data = malloc(bytes ? bytes : 1);

	if (!data)
		return -ENOMEM;
	free(t->data);
	t->data = data;
	t->bytes = bytes;
	return 0;
}

static int task_print_digest(const struct task *t)
{
	printf("{\"digest\": \"%016llx\"}\n",
	       (unsigned long long)payload_digest(t->data, t->bytes));
	return 0;
}

static int task_fill(struct task *t, int argc, char **argv)
{
	int r = task_make_room(t, t->number[0]);

	if (r != 0)
		return r;
	payload_fill(t->data, t->bytes, t->number[1]);
	return task_print_digest(t);
}

static int task_fill_f32(struct task *t, int argc, char **argv)
{
	int r = task_make_room(t, t->number[0]);

	if (r != 0)
		return r;
	gradient_fill((float *)(void *)t->data, t->bytes / sizeof(float), (uint32_t)t->number[1]);
	return task_print_digest(t);
}

int task_put_now(struct task *t, const char *name)
{
	return sar_put(t->s, task_id(name), name, t->data, t->bytes);
}

static int task_put(struct task *t, int argc, char **argv)
{
	struct span span;

	payload_sleep_until((int64_t)t->number[0]);
	span.start_ns = payload_now_ns();
	int r = task_put_now(t, argv[2]);
	span.end_ns = payload_now_ns();
	if (r == 0)
		task_print_spans(&span, 1);
	return r;
}

static void task_get_now(struct got *g)
{
	g->span.start_ns = payload_now_ns();
	g->result = sar_get(g->task->s, task_id(g->name), TIMEOUT_S * 1000000000ll, &g->buffer);
	g->span.end_ns = payload_now_ns();
	if (g->result != 0)
		snprintf(g->detail, sizeof(g->detail), "%s", sar_error_detail());
}

static void *task_get_thread(void *arg)
{
	struct got *g = arg;

	payload_precise_timers();
	payload_sleep_until(g->at_ns);
	task_get_now(g);
	return NULL;
}

void task_release(struct task *t)
{
	for (unsigned i = 0; i < t->got_count; i++)
		if (t->got[i].result == 0)
			sar_release(t->s, &t->got[i].buffer);
	t->got_count = 0;
}

/* Threads for all gets but the first, so that none waits for another one. */
static void task_get_all(struct task *t, int64_t at_ns, int count, char **names)
{
	for (int i = 0; i < count; i++) {
		t->got[i] = (struct got){.task = t, .name = names[i], .at_ns = at_ns};
		if (i > 0 && pthread_create(&t->got[i].thread, NULL, task_get_thread, &t->got[i]))
			abort();
	}
	task_get_thread(&t->got[0]);
	for (int i = 1; i < count; i++)
		pthread_join(t->got[i].thread, NULL);
	t->got_count = (unsigned)count;
}

static int task_get(struct task *t, int argc, char **argv)
{
	struct span spans[OBJECTS_MAX];

	task_release(t);
	task_get_all(t, (int64_t)t->number[0], argc - 2, argv + 2);
	for (unsigned i = 0; i < t->got_count; i++) {
		if (t->got[i].result != 0) {
			printf("{\"error\": \"get %s: %s (%s)\"}\n", t->got[i].name,
			       sar_strerror(t->got[i].result), t->got[i].detail);
			return 0;
		}
		spans[i] = t->got[i].span;
	}
	task_print_spans(spans, t->got_count);
	return 0;
}

int task_take(struct task *t, const char *name)
{
	t->got[0] = (struct got){.task = t, .name = name};
	task_get_now(&t->got[0]);
	t->got_count = 1;
	return t->got[0].result;
}

static int task_ping_pong(struct task *t, char **argv, bool gives_first)
{
	struct span span;
	int r = 0;

	task_release(t);
	payload_sleep_until((int64_t)t->number[0]);
	span.start_ns = payload_now_ns();
	if (gives_first)
		r = task_put_now(t, argv[2]);
	if (r == 0)
		r = task_take(t, argv[gives_first ? 3 : 2]);
	if (r == 0 && !gives_first)
		r = task_put_now(t, argv[3]);
	span.end_ns = payload_now_ns();
	if (r == 0)
		task_print_spans(&span, 1);
	return r;
}

static int task_ping(struct task *t, int argc, char **argv)
{
	return task_ping_pong(t, argv, true);
}

static int task_pong(struct task *t, int argc, char **argv)
{
	return task_ping_pong(t, argv, false);
}

static int task_check(struct task *t, int argc, char **argv)
{
	printf("{\"digests\": [");
	for (unsigned i = 0; i < t->got_count; i++) {
		const sar_buffer *b = &t->got[i].buffer;
		uint64_t digest = t->got[i].result == 0 ? payload_digest(b->data, b->size) : 0;
		printf("%s\"%016llx\"", i ? ", " : "", (unsigned long long)digest);
	}
	printf("]}\n");
	task_release(t);
	return 0;
}

static int task_rm(struct task *t, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		int r = sar_delete(t->s, task_id(argv[i]));
		if (r != 0)
			return r;
	}
	printf("{}\n");
	return 0;
}

static const struct verb task_verbs[] = {
	{"fill", 3, "12", task_fill},	   {"fill-f32", 3, "12", task_fill_f32},
	{"put", 3, "1", task_put},	   {"get", 3, "1", task_get},
	{"ping", 4, "1", task_ping},	   {"pong", 4, "1", task_pong},
	{"reduce", 8, "146", task_reduce}, {"sources", 3, "", task_sources},
	{"check", 1, "", task_check},	   {"rm", 2, "", task_rm},
};

static bool task_numbers(struct task *t, const struct verb *v, char **words)
{
	for (unsigned i = 0; v->numbers[i]; i++)
		if (!argument_number(words[v->numbers[i] - '0'], 10, 0, INT64_MAX, &t->number[i]))
			return false;
	return true;
}

static int task_words(char *line, char **words)
{
	int count = 0;
	char *state = NULL;

	for (char *w = strtok_r(line, " \n", &state); w && count < WORDS_MAX;
	     w = strtok_r(NULL, " \n", &state))
		words[count++] = w;
	return count;
}

static void task_do(struct task *t, char *line)
{
	char *words[WORDS_MAX];
	int count = task_words(line, words);

	for (size_t i = 0; i < sizeof(task_verbs) / sizeof(task_verbs[0]); i++) {
		const struct verb *v = &task_verbs[i];
		if (count < v->words || strcmp(words[0], v->name) != 0 ||
		    !task_numbers(t, v, words))
			continue;
		int r = v->run(t, count, words);
		if (r != 0)
			printf("{\"error\": \"%s: %s (%s)\"}\n", words[0], sar_strerror(r),
			       sar_error_detail());
		return;
	}
	printf("{\"error\": \"not understood\"}\n");
}

int main(void)
{
	static struct task task;
	char *line = NULL;
	size_t room = 0;
	int r = sar_open(NULL, &task.s);

	if (r != 0) {
		printf("{\"error\": \"open: %s (%s)\"}\n", sar_strerror(r), sar_error_detail());
		return 1;
	}
	payload_precise_timers();
	while (getline(&line, &room, stdin) > 0) {
		task_do(&task, line);
		fflush(stdout);
	}
	task_release(&task);
	sar_close(task.s);
	free(task.data);
	free(line);
	return 0;
}
