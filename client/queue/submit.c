/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations that users put into a queue. Arguments are checked here; all other faults are
 * completions. */
#include <errno.h>
#include "deadline.h"
#include "api/directory.h"
#include "api/error.h"
#include "api/get.h"
#include "api/put_options.h"
#include "queue.h"
#include "submit.h"

/* An operation, under the queue's lock, which is free when there is none. */
static int submit_begin(sar_queue *q, uint16_t kind, const sar_id *id, const char *name,
			uint64_t user_data, struct op **out)
{
	int r = queue_enter(q);
	if (r < 0)
		return r;
	struct op *op = queue_take(q, kind, id, user_data);
	if (!op)
		return queue_leave(q, -EAGAIN);
	r = handle_name(&op->request, name);
	if (r < 0) {
		queue_give(q, op);
		return queue_leave(q, r);
	}
	queue_user_add(q, op);
	*out = op;
	return 0;
}

static int submit_timeout(const char *call, int64_t timeout_ns)
{
	if (timeout_ns >= 0)
		return 0;
	return error_set(-EINVAL,
			 "%s: a timeout is not negative: use SAR_FOREVER to wait without limit",
			 call);
}

static void submit_until(struct op *op, int64_t timeout_ns)
{
	op->nowait = timeout_ns == 0;
	op->until_ns = op_until(timeout_ns);
}

/* The step of an operation that has ended without steps of its own. */
static void submit_ended(struct op *op, int status)
{
	if (status < 0)
		op_fail(op, status);
	else
		op_finish(op, 0);
}

/* ---- reading -------------------------------------------------------------------------------- */

static void submit_got(struct op *op, int status)
{
	if (status == 0 && op->whole)
		reduces_forget(&op->queue->s->reduces, &op->id); /* whole: it has ended */
	submit_ended(op, status);
}

static int submit_get(sar_queue *q, uint16_t kind, const sar_id *id, int64_t timeout_ns,
		      uint64_t user_data)
{
	struct op *op = NULL;
	int r = submit_timeout("sar_submit_get", timeout_ns);
	if (r == 0)
		r = submit_begin(q, kind, id, NULL, user_data, &op);
	if (r < 0)
		return r;
	submit_until(op, timeout_ns);
	op_get(op, kind == SAR_OP_GET, submit_got);
	return queue_leave(q, 0);
}

int sar_submit_get(sar_queue *q, sar_id id, int64_t timeout_ns, uint64_t user_data)
{
	return submit_get(q, SAR_OP_GET, &id, timeout_ns, user_data);
}

int sar_submit_get_begin(sar_queue *q, sar_id id, int64_t timeout_ns, uint64_t user_data)
{
	return submit_get(q, SAR_OP_GET_BEGIN, &id, timeout_ns, user_data);
}

int sar_submit_gets(sar_queue *q, const sar_id *ids, unsigned count, int64_t timeout_ns,
		    const uint64_t *user_data)
{
	int r = submit_timeout("sar_submit_gets", timeout_ns);
	unsigned done = 0;
	if (r == 0 && count > INT32_MAX)
		r = error_set(-EINVAL, "sar_submit_gets: too many at once: submit them in parts");
	if (r == 0)
		r = queue_enter(q);
	if (r < 0)
		return r;
	for (; done < count; done++) {
		struct op *op = queue_take(q, SAR_OP_GET, &ids[done], user_data[done]);
		if (!op)
			break;
		queue_user_add(q, op);
		submit_until(op, timeout_ns);
		op_get(op, true, submit_got);
	}
	return queue_leave(q, done > 0 || count == 0 ? (int)done : -EAGAIN);
}

/* A wait for bytes that are readable already, or never will be, ends now. */
static bool submit_wait_here(struct op *op, sar_buffer b)
{
	struct sar *s = op->queue->s;
	struct buffer own = buffer_get(&b);
	int r = get_refresh(s, &b, &own);
	op->value = b.ready;
	if (b.ready >= op->upto) {
		op_finish(op, 0);
		return true;
	}
	op->value = 0;
	if (r == 0 && op->nowait)
		r = error_set(-ETIMEDOUT, "%llu of %llu bytes are here: wait longer",
			      (unsigned long long)b.ready, (unsigned long long)b.size);
	if (r < 0)
		op_finish(op, own.store == atomic_load(&s->stores)
				      ? handle_name_slot(s, own.slot, own.generation, r)
				      : r);
	return r < 0;
}

