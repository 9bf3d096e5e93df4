/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queues of libsarissa: the calls of sarissa.h without waiting for them. One thread can have
 * thousands of operations under way, with constant memory and without a thread for any of them.
 *
 *     sar_queue *q;
 *     sar_completion c;
 *     sar_queue_open(s, 1000, &q);
 *     sar_submit_get(q, sar_id_of("weights", 7), SAR_FOREVER, 1);
 *     while (sar_poll_wait(q, &c, 1, 1, SAR_FOREVER) == 1)     (or poll() on sar_fd(q), then
 *             use(c.user_data, c.result, &c.buffer);            sar_poll(q, &c, 1))
 *     sar_queue_close(q);
 *
 * Submitting. A sar_submit_ function returns 0, or what it documents. On failure nothing is under
 * way: SAR_E_BUSY as many operations as the queue's capacity are, SAR_E_INVALID or SAR_E_NAME as of
 * the call without a queue, SAR_E_MEMORY. Every other end comes as a completion: exactly one for
 * each operation, in any order. user_data is the caller's own.
 *
 * Ownership. Ids, names and how are copied. All else that a pointer leads to stays the caller's and
 * must stay valid and unchanged until the completion was polled, unless a function says otherwise.
 *
 * Threads. Any number of threads may submit, poll and cancel, and use the handle's other calls
 * meanwhile.
 *
 * Limits. When a table of the node is full, operations are held back and tried again until their
 * time is over. An object needs one of the handle's 1,024 buffers only once it is found; when all
 * are in use, operations wait for a sar_release.
 *
 * Restarts. Operations go on at the next control as calls do. A thread of the library connects to
 * it, and ends then.
 */
#ifndef SARISSA_QUEUE_H
#define SARISSA_QUEUE_H

#include <sarissa/sarissa.h>

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

typedef struct sar_queue sar_queue;

enum sar_op { /* sar_completion.op */
	      SAR_OP_GET = 1,
	      SAR_OP_GET_BEGIN,
	      SAR_OP_WAIT,
	      SAR_OP_PUT,
	      SAR_OP_CREATE,
	      SAR_OP_SEAL,
	      SAR_OP_DELETE,
	      SAR_OP_INFO,
	      SAR_OP_REDUCE,
	      SAR_OP_ALLREDUCE,
	      SAR_OP_GATHER,
	      SAR_OP_BROADCAST,
	      SAR_OP_WATCH,
	      SAR_OP_GROUP_CREATE, /* and the others of sarissa/group.h */
	      SAR_OP_GROUP_REMOVE,
	      SAR_OP_GROUP_POLICY,
	      SAR_OP_GROUP_INFO,
	      SAR_OP_GROUP_JOIN,
	      SAR_OP_GROUP_LEAVE,
	      SAR_OP_GROUP_PUSH,
	      SAR_OP_GROUP_PULL,
	      SAR_OP_GROUP_CONTRIBUTORS,
	      SAR_OP_GET_INTO,
	      SAR_OP_GET_RANGES,
};

enum sar_event {			 /* sar_completion.event, of a watch */
		 SAR_EVENT_APPEARED = 1, /* a node is creating the object, or has a part of it */
		 SAR_EVENT_COMPLETE, /* a node has all of it; a small one may not appear first */
		 SAR_EVENT_GONE,     /* deleted, expired, or lost with its nodes */
		 SAR_EVENT_MISSED,   /* of no object: events are missing, so list again */
};

#define SAR_MORE 1u /* sar_completion.flags: the operation goes on */

typedef struct sar_completion {
	uint64_t user_data; /* as it was submitted */
	int32_t result;	    /* what the call without a queue returns; REDUCE: how many sources the
			     * target holds; SAR_E_CANCELLED: sar_cancel */
	uint32_t op;	    /* enum sar_op; PUT and CREATE also of their _iov and _with */
	uint32_t flags;	    /* SAR_MORE, or 0 */
	uint32_t event;	    /* WATCH: enum sar_event; else 0 */
	sar_id id;	    /* of the object; GATHER that has failed: of the one that did */
	uint64_t value;	    /* WAIT: bytes readable; WATCH, GET_INTO, GET_RANGES: bytes of the
			     * object; of groups: see sarissa/group.h; else 0 */
	sar_buffer buffer;  /* GET, GET_BEGIN, ALLREDUCE, CREATE, GROUP_PULL: the caller's from now
			     * on, and so is that of a SEAL that has failed; else zero */
	uint32_t poll, words; /* for sar_completion_detail */
	uint64_t reserved[3];
} sar_completion;

