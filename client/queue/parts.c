/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations of a queue that are made of others: reduces, allreduces, gathers. A part is an
 * operation without a completion; the first that fails ends the rest, and the last that ends ends
 * all of it.
 *
 *   REDUCE     REDUCE -> REDUCED -> done
 *   ALLREDUCE  REDUCE -> parts {REDUCED; GET of the target}: the GET decides, or a failed REDUCED
 *              -EEXIST of the REDUCE: REDUCED (progress): is it the same? -> parts;
 *              -ENOENT: REDUCE again
 *              -EEXIST of the REDUCED: REDUCED (progress): is it the same? -> the GET decides
 *   GATHER     parts {GET, GET, ...}; of sar_wait_any: ends when so many have
 */
#include <errno.h>
#include <stdlib.h>
#include "deadline.h"
#include "api/error.h"
#include "api/get.h"
#include "queue.h"

enum { ALLREDUCE_RESTARTS = 8 };

/* ---- parts ---------------------------------------------------------------------------------- */

struct op *queue_take_parts(struct sar_queue *q, struct op *parent, unsigned count)
{
	struct op **last = &parent->parts;
	for (unsigned i = 0; i < count; i++) {
		struct op *part = queue_take(q, parent->kind, &parent->id, parent->user_data);
		if (!part) {
			op_parts_give(parent);
			return NULL;
		}
		part->state = OP_PARENT; /* it has not begun */
		part->parent = parent;
		part->until_ns = parent->until_ns;
		*last = part;
		last = &part->sibling;
	}
	parent->left = count;
	return parent->parts;
}

void op_parts_give(struct op *op)
{
	for (struct op *part = op->parts, *next; part; part = next) {
		next = part->sibling;
		get_give_back(op->queue->s, &part->buffer);
		queue_give(op->queue, part);
	}
	op->parts = NULL;
}

/* All parts have ended. */
static void parts_end(struct op *op)
{
	if (op->result < 0) {
		op_finish(op, error_set(op->result, "%s", op->detail));
		return;
	}
	bool gathers = op->kind == SAR_OP_GATHER && op->gather.out;
	for (struct op *part = op->parts; part && gathers; part = part->sibling) {
		op->gather.out[part->number] = part->buffer;
		part->buffer = (sar_buffer){0};
	}
	op_finish(op, op->result);
}

/* The operation is not ended by a part while somebody goes through them. */
static bool parts_walk(struct op *op)
{
	bool walked = op->walked;
	op->walked = true;
	return walked;
}

static void parts_walked(struct op *op, bool walked)
{
	op->walked = walked;
	if (!walked && op->left == 0)
		parts_end(op);
}

void op_parts_cancel(struct op *op)
{
	bool walked = parts_walk(op);
	for (struct op *part = op->parts; part; part = part->sibling)
		op_cancel(part);
	parts_walked(op, walked);
}

/* Of sar_wait_any: whether enough are there, or none can be waited for. An object that can never
 * come is there, too: its get says why. */
static bool parts_count(struct op *op, struct op *part)
{
	struct op_gather *g = &op->gather;
	get_give_back(op->queue->s, &part->buffer);
	if (part->result == -ETIMEDOUT || part->result == -ENOENT)
		return false;
	if (part->result < 0 && part->result != -ENODATA && part->result != -ESTALE)
		return true;
	g->there[part->number] = 1;
	part->result = ++op->result;
	return (unsigned)op->result == g->num;
}

/* Whether how the part has ended is how all of it ends. */
static bool parts_settle(struct op *op, struct op *part)
{
	if (op->kind == SAR_OP_GATHER)
		return op->gather.there ? parts_count(op, part) : part->result < 0;
	if (!part->got) /* REDUCED: what is in the result need not be known to anybody */
		return part->result < 0 && part->result != -ENODATA;
	if (part->result == 0) {
		op->buffer = part->buffer;
		part->buffer = (sar_buffer){0};
	}
	return true;
}

void op_part_ended(struct op *part)
{
	struct op *op = part->parent;
	bool walked = parts_walk(op);
	part->state = OP_DONE;
	op->left--;
	if (!op->settled && parts_settle(op, part)) {
		op->settled = true;
		op->result = part->result;
		op->id = part->id;
		memcpy(op->detail, part->detail, sizeof(op->detail));
		op_parts_cancel(op);
	}
	parts_walked(op, walked);
}