int sar_submit_wait(sar_queue *q, const sar_buffer *b, uint64_t upto, int64_t timeout_ns,
		    uint64_t user_data)
{
	struct buffer own = buffer_get(b);
	struct op *op = NULL;
	int r = submit_timeout("sar_submit_wait", timeout_ns);
	if (own.kind != BUFFER_READ)
		r = error_set(-EINVAL,
			      "sar_submit_wait: not a buffer from sar_get or sar_get_begin");
	if (r == 0)
		r = submit_begin(q, SAR_OP_WAIT, NULL, NULL, user_data, &op);
	if (r < 0)
		return r;
	submit_until(op, timeout_ns);
	op->upto = upto < b->size ? upto : b->size;
	if (!submit_wait_here(op, *b))
		op_wait_begin(op, b->size, own.slot, own.generation, own.store);
	return queue_leave(q, 0);
}

int sar_submit_get_into(sar_queue *q, sar_id id, void *memory, uint64_t bytes, int64_t timeout_ns,
			uint64_t user_data)
{
	struct op *op = NULL;
	int r = submit_timeout("sar_submit_get_into", timeout_ns);
	if (r == 0 && !memory && bytes > 0)
		r = error_set(-EINVAL, "sar_submit_get_into: no memory");
	if (r == 0)
		r = submit_begin(q, SAR_OP_GET_INTO, &id, NULL, user_data, &op);
	if (r < 0)
		return r;
	submit_until(op, timeout_ns);
	op_into_begin(op, memory, bytes);
	return queue_leave(q, 0);
}

static int submit_ranges_check(const sar_range *ranges, unsigned count)
{
	if (count > SAR_RANGES_MAX || (!ranges && count > 0))
		return error_set(-EINVAL, "sar_submit_get_ranges: %u ranges: name at most %d",
				 count, SAR_RANGES_MAX);
	for (unsigned i = 0; i < count; i++) {
		if (!ranges[i].where && ranges[i].bytes > 0)
			return error_set(-EINVAL, "sar_submit_get_ranges: range %u has no memory",
					 i);
		if (ranges[i].bytes > UINT64_MAX - ranges[i].offset)
			return error_set(-ERANGE,
					 "sar_submit_get_ranges: range %u ends behind the last "
					 "byte of any object",
					 i);
	}
	return 0;
}

int sar_submit_get_ranges(sar_queue *q, sar_id id, const sar_range *ranges, unsigned count,
			  int64_t timeout_ns, uint64_t user_data)
{
	struct op *op = NULL;
	int r = submit_timeout("sar_submit_get_ranges", timeout_ns);
	if (r == 0)
		r = submit_ranges_check(ranges, count);
	if (r == 0)
		r = submit_begin(q, SAR_OP_GET_RANGES, &id, NULL, user_data, &op);
	if (r < 0)
		return r;
	submit_until(op, timeout_ns);
	op->ranges = (struct op_ranges){.range = ranges, .count = count};
	op_ranges_begin(op);
	return queue_leave(q, 0);
}

/* ---- writing -------------------------------------------------------------------------------- */

static void submit_options(struct op *op, const sar_put_options *options)
{
	op->meta.bytes = (uint8_t)options->meta_bytes;
	if (op->meta.bytes > 0)
		memcpy(op->meta.data, options->meta, op->meta.bytes);
	op->ttl_ns = options->ttl_ns;
	if (options->lease)
		op->lease = options->lease;
	if (options->timeout_ns)
		op->limit_ns = op_until(options->timeout_ns);
}

static void submit_put(struct op *op, uint64_t size)
{
	op->put.size = size;
	if (size > INT64_MAX)
		op_fail(op, error_set(-EFBIG, "the object is larger than any store: split it"));
	else
		op_put_begin(op);
}

static int submit_pieces(sar_queue *q, sar_id id, const char *name, const struct op_put *put,
			 uint64_t size, const sar_put_options *options, uint64_t user_data)
{
	sar_put_options said;
	struct op *op = NULL;
	int r = put_options_read(options, &said);
	if (r == 0)
		r = submit_begin(q, SAR_OP_PUT, &id, name, user_data, &op);
	if (r < 0)
		return r;
	op->put = *put;
	submit_options(op, &said);
	submit_put(op, size);
	return queue_leave(q, 0);
}

