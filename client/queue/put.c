/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PUT, CREATE and SEAL, one request after the other. What is under creation has a pin (op->making)
 * and is given up with ABORT when the operation fails. Where the id is in use already the bytes
 * decide: when they are the same, the put is done. The other object may still be being written,
 * here or elsewhere, and may be given up or deleted meanwhile: then it is the put's turn again.
 *
 *   small: PUT -> done, or as large
 *   large: CREATE -> copy (some in each turn, PUBLISH behind it) -> SEAL -> done
 *   -EEXIST: STAT -> GET -> WAIT for the whole -> compare (some in each turn)
 *            -> HOLD, when a lease is set -> done
 *   done, with a time to live: EXPIRE
 */
#include <errno.h>
#include <stdlib.h>
#include "api/create.h"
#include "api/error.h"
#include "api/get.h"
#include "deadline.h"
#include "queue.h"

#define PUT_PATIENCE_NS (30 * 1000000000ll) /* for the next byte of another one's put */

enum {
	PUT_STEP_BYTES = 1 << 20,
	PUT_AHEAD_BYTES = 16 << 20, /* of what the node has answered */
	PUT_TURNS = 16,
};

static const struct iovec *put_iov(const struct op *op)
{
	return op->put.iov ? op->put.iov : &op->put.one;
}

void op_put_gather(const struct op *op, uint8_t *to)
{
	const struct iovec *iov = put_iov(op);
	for (unsigned i = 0; i < op->put.count; i++) {
		if (iov[i].iov_len > 0)
			memcpy(to, iov[i].iov_base, iov[i].iov_len);
		to += iov[i].iov_len;
	}
}

/* ---- CREATE --------------------------------------------------------------------------------- */

static void put_create_pin_back(struct op *op)
{
	create_unmark(op->queue->s, op->request.pin);
	handle_give_pin(op->queue->s, op->request.pin);
	op->making = false;
}

void op_create_lost(struct op *op)
{
	struct sar *s = op->queue->s;
	const struct session_reply *reply = &op->call.result.reply;
	if (op->handed) { /* rejoin_give_back gives the pin when the answer comes */
		create_unmark(s, op->request.pin);
		op->making = false;
		return;
	}
	if (op->stale && op->call.error == 0 && reply->status == 0) {
		struct session_request request = handle_request(SESSION_ABORT, NULL);
		request.slot = reply->slot;
		request.generation = reply->generation;
		mux_post(&s->mux, &request);
	}
	put_create_pin_back(op);
}

static void put_create_answered(struct op *op, int status)
{
	if (status < 0) {
		put_create_pin_back(op);
		op->got(op, status);
		return;
	}
	struct buffer own = {.kind = BUFFER_WRITE,
			     .pin = (uint16_t)op->request.pin,
			     .slot = op->call.result.reply.slot,
			     .generation = op->call.result.reply.generation};
	int r = create_map(op->queue->s, op->request.size, own.pin, &op->call.result, &op->buffer);
	op->creating = true;
	if (r < 0) { /* nothing is mapped, but the place is ours */
		buffer_set(&op->buffer, &own);
		op_put_abort(op, r);
		return;
	}
	op->got(op, 0);
}

static void put_create_retry(struct op *op, int status)
{
	op_create_begin(op, op->value, op->got);
}

void op_create_begin(struct op *op, uint64_t size, op_step *done)
{
	struct sar *s = op->queue->s;
	uint32_t pin = pins_take(&s->pins);
	op->got = done;
	op_patience(op, HANDLE_CALL_NS);
	if (pin == SESSION_PIN_NONE) {
		op->value = size;
		op_pinless(op, put_create_retry);
		return;
	}
	op->value = 0;
	op_new(op, SESSION_CREATE);
	op->request.size = size;
	op->request.pin = pin;
	op->making = true;
	create_mark(s, pin); /* now: control may go as soon as it has answered */
	op_request(op, put_create_answered);
}

/* ---- giving up ------------------------------------------------------------------------------ */

static void put_aborted(struct op *op, int status)
{
	put_create_pin_back(op);
	op_finish(op, error_set(op->result, "%s", op->detail));
}

void op_put_abort(struct op *op, int result)
{
	struct buffer own = buffer_get(&op->buffer);
	if (!op->creating) {
		op_create_lost(op);
		op_finish(op, result);
		return;
	}
	if (op->aborting) { /* the node does not answer that either */
		put_aborted(op, 0);
		return;
	}
	op->aborting = true;
	op->limit_ns = DEADLINE_NEVER;
	op->result = result;
	strncpy(op->detail, sar_error_detail(), sizeof(op->detail) - 1);
	create_leave(&op->buffer, &own);
	create_unmark(op->queue->s, own.pin);
	op_new(op, SESSION_ABORT);
	op->request.slot = own.slot;
	op->request.generation = own.generation;
	op->request.pin = own.pin;
	op_patience(op, HANDLE_CALL_NS);
	op_request(op, put_aborted);
}

