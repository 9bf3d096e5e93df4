/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Steps that all operations of a queue share: requests, answers, ends. Called by queue.c and by the
 * files of operations (get.c, put.c ...), under the queue's lock. The states are in queue.h.
 */
#include <errno.h>
#include "api/create.h"
#include "deadline.h"
#include "api/error.h"
#include "api/get.h"
#include "internal/group.h"
#include "run.h"

#define OP_GRACE_NS	     1000000000 /* control has the first word at a wait's end */
#define OP_SHORT_LIFETIME_NS 1000000000 /* a request that ends each control it meets */
#define OP_SHORT_RUNS_MAX    5		/* must not meet many */

int64_t op_until(int64_t timeout_ns)
{
	if (timeout_ns == SAR_FOREVER)
		return DEADLINE_NEVER;
	/* One that does not wait still gives the directory the time to answer. */
	return deadline_after(timeout_ns == 0 ? SESSION_DIRECTORY_NS + OP_GRACE_NS : timeout_ns);
}

void op_patience(struct op *op, int64_t timeout_ns)
{
	op->until_ns = deadline_after(timeout_ns);
	if (op->until_ns > op->limit_ns)
		op->until_ns = op->limit_ns;
}

/* ---- ends ----------------------------------------------------------------------------------- */

void op_stop(struct op *op)
{
	struct sar_queue *q = op->queue;
	switch (op->state) {
	case OP_PENDING:
		op_list_remove(&q->pending, op);
		break;
	case OP_HELD:
		op_list_remove(&q->held, op);
		break;
	case OP_PINLESS:
		op_list_remove(&q->pinless, op);
		atomic_fetch_sub(&q->s->pins_wanted, 1);
		break;
	case OP_WORKING:
		op_list_remove(&q->working, op);
		break;
	case OP_OUT:
		q->out--;
		op_watch_in(op);
		op->handed = mux_drop(&q->s->mux, &op->call);
		if (op->handed && op->request.op == SESSION_GET_RANGES)
			op->buffer = (sar_buffer){0}; /* its pin is mux's */
		op->stale = !op->handed;
		break;
	default:
		break;
	}
	queue_due_not(q, op);
	op->state = OP_PARENT; /* in no list */
}

void op_finish(struct op *op, int result)
{
	struct sar_queue *q = op->queue;
	queue_due_not(q, op);
	op->result = result;
	if (result < 0)
		get_give_back(q->s, &op->buffer); /* one under creation stays */
	if (op->then) {
		op_step *then = op->then;
		op->then = NULL;
		then(op, result);
		return;
	}
	if (result < 0 && op->queue->run && !op->parent)
		error_keep(&op->queue->run->words);
	else if (result < 0)
		strncpy(op->detail, sar_error_detail(), sizeof(op->detail) - 1);
	if (op->parent) {
		op_part_ended(op);
		return;
	}
	op_parts_give(op);
	queue_user_remove(op);
	op->state = OP_DONE;
	op_list_add(&q->done, op);
}

void op_fail(struct op *op, int result)
{
	if (op->request.op != SESSION_GROUP && op->kind != SAR_OP_WATCH)
		result = error_name(result, op->id.bytes, op->request.name);
	op_finish(op, result);
}

void op_broken(struct op *op, int error)
{
	op_stop(op);
	if (op->making)
		op_put_abort(op, error_name(error, op->id.bytes, op->request.name));
	else
		op_fail(op, error);
}

void op_release(struct op *op)
{
	struct sar *s = op->queue->s;
	struct buffer own = buffer_get(&op->buffer);
	if (op->kind == SAR_OP_GATHER && op->state == OP_DONE && op->gather.out && op->result == 0)
		for (unsigned i = 0; i < op->gather.count; i++)
			get_give_back(s, &op->gather.out[i]);
	get_give_back(s, &op->buffer);
	if (own.kind == BUFFER_WRITE) {
		sar_abort(s, &op->buffer); /* and the pin */
	} else if (op->aborting) {
		mux_post(&s->mux, &op->request);
		handle_give_pin(s, op->request.pin);
	} else if (op->making) {
		op_create_lost(op);
	}
}