int submit_put_from(sar_queue *q, sar_id id, const char *name, uint64_t size,
		    struct put_source *from, const sar_put_options *options)
{
	const struct op_put put = {.from = from};
	return submit_pieces(q, id, name, &put, size, options, 0);
}

int sar_submit_put_with(sar_queue *q, sar_id id, const char *name, const void *data, uint64_t size,
			const sar_put_options *options, uint64_t user_data)
{
	const struct op_put put = {.one = {(void *)(uintptr_t)data, size}, .count = 1};
	if (!data && size > 0)
		return error_set(-EINVAL, "sar_submit_put: no data");
	return submit_pieces(q, id, name, &put, size, options, user_data);
}

int sar_submit_put(sar_queue *q, sar_id id, const char *name, const void *data, uint64_t size,
		   uint64_t user_data)
{
	return sar_submit_put_with(q, id, name, data, size, NULL, user_data);
}

int sar_submit_put_iov_with(sar_queue *q, sar_id id, const char *name, const struct iovec *iov,
			    unsigned count, const sar_put_options *options, uint64_t user_data)
{
	const struct op_put put = {.iov = iov, .count = count};
	uint64_t size = 0;
	for (unsigned i = 0; i < count; i++) {
		if (!iov[i].iov_base && iov[i].iov_len > 0)
			return error_set(-EINVAL, "sar_submit_put_iov: piece %u has no data", i);
		size = size > UINT64_MAX - iov[i].iov_len ? UINT64_MAX : size + iov[i].iov_len;
	}
	return submit_pieces(q, id, name, &put, size, options, user_data);
}

int sar_submit_put_iov(sar_queue *q, sar_id id, const char *name, const struct iovec *iov,
		       unsigned count, uint64_t user_data)
{
	return sar_submit_put_iov_with(q, id, name, iov, count, NULL, user_data);
}

static int submit_put_check(const sar_put_item *item, unsigned i)
{
	if (!item->data && item->size > 0)
		return error_set(-EINVAL, "sar_submit_puts: item %u has no data", i);
	sar_put_options said;
	int r = put_options_read(item->options, &said);
	if (r < 0)
		return r;
	if (item->reserved[0])
		return error_set(-EINVAL,
				 "sar_submit_puts: what is reserved in item %u is not zero: "
				 "clear it first",
				 i);
	if (item->name && strlen(item->name) > SAR_NAME_MAX)
		return error_set(-ENAMETOOLONG,
				 "sar_submit_puts: the name of item %u has %zu bytes: use at "
				 "most %d",
				 i, strlen(item->name), SAR_NAME_MAX);
	return 0;
}

int sar_submit_puts(sar_queue *q, const sar_put_item *items, unsigned count)
{
	int r = count > INT32_MAX ? error_set(-EINVAL, "sar_submit_puts: too many at once: submit "
						       "them in parts")
				  : 0;
	unsigned done = 0;
	sar_put_options said;
	for (unsigned i = 0; r == 0 && i < count; i++)
		r = submit_put_check(&items[i], i);
	if (r == 0)
		r = queue_enter(q);
	if (r < 0)
		return r;
	for (; done < count; done++) {
		const sar_put_item *item = &items[done];
		struct op *op = queue_take(q, SAR_OP_PUT, &item->id, item->user_data);
		if (!op)
			break;
		queue_user_add(q, op);
		handle_name(&op->request, item->name);
		op->put.one = (struct iovec){(void *)(uintptr_t)item->data, item->size};
		op->put.count = 1;
		put_options_read(item->options, &said);
		submit_options(op, &said);
		submit_put(op, item->size);
	}
	return queue_leave(q, done > 0 || count == 0 ? (int)done : -EAGAIN);
}

/* It has its time to live: now buffer and pin are the user's. */
static void submit_expired(struct op *op, int status)
{
	if (status < 0) {
		op_put_abort(op, error_name(status, op->id.bytes, op->request.name));
		return;
	}
	op->making = false;
	op_finish(op, 0);
}

static void submit_created(struct op *op, int status)
{
	if (status < 0)
		op_fail(op, status);
	else if (op->ttl_ns > 0)
		op_expire(op, submit_expired);
	else
		submit_expired(op, 0);
}

