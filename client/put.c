/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whole objects from bytes of the caller. Where the id is in use already the bytes decide: when
 * they are the same, the put is done. The other one may still be being written, here or elsewhere,
 * and may be given up or deleted under our eyes: then it is our turn again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "create.h"
#include "error.h"
#include "run.h"
#include "interrupt.h"
#include "lease.h"
#include "put_options.h"
#include "sarissa/sarissa.h"

#define PUT_PATIENCE_NS (30 * 1000000000ll) /* for the next byte of another one's put */

enum {
	PUT_BLOCK_BYTES = 1 << 20,
	PUT_BLOCK_MAX = 64 << 20, /* between two looks whether it is interrupted */
	PUT_TURNS = 16,
	PUT_RETRY = 1, /* what stood in the way has gone */
	PUT_BUSY = 2,  /* it is there, but could not be had */
};

struct put {
	sar *s;
	sar_id id;
	const char *name;
	uint64_t size;
	sar_fill *fill;
	void *arg;
	const sar_put_options *options;
	struct object_meta meta; /* of the options */
	int given_up;		 /* what fill returned */
};

/* Ends the creation; the words of the failure stay. */
static int put_abort(struct put *p, sar_buffer *b, int error)
{
	char why[512];
	strncpy(why, sar_error_detail(), sizeof(why) - 1);
	why[sizeof(why) - 1] = '\0';
	sar_abort(p->s, b);
	return error_set(error, "%s", why);
}

static int put_copy(void *arg, void *to, uint64_t at, uint64_t bytes, int last)
{
	memcpy(to, (const uint8_t *)arg + at, bytes);
	return 0;
}

static int put_fill(struct put *p, void *to, uint64_t at, uint64_t bytes, int last)
{
	p->given_up = p->fill(p->arg, to, at, bytes, last);
	return p->given_up ? error_set(-ECANCELED, "the caller gave the put up") : 0;
}

/*
 * Published bytes may be read, or copied, while the rest is filled in. The caller's memory is much
 * faster than links, so there each block is half of what was published.
 */
static uint64_t put_block(const struct put *p, uint64_t at, bool grows)
{
	uint64_t block_bytes = grows && at / 2 > PUT_BLOCK_BYTES ? at / 2 : PUT_BLOCK_BYTES;
	if (block_bytes > PUT_BLOCK_MAX)
		block_bytes = PUT_BLOCK_MAX;
	return p->size - at < block_bytes ? p->size - at : block_bytes;
}

static int put_write(struct put *p, sar_buffer *b)
{
	bool grows = p->fill == put_copy && !create_is_staged(p->s, b);
	int r = 0;
	for (uint64_t at = 0; r == 0 && at < p->size;) {
		uint64_t bytes = put_block(p, at, grows);
		r = put_fill(p, (uint8_t *)b->data + at, at, bytes, 1);
		at += bytes;
		if (r == 0 && interrupt_wanted())
			r = error_set(-EINTR, INTERRUPT_TEXT);
		if (r == 0 && at < p->size)
			r = create_publish(p->s, b, at);
	}
	if (r == 0)
		r = sar_seal(p->s, b);
	return r == 0 ? 0 : put_abort(p, b, r);
}

static int put_other_size(const struct put *p, uint64_t size)
{
	return error_set(-EEXIST,
			 "exists already with %llu bytes, this one has %llu: use another name, or "
			 "remove that one first",
			 (unsigned long long)size, (unsigned long long)p->size);
}

static int put_other_meta(void)
{
	return error_set(-EEXIST, "exists already with these bytes, but with other metadata (type, "
				  "shape or order): use another name, or remove that one first");
}

/* Waits until upto bytes of the other one are here. */
static int put_await(struct put *p, sar_buffer *b, uint64_t upto)
{
	int r;
	uint64_t ready;
	do {
		ready = b->ready;
		r = sar_wait(p->s, b, upto, PUT_PATIENCE_NS);
	} while (r == -ETIMEDOUT && b->ready > ready);
	if (r == -ETIMEDOUT)
		return error_set(r,
				 "another put of it stands still at byte %llu of %llu: wait for "
				 "it, or remove the object",
				 (unsigned long long)b->ready, (unsigned long long)b->size);
	return r;
}

static int put_compare_bytes(struct put *p, sar_buffer *b, uint8_t *block)
{
	for (uint64_t at = 0; at < p->size;) {
		uint64_t bytes = p->size - at;
		if (bytes > PUT_BLOCK_BYTES)
			bytes = PUT_BLOCK_BYTES;
		int r = put_await(p, b, at + bytes);
		if (r == 0)
			r = put_fill(p, block, at, bytes, 0);
		if (r == 0 && interrupt_wanted())
			r = error_set(-EINTR, INTERRUPT_TEXT);
		if (r < 0)
			return r;
		if (memcmp(block, (uint8_t *)b->data + at, bytes) != 0)
			return error_set(-EEXIST, "exists already with other bytes: use another "
						  "name, or remove that one first");
		at += bytes;
	}
	return sar_wait(p->s, b, p->size, PUT_PATIENCE_NS);
}

