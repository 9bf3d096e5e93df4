/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What one core reduces: acc = acc op payload, chunk by chunk as the dataplane calls it, beside a
 * plain copy-add loop over the whole range. All take turns, so that what else the machine does
 * hits them alike; figures are medians over the rounds.
 */
#include "kernels.h"

#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "internal/program/arguments.h"
#include "fixtures/kernel_reference.h"

static const char usage[] =
	"Usage: kernels [--json] [--op OP]... [--level c|avx2|avx512|avx512vnni]\n"
	"               [--chunk BYTES] [--offset BYTES] [--rounds N]\n"
	"Default: sum, the best level, chunks of 1408 bytes, payload 10 bytes off its alignment,\n"
	"21 rounds. GB/s of payload, medians. The ratios: to the bound, a copy-add loop of the\n"
	"type with intrinsics over the whole range (16-bit floats are widened, added as f32 and\n"
	"rounded); to that loop called chunk by chunk like the kernel; to the f32 loop, which\n"
	"converts nothing, over the whole range.\n";

enum { MANY = 8, ROUNDS_MAX = 1001 };

struct place {
	const char *name;
	uint32_t bytes;	 /* of each array */
	uint32_t passes; /* of one turn */
};

/* Two arrays each: within 32 KiB of L1, within 512 KiB of L2, beyond any cache. */
static const struct place places[] = {
	{"L1", 11 * 1408, 2048}, {"L2", 160 * 1408, 128}, {"memory", 47616 * 1408, 1}};

struct settings {
	bool json, ops[REDUCE_OP_END];
	enum kernel_level level;
	uint32_t chunk_bytes, offset, rounds;
};

struct arena {
	uint8_t *acc, *payload[MANY];
};

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(double *v, uint32_t n)
{
	qsort(v, n, sizeof(*v), by_value);
	return v[n / 2];
}

/* Nothing but the calls: what this loop would read again from memory after each of them waits for
 * all stores that share the last 12 bits of its address, a fifth of the time in L2. */
static __attribute__((noinline)) void
pass_range(kernel_fn *run, uint8_t *to, const uint8_t *payload, uint8_t *end, uint32_t chunk_bytes)
{
	for (; to < end; to += chunk_bytes, payload += chunk_bytes)
		run(to, to, payload, chunk_bytes);
}

/* GB/s of payload of one turn. */
static double turn_pass(kernel_fn *run, const struct arena *a, const struct place *p,
			uint32_t chunk_bytes)
{
	double begin = now();
	uint32_t rest = p->bytes % chunk_bytes, whole = p->bytes - rest;
	for (uint32_t pass = 0; pass < p->passes; pass++) {
		pass_range(run, a->acc, a->payload[0], a->acc + whole, chunk_bytes);
		if (rest > 0)
			run(a->acc + whole, a->acc + whole, a->payload[0] + whole, rest);
	}
	return (double)p->bytes * p->passes * 1e-9 / (now() - begin);
}

/* Signs at random, magnitude 1: nothing becomes subnormal, whatever is done how often. */
static void arena_fill(const struct arena *a, uint32_t dtype, uint32_t bytes)
{
	uint32_t size = reduce_dtype_bytes(dtype);
	const uint64_t one[2] = {reference_encode(dtype, 1), reference_encode(dtype, -1)};
	for (uint32_t i = 0; i < bytes; i += size) {
		memcpy(a->acc + i, &one[0], size);
		memcpy(a->payload[0] + i, &one[(i * 2654435761u) >> 31], size);
	}
}

struct row {
	double gb_s[ROUNDS_MAX], ratio[ROUNDS_MAX];
	double chunk_ratio[ROUNDS_MAX]; /* to the bound's loop on the same chunks */
	double bare_ratio[ROUNDS_MAX];	/* to the loop that converts nothing */
};