static void part_got(struct op *part, int status)
{
	if (status < 0)
		op_fail(part, status);
	else
		op_finish(part, 0);
}

/* ---- GATHER --------------------------------------------------------------------------------- */

void op_gather_begin(struct op *op)
{
	bool walked = parts_walk(op);
	unsigned i = 0;
	op->state = OP_PARENT;
	for (struct op *part = op->parts; part; part = part->sibling, i++) {
		part->id = op->gather.ids[i];
		part->number = i;
		if (op->gather.there)
			op->gather.there[i] = 0;
		part->until_ns = op->until_ns;
		part->nowait = op->nowait;
		if (part->state != OP_DONE) /* another one has failed */
			op_get(part, true, part_got);
	}
	parts_walked(op, walked);
}

/* ---- REDUCE --------------------------------------------------------------------------------- */

void op_reduce_begin(struct op *op, op_step *begun)
{
	const sar_reduction *how = &op->reduce.how;
	op_new(op, SESSION_REDUCE);
	op->request.flags = how->flags & SAR_REDUCE_SPREAD ? SESSION_FLAG_ALLREDUCE : 0;
	op->request.reduction = (struct session_reduction){.op = how->op,
							   .dtype = how->dtype,
							   .num = how->num,
							   .count = op->reduce.count,
							   .min = how->min,
							   .deadline_ns = how->deadline_ns};
	op_patience(op, HANDLE_CALL_NS);
	op_request(op, begun);
}

/* Keeps the request with which another control is asked again. */
static void parts_reduce_remember(struct op *op)
{
	struct session_request request = op->request;
	request.flags &= ~(uint32_t)SESSION_FLAG_RETRY;
	request.reduction.deadline_ns = op->reduce.how.deadline_ns;
	reduces_remember(&op->queue->s->reduces, &request, op->reduce.sources, op->reduce.until_ns,
			 op->reduce.began_ns);
}

static unsigned parts_reduce_count(const struct op *op)
{
	const struct session_sources *page = op->call.result.items;
	unsigned count = 0;
	for (size_t i = 0; i < op->call.result.items_count; i++)
		count += page[i].count;
	return count;
}

static void parts_reduce_ended(struct op *op, int status)
{
	if (status != -ETIMEDOUT && status != -EPROTO)
		reduces_forget(&op->queue->s->reduces, &op->id);
	if (status < 0)
		op_fail(op, status);
	else
		op_finish(op, (int)parts_reduce_count(op));
}

static void parts_reduce_await(struct op *op, int64_t until_ns, op_step *ended)
{
	memset(&op->request.reduction, 0, sizeof(op->request.reduction));
	op_new(op, SESSION_REDUCED);
	op->until_ns = until_ns;
	op_request(op, ended);
}

/* The ids of the pages of those that are missing, or are not, after the count that are there
 * already: how many there are then. */
static unsigned parts_reduce_ids(const struct op *op, bool missing, unsigned count)
{
	const struct session_sources *page = op->call.result.items;
	const struct reduce_listed *out = op->listed;
	for (size_t i = 0; i < op->call.result.items_count; i++) {
		if ((page[i].missing != 0) != missing)
			continue;
		for (uint32_t k = 0; k < page[i].count && k < SESSION_SOURCES; k++, count++)
			if (count < out->room)
				memcpy(out->ids[count].bytes, page[i].source[k].bytes,
				       SAR_ID_BYTES);
	}
	return count;
}

static void parts_reduce_listed(struct op *op, int status)
{
	bool goes_on = op->request.flags & SESSION_FLAG_PROGRESS;
	if (status != -ETIMEDOUT && status != -EAGAIN && status != -EPROTO &&
	    !(status == 0 && goes_on))
		reduces_forget(&op->queue->s->reduces, &op->id);
	if (status < 0) {
		op_fail(op, status);
		return;
	}
	op->listed->present = parts_reduce_ids(op, false, 0);
	op_finish(op, (int)(goes_on ? parts_reduce_ids(op, true, op->listed->present)
				    : op->listed->present));
}

void op_reduce_list(struct op *op, bool progress)
{
	op_new(op, SESSION_REDUCED);
	op->request.flags = progress ? SESSION_FLAG_PROGRESS : 0;
	op_request(op, parts_reduce_listed);
}

void op_reduce_left(struct op *op, int status)
{
	if (status < 0) {
		op_fail(op, status);
		return;
	}
	parts_reduce_remember(op);
	op_finish(op, 0);
}

