/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a sar_queue is: a pool of operations of fixed size, each a small state machine that sends
 * one request after the other and never waits. Any thread may call; all of a queue but what mux
 * hands over is under its lock. Nothing here sleeps but sar_poll_wait, which uses sar_fd as
 * everybody can. A call that waits has a queue without descriptors (run.h).
 *
 *   free -> pending (a request waits to be sent) -> out (control has it) -> answered -> its step:
 *        pending again, or working (bytes are copied, some in each turn), or pinless (an answer
 *        waits for a pin), or done (its completion waits for sar_poll) -> free
 *   away: a thread works for it, and comes back as an answer does.
 *   held: control had too many requests; pending again when others have been answered.
 */
#ifndef SARISSA_CLIENT_QUEUE_QUEUE_H
#define SARISSA_CLIENT_QUEUE_QUEUE_H

#include "api/buffer.h"
#include "link/handle.h"
#include "words.h"

enum { QUEUE_CAPACITY_MAX = 65536 };

/* Those that the node has refused are tried again as others are answered, and some every so often.
 */
#define QUEUE_HELD_NS 10000000

#define OP_LIMIT_TEXT "not done in the time that the options give: give it more"

enum { OP_ONE = 0 }; /* op.kind, no enum sar_op: one request of run_request */

enum op_state {
	OP_FREE,
	OP_PENDING,
	OP_OUT,
	OP_HELD,
	OP_PINLESS,
	OP_WORKING,
	OP_PARENT, /* its parts are under way */
	OP_AWAY,   /* a thread works for it, which ends with op_back */
	OP_DONE,
};

struct op;

/* Where sar_put_from has its bytes from. Of the caller, who frees block. */
struct put_source {
	sar_fill *fill;
	void *arg;
	uint8_t *block; /* to compare with an object that is there; NULL: not yet */
	int given_up;	/* what fill returned */
};

/* The next step of an operation. status: of the answer, 0 or -errno with error_set's words. */
typedef void op_step(struct op *op, int status);

struct op_list {
	struct op *first, **last;
};

/* The sources of a reduce: room of them; the first present ones exist. */
struct reduce_listed {
	sar_id *ids;
	unsigned room, present;
};

struct op {
	struct mux_call call; /* while OUT: of mux */
	struct op *answered;  /* the next that is answered as well */
	struct op *next;      /* in the list of its state, or free */
	struct op **link;     /* that points to it */
	struct op *by_user;   /* the next with the same hash */
	struct op **user_link;
	struct sar_queue *queue;
	struct op *parent; /* whose part it is; NULL: the user's own */
	struct op *parts;  /* of a parent, and the next part of the same */
	struct op *sibling;
	op_step *step;		/* with the answer */
	op_step *got;		/* of a GET: with the buffer */
	op_step *then;		/* instead of its end: with how this stage has ended */
	struct op_group *group; /* queue/group.c */
	int64_t until_ns;	/* the time of the operation, or of the request */
	int64_t due_ns;		/* when it ends without an answer; in the heap */
	int64_t sent_ns;
	struct session_request request;
	uint64_t user_data;
	sar_id id;
	struct object_meta meta; /* PUT, CREATE: of the object */
	uint64_t lease;		 /* that holds what it makes; 0: none */
	int64_t ttl_ns;		 /* of what it makes; 0: it stays */
	int64_t limit_ns;	 /* when all of it is late, its abort apart */
	sar_buffer buffer;	 /* what it has got, or is creating */
	uint64_t value;
	uint64_t upto; /* WAIT */
	int32_t result;
	uint32_t heap_at; /* from 1; 0: in none */
	uint32_t stores;  /* sar.stores when its slot was told */
	uint16_t kind;	  /* enum sar_op */
	uint8_t state;
	uint8_t short_runs;
	uint8_t missed; /* of a GET: objects in a row that had gone before they were pinned */
	unsigned left;	/* parts that have not ended */
	bool settled;	/* its parts have decided how it ends */
	bool walked;	/* somebody goes through its parts */
	bool nowait;
	bool retried;	/* an earlier control was sent the request as well */
	bool whole;	/* of a GET: all bytes */
	bool post;	/* the request has no answer */
	bool handed;	/* op_stop has left its request to mux */
	bool aborting;	/* what was under way is being given up */
	bool stale;	/* it is among the answered, and nobody wants that answer */
	bool cancelled; /* ends with -ECANCELED as soon as it can */
	bool making;	/* a creation is under way: it has a pin, and must be given up */
	bool creating;	/* and the node has answered */
	union {
		struct op_put {
			const struct iovec *iov; /* NULL: one */
			struct iovec one;
			struct put_source *from; /* instead of them, or NULL */
			unsigned count, turns;
			unsigned at; /* of iov; and bytes of that element that are done */
			uint64_t within;
			uint64_t size, done, published; /* bytes; those that readers may have */
		} put;
		struct op_reduce {
			const sar_id *sources;
			sar_reduction how;
			unsigned count, restarts; /* of an allreduce */
			int64_t until_ns, began_ns;
		} reduce;
		struct op_one {
			const struct mux_tail *tail; /* or NULL */
			size_t item_bytes;
			struct mux_result *out;
			int64_t given_ns, began_ns; /* its timeout, and since when */
		} one;
		struct op_gather {
			const sar_id *ids;
			sar_buffer *out; /* NULL: of sar_wait_any */
			unsigned count;
			uint8_t *there; /* of sar_wait_any, which num of them end */
			unsigned num;
		} gather;
		unsigned number; /* of a part of a gather */
		sar_info *info;
		struct reduce_listed *listed;
		struct op_watch {
			struct session_object *event; /* that completions are made of */
			size_t count, at;	      /* those before at are done */
			_Atomic bool more;	      /* mux has others */
			bool linked;		      /* in queue.watching */
		} watch;
		struct op_ranges {
			const sar_range *range;
			sar_range one; /* GET_INTO: range is that */
			unsigned count, at;
			uint64_t within;     /* bytes of that range that are there */
			uint64_t generation; /* of the object that bytes have come of; 0: none */
		} ranges;
		struct op_nodes {
			const uint32_t *node;
			unsigned count;
		} nodes;
	};
	char detail[SAR_DETAIL_MAX];
};