int sar_submit_create_with(sar_queue *q, sar_id id, const char *name, uint64_t size,
			   const sar_put_options *options, uint64_t user_data)
{
	sar_put_options said;
	struct op *op = NULL;
	int r = put_options_read(options, &said);
	if (r == 0)
		r = submit_begin(q, SAR_OP_CREATE, &id, name, user_data, &op);
	if (r < 0)
		return r;
	submit_options(op, &said);
	if (size > INT64_MAX)
		op_fail(op, error_set(-EFBIG, "the object is larger than any store: split it"));
	else
		op_create_begin(op, size, submit_created);
	return queue_leave(q, 0);
}

int sar_submit_create(sar_queue *q, sar_id id, const char *name, uint64_t size, uint64_t user_data)
{
	return sar_submit_create_with(q, id, name, size, NULL, user_data);
}

int sar_submit_seal(sar_queue *q, sar_buffer *b, uint64_t user_data)
{
	struct op *op = NULL;
	if (buffer_get(b).kind != BUFFER_WRITE)
		return error_set(-EINVAL, "sar_submit_seal: the buffer is not under creation: use "
					  "it once, on a buffer from sar_create");
	int r = submit_begin(q, SAR_OP_SEAL, NULL, NULL, user_data, &op);
	if (r < 0)
		return r;
	op->buffer = *b;
	*b = (sar_buffer){0};
	op_seal_begin(op);
	return queue_leave(q, 0);
}

/* ---- the directory -------------------------------------------------------------------------- */

static void submit_deleted(struct op *op, int status)
{
	/* it was there when it was first asked for, or never */
	submit_ended(op, status == -ENOENT && op->retried ? 0 : status);
}

int sar_submit_delete(sar_queue *q, sar_id id, uint64_t user_data)
{
	struct op *op = NULL;
	int r = submit_begin(q, SAR_OP_DELETE, &id, NULL, user_data, &op);
	if (r < 0)
		return r;
	reduces_forget(&q->s->reduces, &id);
	op_new(op, SESSION_DELETE);
	op_patience(op, HANDLE_CALL_NS);
	op_request(op, submit_deleted);
	return queue_leave(q, 0);
}

static void submit_known(struct op *op, int status)
{
	const struct mux_result *result = &op->call.result;
	if (status == 0 && result->items_count == 0)
		status = error_set(-EPROTO, "the node's answer is incomplete: use libraries and "
					    "node of one version");
	if (status == 0)
		directory_info(result->items, op->info);
	submit_ended(op, status);
}

int sar_submit_info(sar_queue *q, sar_id id, sar_info *out, uint64_t user_data)
{
	struct op *op = NULL;
	if (!out)
		return error_set(-EINVAL, "sar_submit_info: no place for the answer");
	int r = submit_begin(q, SAR_OP_INFO, &id, NULL, user_data, &op);
	if (r < 0)
		return r;
	op->info = out;
	op_new(op, SESSION_STAT);
	op->request.flags = SESSION_FLAG_BRIEF;
	op_patience(op, HANDLE_CALL_NS);
	op_request(op, submit_known);
	return queue_leave(q, 0);
}

/* ---- of many objects and nodes -------------------------------------------------------------- */

static int submit_reduction(sar_queue *q, uint16_t kind, const sar_id *target, const char *name,
			    const sar_id *sources, unsigned count, const sar_reduction *how,
			    int64_t timeout_ns, uint64_t user_data, op_step *begun)
{
	struct op *op = NULL;
	int r = reduce_check(sources, count, how, timeout_ns);
	if (r == 0)
		r = submit_begin(q, kind, target, name, user_data, &op);
	if (r < 0)
		return r;
	if (kind == SAR_OP_ALLREDUCE && !queue_take_parts(q, op, 2)) {
		queue_user_remove(op);
		queue_give(q, op);
		return queue_leave(q, -EAGAIN);
	}
	op->reduce.sources = sources;
	op->reduce.count = count;
	op->reduce.how = *how;
	op->reduce.until_ns = op_until(timeout_ns);
	op->reduce.began_ns = deadline_now();
	if (kind == SAR_OP_ALLREDUCE)
		op_allreduce_begin(op);
	else
		op_reduce_begin(op, begun);
	return queue_leave(q, 0);
}

int sar_submit_reduce(sar_queue *q, sar_id target, const char *name, const sar_id *sources,
		      unsigned count, const sar_reduction *how, int64_t timeout_ns,
		      uint64_t user_data)
{
	return submit_reduction(q, SAR_OP_REDUCE, &target, name, sources, count, how, timeout_ns,
				user_data, op_reduce_begun);
}

