/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One rank of MPI's side of a measurement. Takes its lines from the FIFO DIR/in.RANK and answers
 * each with one JSON object to DIR/out.RANK, so that no rank polls between two measurements.
 *
 *   fill BYTES SEED      makes the bytes that the rank gives, and room for   {"digest"}
 *                        what it takes
 *   fill-f32 BYTES SEED  the same with an array of gradient.h                {"digest"}
 *   broadcast AT_NS      MPI_Bcast from rank 0, not before AT_NS             {"spans"}
 *   gather AT_NS         MPI_Gather to rank 0                                {"spans"}
 *   reduce AT_NS         MPI_Reduce, sum of f32, to rank 0                   {"spans"}
 *   allreduce AT_NS      MPI_Allreduce                                       {"spans"}
 *   p2p AT_NS            to rank 1 and back; the others stand by             {"spans"}
 *   check                of what was taken                                   {"digests"}
 *
 * A span is [start, end] of the call, CLOCK_MONOTONIC ns. A barrier follows each call, outside the
 * span: the library moves bytes only inside its calls.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "gradient.h"
#include "payload.h"

struct rank {
	int rank, ranks;
	int bytes; /* of one object */
	uint8_t *give, *take;
	int taken; /* objects in take */
	FILE *out;
};

struct verb {
	const char *name;
	void (*call)(struct rank *r);
};

static uint8_t *rank_room(size_t bytes)
{
	uint8_t *room = malloc(bytes ? bytes : 1);

	if (!room)
		MPI_Abort(MPI_COMM_WORLD, 1);
	memset(room, 0, bytes); /* no page fault is measured */
	return room;
}

static void rank_make_room(struct rank *r, int bytes, int takes)
{
	free(r->give);
	free(r->take);
	r->bytes = bytes;
	r->give = rank_room((size_t)bytes);
	r->take = rank_room((size_t)bytes * (size_t)takes);
}

static void rank_fill(struct rank *r, int bytes, uint64_t seed, bool f32)
{
	rank_make_room(r, bytes, f32 || r->rank != 0 ? 1 : r->ranks);
	if (f32)
		gradient_fill((float *)(void *)r->give, (uint64_t)bytes / sizeof(float),
			      (uint32_t)seed);
	else
		payload_fill(r->give, (uint64_t)bytes, seed);
	fprintf(r->out, "{\"digest\": \"%016llx\"}\n",
		(unsigned long long)payload_digest(r->give, (uint64_t)bytes));
}

static void rank_broadcast(struct rank *r)
{
	MPI_Bcast(r->rank == 0 ? r->give : r->take, r->bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
	r->taken = r->rank == 0 ? 0 : 1;
}

static void rank_gather(struct rank *r)
{
	MPI_Gather(r->give, r->bytes, MPI_BYTE, r->take, r->bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
	r->taken = r->rank == 0 ? r->ranks : 0;
}

static void rank_reduce(struct rank *r)
{
	MPI_Reduce(r->give, r->take, r->bytes / (int)sizeof(float), MPI_FLOAT, MPI_SUM, 0,
		   MPI_COMM_WORLD);
	r->taken = r->rank == 0 ? 1 : 0;
}

static void rank_allreduce(struct rank *r)
{
	MPI_Allreduce(r->give, r->take, r->bytes / (int)sizeof(float), MPI_FLOAT, MPI_SUM,
		      MPI_COMM_WORLD);
	r->taken = 1;
}

static void rank_p2p(struct rank *r)
{
	r->taken = r->rank <= 1;
	if (r->rank == 0)
		MPI_Send(r->give, r->bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
	if (r->rank <= 1)
		MPI_Recv(r->take, r->bytes, MPI_BYTE, 1 - r->rank, 0, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
	if (r->rank == 1)
		MPI_Send(r->give, r->bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
}

static void rank_measure(struct rank *r, const struct verb *v, int64_t at_ns)
{
	payload_sleep_until(at_ns);
	int64_t start_ns = payload_now_ns();
	v->call(r);
	int64_t end_ns = payload_now_ns();
	MPI_Barrier(MPI_COMM_WORLD);
	fprintf(r->out, "{\"spans\": [[%lld, %lld]]}\n", (long long)start_ns, (long long)end_ns);
}

static void rank_check(struct rank *r)
{
	fprintf(r->out, "{\"digests\": [");
	for (int i = 0; i < r->taken; i++) {
		const uint8_t *at = r->take + (size_t)i * (size_t)r->bytes;
		fprintf(r->out, "%s\"%016llx\"", i ? ", " : "",
			(unsigned long long)payload_digest(at, (uint64_t)r->bytes));
	}
	fprintf(r->out, "]}\n");
}

static const struct verb rank_verbs[] = {
	{"broadcast", rank_broadcast}, {"gather", rank_gather}, {"reduce", rank_reduce},
	{"allreduce", rank_allreduce}, {"p2p", rank_p2p},
};

static void rank_do(struct rank *r, const char *line)
{
	char verb[16];
	long long first = 0;
	unsigned long long second = 0;

	if (sscanf(line, "%15s %lld %llu", verb, &first, &second) < 1)
		verb[0] = '\0';
	if (strcmp(verb, "fill") == 0 || strcmp(verb, "fill-f32") == 0) {
		rank_fill(r, (int)first, second, strcmp(verb, "fill") != 0);
		return;
	}
	if (strcmp(verb, "check") == 0) {
		rank_check(r);
		return;
	}
	for (size_t i = 0; i < sizeof(rank_verbs) / sizeof(rank_verbs[0]); i++) {
		if (strcmp(verb, rank_verbs[i].name) == 0) {
			rank_measure(r, &rank_verbs[i], first);
			return;
		}
	}
	fprintf(r->out, "{\"error\": \"not understood\"}\n");
}

static FILE *rank_open(const struct rank *r, const char *directory, const char *name,
		       const char *mode)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s.%d", directory, name, r->rank);
	FILE *file = fopen(path, mode);
	if (!file) {
		perror(path);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	return file;
}

int main(int argc, char **argv)
{
	struct rank r = {0};
	char line[256];

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &r.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &r.ranks);
	if (argc != 2)
		MPI_Abort(MPI_COMM_WORLD, 2);
	FILE *in = rank_open(&r, argv[1], "in", "r");
	r.out = rank_open(&r, argv[1], "out", "w");
	payload_precise_timers();
	while (fgets(line, sizeof(line), in)) {
		rank_do(&r, line);
		fflush(r.out);
	}
	MPI_Finalize();
	return 0;
}