struct sar_queue {
	struct sar *s;
	struct sar_queue *next;
	pthread_mutex_t lock;
	struct run *run; /* the call that it is for; NULL: it is a user's */
	struct mux_watch watch;
	int epoll_fd, event_fd, timer_fd;
	pthread_mutex_t signal_lock;
	_Atomic unsigned armed; /* so many look at epoll_fd */
	_Atomic bool signalled; /* event_fd is readable; changed under signal_lock */
	_Atomic(struct op *) answered;
	struct op *op;	  /* capacity of them */
	struct op **user; /* by user_data */
	struct op **heap; /* by due_ns, from index 1 */
	unsigned capacity, users;
	unsigned used;	/* operations that are not free */
	unsigned fresh; /* those from here on were never taken */
	unsigned due;	/* in the heap */
	unsigned out;	/* requests that control has */
	unsigned freed; /* requests that it has answered, and not refused, in this turn */
	struct op *free;
	struct op_list pending, held, pinless, working, done;
	struct op_list watching; /* WATCH, OUT */
	int64_t held_ns;	 /* when those are tried again */
	int64_t timer_ns;	 /* what timer_fd is set to */
	bool ended;		 /* sar_end_waits was heard */
	bool full;		 /* the socket was */
	bool fd_given;		 /* sar_fd */
	uint64_t budget;	 /* bytes that may still be copied in this turn */
	struct words words;	 /* of the completions of the last poll */
};

/* queue/list.c: lists, the heap of deadlines, user_data. Under lock. */
void op_list_init(struct op_list *l);
void op_list_add(struct op_list *l, struct op *op);
void op_list_remove(struct op_list *l, struct op *op);
void queue_due(struct sar_queue *q, struct op *op, int64_t due_ns);
void queue_due_not(struct sar_queue *q, struct op *op);
void queue_user_add(struct sar_queue *q, struct op *op);
void queue_user_remove(struct op *op);
struct op *queue_user_find(struct sar_queue *q, struct op *after, uint64_t user_data);

/* queue.c. Under lock but the first four, and queue_drop. */
/* Empty, without memory for operations and without descriptors. */
void queue_init(struct sar_queue *q, struct sar *s);
/* 0 or -ENOMEM; then queue_memory_free as well. */
int queue_memory(struct sar_queue *q, unsigned capacity);
void queue_memory_free(struct sar_queue *q);
/* Does what there is to do, and takes completions: how many. */
unsigned queue_turn(struct sar_queue *q, sar_completion *out, unsigned room);
/* Gives back all that the operations have got. */
void queue_drop(struct sar_queue *q);
/* Makes the queue's descriptor readable. Any thread, no lock. */
void queue_signal(struct sar_queue *q);
/* Of all queues of the handle. */
void queue_signal_all(struct sar *s);
/* An operation, zeroed but for what every one has; NULL and error_set: none is left. */
struct op *queue_take(struct sar_queue *q, uint16_t kind, const sar_id *id, uint64_t user_data);
/* One that was not begun goes back. */
void queue_give(struct sar_queue *q, struct op *op);
/* Sends what waits to be sent. */
void queue_flush(struct sar_queue *q);
/* Takes the lock for a submission, when the handle can be used. 0 or -errno. */
int queue_enter(struct sar_queue *q);
/* Ends it: sends, gives the lock back, and returns r. */
int queue_leave(struct sar_queue *q, int r);