int submit_reduce_begin(sar_queue *q, sar_id target, const char *name, const sar_id *sources,
			unsigned count, const sar_reduction *how, int64_t timeout_ns,
			uint64_t user_data)
{
	return submit_reduction(q, SAR_OP_REDUCE, &target, name, sources, count, how, timeout_ns,
				user_data, op_reduce_left);
}

int submit_reduce_list(sar_queue *q, sar_id target, bool progress, int64_t timeout_ns,
		       struct reduce_listed *out, uint64_t user_data)
{
	struct op *op = NULL;
	int r = submit_timeout("sar_reduce_sources", timeout_ns);
	if (r == 0)
		r = submit_begin(q, SAR_OP_REDUCE, &target, NULL, user_data, &op);
	if (r < 0)
		return r;
	submit_until(op, timeout_ns);
	op->listed = out;
	op_reduce_list(op, progress);
	return queue_leave(q, 0);
}

int sar_submit_allreduce(sar_queue *q, sar_id target, const char *name, const sar_id *sources,
			 unsigned count, const sar_reduction *how, int64_t timeout_ns,
			 uint64_t user_data)
{
	return submit_reduction(q, SAR_OP_ALLREDUCE, &target, name, sources, count, how, timeout_ns,
				user_data, NULL);
}

static int submit_gather(sar_queue *q, const char *call, const struct op_gather *gather,
			 int64_t timeout_ns, uint64_t user_data)
{
	struct op *op = NULL;
	unsigned count = gather->count;
	int r = submit_timeout(call, timeout_ns);
	if (r == 0 && (!gather->ids || (!gather->out && !gather->there) || count == 0 ||
		       count > SAR_SOURCES_MAX))
		r = error_set(-EINVAL, "%s: %u objects: name 1 to %d", call, count,
			      SAR_SOURCES_MAX);
	if (r == 0)
		r = submit_begin(q, SAR_OP_GATHER, gather->ids, NULL, user_data, &op);
	if (r < 0)
		return r;
	if (!queue_take_parts(q, op, count)) {
		queue_user_remove(op);
		queue_give(q, op);
		return queue_leave(q, -EAGAIN);
	}
	submit_until(op, timeout_ns);
	op->gather = *gather;
	op_gather_begin(op);
	return queue_leave(q, 0);
}

int sar_submit_gather(sar_queue *q, const sar_id *ids, unsigned count, int64_t timeout_ns,
		      sar_buffer *out, uint64_t user_data)
{
	const struct op_gather gather = {.ids = ids, .out = out, .count = count};
	return submit_gather(q, "sar_submit_gather", &gather, timeout_ns, user_data);
}

int submit_wait_any(sar_queue *q, const sar_id *ids, unsigned count, unsigned num,
		    int64_t timeout_ns, uint8_t *there)
{
	const struct op_gather gather = {.ids = ids, .count = count, .there = there, .num = num};
	if (num == 0 || num > count)
		return error_set(-EINVAL, "sar_wait_any: %u of %u objects: wait for 1 to all", num,
				 count);
	return submit_gather(q, "sar_wait_any", &gather, timeout_ns, 0);
}

int sar_submit_broadcast(sar_queue *q, sar_id id, const uint32_t *nodes, unsigned count,
			 int64_t timeout_ns, uint64_t user_data)
{
	struct op *op = NULL;
	int r = submit_timeout("sar_submit_broadcast", timeout_ns);
	if (r == 0 && (count > SAR_NODES_MAX || (!nodes && count > 0)))
		r = error_set(-EINVAL, "sar_submit_broadcast: %u nodes: name at most %d", count,
			      SAR_NODES_MAX);
	if (r == 0)
		r = submit_begin(q, SAR_OP_BROADCAST, &id, NULL, user_data, &op);
	if (r < 0)
		return r;
	submit_until(op, timeout_ns);
	op->nodes = (struct op_nodes){nodes, count};
	op_new(op, SESSION_BROADCAST);
	op->request.size = count * sizeof(*nodes);
	op_request(op, submit_ended);
	return queue_leave(q, 0);
}

int sar_submit_watch(sar_queue *q, const char *prefix, uint64_t user_data)
{
	struct op *op = NULL;
	int r = submit_begin(q, SAR_OP_WATCH, NULL, prefix, user_data, &op);
	if (r < 0)
		return r;
	op_watch_begin(op);
	return queue_leave(q, 0);
}