void op_reduce_begun(struct op *op, int status)
{
	if (status < 0) {
		op_fail(op, status);
		return;
	}
	parts_reduce_remember(op);
	parts_reduce_await(op, op->reduce.until_ns, parts_reduce_ended);
}

/* ---- ALLREDUCE ------------------------------------------------------------------------------ */

static int parts_reduce_compare(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(sar_id));
}

/* Whether all sources that the node has told to the asking operation are among those of op. */
static bool parts_allreduce_same(const struct op *op, const struct op *asking)
{
	const struct session_sources *page = asking->call.result.items;
	unsigned count = op->reduce.count;
	bool same = true;
	sar_id *sorted = malloc(sizeof(*sorted) * count);
	if (!sorted)
		return false;
	memcpy(sorted, op->reduce.sources, sizeof(*sorted) * count);
	qsort(sorted, count, sizeof(*sorted), parts_reduce_compare);
	for (size_t i = 0; i < asking->call.result.items_count; i++)
		for (uint32_t k = 0; k < page[i].count && k < SESSION_SOURCES; k++)
			same = same && bsearch(&page[i].source[k], sorted, count, sizeof(*sorted),
					       parts_reduce_compare);
	free(sorted);
	return same;
}

/* Of the target that is there already: which sources does it have? Does not wait. */
static void parts_allreduce_ask(struct op *op, op_step *step)
{
	memset(&op->request.reduction, 0, sizeof(op->request.reduction));
	op_new(op, SESSION_REDUCED);
	op->request.flags = SESSION_FLAG_PROGRESS;
	op->nowait = true;
	op->until_ns = op_until(0);
	op_request(op, step);
}

/* The node has answered: 0 if the target is the result of op's sources, or nobody knows any more of
 * which it is. */
static int parts_allreduce_judge(const struct op *op, const struct op *asking, int status)
{
	if (status == -ENOENT || (status == 0 && !parts_allreduce_same(op, asking)))
		return error_set(-EEXIST, "exists already, and is not the result of these sources: "
					  "use another name");
	return status == -ENODATA || status == -ETIMEDOUT ? 0 : status;
}

static void parts_allreduce_made_before(struct op *end, int status)
{
	int r = parts_allreduce_judge(end->parent, end, status);
	if (r < 0)
		op_fail(end, r);
	else
		op_finish(end, 0); /* the GET decides */
}

/* The reduce began late: other participants had made the target, and their reduce was over. */
static void parts_allreduce_ended(struct op *end, int status)
{
	if (status == -EEXIST) {
		reduces_forget(&end->queue->s->reduces, &end->id);
		parts_allreduce_ask(end, parts_allreduce_made_before);
	} else {
		parts_reduce_ended(end, status);
	}
}

static void parts_allreduce_parts(struct op *op)
{
	bool walked = parts_walk(op);
	struct op *end = op->parts, *whole = end->sibling;
	op->state = OP_PARENT;
	op->until_ns = DEADLINE_NEVER; /* the parts have one */
	end->until_ns = whole->until_ns = op->reduce.until_ns;
	parts_reduce_await(end, op->reduce.until_ns, parts_allreduce_ended);
	if (whole->state != OP_DONE)
		op_get(whole, true, part_got);
	parts_walked(op, walked);
}

static void parts_allreduce_begun(struct op *op, int status);

/* Of the target that was there already. No reduce into it is known: the other participant's has
 * failed meanwhile, or a put has made the target, which each further request finds as well. */
static void parts_allreduce_known(struct op *op, int status)
{
	op->nowait = false;
	if (status == -ENOENT && op->reduce.restarts++ < ALLREDUCE_RESTARTS) {
		op_reduce_begin(op, parts_allreduce_begun);
		return;
	}
	status = parts_allreduce_judge(op, op, status);
	if (status < 0)
		op_fail(op, status);
	else
		parts_allreduce_parts(op);
}

static void parts_allreduce_begun(struct op *op, int status)
{
	if (status == 0) {
		parts_reduce_remember(op);
		parts_allreduce_parts(op);
	} else if (status == -EEXIST) { /* another participant was faster */
		parts_allreduce_ask(op, parts_allreduce_known);
	} else {
		op_fail(op, status);
	}
}

void op_allreduce_begin(struct op *op)
{
	op->reduce.how.flags |= SAR_REDUCE_SPREAD;
	op_reduce_begin(op, parts_allreduce_begun);
}