/* ---- requests ------------------------------------------------------------------------------- */

void op_new(struct op *op, uint16_t kind)
{
	struct session_request *request = &op->request;
	memset(request, 0, offsetof(struct session_request, name)); /* that stays */
	request->op = kind;
	request->pin = SESSION_PIN_NONE;
	memcpy(request->id.bytes, op->id.bytes, sizeof(request->id.bytes));
	request->meta.bytes = 0;
	if (kind != SESSION_CREATE && kind != SESSION_PUT)
		return;
	request->generation = op->lease;
	if (op->meta.bytes > 0)
		request->meta = op->meta;
}

void op_request(struct op *op, op_step *step)
{
	struct sar_queue *q = op->queue;
	op->step = step;
	op->retried = false;
	op->short_runs = 0;
	op->state = OP_PENDING;
	op_list_add(&q->pending, op);
	queue_due(q, op, op->until_ns);
	if (mux_ended(&q->s->mux, op->request.op))
		op_broken(op, error_set(-ESHUTDOWN, MUX_ENDED_TEXT));
}

void op_work(struct op *op, op_step *step)
{
	op->step = step;
	op->state = OP_WORKING;
	op_list_add(&op->queue->working, op);
}

void op_back(struct op *op)
{
	struct sar_queue *q = op->queue;
	op->answered = atomic_load(&q->answered);
	while (!atomic_compare_exchange_weak(&q->answered, &op->answered, op))
		;
	queue_signal(q);
}

/* In any thread, under the lock of mux. */
static void op_ended(struct mux_call *call)
{
	op_back((struct op *)((char *)call - offsetof(struct op, call)));
}

/* Like op_ended(), for the events of a watch. */
static void op_more(struct mux_call *call)
{
	struct op *op = (struct op *)((char *)call - offsetof(struct op, call));
	atomic_store(&op->watch.more, true);
	queue_signal(op->queue);
}

/* Sends the rest of its time along. */
static void op_stamp(struct op *op)
{
	struct session_request *request = &op->request;
	int64_t due_ns = op->until_ns;
	op->sent_ns = deadline_now();
	if (op->retried && (request->op == SESSION_CREATE || request->op == SESSION_SEAL ||
			    request->op == SESSION_REDUCE))
		request->flags |= SESSION_FLAG_RETRY;
	if (request->op == SESSION_REDUCE)
		request->reduction.deadline_ns =
			deadline_rest(op->reduce.how.deadline_ns, op->reduce.began_ns);
	if (op->kind == OP_ONE && op->retried && op->one.given_ns > 0) {
		int64_t left_ns = deadline_rest(op->one.given_ns, op->one.began_ns);
		request->timeout_ns = left_ns > 0 ? left_ns : 1;
	}
	if (mux_waits(request->op) || request->op == SESSION_REDUCE) {
		int64_t until_ns =
			request->op == SESSION_REDUCE ? op->reduce.until_ns : op->until_ns;
		int64_t left_ns = until_ns - op->sent_ns;
		if (left_ns <= 0)
			left_ns = 1; /* 0 would be another question */
		request->timeout_ns = op->nowait ? 0 : until_ns == DEADLINE_NEVER ? -1 : left_ns;
	}
	if (mux_waits(request->op) && due_ns < DEADLINE_NEVER - OP_GRACE_NS)
		due_ns += OP_GRACE_NS;
	if (due_ns != op->due_ns || op->heap_at == 0)
		queue_due(op->queue, op, due_ns);
}

