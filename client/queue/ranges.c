/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GET_RANGES and GET_INTO of a queue: bytes of an object, copied into the caller's memory. Called
 * by submit.c. It must not know where the node has the bytes from.
 *
 *   here? -> copy, in turns        GET_RANGES of some -> a pinned place -> copy -> the next ones
 *
 * A GET_RANGES has its pin before it is answered, in op->buffer, and control sets it: the place is
 * no object that could be found again. When the request is dropped its pin is left to mux
 * (op_stop).
 */
#include <errno.h>
#include <stdlib.h>
#include "api/error.h"
#include "api/get.h"
#include "deadline.h"
#include "internal/record.h"
#include "queue.h"

/* Where bytes of the object lie. */
struct ranges_place {
	const uint8_t *data;
	uint64_t bytes;
	uint64_t size;	      /* of the object */
	uint32_t chunk_bytes; /* 0: data is all of the object */
};

static void ranges_begin(struct op *op, int status);
static void ranges_here(struct op *op, int status);

static void ranges_end(struct op *op, int status)
{
	get_give_back(op->queue->s, &op->buffer);
	if (status < 0)
		op_fail(op, status);
	else
		op_finish(op, 0);
}

/* ---- the ranges of one turn ------------------------------------------------------------------ */

static int ranges_compare(const void *a, const void *b)
{
	const sar_range *x = a, *y = b;
	return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Those that come next, by their offsets, some of them in part. Sets where to go on: next. Returns
 * how many. */
static unsigned ranges_turn(const struct op *op, sar_range piece[SESSION_RANGES_MAX],
			    struct op_ranges *next)
{
	uint64_t left = op->queue->s->map.store_bytes / 8;
	unsigned count = 0;
	*next = op->ranges;
	if (left > SESSION_RANGES_BYTES)
		left = SESSION_RANGES_BYTES;
	while (count < SESSION_RANGES_MAX && next->at < next->count) {
		const sar_range *range = &next->range[next->at];
		uint64_t bytes = range->bytes - next->within;
		if (bytes > left)
			bytes = left;
		if (bytes == 0 && range->bytes > next->within)
			break;
		piece[count++] = (sar_range){.offset = range->offset + next->within,
					     .bytes = bytes,
					     .where = (uint8_t *)range->where + next->within};
		left -= bytes;
		next->within += bytes;
		if (next->within == range->bytes) {
			next->at++;
			next->within = 0;
		}
	}
	qsort(piece, count, sizeof(*piece), ranges_compare);
	return count;
}

unsigned op_ranges_named(const struct op *op, struct object_range out[SESSION_RANGES_MAX])
{
	sar_range piece[SESSION_RANGES_MAX];
	struct op_ranges next;
	unsigned count = ranges_turn(op, piece, &next);
	for (unsigned i = 0; i < count; i++)
		out[i] = (struct object_range){piece[i].offset, piece[i].bytes};
	return count;
}

static int ranges_beyond(const sar_range *range, uint64_t size)
{
	return error_set(-ERANGE,
			 "it has %llu bytes, and %llu from byte %llu on were asked for: ask for "
			 "bytes that it has",
			 (unsigned long long)size, (unsigned long long)range->bytes,
			 (unsigned long long)range->offset);
}

/* 0; -ERANGE; -EPROTO: the place does not have what it should. */
static int ranges_copy(struct op *op, const struct ranges_place *place)
{
	struct object_ranges all = {.chunk_bytes = place->chunk_bytes};
	sar_range piece[SESSION_RANGES_MAX];
	struct op_ranges next;
	unsigned count = ranges_turn(op, piece, &next);
	for (unsigned i = 0; i < count; i++) {
		const struct object_range range = {piece[i].offset, piece[i].bytes};
		uint64_t at = range.offset;
		if (!object_range_fits(&range, place->size))
			return ranges_beyond(&piece[i], place->size);
		if (place->chunk_bytes)
			at = object_ranges_add(&all, &range);
		if (at > place->bytes || range.bytes > place->bytes - at)
			return -EPROTO;
		if (range.bytes > 0)
			memcpy(piece[i].where, place->data + at, range.bytes);
		op->queue->budget -=
			range.bytes < op->queue->budget ? range.bytes : op->queue->budget;
	}
	op->ranges = next;
	op->value = place->size;
	return 0;
}

/* ---- the object is here ---------------------------------------------------------------------- */

static void ranges_read(struct op *op, int status)
{
	const struct ranges_place place = {op->buffer.data, op->buffer.size, op->buffer.size, 0};
	int r = 0;
	while (r == 0 && op->ranges.at < op->ranges.count && op->queue->budget > 0)
		r = ranges_copy(op, &place);
	if (r < 0 || op->ranges.at == op->ranges.count)
		ranges_end(op, r);
	else
		op_work(op, ranges_read);
}

/* Another generation than that of the bytes that have come: from the start. */
static void ranges_restart(struct op *op)
{
	if (deadline_left(op->until_ns) <= 0) {
		ranges_end(op, error_set(-ETIMEDOUT, "the object is put again and again: wait "
						     "longer"));
		return;
	}
	op->ranges.at = 0;
	op->ranges.within = op->ranges.generation = 0;
	ranges_begin(op, 0);
}

static void ranges_found(struct op *op)
{
	uint64_t generation = buffer_get(&op->buffer).generation;
	if (op->ranges.generation && op->ranges.generation != generation) {
		op->ranges.at = 0;
		op->ranges.within = 0;
	}
	op->ranges.generation = generation;
	op_work(op, ranges_read);
}

/* ---- it is not ------------------------------------------------------------------------------- */

/* Copies from the place that the answer names. False: ask again. */
static bool ranges_take(struct op *op, int *r)
{
	struct sar *s = op->queue->s;
	const struct session_reply *reply = &op->call.result.reply;
	uint32_t turn = pins_turn(&s->pins), pin = op->request.pin;
	bool same = op->stores == atomic_load(&s->stores) &&
		    op->call.epoch == atomic_load(&s->mux.epoch);
	bool whole = reply->flags & SESSION_FLAG_WHOLE;
	struct ranges_place place = {.data = s->map.store + reply->offset,
				     .bytes = reply->size,
				     .size = reply->watermark,
				     .chunk_bytes = whole ? 0 : reply->chunk_bytes};
	if (!same)
		return false;
	if (!map_holds(&s->map, reply->offset, reply->size) || reply->object == 0 ||
	    (!whole &&
	     (reply->chunk_bytes < CHUNK_BYTES_MIN || reply->chunk_bytes > CHUNK_BYTES_MAX)) ||
	    (reply->size > 0 && !pins_holds(&s->pins, pin, reply->slot, reply->generation)))
		*r = -EPROTO;
	else
		*r = ranges_copy(op, &place);
	if (*r == -EPROTO)
		error_set(-EPROTO, "the node's answer does not hold: use libraries and node of one "
				   "version");
	op->ranges.generation = reply->object;
	return pins_turn_is(&s->pins, turn) && !handle_replaced(s);
}

static void ranges_placed(struct op *op, int status)
{
	struct op_ranges before = op->ranges;
	if (status == -ERESTART) {
		get_give_back(op->queue->s, &op->buffer);
		ranges_restart(op);
		return;
	}
	if (status < 0) {
		ranges_end(op, status);
		return;
	}
	if (!ranges_take(op, &status)) {
		status = 0;
		op->ranges = before;
	}
	get_give_back(op->queue->s, &op->buffer);
	if (status < 0)
		op_fail(op, status);
	else
		op_work(op, ranges_begin);
}

/* Of the ranges that are left. */
static void ranges_begin(struct op *op, int status)
{
	if (op->ranges.at == op->ranges.count)
		op_finish(op, 0);
	else
		ranges_here(op, 0);
}

static void ranges_ask(struct op *op)
{
	struct sar *s = op->queue->s;
	struct object_range named[SESSION_RANGES_MAX];
	struct buffer own = {.kind = BUFFER_READ};
	uint32_t pin = pins_take(&s->pins);
	if (pin == SESSION_PIN_NONE) {
		op_pinless(op, ranges_here);
		return;
	}
	own.pin = (uint16_t)pin;
	buffer_set(&op->buffer, &own);
	op->stores = atomic_load(&s->stores);
	op_new(op, SESSION_GET_RANGES);
	op->request.pin = pin;
	op->request.generation = op->ranges.generation;
	op->request.size = op_ranges_named(op, named) * sizeof(named[0]);
	op_request(op, ranges_placed);
}

static void ranges_here(struct op *op, int status)
{
	int r = get_here(op->queue->s, &op->id, &op->buffer);
	if (r == 1)
		ranges_found(op);
	else if (r == -EMFILE)
		op_pinless(op, ranges_here);
	else if (r < 0)
		op_fail(op, r);
	else
		ranges_ask(op);
}

void op_ranges_begin(struct op *op)
{
	op->got = ranges_end;
	ranges_begin(op, 0);
}

/* ---- GET_INTO -------------------------------------------------------------------------------- */

static void ranges_into(struct op *op, int status)
{
	uint64_t room = op->ranges.one.bytes, size = op->buffer.size;
	op->value = size;
	if (status == 0)
		reduces_forget(&op->queue->s->reduces, &op->id); /* whole: it has ended */
	if (status == 0 && size > room)
		status = error_set(-ERANGE,
				   "it has %llu bytes, and the memory room for %llu: bring "
				   "more",
				   (unsigned long long)size, (unsigned long long)room);
	if (status < 0) {
		ranges_end(op, status);
		return;
	}
	op->ranges.one.bytes = size;
	ranges_found(op);
}

void op_into_begin(struct op *op, void *memory, uint64_t bytes)
{
	op->ranges.one = (sar_range){.bytes = bytes, .where = memory};
	op->ranges.range = &op->ranges.one;
	op->ranges.count = 1;
	op_get(op, true, ranges_into);
}
