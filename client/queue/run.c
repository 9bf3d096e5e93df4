/* SPDX-License-Identifier: BSD-3-Clause */
#include "run.h"

#include <errno.h>
#include "deadline.h"
#include "link/rejoin.h"

int run_begin(struct run *run, struct sar *s, unsigned capacity)
{
	int r = handle_check(s);
	if (r < 0)
		return r;
	queue_init(&run->q, s);
	run->q.run = run;
	run->interrupted = false;
	if (capacity == 1) {
		run->q.capacity = run->q.users = 1;
		run->q.op = &run->op;
		run->user = NULL;
		run->q.user = &run->user;
		run->q.heap = run->heap;
	} else if ((r = queue_memory(&run->q, capacity)) < 0) {
		queue_memory_free(&run->q);
		return r;
	}
	run->waiter = (struct mux_waiter){.waits = true};
	mux_waiter_init(&run->waiter);
	return 0;
}

static int run_interrupted_words(void)
{
	return error_set(-EINTR, INTERRUPT_TEXT);
}

/* Takes back the parts that can be, which may need an answer. */
static void run_interrupt(struct run *run)
{
	struct sar_queue *q = &run->q;
	run->interrupted = true;
	run->before = interrupt_set(NULL);
	run->tidy_ns = deadline_after(INTERRUPT_TIDY_NS);
	for (unsigned i = 0; i < q->fresh; i++) {
		struct op *op = &q->op[i];
		if (!op->parent && op->state != OP_FREE && op->state != OP_DONE && !op_cancel(op))
			op_broken(op, run_interrupted_words());
	}
}

/* Control has gone: the thread connects to another one. */
static void run_join(struct run *run)
{
	struct op *op = run->q.pending.first;
	/* these do not wait of themselves */
	bool own = op->kind == SAR_OP_PUT || op->kind == SAR_OP_ALLREDUCE ||
		   op->kind == SAR_OP_GROUP_PUSH;
	int64_t until_ns = op->nowait && !own ? 0 : op->until_ns;
	if (run->interrupted)
		until_ns = run->tidy_ns;
	int r = rejoin(run->q.s, op->request.op, until_ns);
	if (r < 0)
		op_broken(op, r);
}

/* Until there is something to do. */
static void run_wait(struct run *run)
{
	struct sar_queue *q = &run->q;
	int64_t until_ns = q->due > 0 ? q->heap[1]->due_ns : DEADLINE_NEVER;
	if (q->held.first && q->held_ns < until_ns)
		until_ns = q->held_ns;
	if (run->interrupted && run->tidy_ns < until_ns)
		until_ns = run->tidy_ns;
	run->waiter.waits = !q->ended;
	if (q->done.first || q->working.first || atomic_load(&q->answered))
		;
	else if (q->pending.first && handle_lost(q->s))
		run_join(run);
	else if (q->full)
		mux_wait_room(&q->s->mux, &run->waiter, until_ns);
	else
		mux_wait(&q->s->mux, &run->waiter, until_ns);
	if (!run->interrupted && interrupt_wanted())
		run_interrupt(run);
}

static int run_on(struct run *run, sar_completion *out)
{
	do {
		run_wait(run);
		if (queue_turn(&run->q, out, 1) > 0)
			break;
		out->result = -EINTR;
	} while (!run->interrupted || deadline_left(run->tidy_ns) > 0);
	if (run->interrupted) {
		queue_drop(&run->q);
		interrupt_set(&run->before);
	}
	if (out->result >= 0)
		return out->result;
	if (run->interrupted)
		return run_interrupted_words();
	error_restore(&run->words);
	return out->result;
}

int run_end(struct run *run, int r, sar_completion *out)
{
	if (r == 0)
		r = run_on(run, out);
	else
		queue_drop(&run->q);
	mux_waiter_fini(&run->q.s->mux, &run->waiter);
	if (run->q.op != &run->op)
		queue_memory_free(&run->q);
	return r;
}

/* ---- one request ---------------------------------------------------------------------------- */

/* The node's words need not say which object they are about. */
static int run_name(struct sar *s, const struct session_request *request, int error)
{
	switch (request->op) {
	case SESSION_DELETE:
	case SESSION_STAT:
	case SESSION_REDUCED:
	case SESSION_HOLD:
	case SESSION_RELEASE:
	case SESSION_EXPIRE:
		return error_name(error, request->id.bytes, request->name);
	case SESSION_PUBLISH:
	case SESSION_ABORT:
		return handle_name_slot(s, request->slot, request->generation, error);
	default:
		return error;
	}
}

static void run_answered(struct op *op, int status)
{
	if (status < 0) {
		op_finish(op, run_name(op->queue->s, &op->request, status));
		return;
	}
	*op->one.out = op->call.result;
	op->call.result = (struct mux_result){0};
	op_finish(op, 0);
}

int run_request(struct sar *s, const struct session_request *request, const struct mux_tail *tail,
		size_t item_bytes, int64_t timeout_ns, struct mux_result *out)
{
	struct run run;
	sar_completion end;
	*out = (struct mux_result){0};
	int r = run_begin(&run, s, 1);
	if (r < 0)
		return r;
	queue_enter(&run.q);
	struct op *op = queue_take(&run.q, OP_ONE, NULL, 0);
	op->request = *request;
	op->one = (struct op_one){.tail = tail,
				  .item_bytes = item_bytes,
				  .out = out,
				  .given_ns = request->timeout_ns,
				  .began_ns = deadline_now()};
	op->nowait = timeout_ns == 0;
	op->until_ns = op_until(timeout_ns);
	op_request(op, run_answered);
	r = run_end(&run, queue_leave(&run.q, 0), &end);
	out->retried = op->retried;
	return r;
}

int run_command(struct sar *s, const struct session_request *request, int64_t timeout_ns,
		bool *retried)
{
	struct mux_result result;
	int r = run_request(s, request, NULL, 0, timeout_ns, &result);
	if (retried)
		*retried = result.retried;
	if (r == 0)
		mux_result_free(&result);
	return r;
}