/*
 * Makes a queue.
 *
 * Shapes: capacity is how many operations may be under way, 1 to 65536.
 * Ownership: *out is the caller's until sar_queue_close, which comes before sar_close.
 * Errors: SAR_E_INVALID. SAR_E_MEMORY. SAR_E_TOO_MANY too many descriptors.
 */
int sar_queue_open(sar *s, unsigned capacity, sar_queue **out);

/*
 * Ends all operations, without completions. What they have got is released, what they were creating
 * is aborted. No other thread may be in a call with the queue. NULL does nothing.
 */
void sar_queue_close(sar_queue *q);

/*
 * A descriptor for poll, epoll or an event loop. It is readable when sar_poll has completions or
 * work to do.
 *
 * Ownership: the queue's. Not to be read, written or closed.
 */
int sar_fd(sar_queue *q);

/*
 * Takes completions without waiting. Does the work of the queue as well: it sends, and it copies
 * the bytes of large puts, some MiB in each call. So call it as long as sar_fd is readable.
 *
 * Shapes: sets up to room completions at out. Returns how many, 0 if there are none now.
 * Ownership: buffers in completions are the caller's.
 */
int sar_poll(sar_queue *q, sar_completion *out, unsigned room);

/*
 * sar_poll that waits until there are min completions: 1 waits for any operation, n for all of n.
 *
 * Shapes: min is at most room. Returns how many completions are set: fewer than min when the time
 * is over or nothing is under way any more.
 */
int sar_poll_wait(sar_queue *q, sar_completion *out, unsigned room, unsigned min,
		  int64_t timeout_ns);

/*
 * The words of a completion. Of a failure: "what is wrong: what to do", or if they are gone the
 * general text of its code. Of an event: the name of the object. Else "".
 *
 * Ownership: the queue's, until its next poll. Threads that poll one queue need a lock of their own
 * from a poll to the last use of its words.
 */
const char *sar_completion_detail(sar_queue *q, const sar_completion *c);

/*
 * Ends the operations that were submitted with user_data. Their completions come all the same, with
 * SAR_E_CANCELLED. A small put or a delete may have been done by then. A seal cannot be cancelled.
 *
 * Shapes: returns how many there were.
 * Errors: SAR_E_NOT_FOUND none is under way.
 */
int sar_cancel(sar_queue *q, uint64_t user_data);

/* Submits a sar_get. If the object is complete on this node, it completes at once, without a system
 * call unless sar_fd is in use. */
int sar_submit_get(sar_queue *q, sar_id id, int64_t timeout_ns, uint64_t user_data);

/* Submits a sar_get_begin. */
int sar_submit_get_begin(sar_queue *q, sar_id id, int64_t timeout_ns, uint64_t user_data);

/*
 * Submits a sar_get_into, or a sar_get_ranges. The completion's value is the object's size.
 *
 * Ownership: memory, the ranges and their memory must stay until the completion is taken.
 */
int sar_submit_get_into(sar_queue *q, sar_id id, void *memory, uint64_t bytes, int64_t timeout_ns,
			uint64_t user_data);
int sar_submit_get_ranges(sar_queue *q, sar_id id, const sar_range *ranges, unsigned count,
			  int64_t timeout_ns, uint64_t user_data);

/*
 * Submits count sar_get at once, of ids[i] with user_data[i].
 *
 * Shapes: returns how many there was room for, the first ones of ids.
 * Ownership: ids and user_data are not used after the call.
 * Errors: SAR_E_BUSY there is no room for any.
 */
int sar_submit_gets(sar_queue *q, const sar_id *ids, unsigned count, int64_t timeout_ns,
		    const uint64_t *user_data);

/*
 * Submits a sar_wait. The completion's value says how many bytes are readable.
 *
 * Ownership: b is read now only, and b->ready stays as it is. Do not release b before the
 * completion.
 */
int sar_submit_wait(sar_queue *q, const sar_buffer *b, uint64_t upto, int64_t timeout_ns,
		    uint64_t user_data);

/* Submits a sar_put. */
int sar_submit_put(sar_queue *q, sar_id id, const char *name, const void *data, uint64_t size,
		   uint64_t user_data);

