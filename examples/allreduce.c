/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sum of an array of each task, at all of them. SIZE tasks run it, on any nodes, as rank 0 to
 * SIZE - 1; RUN is a word that names this sum.
 *
 *     cc allreduce.c -o allreduce $(pkg-config --cflags --libs sarissa)
 *     ./allreduce RUN RANK SIZE
 */
#include <stdio.h>
#include <stdlib.h>
#include <sarissa/sarissa.h>

enum { ELEMENTS = 100000 };

static int failed(const char *what)
{
	fprintf(stderr, "allreduce: %s: %s\n", what, sar_error_detail());
	return 1;
}

static sar_id id_of(const char *run, const char *what, unsigned rank)
{
	char name[SAR_NAME_MAX + 1];
	int length = snprintf(name, sizeof(name), "%s/%s/%u", run, what, rank);
	return sar_id_of(name, length < SAR_NAME_MAX ? (size_t)length : SAR_NAME_MAX);
}

static int sum(sar *s, const char *run, unsigned rank, unsigned size)
{
	static float own[ELEMENTS];
	sar_id sources[SAR_SOURCES_MAX];
	sar_reduction how = {.op = SAR_SUM, .dtype = SAR_F32};
	sar_buffer result;
	for (unsigned i = 0; i < ELEMENTS; i++)
		own[i] = (float)(rank + i);
	for (unsigned i = 0; i < size; i++)
		sources[i] = id_of(run, "part", i);
	if (sar_put(s, sources[rank], NULL, own, sizeof(own)) < 0)
		return failed("put");
	/* Parts that are not there yet are waited for. */
	if (sar_allreduce(s, id_of(run, "sum", 0), NULL, sources, size, &how, 60000000000,
			  &result) < 0)
		return failed("allreduce");
	printf("%.0f %.0f\n", ((const float *)result.data)[0],
	       ((const float *)result.data)[ELEMENTS - 1]);
	sar_release(s, &result);
	return 0;
}

int main(int argc, char **argv)
{
	sar *s;
	unsigned rank = argc == 4 ? (unsigned)atoi(argv[2]) : 0;
	unsigned size = argc == 4 ? (unsigned)atoi(argv[3]) : 0;
	if (rank >= size || size > SAR_SOURCES_MAX) {
		fprintf(stderr, "usage: allreduce RUN RANK SIZE\n");
		return 2;
	}
	if (sar_open(NULL, &s) < 0)
		return failed("open");
	int status = sum(s, argv[1], rank, size);
	sar_close(s);
	return status;
}
