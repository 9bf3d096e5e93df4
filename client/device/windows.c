/* SPDX-License-Identifier: BSD-3-Clause */
#include "windows.h"

#include <stdlib.h>
#include "api/error.h"
#include "cuda.h"
#include "link/handle.h"

#define WINDOW_BYTES (UINT64_C(64) << 20)
enum { WINDOW_UNKNOWN = 0, WINDOW_REGISTERED = -1 }; /* else the driver's error */

struct windows_store {
	struct windows_store *next;
	const struct cuda *c;
	int device;    /* whose primary context is retained for the registrations */
	void *context; /* that */
	unsigned flags;
	const uint8_t *base;
	uint64_t bytes, window;
	uint32_t windows;
	int state[];
};

/* The node's present store. False: it has been lost meanwhile. */
static bool windows_present(struct sar *s, const uint8_t **base, uint64_t *bytes, uint64_t *page)
{
	uint32_t turn = pins_turn(&s->pins);
	*base = s->map.store;
	*bytes = s->map.store_bytes;
	*page = s->map.align;
	return pins_turn_is(&s->pins, turn) && *base;
}

static unsigned windows_flags(const struct cuda_scope *scope)
{
	int supported = 0;
	scope->c->attribute(&supported, CUDA_DEVICE_REGISTERS_READ_ONLY, scope->device);
	return CUDA_REGISTER_PORTABLE | (supported ? CUDA_REGISTER_READ_ONLY : 0);
}

static struct windows_store *windows_new(struct sar *s, const struct cuda_scope *scope)
{
	const uint8_t *base;
	uint64_t bytes, page;
	if (!windows_present(s, &base, &bytes, &page))
		return NULL;
	uint64_t window = page > WINDOW_BYTES ? page : WINDOW_BYTES;
	uint64_t windows = (bytes + window - 1) / window;
	struct windows_store *store = calloc(1, sizeof(*store) + windows * sizeof(store->state[0]));
	if (!store)
		return NULL;
	*store = (struct windows_store){.next = s->windows.first,
					.c = scope->c,
					.device = scope->device,
					.flags = windows_flags(scope),
					.base = base,
					.bytes = bytes,
					.window = window,
					.windows = (uint32_t)windows};
	if (scope->c->retain(&store->context, store->device) != CUDA_OK) {
		free(store);
		return NULL;
	}
	s->windows.first = store;
	return store;
}

static bool windows_has(const struct windows_store *store, const uint8_t *data)
{
	return (uintptr_t)data >= (uintptr_t)store->base &&
	       (uintptr_t)data - (uintptr_t)store->base < store->bytes;
}

/* The store in which data lies, or NULL. Under lock. */
static struct windows_store *windows_of(struct sar *s, const struct cuda_scope *scope,
					const uint8_t *data)
{
	struct windows_store *store = s->windows.first;
	while (store && !windows_has(store, data))
		store = store->next;
	const uint8_t *base;
	uint64_t bytes, page;
	if (store || !windows_present(s, &base, &bytes, &page) ||
	    (uintptr_t)data - (uintptr_t)base >= bytes)
		return store;
	store = windows_new(s, scope);
	return store && windows_has(store, data) ? store : NULL;
}

/* Under lock. */
static int windows_register(struct windows_store *store, uint32_t i)
{
	uint64_t at = i * store->window, left = store->bytes - at;
	void *memory = (void *)(uintptr_t)(store->base + at);
	if (store->state[i] != WINDOW_UNKNOWN)
		return store->state[i];
	int code = store->c->add(memory, left < store->window ? left : store->window, store->flags);
	store->state[i] = code == CUDA_OK ? WINDOW_REGISTERED : code;
	return store->state[i];
}

uint64_t windows_reach(struct sar *s, const struct cuda_scope *scope, const uint8_t *data,
		       uint64_t bytes, bool *registered)
{
	*registered = false;
	pthread_mutex_lock(&s->windows.lock);
	struct windows_store *store = windows_of(s, scope, data);
	if (store) {
		uint64_t at = (uint64_t)(data - store->base),
			 left = store->window - at % store->window;
		*registered = windows_register(store, (uint32_t)(at / store->window)) ==
			      WINDOW_REGISTERED;
		bytes = bytes < left ? bytes : left;
	}
	pthread_mutex_unlock(&s->windows.lock);
	return bytes;
}

int windows_all(struct sar *s, const struct cuda_scope *scope)
{
	int state = WINDOW_REGISTERED;
	pthread_mutex_lock(&s->windows.lock);
	struct windows_store *store = windows_of(s, scope, s->map.store);
	for (uint32_t i = 0; store && i < store->windows && state == WINDOW_REGISTERED; i++)
		state = windows_register(store, i);
	pthread_mutex_unlock(&s->windows.lock);
	if (!store)
		return error_set(SAR_E_MEMORY, "out of memory");
	return state == WINDOW_REGISTERED
		       ? 0
		       : cuda_check(scope->c, state, "the driver does not register the store");
}

static void windows_store_close(struct windows_store *store)
{
	void *popped;
	if (store->c->push(store->context) == CUDA_OK) {
		for (uint32_t i = 0; i < store->windows; i++)
			if (store->state[i] == WINDOW_REGISTERED)
				store->c->remove(
					(void *)(uintptr_t)(store->base + i * store->window));
		store->c->pop(&popped);
	}
	store->c->release(store->device);
}

void windows_close(struct windows *w, bool registered)
{
	for (struct windows_store *store = w->first, *next; store; store = next) {
		next = store->next;
		if (registered)
			windows_store_close(store);
		free(store);
	}
	w->first = NULL;
}
