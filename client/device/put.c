/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sar_device_put: an object of bytes in the memory of a device. The device writes into two halves
 * of a buffer that the driver has given; while it fills one, the other is copied into the object
 * and published. An object's own memory is written once, so to register it would cost more than
 * that copy.
 */
#include <string.h>
#include "api/error.h"
#include "cuda.h"
#include "link/handle.h"
#include "sarissa/device.h"

enum { HALF_BYTES = 4 << 20 };

struct device_put {
	sar *s;
	const struct cuda *c;
	uint8_t *host; /* both halves */
	void *event[2];
	void *stream;
	cuda_address memory;
};

static uint64_t put_part(const sar_buffer *b, uint64_t at)
{
	return b->size - at < HALF_BYTES ? b->size - at : HALF_BYTES;
}

/* Starts the copy of the part at `at`. */
static int put_start(struct device_put *p, const sar_buffer *b, uint64_t at)
{
	unsigned half = at / HALF_BYTES % 2;
	int code = p->c->to_host(p->host + half * HALF_BYTES, p->memory + at, put_part(b, at),
				 p->stream);
	if (code == CUDA_OK)
		code = p->c->record(p->event[half], p->stream);
	return cuda_check(p->c, code, "cuMemcpyDtoHAsync");
}

static int put_finish(struct device_put *p, sar_buffer *b, uint64_t at)
{
	unsigned half = at / HALF_BYTES % 2;
	uint64_t part = put_part(b, at);
	int r = cuda_check(p->c, p->c->event_wait(p->event[half]), "the copy from the device");
	if (r < 0)
		return r;
	memcpy((uint8_t *)b->data + at, p->host + half * HALF_BYTES, part);
	return at + part < b->size ? sar_publish(p->s, b, at + part) : 0;
}

static int put_fill(struct device_put *p, sar_buffer *b)
{
	int r = b->size > 0 ? put_start(p, b, 0) : 0;
	for (uint64_t at = 0; r == 0 && at < b->size; at += HALF_BYTES) {
		if (at + HALF_BYTES < b->size)
			r = put_start(p, b, at + HALF_BYTES);
		if (r == 0)
			r = put_finish(p, b, at);
	}
	return r;
}

static int put_prepare(struct device_put *p)
{
	const unsigned flags = CUDA_EVENT_SLEEPS | CUDA_EVENT_UNTIMED;
	void *host = NULL;
	int code = p->c->host(&host, 2 * HALF_BYTES, 0);
	p->host = host;
	for (unsigned i = 0; i < 2 && code == CUDA_OK; i++)
		code = p->c->event(&p->event[i], flags);
	return cuda_check(p->c, code, "a buffer for copies from the device");
}

static void put_end(struct device_put *p)
{
	if (p->host)
		p->c->stream_wait(p->stream); /* after a failure the device may still write there */
	for (unsigned i = 0; i < 2; i++)
		if (p->event[i])
			p->c->event_free(p->event[i]);
	if (p->host)
		p->c->host_free(p->host);
}

static int put_object(struct device_put *p, sar_buffer *b)
{
	struct error_kept words;
	int r = put_fill(p, b);
	if (r == 0)
		r = sar_seal(p->s, b);
	if (r == 0)
		return 0;
	error_keep(&words);
	sar_abort(p->s, b);
	error_restore(&words);
	return r;
}

int sar_device_put(sar *s, sar_id id, const char *name, uint64_t memory, uint64_t bytes,
		   void *stream, const sar_put_options *options)
{
	struct device_put p = {.s = s, .stream = stream, .memory = memory};
	struct cuda_scope scope;
	sar_buffer b = {0};
	if (bytes == 0)
		return sar_put_with(s, id, name, NULL, 0, options);
	int r = handle_check(s);
	if (r == 0)
		r = cuda_enter(&scope, memory);
	if (r < 0)
		return r;
	p.c = scope.c;
	r = put_prepare(&p);
	if (r == 0)
		r = sar_create_with(s, id, name, bytes, options, &b);
	if (r == 0)
		r = put_object(&p, &b);
	put_end(&p);
	cuda_leave(&scope);
	return r;
}