/* Submits a sar_put_iov. */
int sar_submit_put_iov(sar_queue *q, sar_id id, const char *name, const struct iovec *iov,
		       unsigned count, uint64_t user_data);

/* Submit what their names say. The options are copied, the metadata as well. */
int sar_submit_put_with(sar_queue *q, sar_id id, const char *name, const void *data, uint64_t size,
			const sar_put_options *options, uint64_t user_data);
int sar_submit_put_iov_with(sar_queue *q, sar_id id, const char *name, const struct iovec *iov,
			    unsigned count, const sar_put_options *options, uint64_t user_data);
int sar_submit_create_with(sar_queue *q, sar_id id, const char *name, uint64_t size,
			   const sar_put_options *options, uint64_t user_data);

typedef struct sar_put_item {
	sar_id id;
	const char *name;
	const void *data;
	uint64_t size;
	uint64_t user_data;
	const sar_put_options *options; /* NULL: none */
	uint64_t reserved[1];		/* zero */
} sar_put_item;

/*
 * Submits count sar_put at once.
 *
 * Shapes: returns how many there was room for, the first ones of items.
 * Ownership: items is not used after the call; what its data leads to is.
 * Errors: SAR_E_BUSY there is no room for any.
 */
int sar_submit_puts(sar_queue *q, const sar_put_item *items, unsigned count);

/* Submits a sar_create. */
int sar_submit_create(sar_queue *q, sar_id id, const char *name, uint64_t size, uint64_t user_data);

/*
 * Submits a sar_seal.
 *
 * Ownership: b is zero afterwards, as the operation has it. On failure it comes back in the
 * completion, for sar_abort.
 */
int sar_submit_seal(sar_queue *q, sar_buffer *b, uint64_t user_data);

/* Submits a sar_delete. */
int sar_submit_delete(sar_queue *q, sar_id id, uint64_t user_data);

/* Submits a sar_info_get. *out is set when the completion comes. */
int sar_submit_info(sar_queue *q, sar_id id, sar_info *out, uint64_t user_data);

/*
 * Submits a sar_reduce, and waits for its end. The completion comes when the target is complete;
 * its result is the number of sources that the target holds. A sar_submit_get_begin of target reads
 * the target as it grows.
 */
int sar_submit_reduce(sar_queue *q, sar_id target, const char *name, const sar_id *sources,
		      unsigned count, const sar_reduction *how, int64_t timeout_ns,
		      uint64_t user_data);

/* Submits a sar_allreduce, which takes 3 operations of the capacity. */
int sar_submit_allreduce(sar_queue *q, sar_id target, const char *name, const sar_id *sources,
			 unsigned count, const sar_reduction *how, int64_t timeout_ns,
			 uint64_t user_data);

/* Submits a sar_gather, which takes count + 1 operations of the capacity. out is set when the
 * completion comes. */
int sar_submit_gather(sar_queue *q, const sar_id *ids, unsigned count, int64_t timeout_ns,
		      sar_buffer *out, uint64_t user_data);

/* Submits a sar_broadcast. */
int sar_submit_broadcast(sar_queue *q, sar_id id, const uint32_t *nodes, unsigned count,
			 int64_t timeout_ns, uint64_t user_data);

/*
 * Watches the objects whose names begin with prefix, in the whole cluster. Each event is a
 * completion with SAR_MORE: event says what has happened, id and value have the id and size of
 * the object, and sar_completion_detail gives its name. The watch goes on until sar_cancel or
 * sar_queue_close; the completion without SAR_MORE is its last one.
 *
 * The objects that exist come first, as APPEARED or COMPLETE. Then each change that lasts is told
 * with at least one event. The events of one object come in order. As long as the members of the
 * cluster stay the same, none comes twice. A change that is undone at once may not be told.
 *
 * MISSED says that this does not hold for what was before: list the objects again (sar_list_prefix)
 * and go on with the events that follow, of which some may tell what the list has shown. It comes
 * when nodes join, leave or die, when control begins again, and when events wait too long to be
 * polled. An object of a dead node is listed as lost for some seconds.
 *
 * Shapes: prefix NULL or "": all objects, also those without a name. A node has room for 64
 * watches.
 * Errors, as the completion: SAR_E_FULL there is no room for another watch. SAR_E_CANCELLED.
 * SAR_E_CLOSED. SAR_E_NAME is returned at once.
 */
int sar_submit_watch(sar_queue *q, const char *prefix, uint64_t user_data);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