static void put_fail(struct op *op, int status)
{
	status = error_name(status, op->id.bytes, op->request.name);
	if (op->making)
		op_put_abort(op, status);
	else
		op_finish(op, status);
}

/* Whether all of its time has passed. Then it has failed. */
static bool put_over(struct op *op)
{
	if (op->limit_ns == DEADLINE_NEVER || deadline_left(op->limit_ns) > 0)
		return false;
	put_fail(op, error_set(-ETIMEDOUT, OP_LIMIT_TEXT));
	return true;
}

/* ---- EXPIRE ---------------------------------------------------------------------------------
 */

void op_expire(struct op *op, op_step *step)
{
	op_new(op, SESSION_EXPIRE);
	op->request.timeout_ns = op->ttl_ns;
	op_patience(op, HANDLE_CALL_NS);
	op_request(op, step);
}

static void put_expired(struct op *op, int status)
{
	if (status < 0)
		put_fail(op, status);
	else
		op_finish(op, 0);
}

/* The object is there. */
static void put_done(struct op *op)
{
	if (op->ttl_ns > 0)
		op_expire(op, put_expired);
	else
		op_finish(op, 0);
}

/* ---- SEAL ----------------------------------------------------------------------------------- */

static void put_seal_done(struct op *op)
{
	struct sar *s = op->queue->s;
	struct buffer own = buffer_get(&op->buffer);
	create_unmark(s, own.pin);
	handle_give_pin(s, own.pin);
	create_leave(&op->buffer, &own);
	op->making = false;
	put_done(op);
}

static void put_slot_request(struct op *op, uint16_t kind, uint64_t bytes)
{
	struct buffer own = buffer_get(&op->buffer);
	op_new(op, kind);
	op->request.slot = own.slot;
	op->request.generation = own.generation;
	op_patience(op, create_patience(bytes));
}

static void put_seal_ended(struct op *op, int status)
{
	if (status == 0)
		put_seal_done(op);
	else
		op_finish(op, handle_name_slot(op->queue->s, op->request.slot,
					       op->request.generation, status));
}

void op_seal_begin(struct op *op)
{
	put_slot_request(op, SESSION_SEAL, op->buffer.size - op->buffer.ready);
	op_request(op, put_seal_ended);
}

/* ---- copying -------------------------------------------------------------------------------- */

static void put_copy(struct op *op, int status);

static void put_sealed(struct op *op, int status)
{
	if (status == 0)
		put_seal_done(op);
	else
		put_fail(op, status);
}

static void put_published(struct op *op, int status)
{
	if (status < 0) {
		put_fail(op, status);
		return;
	}
	op->buffer.ready = op->put.published;
	op_work(op, put_copy);
}

/* From the caller's function. 0: it has given the put up, or the bytes differ. */
static uint64_t put_fill(struct op *op, uint8_t *object, bool compare)
{
	struct op_put *p = &op->put;
	struct put_source *from = p->from;
	uint64_t bytes = p->size - p->done < PUT_STEP_BYTES ? p->size - p->done : PUT_STEP_BYTES;
	uint8_t *to = compare ? from->block : object + p->done;
	from->given_up = from->fill(from->arg, to, p->done, bytes, !compare);
	if (from->given_up || (compare && memcmp(object + p->done, to, bytes) != 0))
		return 0;
	return bytes;
}

/* Of the pieces, in order. Returns how many bytes, at most those of one piece; 0: they differ. */
static uint64_t put_piece(struct op *op, uint8_t *object, bool compare)
{
	struct op_put *p = &op->put;
	const struct iovec *iov = put_iov(op);
	uint64_t bytes = p->size - p->done;
	while (p->within == iov[p->at].iov_len) {
		p->at++;
		p->within = 0;
	}
	if (bytes > iov[p->at].iov_len - p->within)
		bytes = iov[p->at].iov_len - p->within;
	if (bytes > PUT_STEP_BYTES)
		bytes = PUT_STEP_BYTES;
	const uint8_t *from = (const uint8_t *)iov[p->at].iov_base + p->within;
	if (compare && memcmp(object + p->done, from, bytes) != 0)
		return 0;
	if (!compare)
		memcpy(object + p->done, from, bytes);
	p->within += bytes;
	return bytes;
}

