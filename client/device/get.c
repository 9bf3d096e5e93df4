/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sar_device_get: an object into the memory of a device, in pieces as it arrives.
 * sar_device_register.
 */
#include <errno.h>
#include "api/error.h"
#include "cuda.h"
#include "link/handle.h"
#include "queue/deadline.h"
#include "sarissa/device.h"

/* Of an object that arrives: copies of less cost more than they carry. */
enum { PIECE_BYTES = 1 << 20 };

struct device_get {
	sar *s;
	struct cuda_scope scope;
	void *event; /* behind the last copy */
	void *stream;
	cuda_address memory;
	uint64_t bytes;
	int64_t timeout_ns, deadline_ns;
	uint64_t copied;
};

/* Starts the copies of what is readable. */
static int get_copy(struct device_get *g, const sar_buffer *b)
{
	const struct cuda *c = g->scope.c;
	int r = 0;
	while (r == 0 && g->copied < b->ready) {
		const uint8_t *from = (const uint8_t *)b->data + g->copied;
		bool registered;
		uint64_t part =
			windows_reach(g->s, &g->scope, from, b->ready - g->copied, &registered);
		cuda_address to = g->memory + g->copied;
		if (registered) {
			r = cuda_check(c, c->to_device(to, from, part, g->stream),
				       "cuMemcpyHtoDAsync");
		} else {
			r = cuda_check(c, c->stream_wait(g->stream), "cuStreamSynchronize");
			if (r == 0)
				r = cuda_check(c, c->to_device_now(to, from, part), "cuMemcpyHtoD");
		}
		g->copied += part;
	}
	return r;
}

static int get_arrive(struct device_get *g, sar_buffer *b)
{
	int r = 0;
	while (r == 0 && g->copied < b->size) {
		uint64_t upto = g->copied + PIECE_BYTES;
		r = sar_wait(g->s, b, upto < b->size ? upto : b->size,
			     deadline_left_of(g->deadline_ns, g->timeout_ns));
		if (r == 0)
			r = get_copy(g, b);
	}
	return r;
}

/* The store's bytes are in use until the device has read them, whatever has failed. */
static int get_settle(struct device_get *g, int r)
{
	const struct cuda *c = g->scope.c;
	struct error_kept words;
	error_keep(&words);
	int code = c->record(g->event, g->stream);
	if (code == CUDA_OK)
		code = c->event_wait(g->event);
	if (code != CUDA_OK)
		c->stream_wait(g->stream);
	if (r == 0)
		return cuda_check(c, code, "the copy to the device");
	error_restore(&words);
	return r;
}

static int get_once(struct device_get *g, const sar_id *id, uint64_t *size)
{
	sar_buffer b = {0};
	g->copied = 0;
	int r = sar_get_begin(g->s, *id, deadline_left_of(g->deadline_ns, g->timeout_ns), &b);
	if (r < 0)
		return r;
	*size = b.size;
	if (b.size > g->bytes) {
		error_set(SAR_E_RANGE, "it has %llu bytes, and there is room for %llu: give more",
			  (unsigned long long)b.size, (unsigned long long)g->bytes);
		r = error_name(SAR_E_RANGE, id->bytes, NULL);
	} else if (b.size > 0) {
		r = get_settle(g, get_arrive(g, &b));
	}
	sar_release(g->s, &b);
	return r;
}

int sar_device_get(sar *s, sar_id id, uint64_t memory, uint64_t bytes, void *stream,
		   int64_t timeout_ns, uint64_t *size)
{
	struct device_get g = {.s = s, .stream = stream, .memory = memory, .bytes = bytes};
	uint64_t found = 0;
	if (timeout_ns < 0)
		return error_set(SAR_E_INVALID, "sar_device_get: a timeout is not negative: use "
						"SAR_FOREVER to wait without limit");
	g.timeout_ns = timeout_ns;
	g.deadline_ns = deadline_after(timeout_ns);
	int r = handle_check(s);
	if (r == 0)
		r = cuda_enter(&g.scope, memory);
	if (r < 0)
		return r;
	r = cuda_check(g.scope.c,
		       g.scope.c->event(&g.event, CUDA_EVENT_SLEEPS | CUDA_EVENT_UNTIMED),
		       "cuEventCreate");
	if (r == 0) {
		do
			r = get_once(&g, &id, &found);
		while (r == SAR_E_RESTARTED && deadline_left(g.deadline_ns) > 0);
		g.scope.c->event_free(g.event);
	}
	cuda_leave(&g.scope);
	if (r == 0 && size)
		*size = found;
	return r;
}

int sar_device_register(sar *s, int device)
{
	struct cuda_scope scope;
	int r = handle_check(s);
	if (r == 0)
		r = cuda_enter_device(&scope, device);
	if (r < 0)
		return r;
	r = windows_all(s, &scope);
	cuda_leave(&scope);
	return r;
}