/* The bytes behind the request: at most those of a PUT or a REDUCE. */
static void op_tail(struct op *op, struct mux_tail *tail, uint8_t room[SESSION_PUT_MAX])
{
	*tail = (struct mux_tail){.fd = -1};
	if (op->kind == OP_ONE) {
		if (op->one.tail)
			*tail = *op->one.tail;
		return;
	}
	switch (op->request.op) {
	case SESSION_PUT:
		tail->bytes = op->put.iov ? (struct iovec){room, op->put.size} : op->put.one;
		if (op->put.iov)
			op_put_gather(op, room);
		break;
	case SESSION_REDUCE:
		tail->bytes = (struct iovec){(void *)(uintptr_t)op->reduce.sources,
					     sizeof(sar_id) * op->reduce.count};
		break;
	case SESSION_GROUP:
		tail->bytes = op_group_bytes(op);
		break;
	case SESSION_GET_RANGES:
		tail->bytes = (struct iovec){room, op->request.size};
		op_ranges_named(op, (struct object_range *)(void *)room);
		break;
	case SESSION_BROADCAST:
		tail->bytes = (struct iovec){(void *)(uintptr_t)op->nodes.node,
					     sizeof(uint32_t) * op->nodes.count};
		break;
	default:
		break;
	}
}

static size_t op_item_bytes(const struct op *own)
{
	uint16_t op = own->request.op;
	return own->kind == OP_ONE			   ? own->one.item_bytes
	       : op == SESSION_STAT || op == SESSION_WATCH ? sizeof(struct session_object)
	       : op == SESSION_REDUCED			   ? sizeof(struct session_sources)
	       : op == SESSION_GROUP			   ? sizeof(struct group_answer)
							   : 0;
}

int op_send(struct op *op)
{
	struct sar_queue *q = op->queue;
	_Alignas(struct object_range) uint8_t room[SESSION_PUT_MAX];
	struct mux_tail tail;
	int r;
	if (op->post) {
		r = mux_post(&q->s->mux, &op->request);
		if (r == -EAGAIN)
			return r;
		op_list_remove(&q->pending, op);
		op->state = OP_PARENT;
		op->step(op, 0); /* a control that has gone need not hear it */
		return 0;
	}
	op_stamp(op);
	op_tail(op, &tail, room);
	mux_result_free(&op->call.result);
	op->call = (struct mux_call){.waiter = q->run ? &q->run->waiter : NULL,
				     .ended = op_ended,
				     .more = op->kind == SAR_OP_WATCH ? op_more : NULL};
	r = mux_submit(&q->s->mux, &op->call, &op->request, &tail, op_item_bytes(op));
	if (r < 0)
		return r; /* it stays where it is */
	op_list_remove(&q->pending, op);
	op->state = OP_OUT;
	q->out++;
	op_watch_out(op);
	return 0;
}

/* Control went before it had answered: it goes to the next one. */
static void op_retry(struct op *op)
{
	struct sar_queue *q = op->queue;
	if (deadline_now() - op->sent_ns > OP_SHORT_LIFETIME_NS)
		op->short_runs = 0;
	else if (++op->short_runs == OP_SHORT_RUNS_MAX) {
		op_broken(op, error_set(-ENOTCONN, "control goes away each time that it is asked "
						   "this: look into its log, and start it again"));
		return;
	}
	op->retried = true;
	op_watch_retry(op);
	op->state = OP_PENDING;
	op_list_add(&q->pending, op);
	queue_due(q, op, op->until_ns);
}

/* Whether it is asked again after -EAGAIN. Of a lease: another one's call about the same object
 * ends soon. */
static bool op_may_hold(const struct op *op)
{
	return op->queue->run
		       ? op->request.op == SESSION_HOLD || op->request.op == SESSION_RELEASE ||
				 op->request.op == SESSION_EXPIRE
		       : !op_group_refuses(op);
}

static void op_hold(struct op *op)
{
	struct sar_queue *q = op->queue;
	op->state = OP_HELD;
	if (!q->held.first)
		q->held_ns = deadline_now() + QUEUE_HELD_NS;
	op_list_add(&q->held, op);
	queue_due(q, op, op->until_ns);
}

/* The node's words, and whose parts of the directory are missing. */
static void op_refused(const struct op *op, int status)
{
	const struct mux_result *result = &op->call.result;
	const struct session_object *object = result->items;
	error_set_text(status, result->reply.text, sizeof(result->reply.text));
	for (size_t i = 0; result->item_bytes == sizeof(*object) && i < result->items_count; i++)
		if (object[i].flags & SESSION_OBJECT_MISSING)
			error_set_node(object[i].holder[0].node);
}

