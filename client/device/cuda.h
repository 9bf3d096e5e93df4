/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The CUDA driver, as far as copies need it: libcuda.so.1, loaded when it is first asked for, and
 * called by the names and values of its stable binary interface. Nothing of CUDA is needed to
 * build.
 *
 * get.c, put.c and windows.c call it. It knows no object and no store. Any thread.
 */
#ifndef SARISSA_CLIENT_DEVICE_CUDA_H
#define SARISSA_CLIENT_DEVICE_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Each returns one of these, or another of the driver's numbers. */
enum {
	CUDA_OK = 0,
	CUDA_OUT_OF_MEMORY = 2,
	CUDA_NO_DEVICE = 100,
	CUDA_INVALID_DEVICE = 101,
};
enum { CUDA_REGISTER_PORTABLE = 1, CUDA_REGISTER_READ_ONLY = 8 };
enum { CUDA_DEVICE_REGISTERS_READ_ONLY = 113 };
enum { CUDA_POINTER_CONTEXT = 1, CUDA_POINTER_KIND = 2, CUDA_POINTER_DEVICE = 9 };
enum { CUDA_KIND_DEVICE = 2 };
enum { CUDA_EVENT_SLEEPS = 1, CUDA_EVENT_UNTIMED = 2 };

typedef uint64_t cuda_address; /* CUdeviceptr */

#define CUDA_CALLS(ROW)                                                                          \
	ROW(init, "cuInit", (unsigned flags))                                                    \
	ROW(device, "cuDeviceGet", (int *device, int number))                                    \
	ROW(attribute, "cuDeviceGetAttribute", (int *value, int attribute, int device))          \
	ROW(retain, "cuDevicePrimaryCtxRetain", (void **context, int device))                    \
	ROW(release, "cuDevicePrimaryCtxRelease_v2", (int device))                               \
	ROW(push, "cuCtxPushCurrent_v2", (void *context))                                        \
	ROW(pop, "cuCtxPopCurrent_v2", (void **context))                                         \
	ROW(pointer, "cuPointerGetAttribute", (void *value, int attribute, cuda_address at))     \
	ROW(add, "cuMemHostRegister_v2", (void *at, size_t bytes, unsigned flags))               \
	ROW(remove, "cuMemHostUnregister", (void *at))                                           \
	ROW(host, "cuMemHostAlloc", (void **at, size_t bytes, unsigned flags))                   \
	ROW(host_free, "cuMemFreeHost", (void *at))                                              \
	ROW(to_device, "cuMemcpyHtoDAsync_v2",                                                   \
	    (cuda_address to, const void *from, size_t bytes, void *stream))                     \
	ROW(to_device_now, "cuMemcpyHtoD_v2", (cuda_address to, const void *from, size_t bytes)) \
	ROW(to_host, "cuMemcpyDtoHAsync_v2",                                                     \
	    (void *to, cuda_address from, size_t bytes, void *stream))                           \
	ROW(event, "cuEventCreate", (void **event, unsigned flags))                              \
	ROW(event_free, "cuEventDestroy_v2", (void *event))                                      \
	ROW(record, "cuEventRecord", (void *event, void *stream))                                \
	ROW(event_wait, "cuEventSynchronize", (void *event))                                     \
	ROW(stream_wait, "cuStreamSynchronize", (void *stream))                                  \
	ROW(error_name, "cuGetErrorName", (int error, const char **name))                        \
	ROW(error_text, "cuGetErrorString", (int error, const char **text))

struct cuda {
#define CUDA_MEMBER(member, symbol, arguments) int(*member) arguments;
	CUDA_CALLS(CUDA_MEMBER)
#undef CUDA_MEMBER
};

/* The driver, loaded and initialised. 0, or SAR_E_NO_DEVICE with words. */
int cuda_find(const struct cuda **out);

/* 0 when code is CUDA_OK. Else SAR_E_DEVICE, with words about what has failed; SAR_E_NO_DEVICE
 * where there is no such device. */
int cuda_check(const struct cuda *c, int code, const char *what);

/* A context that is this thread's current one until cuda_leave. */
struct cuda_scope {
	const struct cuda *c;
	void *context;
	int device; /* the driver's */
	bool retained;
};

/* That of memory of a device; SAR_E_INVALID when `at` is none. Loads the driver. */
int cuda_enter(struct cuda_scope *scope, cuda_address at);
/* The primary one of a device, by its number. Loads the driver. */
int cuda_enter_device(struct cuda_scope *scope, int number);
void cuda_leave(struct cuda_scope *scope);

#endif