/* With the object that has the id. */
static int put_compare(struct put *p)
{
	sar_info info;
	sar_buffer b;
	int r = sar_info_get(p->s, p->id, &info);
	if (r == 0 && info.making)
		return error_set(-EEXIST, "a reduce makes an object of this id: use another name, "
					  "or cancel the reduce with 'sarissa rm'");
	if (r == 0 && info.size != p->size)
		return put_other_size(p, info.size);
	/* The directory may not know yet what this node has. 0: waits while there is such an
	 * object, not for another one to come. */
	if (r == 0 || r == -ENOENT)
		r = sar_get_begin(p->s, p->id, 0, &b);
	if (r == -ETIMEDOUT) {
		error_set(r, "exists already, and nobody sends it to compare with: try again");
		return PUT_BUSY;
	}
	if (r == -ENOSPC)
		return error_set(r, "exists already, and the store has no room for a copy to "
				    "compare with: delete or release objects");
	if (r < 0)
		return r == -ENOENT || r == -ESTALE || r == -ENOTCONN ? PUT_RETRY : r;
	uint8_t *block = malloc(PUT_BLOCK_BYTES);
	if (b.size != p->size)
		r = put_other_size(p, b.size);
	else if (b.meta_bytes != p->meta.bytes ||
		 (b.meta && memcmp(b.meta, p->meta.data, p->meta.bytes) != 0))
		r = put_other_meta();
	else if (block == NULL)
		r = error_set(-ENOMEM, "out of memory");
	else
		r = put_compare_bytes(p, &b, block);
	free(block);
	sar_release(p->s, &b);
	if (r == 0 && (r = lease_join(p->s, p->id)) == -ENOENT)
		r = -ESTALE; /* deleted just now */
	return r == -ESTALE || r == -ERESTART ? PUT_RETRY : r;
}

/* All of it at once, which saves the way there and back of sar_create. */
static int put_whole(struct put *p)
{
	struct session_request request = handle_request(SESSION_PUT, &p->id);
	struct mux_tail tail = {.bytes = {p->arg, p->size}, .fd = -1};
	struct mux_result result;
	int r = handle_name(&request, p->name);
	request.size = p->size;
	request.meta = p->meta;
	request.generation = leases_current(&p->s->leases);
	if (r == 0)
		r = run_request(p->s, &request, &tail, 0, HANDLE_CALL_NS, &result);
	if (r < 0)
		return r;
	mux_result_free(&result);
	return 0;
}

static int put_make(struct put *p)
{
	sar_buffer b;
	int r = -ERESTART;
	if (p->fill == put_copy && p->size <= SESSION_PUT_MAX)
		r = put_whole(p);
	if (r != -ERESTART)
		return r;
	r = sar_create_with(p->s, p->id, p->name, p->size, p->options, &b);
	return r < 0 ? r : put_write(p, &b);
}

static int put_try(struct put *p)
{
	int r = 0;
	for (int turn = 0; turn < PUT_TURNS; turn++) {
		r = put_make(p);
		if (r == -EEXIST)
			r = put_compare(p);
		if (p->given_up)
			return p->given_up;
		if (r <= 0)
			return r;
	}
	if (r == PUT_BUSY)
		return -ETIMEDOUT;
	return error_set(-EEXIST, "others put and remove it all the time: use another name");
}

static int put_run(struct put *p)
{
	int r = put_options_read(p->options, &p->meta);
	if (r == 0)
		r = put_try(p);
	return r < 0 && !p->given_up ? error_name(r, p->id.bytes, p->name) : r;
}

int sar_put_from_with(sar *s, sar_id id, const char *name, uint64_t size, sar_fill *fill, void *arg,
		      const sar_put_options *options)
{
	struct put p = {.s = s,
			.id = id,
			.name = name,
			.size = size,
			.fill = fill,
			.arg = arg,
			.options = options};
	return put_run(&p);
}

int sar_put_from(sar *s, sar_id id, const char *name, uint64_t size, sar_fill *fill, void *arg)
{
	return sar_put_from_with(s, id, name, size, fill, arg, NULL);
}

int sar_put_with(sar *s, sar_id id, const char *name, const void *data, uint64_t size,
		 const sar_put_options *options)
{
	if (!data && size > 0)
		return error_set(-EINVAL, "sar_put: no data");
	return sar_put_from_with(s, id, name, size, put_copy, (void *)(uintptr_t)data, options);
}

int sar_put(sar *s, sar_id id, const char *name, const void *data, uint64_t size)
{
	return sar_put_with(s, id, name, data, size, NULL);
}
