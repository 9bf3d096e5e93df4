/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GET, GET_BEGIN and WAIT of a queue. A GET has no pin before it is answered: it pins the place
 * that it is told, and looks whether the object is still there (object_table.h); if not it begins
 * again.
 *
 *   here? -> got          GET -> placed -> pin -> got
 */
#include <errno.h>
#include "deadline.h"
#include "api/error.h"
#include "api/get.h"
#include "queue.h"

enum { GET_MISSES = 64 }; /* in a row: then the answers do not fit the table */

static void get_begin(struct op *op, int status);

static void get_release(struct op *op)
{
	get_give_back(op->queue->s, &op->buffer);
}

/* Another generation takes its place. */
static void get_restart(struct op *op)
{
	if (deadline_left(op->until_ns) > 0)
		get_begin(op, 0);
	else
		op->got(op, error_set(-ETIMEDOUT, "%s", sar_error_detail()));
}

/* The place that op->request tells, when it still is the object's. */
static bool get_pin_holds(struct op *op, uint32_t pin)
{
	struct sar *s = op->queue->s;
	struct object_slot now;
	uint32_t turn = pins_turn(&s->pins), slot = op->request.slot;
	if (op->stores != atomic_load(&s->stores) || slot >= s->map.table->slots)
		return false;
	pins_set(&s->pins, pin, slot, op->request.generation);
	if (!object_slot_read(s->map.table, slot, &now) ||
	    memcmp(now.id.bytes, op->id.bytes, sizeof(now.id.bytes)) != 0 ||
	    now.generation != op->request.generation || now.state == OBJECT_FREE ||
	    now.state == OBJECT_ZOMBIE || now.state == OBJECT_SPILLED)
		return false;
	uint64_t ready = now.state == OBJECT_SEALED ? now.size : atomic_load(&now.watermark);
	struct get_place place = {.pin = pin,
				  .slot = slot,
				  .generation = now.generation,
				  .offset = now.offset,
				  .size = now.size,
				  .ready = ready};
	return get_fill(s, &place, &op->buffer) && pins_turn_is(&s->pins, turn) &&
	       !handle_replaced(s);
}

/* The object has gone since the node answered. */
static void get_missed(struct op *op)
{
	if (++op->missed < GET_MISSES)
		get_begin(op, 0);
	else
		op->got(op, error_set(-EPROTO, "the node's answers do not fit its object table: "
					       "use libraries and node of one version"));
}

static void get_pin(struct op *op, int status)
{
	struct sar *s = op->queue->s;
	uint32_t pin = pins_take(&s->pins);
	if (pin == SESSION_PIN_NONE) {
		op_pinless(op, get_pin);
	} else if (!get_pin_holds(op, pin)) {
		handle_give_pin(s, pin);
		op->buffer = (sar_buffer){0};
		get_missed(op);
	} else if (op->whole && op->buffer.ready < op->buffer.size) {
		get_release(op);
		op->got(op, error_set(-EPROTO, "the node ended a get too early: use libraries and "
					       "node of one version"));
	} else {
		op->got(op, 0);
	}
}

static void get_placed(struct op *op, int status)
{
	struct sar *s = op->queue->s;
	const struct session_reply *reply = &op->call.result.reply;
	if (status == 0 &&
	    (reply->slot >= s->map.table->slots ||
	     !map_holds(&s->map, reply->offset, reply->size)) &&
	    op->call.epoch == atomic_load(&s->mux.epoch))
		status = error_set(-EPROTO, "the node's answer points outside of its store: use "
					    "libraries and node of one version");
	if (status == -ERESTART) {
		get_restart(op);
		return;
	}
	if (status < 0) {
		op->got(op, status);
		return;
	}
	op->request.slot = reply->slot;
	op->request.generation = reply->generation;
	get_pin(op, 0);
}

/* An object that is complete here is found while there is no control as well. */
static void get_begin(struct op *op, int status)
{
	struct sar *s = op->queue->s;
	int r = get_here(s, &op->id, &op->buffer);
	if (r == 1) {
		op->got(op, 0);
	} else if (r == -EMFILE) {
		op_pinless(op, get_begin);
	} else if (r < 0) {
		op->got(op, r);
	} else {
		op->stores = atomic_load(&s->stores);
		op_new(op, SESSION_GET);
		op->request.flags = op->whole ? SESSION_FLAG_WHOLE : 0;
		op_request(op, get_placed);
	}
}

void op_get(struct op *op, bool whole, op_step *got)
{
	op->whole = whole;
	op->got = got;
	op->missed = 0;
	get_begin(op, 0);
}

/* ---- WAIT ----------------------------------------------------------------------------------- */

static void get_wait_ended(struct op *op, int status)
{
	struct sar *s = op->queue->s;
	uint64_t ready = op->call.result.reply.watermark;
	if (op->stores != atomic_load(&s->stores))
		status = error_set(-ERESTART, "the node has lost its store: get it again");
	else if (status == 0 && ready < op->upto)
		status = error_set(-EPROTO, "the node ended a wait too early: use libraries and "
					    "node of one version");
	if (status == 0)
		op->value = ready < op->request.size ? ready : op->request.size;
	else if (op->stores == atomic_load(&s->stores))
		handle_name_slot(s, op->request.slot, op->request.generation, status);
	op_finish(op, status);
}

void op_wait_begin(struct op *op, uint64_t size, uint32_t slot, uint64_t generation,
		   uint32_t stores)
{
	op_new(op, SESSION_WAIT);
	op->request.size = size;
	op->request.slot = slot;
	op->request.generation = generation;
	op->request.watermark = op->upto;
	op->stores = stores;
	op_request(op, get_wait_ended);
}