/* op.c: what every state machine uses. Under lock. */
/* op->request is to be sent; step hears the answer. until_ns is the time of all of it. */
void op_request(struct op *op, op_step *step);
/* Now so long is left for the request, but no longer than for all of the operation. */
void op_patience(struct op *op, int64_t timeout_ns);
/* How a timeout of the API ends. */
int64_t op_until(int64_t timeout_ns);
/* It has ended; result < 0 with the words of error_set. */
void op_finish(struct op *op, int result);
/* Like op_finish(), with words that name the object. */
void op_fail(struct op *op, int result);
/* Sends its request, if the socket has room: 0, -EAGAIN, or it is dealt with otherwise. */
int op_send(struct op *op);
/* Its answer is here, whatever it is, or its thread has ended. */
void op_answered(struct op *op);
/* It is answered in the next turn. Any thread, no lock. */
void op_back(struct op *op);
/* It cannot go on, as the words say. */
void op_broken(struct op *op, int error);
/* Gives back what the operation has got, or was creating. */
void op_release(struct op *op);
/* Control need not go on with the wait of that number. */
void op_tell_cancelled(struct sar *s, uint32_t seq);
/* Its time is over. */
void op_late(struct op *op);
/* Nobody wants it any more. False: it has ended, or cannot be taken back now. */
bool op_cancel(struct op *op);
/* Why it ends then: -ECANCELED. */
int op_cancelled_words(void);
/* It is in no list, and mux has none of it. */
void op_stop(struct op *op);
/* Makes op->request one of that kind, about op->id, and keeps its name. */
void op_new(struct op *op, uint16_t kind);
/* It waits for a buffer of the handle to be released; then step. */
void op_pinless(struct op *op, op_step *step);
/* Goes on in a later turn. */
void op_work(struct op *op, op_step *step);

/* Those that wait for a pin go on, as far as there are any. */
void queue_pins(struct sar_queue *q);

/* queue/get.c */
/* Gets op->id until op->until_ns, all bytes or as many as there are, and calls got. */
void op_get(struct op *op, bool whole, op_step *got);
/* Of the object in that slot, of that many bytes, until op->upto are readable. */
void op_wait_begin(struct op *op, uint64_t size, uint32_t slot, uint64_t generation,
		   uint32_t stores);
/* queue/ranges.c */
/* op->ranges into the caller's memory. */
void op_ranges_begin(struct op *op);
/* The whole object, at most so many bytes. */
void op_into_begin(struct op *op, void *memory, uint64_t bytes);
/* Fills in the ranges that follow a GET_RANGES. Returns how many. */
unsigned op_ranges_named(const struct op *op, struct object_range out[SESSION_RANGES_MAX]);
/* queue/put.c */
void op_put_begin(struct op *op);
/* The bytes of a small one, in one piece. */
void op_put_gather(const struct op *op, uint8_t *to);
/* Creates op->id in op->buffer, and calls done. */
void op_create_begin(struct op *op, uint64_t size, op_step *done);
/* A CREATE that has not been answered is not wanted any more. */
void op_create_lost(struct op *op);
/* SEAL of op->buffer. */
void op_seal_begin(struct op *op);
/* The object that it has made is to be deleted after op->ttl_ns; then step. */
void op_expire(struct op *op, op_step *step);
/* Ends what it was creating, then itself, with result and the words of error_set. */
void op_put_abort(struct op *op, int result);
/* queue/parts.c: operations that are made of others */
/* count parts, of kinds and ids that follow; NULL and error_set: the queue has no room. */
struct op *queue_take_parts(struct sar_queue *q, struct op *parent, unsigned count);
void op_gather_begin(struct op *op);
void op_reduce_begin(struct op *op, op_step *begun);
/* It is begun: waits for its end, or ends now. */
void op_reduce_begun(struct op *op, int status);
void op_reduce_left(struct op *op, int status);
/* Lists the sources of a reduce in op->listed: when it has ended, or how far it is. */
void op_reduce_list(struct op *op, bool progress);
void op_allreduce_begin(struct op *op);
/* A part has ended. */
void op_part_ended(struct op *part);
/* Ends all of them, and the operation with the last one. */
void op_parts_cancel(struct op *op);
/* Those of an operation that has ended go back. */
void op_parts_give(struct op *op);

/* queue/watch.c */
void op_watch_begin(struct op *op);
/* Its request is out; it is not any more. */
void op_watch_out(struct op *op);
void op_watch_in(struct op *op);
/* The request is sent to another control. */
void op_watch_retry(struct op *op);
/* Fills completions with its events: how many. */
unsigned op_watch_fill(struct op *op, sar_completion *out, unsigned room);
/* Takes the events of all watches that are under way. */
unsigned queue_watched(struct sar_queue *q, sar_completion *out, unsigned room);
bool queue_watch_left(const struct sar_queue *q);
/* Drops the events that the watch has not told. */
void op_watch_free(struct op *op);

/* queue/group.c */
/* The bytes behind a request to the owner of a group. */
struct iovec op_group_bytes(const struct op *op);
/* Whether -EAGAIN is the owner's answer, and does not mean that the node has no room. */
bool op_group_refuses(const struct op *op);
/* Whether a cancelled operation has to hear its answer, or its thread, first. That is told to end.
 */
bool op_group_stays(struct op *op);
/* The queue is closed: its member is free again, or leaves. */
void op_group_release(struct op *op);
void op_group_free(struct op *op);

/* joiner.c: the thread that connects again while operations wait for that. */
void joiner_want(struct sar *s);
/* 0, or why there will be no connection: then words has the reason. */
int joiner_error(struct sar *s, char words[SAR_DETAIL_MAX]);
void joiner_stop(struct sar *s);

#endif