void op_answered(struct op *op)
{
	struct sar_queue *q = op->queue;
	const struct session_reply *reply = &op->call.result.reply;
	int status = op->call.error ? op->call.error : reply->status;
	if (op->state == OP_AWAY) {
		op->state = OP_PARENT; /* in no list */
		op->step(op, 0);
		return;
	}
	q->out--;
	op_watch_in(op);
	queue_due_not(q, op);
	op->state = OP_PARENT; /* in no list */
	if (op->call.error == -ENOTCONN) {
		op_retry(op);
	} else if (op->call.error) {
		op_broken(op, error_set(status, "the node's control process sent an answer that "
						"makes no sense: use libraries and node of one "
						"version"));
	} else if (status == -EAGAIN && op_may_hold(op)) {
		op_hold(op);
	} else {
		q->freed++;
		if (status > 0)
			status = -EPROTO;
		if (status < 0)
			op_refused(op, status);
		op->step(op, status);
	}
}

void op_pinless(struct op *op, op_step *step)
{
	struct sar_queue *q = op->queue;
	if (q->run) {
		op->got(op, error_set(-EMFILE, HANDLE_PINLESS_TEXT, SESSION_PINS));
		return;
	}
	op->step = step;
	op->state = OP_PINLESS;
	op_list_add(&q->pinless, op);
	atomic_fetch_add(&q->s->pins_wanted, 1);
	queue_due(q, op, op->until_ns);
}

void queue_pins(struct sar_queue *q)
{
	uint32_t pin;
	for (struct op *op; (op = q->pinless.first) != NULL;) {
		pin = pins_take(&q->s->pins);
		if (pin == SESSION_PIN_NONE)
			return;
		pins_give(&q->s->pins, pin);
		op_stop(op);
		op->step(op, 0);
	}
}

/* ---- late, or not wanted -------------------------------------------------------------------- */

static int op_late_words(const struct op *op)
{
	if (op->state == OP_PINLESS)
		return error_set(
			op->kind == SAR_OP_CREATE || op->kind == SAR_OP_PUT ? -EMFILE : -ETIMEDOUT,
			"all %d buffers of this connection are in use: release some", SESSION_PINS);
	if (handle_lost(op->queue->s))
		return error_set(-ENOTCONN, "no control on this node: start sarissa-control");
	if (op->state == OP_HELD)
		return error_set(-EAGAIN,
				 "the node has too many requests at hand: try again later");
	if (op->limit_ns <= deadline_now())
		return error_set(-ETIMEDOUT, OP_LIMIT_TEXT);
	return error_set(-ETIMEDOUT, "the node's control process does not answer in time: see "
				     "whether it runs with 'sarissa doctor'");
}

void op_late(struct op *op)
{
	op_broken(op, op_late_words(op));
}

int op_cancelled_words(void)
{
	return error_set(-ECANCELED, "cancelled by sar_cancel");
}

/* Its CANCEL has left. */
static void op_cancelled(struct op *op, int status)
{
	op_fail(op, op_cancelled_words());
}

static void op_make_cancel(struct session_request *request, uint32_t seq)
{
	*request = handle_request(SESSION_CANCEL, NULL);
	request->generation = seq;
}

void op_tell_cancelled(struct sar *s, uint32_t seq)
{
	struct session_request request;
	op_make_cancel(&request, seq);
	mux_post(&s->mux, &request);
}

bool op_cancel(struct op *op)
{
	bool waits = op->state == OP_OUT && mux_waits(op->request.op);
	if (op->state == OP_DONE || op->state == OP_FREE || op->kind == SAR_OP_SEAL ||
	    op->cancelled)
		return false;
	op->cancelled = true;
	if (op_group_stays(op))
		return true;
	if (op->parts && op->state == OP_PARENT) {
		op_parts_cancel(op);
		return true;
	}
	if (!waits) {
		op_broken(op, op_cancelled_words());
		return true;
	}
	uint32_t seq = op->request.seq;
	op_stop(op);
	op_make_cancel(&op->request, seq);
	op->post = true;
	op->until_ns = DEADLINE_NEVER;
	op_request(op, op_cancelled);
	return true;
}