static void row_print(const struct settings *s, const char *op, const char *dtype,
		      const struct place *p, struct row *r)
{
	double gb_s = median(r->gb_s, s->rounds), ratio = median(r->ratio, s->rounds);
	double chunk_ratio = median(r->chunk_ratio, s->rounds);
	double bare_ratio = median(r->bare_ratio, s->rounds);
	if (s->json)
		printf("{\"op\":\"%s\",\"dtype\":\"%s\",\"level\":\"%s\",\"place\":\"%s\","
		       "\"chunk_bytes\":%u,\"offset\":%u,\"rounds\":%u,\"gb_s\":%.3f,"
		       "\"ratio\":%.4f,\"chunk_ratio\":%.4f,\"bare_ratio\":%.4f}\n",
		       op, dtype, kernel_level_name(s->level), p->name, s->chunk_bytes, s->offset,
		       s->rounds, gb_s, ratio, chunk_ratio, bare_ratio);
	else
		printf("%-9s %-8s %-7s %9.2f GB/s %7.3f %7.3f %7.3f\n", op, dtype, p->name, gb_s,
		       ratio, chunk_ratio, bare_ratio);
}

/* In each round a turn of the kernel follows one of each bound. */
static void measure_type(const struct settings *s, kernel_fn *run, kernel_fn *converts,
			 const struct arena *a, const struct place *p, struct row *row,
			 struct row *bound)
{
	kernel_fn *bare = bound_of(s->level), *own = converts ? converts : bare;
	turn_pass(run, a, p, s->chunk_bytes);
	for (uint32_t round = 0; round < s->rounds; round++) {
		double whole = turn_pass(bare, a, p, p->bytes);
		double own_whole = converts ? turn_pass(own, a, p, p->bytes) : whole;
		double own_chunks = turn_pass(own, a, p, s->chunk_bytes);
		double gb_s = turn_pass(run, a, p, s->chunk_bytes);
		row->gb_s[round] = gb_s;
		row->ratio[round] = gb_s / own_whole;
		row->chunk_ratio[round] = gb_s / own_chunks;
		row->bare_ratio[round] = gb_s / whole;
		bound->gb_s[round] = own_whole;
		bound->ratio[round] = 1;
		bound->chunk_ratio[round] = own_whole / own_chunks;
		bound->bare_ratio[round] = own_whole / whole;
	}
}

static void measure(const struct settings *s, uint32_t op, const struct arena *a,
		    const struct place *p)
{
	static struct row row, bound;
	for (uint32_t dtype = 1; dtype < REDUCE_DTYPE_END; dtype++) {
		arena_fill(a, dtype, p->bytes);
		measure_type(s, kernel_find(s->level, op, dtype), bound_converting(s->level, dtype),
			     a, p, &row, &bound);
		row_print(s, reduce_op_name(op), reduce_dtype_name(dtype), p, &row);
		row_print(s, "  bound", reduce_dtype_name(dtype), p, &bound);
	}
}

/* GB/s of all sources of one turn, in one call for all of them or one call for each. */
static double turn_many(const struct settings *s, uint32_t dtype, const struct arena *a,
			const struct place *p, uint32_t count, bool at_once)
{
	kernel_many_fn *many = kernel_find_many(s->level, REDUCE_SUM, dtype);
	kernel_fn *pass = kernel_find(s->level, REDUCE_SUM, dtype);
	uint32_t passes = p->passes / count + 1;
	double begin = now();
	for (uint32_t turn = 0; turn < passes; turn++)
		for (uint32_t at = 0; at + s->chunk_bytes <= p->bytes; at += s->chunk_bytes) {
			const void *x[MANY];
			for (uint32_t k = 0; k < count; k++)
				x[k] = a->payload[k] + at;
			if (at_once) {
				many(a->acc + at, x, count, s->chunk_bytes);
				continue;
			}
			pass(a->acc + at, x[0], x[1], s->chunk_bytes);
			for (uint32_t k = 2; k < count; k++)
				pass(a->acc + at, a->acc + at, x[k], s->chunk_bytes);
		}
	return (double)p->bytes * count * passes * 1e-9 / (now() - begin);
}

static void measure_many(const struct settings *s, const struct arena *a, const struct place *p)
{
	static const uint32_t dtypes[] = {REDUCE_F16, REDUCE_BF16, REDUCE_F32, REDUCE_F64};
	static const char *const names[] = {"sum of 2", "sum of 4", "sum of 8"};
	static struct row row;
	struct place part = *p;
	part.bytes = p->bytes / (p->passes > 1 ? 4 : 1);
	for (uint32_t t = 0; t < 4; t++)
		for (uint32_t c = 0; c < 3; c++) {
			uint32_t count = 2u << c;
			for (uint32_t round = 0; round < s->rounds; round++) {
				double one = turn_many(s, dtypes[t], a, &part, count, false);
				row.gb_s[round] = turn_many(s, dtypes[t], a, &part, count, true);
				row.ratio[round] = row.chunk_ratio[round] = row.bare_ratio[round] =
					row.gb_s[round] / one;
			}
			row_print(s, names[c], reduce_dtype_name(dtypes[t]), p, &row);
		}
}

