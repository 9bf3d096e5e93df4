/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How fast a GPU copies from and to memory that is mapped as a node's store is, beside pageable
 * memory and memory of the CUDA driver. It needs a driver and no node, and nothing of CUDA to be
 * built:
 *
 *     cc -O2 -pthread -o device bench/device.c -ldl && ./device --json
 *
 * docs/user/torch.md names it. Each row is the median of its turns, with the bytes compared.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { TURNS = 5, PIECE = 1 << 20, HALF = 4 << 20, PORTABLE = 1, READ_ONLY = 8 };

#define CALLS(ROW)                                                          \
	ROW(cuInit, (unsigned))                                             \
	ROW(cuDriverGetVersion, (int *))                                    \
	ROW(cuDeviceGet, (int *, int))                                      \
	ROW(cuDeviceGetName, (char *, int, int))                            \
	ROW(cuDeviceGetAttribute, (int *, int, int))                        \
	ROW(cuDevicePrimaryCtxRetain, (void **, int))                       \
	ROW(cuCtxPushCurrent_v2, (void *))                                  \
	ROW(cuMemAlloc_v2, (uint64_t *, size_t))                            \
	ROW(cuMemHostAlloc, (void **, size_t, unsigned))                    \
	ROW(cuMemFreeHost, (void *))                                        \
	ROW(cuMemHostRegister_v2, (void *, size_t, unsigned))               \
	ROW(cuMemHostUnregister, (void *))                                  \
	ROW(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t))              \
	ROW(cuMemcpyDtoH_v2, (void *, uint64_t, size_t))                    \
	ROW(cuMemcpyHtoDAsync_v2, (uint64_t, const void *, size_t, void *)) \
	ROW(cuMemcpyDtoHAsync_v2, (void *, uint64_t, size_t, void *))       \
	ROW(cuEventCreate, (void **, unsigned))                             \
	ROW(cuEventRecord, (void *, void *))                                \
	ROW(cuEventSynchronize, (void *))                                   \
	ROW(cuStreamSynchronize, (void *))                                  \
	ROW(cuGetErrorName, (int, const char **))
#define POINTER(name, arguments) static int(*name) arguments;
CALLS(POINTER)

static struct {
	uint64_t device; /* memory of it */
	size_t bytes;
	uint8_t *right; /* what is copied */
	void *event[2];
	void *bounce;
	bool json;
} bench;

static void die(const char *what, const char *why)
{
	fprintf(stderr, "device: %s: %s\n", what, why);
	exit(1);
}