/* To the object, or compared with it. False: they differ, or there are none. */
static bool put_next(struct op *op, uint8_t *object, bool compare)
{
	uint64_t bytes =
		op->put.from ? put_fill(op, object, compare) : put_piece(op, object, compare);
	op->put.done += bytes;
	op->queue->budget -= bytes < op->queue->budget ? bytes : op->queue->budget;
	return bytes > 0;
}

static void put_differs(struct op *op)
{
	if (op->put.from && op->put.from->given_up)
		put_fail(op, error_set(-ECANCELED, "the caller gave the put up"));
	else
		put_fail(op, error_set(-EEXIST, "exists already with other bytes: use another "
						"name, or remove that one first"));
}

/* Readers may have published bytes while the rest is copied. */
static void put_tell(struct op *op, uint64_t block_bytes)
{
	struct op_put *p = &op->put;
	struct session_request request = handle_request(SESSION_PUBLISH, NULL);
	struct buffer own = buffer_get(&op->buffer);
	if (p->done - p->published < block_bytes)
		return;
	request.slot = own.slot;
	request.generation = own.generation;
	request.watermark = p->published = p->done;
	mux_post(&op->queue->s->mux, &request);
}

static void put_copy(struct op *op, int status)
{
	struct op_put *p = &op->put;
	/* what comes from memory comes much faster than links take it */
	uint64_t block_bytes = p->from || create_is_staged(op->queue->s, &op->buffer)
				       ? PUT_STEP_BYTES
				       : p->done / 2;
	if (block_bytes < PUT_STEP_BYTES)
		block_bytes = PUT_STEP_BYTES;
	if (put_over(op))
		return;
	while (p->done < p->size && op->queue->budget > 0) {
		if (!put_next(op, op->buffer.data, false)) {
			put_differs(op);
			return;
		}
		if (p->done == p->size)
			break;
		if (p->done - op->buffer.ready >= PUT_AHEAD_BYTES ||
		    handle_replaced(op->queue->s)) { /* another control is met in requests only */
			put_slot_request(op, SESSION_PUBLISH, p->done - op->buffer.ready);
			op->request.watermark = p->published = p->done;
			op_request(op, put_published);
			return;
		}
		put_tell(op, block_bytes);
	}
	if (p->done < p->size) {
		op_work(op, put_copy);
		return;
	}
	put_slot_request(op, SESSION_SEAL, p->size - op->buffer.ready);
	op_request(op, put_sealed);
}

/* ---- another one of that id ----------------------------------------------------------------- */

static void put_rewind(struct op *op)
{
	op->put.at = 0;
	op->put.within = op->put.done = op->put.published = 0;
}

/* The object that stood in the way has gone, or could not be read. */
static void put_retry(struct op *op)
{
	get_give_back(op->queue->s, &op->buffer);
	if (op->put.turns < PUT_TURNS)
		op_put_begin(op);
	else
		put_fail(op, error_set(-EEXIST, "others put and remove it all the time: use "
						"another name"));
}

static void put_other_size(struct op *op, uint64_t size)
{
	put_fail(op, error_set(-EEXIST,
			       "exists already with %llu bytes, this one has %llu: use another "
			       "name, or remove that one first",
			       (unsigned long long)size, (unsigned long long)op->put.size));
}

static void put_other_meta(struct op *op)
{
	put_fail(op, error_set(-EEXIST, "exists already with these bytes, but with other metadata "
					"(type, shape or order): use another name, or remove that "
					"one first"));
}

/* Whether the other object's metadata are those of the put. */
static bool put_same_meta(const struct op *op)
{
	const sar_buffer *b = &op->buffer;
	return b->meta_bytes == op->meta.bytes &&
	       (b->meta_bytes == 0 || memcmp(b->meta, op->meta.data, op->meta.bytes) == 0);
}

static void put_joined(struct op *op, int status)
{
	if (status == -ESTALE || status == -ENOENT)
		put_retry(op); /* the create says which of the two has gone: lease or object */
	else if (status < 0)
		put_fail(op, status);
	else
		put_done(op);
}

/* Its lease holds what was there before, if another one does. */
static void put_join(struct op *op)
{
	if (op->lease == 0) {
		put_done(op);
		return;
	}
	op_new(op, SESSION_HOLD);
	op->request.generation = op->lease;
	op->request.flags = SESSION_FLAG_JOINS;
	op_patience(op, HANDLE_CALL_NS);
	op_request(op, put_joined);
}