static bool level_parse(const char *name, enum kernel_level *level)
{
	for (*level = KERNEL_C; *level <= kernel_level_best(); ++*level)
		if (strcmp(kernel_level_name(*level), name) == 0)
			return true;
	return false;
}

/* Ends with what is wrong in one line. */
static void settings_refuse(const char *what)
{
	fprintf(stderr, "bench: '%s' is no argument here: see scripts/bench kernels --help\n",
		what);
	exit(2);
}

static void settings_parse(int argc, char **argv, struct settings *s)
{
	static const struct option rows[] = {
		{"json", no_argument, NULL, 'j'},	  {"op", required_argument, NULL, 'o'},
		{"level", required_argument, NULL, 'l'},  {"chunk", required_argument, NULL, 'c'},
		{"offset", required_argument, NULL, 'f'}, {"rounds", required_argument, NULL, 'r'},
		{"help", no_argument, NULL, 'h'},	  {NULL, 0, NULL, 0}};
	bool any = false;
	opterr = 0;
	*s = (struct settings){
		.level = kernel_level_best(), .chunk_bytes = 1408, .offset = 10, .rounds = 21};
	for (int c; (c = getopt_long(argc, argv, "", rows, NULL)) != -1;) {
		switch (c) {
		case 'j':
			s->json = true;
			break;
		case 'o':
			if (!reduce_op_find(optarg))
				settings_refuse(optarg);
			s->ops[reduce_op_find(optarg)] = any = true;
			break;
		case 'l':
			if (!level_parse(optarg, &s->level))
				settings_refuse(optarg);
			break;
		case 'c':
			s->chunk_bytes = (uint32_t)argument_need("--chunk", optarg, 64, 65536);
			if (s->chunk_bytes % 64)
				settings_refuse(optarg);
			break;
		case 'f':
			s->offset = (uint32_t)argument_need("--offset", optarg, 0, 63);
			break;
		case 'r':
			s->rounds = (uint32_t)argument_need("--rounds", optarg, 1, ROUNDS_MAX);
			break;
		case 'h':
			printf("%s", usage);
			exit(0);
		default:
			settings_refuse(argument_refused(argc, argv));
		}
	}
	if (optind < argc)
		settings_refuse(argv[optind]);
	s->ops[REDUCE_SUM] |= !any;
}

static bool arena_open(struct arena *a, uint32_t offset)
{
	const size_t most = places[2].bytes;
	a->acc = aligned_alloc(4096, most);
	bool got = a->acc != NULL;
	for (uint32_t k = 0; k < MANY; k++) {
		/* apart by a page and some lines, so that the arrays do not meet in one cache set
		 */
		uint8_t *block = aligned_alloc(4096, most + 4096 * (k + 2));
		got &= block != NULL;
		a->payload[k] = block ? block + 1088 * (k + 1) / 64 * 64 + offset : NULL;
		if (block)
			memset(block, 0, most + 4096 * (k + 2));
	}
	return got;
}

int main(int argc, char **argv)
{
	struct settings s;
	struct arena a;
	settings_parse(argc, argv, &s);
	if (!arena_open(&a, s.offset)) {
		fprintf(stderr, "bench: no memory: 700 MiB are needed\n");
		return 1;
	}
	/* Other work on the machine is not to be measured; without this right, it is. */
	sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK,
			   &(struct sched_param){.sched_priority = 1});
	if (!s.json)
		printf("level %s, chunks of %u bytes, payload at offset %u\n",
		       kernel_level_name(s.level), s.chunk_bytes, s.offset);
	for (uint32_t op = 1; op < REDUCE_OP_END; op++)
		for (uint32_t p = 0; s.ops[op] && p < 3; p++)
			measure(&s, op, &a, &places[p]);
	if (!s.json)
		printf("\nSum of several sources in one call; the ratio is to one call for each\n");
	for (uint32_t p = 0; p < 3; p++)
		measure_many(&s, &a, &places[p]);
	error_report(s.level, s.json);
	return 0;
}