static void check(int code, const char *what)
{
	const char *name = "unknown error";
	char why[100];
	if (code == 0)
		return;
	cuGetErrorName(code, &name);
	snprintf(why, sizeof(why), "CUDA error %d, %s", code, name);
	die(what, why);
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* extra: more members of the row in JSON, or NULL */
static void row(const char *name, const char *direction, double seconds, bool right,
		const char *extra)
{
	double rate = (double)bench.bytes / seconds / (1 << 30);
	if (bench.json)
		printf("{\"case\": \"%s\", \"direction\": \"%s\", \"bytes\": %zu, \"seconds\": %.6f, "
		       "\"gib_per_s\": %.3f, \"right\": %s%s}\n",
		       name, direction, bench.bytes, seconds, rate, right ? "true" : "false",
		       extra ? extra : "");
	else
		printf("%-12s %-12s %8.2f GiB/s  %s%s\n", name, direction, rate,
		       right ? "right bytes" : "WRONG BYTES", extra ? extra : "");
	fflush(stdout);
	if (!right)
		exit(1);
}

/* ---- copies --------------------------------------------------------------------------------- */

typedef void copy_function(void *host);

static void to_device(void *host)
{
	check(cuMemcpyHtoDAsync_v2(bench.device, host, bench.bytes, NULL), "cuMemcpyHtoDAsync");
	check(cuStreamSynchronize(NULL), "cuStreamSynchronize");
}

static void to_device_pageable(void *host)
{
	check(cuMemcpyHtoD_v2(bench.device, host, bench.bytes), "cuMemcpyHtoD");
}

static void from_device(void *host)
{
	check(cuMemcpyDtoHAsync_v2(host, bench.device, bench.bytes, NULL), "cuMemcpyDtoHAsync");
	check(cuStreamSynchronize(NULL), "cuStreamSynchronize");
}

static void from_device_pageable(void *host)
{
	check(cuMemcpyDtoH_v2(host, bench.device, bench.bytes), "cuMemcpyDtoH");
}

static size_t half_at(size_t at)
{
	return bench.bytes - at < HALF ? bench.bytes - at : HALF;
}

static void half_start(size_t at)
{
	unsigned half = at / HALF % 2;
	check(cuMemcpyDtoHAsync_v2((uint8_t *)bench.bounce + half * (size_t)HALF, bench.device + at,
				   half_at(at), NULL),
	      "cuMemcpyDtoHAsync");
	check(cuEventRecord(bench.event[half], NULL), "cuEventRecord");
}

/* By two halves of memory of the driver, as sar_device_put does it. */
static void from_device_halves(void *host)
{
	half_start(0);
	for (size_t at = 0; at < bench.bytes; at += HALF) {
		unsigned half = at / HALF % 2;
		if (at + HALF < bench.bytes)
			half_start(at + HALF);
		check(cuEventSynchronize(bench.event[half]), "cuEventSynchronize");
		memcpy((uint8_t *)host + at, (uint8_t *)bench.bounce + half * (size_t)HALF,
		       half_at(at));
	}
}

static double measure(copy_function *copy, void *host)
{
	double seconds[TURNS];
	copy(host);
	for (unsigned i = 0; i < TURNS; i++) {
		double begin = now();
		copy(host);
		seconds[i] = now() - begin;
	}
	qsort(seconds, TURNS, sizeof(seconds[0]), compare);
	return seconds[TURNS / 2];
}

/* host: has the right bytes */
static void case_to(const char *name, copy_function *copy, void *host, const char *extra)
{
	uint8_t *back = malloc(bench.bytes);
	double seconds = measure(copy, host);
	check(cuMemcpyDtoH_v2(back, bench.device, bench.bytes), "cuMemcpyDtoH");
	row(name, "to_device", seconds, memcmp(back, bench.right, bench.bytes) == 0, extra);
	memset(back, 0, bench.bytes);
	check(cuMemcpyHtoD_v2(bench.device, back, bench.bytes), "cuMemcpyHtoD");
	free(back);
}

static void case_from(const char *name, copy_function *copy, void *host)
{
	check(cuMemcpyHtoD_v2(bench.device, bench.right, bench.bytes), "cuMemcpyHtoD");
	memset(host, 0, bench.bytes);
	double seconds = measure(copy, host);
	row(name, "from_device", seconds, memcmp(host, bench.right, bench.bytes) == 0, NULL);
}

/* ---- the store ------------------------------------------------------------------------------ */

struct store {
	uint8_t *written, *read; /* the node's mapping, and a client's */
};

static bool store_open(struct store *s, unsigned flags)
{
	int fd = memfd_create("store", flags);
	if (fd < 0 || ftruncate(fd, (off_t)bench.bytes) < 0 ||
	    posix_fallocate(fd, 0, (off_t)bench.bytes) != 0) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	s->written = mmap(NULL, bench.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	s->read = mmap(NULL, bench.bytes, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, 0);
	close(fd);
	if (s->written == MAP_FAILED || s->read == MAP_FAILED)
		return false;
	memcpy(s->written, bench.right, bench.bytes);
	return true;
}

static void store_close(struct store *s)
{
	munmap(s->written, bench.bytes);
	munmap(s->read, bench.bytes);
}

static _Atomic size_t arrived;
static double arrival_seconds;

/* The object comes at about the speed of a fast network: a piece is copied, then published. */
static void *arrive(void *arg)
{
	struct store *s = arg;
	double begin = now();
	for (size_t at = 0; at < bench.bytes; at += PIECE) {
		size_t part = bench.bytes - at < PIECE ? bench.bytes - at : PIECE;
		memcpy(s->written + at, bench.right + at, part);
		atomic_store(&arrived, at + part);
	}
	arrival_seconds = now() - begin;
	return NULL;
}

/* As sar_device_get does it; measured from the first byte's arrival to the last copy's end. */
static void overlap(const char *name, struct store *s)
{
	pthread_t thread;
	size_t copied = 0;
	char extra[100];
	uint8_t *back = malloc(bench.bytes);
	memset(s->written, 0, bench.bytes);
	atomic_store(&arrived, 0);
	double begin = now();
	if (pthread_create(&thread, NULL, arrive, s) != 0)
		die("thread", strerror(errno));
	while (copied < bench.bytes) {
		size_t ready = atomic_load(&arrived);
		if (ready == copied)
			continue;
		check(cuMemcpyHtoDAsync_v2(bench.device + copied, s->read + copied, ready - copied,
					   NULL),
		      "cuMemcpyHtoDAsync");
		copied = ready;
	}
	check(cuStreamSynchronize(NULL), "cuStreamSynchronize");
	double seconds = now() - begin;
	pthread_join(thread, NULL);
	check(cuMemcpyDtoH_v2(back, bench.device, bench.bytes), "cuMemcpyDtoH");
	snprintf(extra, sizeof(extra), ", \"arrival_seconds\": %.6f", arrival_seconds);
	row(name, "overlapped", seconds, memcmp(back, bench.right, bench.bytes) == 0,
	    bench.json ? extra : NULL);
	free(back);
}

static void case_store(const char *name, unsigned flags, bool read_only)
{
	struct store s;
	char extra[100];
	if (!store_open(&s, flags)) {
		fprintf(stderr, "device: %s: not run: no such memory is free here\n", name);
		return;
	}
	double begin = now();
	int code =
		cuMemHostRegister_v2(s.read, bench.bytes, PORTABLE | (read_only ? READ_ONLY : 0));
	snprintf(extra, sizeof(extra), ", \"register_seconds\": %.6f, \"registered\": %s",
		 now() - begin, code == 0 ? "true" : "false");
	case_to(name, code == 0 ? to_device : to_device_pageable, s.read,
		bench.json ? extra : NULL);
	if (code == 0)
		overlap(name, &s);
	case_from(name, from_device_halves, s.written);
	if (cuMemHostRegister_v2(s.written, bench.bytes, PORTABLE) == 0) {
		snprintf(extra, sizeof(extra), "%s-direct", name);
		case_from(extra, from_device, s.written);
		cuMemHostUnregister(s.written);
	}
	if (code == 0)
		check(cuMemHostUnregister(s.read), "cuMemHostUnregister");
	store_close(&s);
}

/* ---- all of it ------------------------------------------------------------------------------ */

static void load(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!library) {
		fprintf(stderr, "device: not run: no CUDA driver (%s)\n", dlerror());
		exit(2);
	}
#define RESOLVE(name, arguments)                 \
	*(void **)&name = dlsym(library, #name); \
	if (!name)                               \
		die("libcuda.so.1 lacks", #name);
	CALLS(RESOLVE)
}

static bool begin(void)
{
	char name[100] = "";
	void *context;
	int device, version = 0, read_only = 0;
	check(cuInit(0), "cuInit");
	check(cuDeviceGet(&device, 0), "cuDeviceGet");
	check(cuDriverGetVersion(&version), "cuDriverGetVersion");
	check(cuDeviceGetName(name, sizeof(name), device), "cuDeviceGetName");
	check(cuDeviceGetAttribute(&read_only, 113, device), "cuDeviceGetAttribute");
	check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
	check(cuCtxPushCurrent_v2(context), "cuCtxPushCurrent");
	check(cuMemAlloc_v2(&bench.device, bench.bytes), "cuMemAlloc");
	check(cuMemHostAlloc(&bench.bounce, 2 * (size_t)HALF, 0), "cuMemHostAlloc");
	for (unsigned i = 0; i < 2; i++)
		check(cuEventCreate(&bench.event[i], 2), "cuEventCreate");
	bench.right = malloc(bench.bytes);
	for (size_t i = 0; i < bench.bytes; i++)
		bench.right[i] = (uint8_t)(i * 131 + (i >> 8) * 17 + 7);
	if (bench.json)
		printf("{\"case\": \"device\", \"name\": \"%s\", \"cuda\": %d, \"read_only_register\": %s}\n",
		       name, version, read_only ? "true" : "false");
	else
		printf("%s, CUDA %d.%d, %zu MiB\n", name, version / 1000, version % 1000 / 10,
		       bench.bytes >> 20);
	return read_only;
}

int main(int argc, char **argv)
{
	bench.bytes = 512 << 20;
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--json") == 0)
			bench.json = true;
		else if (atoi(argv[i]) > 0 && atoi(argv[i]) <= 16384)
			bench.bytes = (size_t)atoi(argv[i]) << 20;
		else
			die(argv[i], "usage: device [--json] [MIB], up to 16384; 512 without it");
	load();
	bool read_only = begin();
	void *pageable = malloc(bench.bytes), *pinned;
	memcpy(pageable, bench.right, bench.bytes);
	case_to("pageable", to_device_pageable, pageable, NULL);
	case_from("pageable", from_device_pageable, pageable);
	free(pageable);
	check(cuMemHostAlloc(&pinned, bench.bytes, 0), "cuMemHostAlloc");
	memcpy(pinned, bench.right, bench.bytes);
	case_to("pinned", to_device, pinned, NULL);
	case_from("pinned", from_device, pinned);
	check(cuMemFreeHost(pinned), "cuMemFreeHost");
	case_store("store", MFD_CLOEXEC, read_only);
	case_store("store-huge", MFD_CLOEXEC | MFD_HUGETLB, read_only);
	return 0;
}