static void put_match(struct op *op, int status)
{
	struct put_source *from = op->put.from;
	if (from && !from->block)
		from->block = malloc(PUT_STEP_BYTES);
	if (from && !from->block) {
		put_fail(op, error_set(-ENOMEM, "out of memory"));
		return;
	}
	if (put_over(op))
		return;
	while (op->put.done < op->put.size && op->queue->budget > 0) {
		if (!put_next(op, op->buffer.data, true)) {
			put_differs(op);
			return;
		}
	}
	if (op->put.done < op->put.size) {
		op_work(op, put_match);
		return;
	}
	get_give_back(op->queue->s, &op->buffer);
	put_join(op);
}

static void put_waited(struct op *op, int status);

static void put_await(struct op *op)
{
	put_slot_request(op, SESSION_WAIT, 0);
	op->request.watermark = op->buffer.size;
	op_patience(op, PUT_PATIENCE_NS);
	op_request(op, put_waited);
}

static void put_waited(struct op *op, int status)
{
	struct buffer own = buffer_get(&op->buffer);
	uint64_t ready = op->buffer.ready;
	if (own.store != atomic_load(&op->queue->s->stores) || status == -ESTALE ||
	    status == -ERESTART) {
		put_retry(op);
	} else if (status == 0) {
		put_rewind(op);
		op_work(op, put_match);
	} else if (put_over(op)) {
		return;
	} else if (status == -ETIMEDOUT && get_refresh(op->queue->s, &op->buffer, &own) == 0 &&
		   op->buffer.ready > ready) {
		put_await(op);
	} else if (status == -ETIMEDOUT) {
		put_fail(op, error_set(status,
				       "another put of it stands still at byte %llu of %llu: wait "
				       "for it, or remove the object",
				       (unsigned long long)op->buffer.ready,
				       (unsigned long long)op->buffer.size));
	} else {
		put_fail(op, status);
	}
}

static void put_have(struct op *op, int status)
{
	op->nowait = false;
	op_patience(op, PUT_PATIENCE_NS);
	if (status == -ENOENT || status == -ESTALE ||
	    (status == -ETIMEDOUT && op->put.turns < PUT_TURNS))
		put_retry(op);
	else if (status == -ETIMEDOUT)
		put_fail(op, error_set(status, "exists already, and nobody sends it to compare "
					       "with: try again"));
	else if (status == -ENOSPC)
		put_fail(op, error_set(status, "exists already, and the store has no room for a "
					       "copy to compare with: delete or release objects"));
	else if (status < 0)
		put_fail(op, status);
	else if (op->buffer.size != op->put.size)
		put_other_size(op, op->buffer.size);
	else if (!put_same_meta(op))
		put_other_meta(op);
	else
		put_await(op);
}

static void put_known(struct op *op, int status)
{
	const struct session_object *object = op->call.result.items;
	bool known = status == 0 && op->call.result.items_count > 0;
	if (known && object->flags & SESSION_OBJECT_REDUCED) {
		put_fail(op, error_set(-EEXIST,
				       "a reduce makes an object of this id: use another name, or "
				       "cancel the reduce with 'sarissa rm'"));
	} else if (known && object->size != op->put.size) {
		put_other_size(op, object->size);
	} else if (status < 0 && status != -ENOENT) {
		put_fail(op, status);
	} else { /* the directory may not know yet what this node has */
		op->nowait = true;
		op->until_ns = op_until(0);
		op_get(op, false, put_have);
	}
}

static void put_compare(struct op *op)
{
	op->put.turns++;
	op_new(op, SESSION_STAT);
	op->request.flags = SESSION_FLAG_BRIEF;
	op_patience(op, HANDLE_CALL_NS);
	op_request(op, put_known);
}

/* ---- PUT ------------------------------------------------------------------------------------ */

static void put_created(struct op *op, int status)
{
	if (status == -EEXIST) {
		put_compare(op);
	} else if (status < 0) {
		put_fail(op, status);
	} else {
		put_rewind(op);
		op_work(op, put_copy);
	}
}

static void put_small(struct op *op, int status)
{
	if (status == -EEXIST)
		put_compare(op);
	else if (status == -ERESTART)
		op_create_begin(op, op->put.size, put_created);
	else if (status < 0)
		put_fail(op, status);
	else
		put_done(op);
}

void op_put_begin(struct op *op)
{
	op->creating = op->aborting = false;
	if (op->put.size > SESSION_PUT_MAX || op->put.from) {
		op_create_begin(op, op->put.size, put_created);
		return;
	}
	op_new(op, SESSION_PUT);
	op->request.size = op->put.size;
	op_patience(op, HANDLE_CALL_NS);
	op_request(op, put_small);
}
