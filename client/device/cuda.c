/* SPDX-License-Identifier: BSD-3-Clause */
#include "cuda.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include "api/error.h"
#include "sarissa/sarissa.h"

static struct {
	pthread_once_t once;
	struct cuda calls;
	int code;	 /* of cuInit */
	char words[300]; /* why it cannot be used; empty: it can */
} cuda = {.once = PTHREAD_ONCE_INIT};

static void cuda_resolve(void *library)
{
#define CUDA_RESOLVE(member, symbol, arguments)                                             \
	*(void **)&cuda.calls.member = dlsym(library, symbol);                              \
	if (!cuda.calls.member)                                                             \
		snprintf(cuda.words, sizeof(cuda.words),                                    \
			 "the CUDA driver has no %s: install a driver of CUDA 11 or later", \
			 symbol);
	CUDA_CALLS(CUDA_RESOLVE)
#undef CUDA_RESOLVE
}

/* The library stays loaded: the driver has threads of its own. */
static void cuda_load(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		snprintf(cuda.words, sizeof(cuda.words),
			 "no CUDA driver (%s): install the driver of the GPU, or get the object "
			 "into memory of the cpu",
			 dlerror());
		return;
	}
	cuda_resolve(library);
	if (!*cuda.words)
		cuda.code = cuda.calls.init(0);
}

int cuda_check(const struct cuda *c, int code, const char *what)
{
	const char *name = NULL, *text = NULL;
	bool absent = code == CUDA_NO_DEVICE || code == CUDA_INVALID_DEVICE;
	if (code == CUDA_OK)
		return 0;
	if (c->error_name(code, &name) != CUDA_OK || !name)
		name = "unknown";
	if (c->error_text(code, &text) != CUDA_OK || !text)
		text = "no text";
	return error_set(absent ? SAR_E_NO_DEVICE : SAR_E_DEVICE, "%s: CUDA error %d, %s (%s): %s",
			 what, code, name, text,
			 absent			      ? "see nvidia-smi for the devices"
			 : code == CUDA_OUT_OF_MEMORY ? "free memory of the device or of this host"
						      : "see nvidia-smi and the kernel's log");
}

int cuda_find(const struct cuda **out)
{
	pthread_once(&cuda.once, cuda_load);
	if (*cuda.words)
		return error_set(SAR_E_NO_DEVICE, "%s", cuda.words);
	*out = &cuda.calls;
	int r = cuda_check(*out, cuda.code, "cuInit");
	return r < 0 ? SAR_E_NO_DEVICE : 0;
}

static int cuda_push(struct cuda_scope *scope)
{
	const struct cuda *c = scope->c;
	int r = 0;
	if (!scope->context) {
		r = cuda_check(c, c->retain(&scope->context, scope->device),
			       "cuDevicePrimaryCtxRetain");
		scope->retained = r == 0;
	}
	if (r == 0)
		r = cuda_check(c, c->push(scope->context), "cuCtxPushCurrent");
	if (r < 0 && scope->retained)
		c->release(scope->device);
	return r;
}

int cuda_enter(struct cuda_scope *scope, cuda_address at)
{
	unsigned kind = 0;
	int number = 0;
	*scope = (struct cuda_scope){0};
	int r = cuda_find(&scope->c);
	if (r < 0)
		return r;
	const struct cuda *c = scope->c;
	if (c->pointer(&kind, CUDA_POINTER_KIND, at) != CUDA_OK || kind != CUDA_KIND_DEVICE)
		return error_set(SAR_E_INVALID,
				 "0x%llx is no memory of a GPU: give an address from cuMemAlloc or "
				 "cudaMalloc",
				 (unsigned long long)at);
	r = cuda_check(c, c->pointer(&number, CUDA_POINTER_DEVICE, at), "cuPointerGetAttribute");
	if (r == 0)
		r = cuda_check(c, c->device(&scope->device, number), "cuDeviceGet");
	/* memory of a pool, or mapped by the caller, belongs to a device and to no context */
	if (c->pointer(&scope->context, CUDA_POINTER_CONTEXT, at) != CUDA_OK)
		scope->context = NULL;
	return r < 0 ? r : cuda_push(scope);
}

int cuda_enter_device(struct cuda_scope *scope, int number)
{
	*scope = (struct cuda_scope){0};
	int r = cuda_find(&scope->c);
	if (r == 0)
		r = cuda_check(scope->c, scope->c->device(&scope->device, number), "cuDeviceGet");
	return r < 0 ? r : cuda_push(scope);
}

void cuda_leave(struct cuda_scope *scope)
{
	void *context;
	scope->c->pop(&context);
	if (scope->retained)
		scope->c->release(scope->device);
}
