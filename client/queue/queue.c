/* SPDX-License-Identifier: BSD-3-Clause */
/* Queues: opening, polling, closing. What operations do is in op.c. */
#include "queue.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "deadline.h"
#include "api/error.h"
#include "internal/program/standard_fds.h"

enum {
	QUEUE_RETRIES = 64,	    /* without an answer that shows room */
	QUEUE_PACKETS = 256,	    /* that are read in one turn */
	QUEUE_COPY_BYTES = 4 << 20, /* that are copied in one turn */
};

/* ---- who looks at the descriptor ------------------------------------------------------------ */

void queue_signal(struct sar_queue *q)
{
	if (atomic_load(&q->armed) == 0)
		return;
	pthread_mutex_lock(&q->signal_lock);
	if (!atomic_load(&q->signalled)) {
		atomic_store(&q->signalled, true);
		eventfd_write(q->event_fd, 1);
	}
	pthread_mutex_unlock(&q->signal_lock);
}

/* A signal from here on is seen in the next turn. */
static void queue_hush(struct sar_queue *q)
{
	eventfd_t count;
	if (!atomic_load(&q->signalled))
		return;
	pthread_mutex_lock(&q->signal_lock);
	eventfd_read(q->event_fd, &count);
	atomic_store(&q->signalled, false);
	pthread_mutex_unlock(&q->signal_lock);
}

void queue_signal_all(struct sar *s)
{
	pthread_mutex_lock(&s->queues_lock);
	for (struct sar_queue *q = s->queues; q; q = q->next)
		queue_signal(q);
	pthread_mutex_unlock(&s->queues_lock);
}

static void queue_changed(struct mux_watch *watch)
{
	queue_signal((struct sar_queue *)((char *)watch - offsetof(struct sar_queue, watch)));
}

/* Under lock. */
static void queue_timer(struct sar_queue *q)
{
	int64_t next_ns = q->due > 0 ? q->heap[1]->due_ns : DEADLINE_NEVER;
	if (q->held.first && q->held_ns < next_ns)
		next_ns = q->held_ns;
	if (atomic_load(&q->armed) == 0 || next_ns >= q->timer_ns)
		return;
	struct itimerspec at = {.it_value = {next_ns / 1000000000, next_ns % 1000000000}};
	timerfd_settime(q->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
	q->timer_ns = next_ns;
}

/* Under lock: what is left to do is done in another turn. */
static void queue_rearm(struct sar_queue *q)
{
	if (q->done.first || q->working.first || queue_watch_left(q))
		queue_signal(q);
	queue_timer(q);
}

/* ---- operations ----------------------------------------------------------------------------- */

struct op *queue_take(struct sar_queue *q, uint16_t kind, const sar_id *id, uint64_t user_data)
{
	struct op *op = q->free;
	if (op)
		q->free = op->next;
	else if (q->fresh < q->capacity)
		op = &q->op[q->fresh++];
	if (!op) {
		error_set(-EAGAIN,
			  "%u operations are under way in this queue: poll it, or open one of a "
			  "larger capacity",
			  q->capacity);
		return NULL;
	}
	q->used++;
	memset(op, 0, offsetof(struct op, detail));
	op->detail[0] = '\0';
	op->queue = q;
	op->kind = kind;
	op->user_data = user_data;
	op->until_ns = op->due_ns = op->limit_ns = DEADLINE_NEVER;
	op->lease = leases_current(&q->s->leases);
	op->request.pin = SESSION_PIN_NONE;
	if (id)
		op->id = *id;
	return op;
}

void queue_give(struct sar_queue *q, struct op *op)
{
	mux_result_free(&op->call.result);
	op_watch_free(op);
	op_group_free(op);
	op->state = OP_FREE;
	if (op->stale) /* when it is taken from the answered */
		return;
	q->used--;
	op->next = q->free;
	q->free = op;
}

/* The connection has gone, and nobody will bring another one: what waits for that ends. */
static void queue_lost(struct sar_queue *q)
{
	char words[SAR_DETAIL_MAX];
	int error = joiner_error(q->s, words);
	if (error == 0) {
		joiner_want(q->s);
		return;
	}
	for (struct op *op; (op = q->pending.first) != NULL;) {
		error_set(error, "%s", words);
		op_broken(op, error);
	}
}

void queue_flush(struct sar_queue *q)
{
	bool full = false;
	while (q->pending.first && !full) {
		if (handle_lost(q->s)) {
			if (!q->run)
				queue_lost(q);
			return;
		}
		full = op_send(q->pending.first) == -EAGAIN;
	}
	if (full != q->full && !q->run)
		mux_watch_writable(&q->s->mux, &q->watch, full);
	q->full = full;
}

int queue_enter(struct sar_queue *q)
{
	int r = handle_check(q->s);
	if (r == 0)
		pthread_mutex_lock(&q->lock);
	return r;
}

int queue_leave(struct sar_queue *q, int r)
{
	struct error_kept words;
	error_keep(&words);
	queue_pins(q);
	queue_flush(q);
	queue_rearm(q);
	error_restore(&words);
	pthread_mutex_unlock(&q->lock);
	return r;
}

/* ---- a turn --------------------------------------------------------------------------------- */

static void queue_answers(struct sar_queue *q)
{
	struct op *latest = atomic_exchange(&q->answered, NULL), *first = NULL;
	while (latest) {
		struct op *op = latest;
		latest = op->answered;
		op->answered = first;
		first = op;
	}
	while (first) {
		struct op *op = first;
		first = op->answered;
		if (!op->stale) {
			op_answered(op);
			continue;
		}
		op->stale = false;
		if (op->state == OP_FREE)
			queue_give(q, op);
	}
}

/* So many of those that the node had no room for. */
static void queue_retry(struct sar_queue *q, unsigned count)
{
	for (struct op *op; count > 0 && (op = q->held.first); count--) {
		op_list_remove(&q->held, op);
		op->state = OP_PENDING;
		op_list_add(&q->pending, op);
	}
}

static void queue_copy(struct sar_queue *q)
{
	q->budget = QUEUE_COPY_BYTES;
	for (struct op *op; q->budget > 0 && (op = q->working.first);) {
		op_list_remove(&q->working, op);
		op->step(op, 0);
	}
}

static void queue_times(struct sar_queue *q)
{
	uint64_t count;
	bool timed = q->timer_ns < DEADLINE_NEVER || q->due > 0 || q->held.first;
	int64_t now_ns = timed ? deadline_now() : 0;
	if (q->timer_ns <= now_ns) { /* read, or its descriptor stays readable */
		q->timer_ns = DEADLINE_NEVER;
		if (read(q->timer_fd, &count, sizeof(count)) < 0)
			count = 0; /* it was set to later */
	}
	while (q->due > 0 && q->heap[1]->due_ns <= now_ns)
		op_late(q->heap[1]);
	if (q->held.first && q->held_ns <= now_ns) {
		queue_retry(q, QUEUE_RETRIES);
		q->held_ns = now_ns + QUEUE_HELD_NS;
	}
}

/* sar_end_waits. */
static void queue_end_waits(struct sar_queue *q)
{
	if (!q->run)
		epoll_ctl(q->epoll_fd, EPOLL_CTL_DEL, q->s->mux.wake_fd, NULL);
	q->ended = true;
	for (unsigned i = 0; i < q->fresh; i++) {
		struct op *op = &q->op[i];
		if (op->state >= OP_PENDING && op->state <= OP_PINLESS && mux_waits(op->request.op))
			op_broken(op, error_set(-ESHUTDOWN, MUX_ENDED_TEXT));
	}
}

static void queue_fill(struct sar_queue *q, const struct op *op, sar_completion *out)
{
	*out = (sar_completion){.user_data = op->user_data,
				.result = op->result,
				.op = op->kind,
				.id = op->id,
				.value = op->value,
				.buffer = op->buffer};
	if (op->result < 0 && !q->run)
		words_add(&q->words, out, op->detail, sizeof(op->detail));
}

static unsigned queue_harvest(struct sar_queue *q, sar_completion *out, unsigned room)
{
	unsigned count = queue_watched(q, out, room);
	for (struct op *op; count < room && (op = q->done.first);) {
		count += op_watch_fill(op, out + count, room - count);
		if (count == room)
			break;
		op_list_remove(&q->done, op);
		queue_fill(q, op, &out[count++]);
		queue_give(q, op);
	}
	return count;
}

unsigned queue_turn(struct sar_queue *q, sar_completion *out, unsigned room)
{
	queue_hush(q);
	if (atomic_load(&q->s->mux.ended) && !q->ended)
		queue_end_waits(q);
	if (!q->run && (q->out > 0 || atomic_load(&q->armed) > 0))
		mux_pump(&q->s->mux, QUEUE_PACKETS);
	q->freed = 0;
	queue_answers(q);
	queue_retry(q, q->freed);
	queue_times(q);
	queue_copy(q);
	queue_pins(q);
	queue_flush(q);
	unsigned count = queue_harvest(q, out, room);
	queue_rearm(q);
	return count;
}

/* first: of the poll that the user has called. */
static int queue_poll(sar_queue *q, sar_completion *out, unsigned room, bool first)
{
	struct error_kept words;
	int r = queue_enter(q);
	if (r < 0)
		return r;
	if (first)
		words_clear(&q->words);
	error_keep(&words); /* what fails in here is not the caller's call */
	r = (int)queue_turn(q, out, room < INT32_MAX ? room : INT32_MAX);
	error_restore(&words);
	pthread_mutex_unlock(&q->lock);
	return r;
}

int sar_poll(sar_queue *q, sar_completion *out, unsigned room)
{
	return queue_poll(q, out, room, true);
}

static void queue_sleep(const struct sar_queue *q, int64_t until_ns)
{
	struct pollfd on = {.fd = q->epoll_fd, .events = POLLIN};
	int64_t left_ns = deadline_left(until_ns);
	struct timespec left = {left_ns / 1000000000, left_ns % 1000000000};
	ppoll(&on, 1, until_ns == DEADLINE_NEVER ? NULL : &left, NULL);
}

int sar_poll_wait(sar_queue *q, sar_completion *out, unsigned room, unsigned min,
		  int64_t timeout_ns)
{
	if (timeout_ns < 0)
		return error_set(-EINVAL, "sar_poll_wait: a timeout is not negative: use "
					  "SAR_FOREVER to wait without limit");
	int count = sar_poll(q, out, room);
	if (count < 0 || (unsigned)count >= min || (unsigned)count == room || timeout_ns == 0)
		return count;
	int64_t until_ns = timeout_ns == SAR_FOREVER ? DEADLINE_NEVER : deadline_after(timeout_ns);
	atomic_fetch_add(&q->armed, 1);
	for (;;) {
		count += queue_poll(q, out + count, room - (unsigned)count, false);
		pthread_mutex_lock(&q->lock);
		bool idle = q->used == 0;
		pthread_mutex_unlock(&q->lock);
		if (idle || (unsigned)count >= min || (unsigned)count == room ||
		    deadline_left(until_ns) == 0)
			break;
		queue_sleep(q, until_ns);
	}
	atomic_fetch_sub(&q->armed, 1);
	return count;
}

int sar_fd(sar_queue *q)
{
	int r = queue_enter(q);
	if (r < 0)
		return r;
	if (!q->fd_given)
		atomic_fetch_add(&q->armed, 1);
	q->fd_given = true;
	if (atomic_load(&q->answered)) /* before anybody looked */
		queue_signal(q);
	queue_leave(q, 0);
	return q->epoll_fd;
}

int sar_cancel(sar_queue *q, uint64_t user_data)
{
	int count = 0;
	int r = queue_enter(q);
	if (r < 0)
		return r;
	for (struct op *op = queue_user_find(q, NULL, user_data), *next; op; op = next) {
		next = queue_user_find(q, op, user_data);
		count += op_cancel(op);
	}
	return queue_leave(q,
			   count ? count
				 : error_set(-ENOENT, "no operation of this user_data is under "
						      "way: its completion may wait for sar_poll"));
}

/* ---- coming and going ----------------------------------------------------------------------- */

static int queue_add(int epoll_fd, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};
	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

static int queue_descriptors(struct sar_queue *q)
{
	q->epoll_fd = standard_fds_above(epoll_create1(EPOLL_CLOEXEC));
	q->event_fd = standard_fds_above(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	q->timer_fd =
		standard_fds_above(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
	if (q->epoll_fd >= 0 && q->event_fd >= 0 && q->timer_fd >= 0 &&
	    queue_add(q->epoll_fd, q->event_fd) == 0 && queue_add(q->epoll_fd, q->timer_fd) == 0 &&
	    queue_add(q->epoll_fd, q->s->mux.wake_fd) == 0)
		return 0;
	return error_set(-errno,
			 "cannot make a descriptor for the queue: %s: raise the limit of "
			 "open files (ulimit -n)",
			 strerrordesc_np(errno));
}

static void queue_free(struct sar_queue *q)
{
	if (q->epoll_fd >= 0)
		close(q->epoll_fd);
	if (q->event_fd >= 0)
		close(q->event_fd);
	if (q->timer_fd >= 0)
		close(q->timer_fd);
	queue_memory_free(q);
	words_free(&q->words);
	free(q);
}

void queue_memory_free(struct sar_queue *q)
{
	free(q->op);
	free(q->user);
	free(q->heap);
}

/* Memory of an operation that is never used is never touched. */
int queue_memory(struct sar_queue *q, unsigned capacity)
{
	q->capacity = capacity;
	q->users = 16;
	while (q->users < capacity)
		q->users *= 2;
	q->op = calloc(capacity, sizeof(*q->op));
	q->user = calloc(q->users, sizeof(*q->user));
	q->heap = calloc((size_t)capacity + 1, sizeof(*q->heap));
	return q->op && q->user && q->heap ? 0 : error_set(-ENOMEM, "out of memory");
}

void queue_init(struct sar_queue *q, struct sar *s)
{
	*q = (struct sar_queue){
		.s = s, .epoll_fd = -1, .event_fd = -1, .timer_fd = -1, .timer_ns = DEADLINE_NEVER};
	pthread_mutex_init(&q->lock, NULL);
	pthread_mutex_init(&q->signal_lock, NULL);
	op_list_init(&q->pending);
	op_list_init(&q->held);
	op_list_init(&q->pinless);
	op_list_init(&q->working);
	op_list_init(&q->done);
	op_list_init(&q->watching);
}

int sar_queue_open(sar *s, unsigned capacity, sar_queue **out)
{
	int r = handle_check(s);
	if (r < 0)
		return r;
	if (!out || capacity == 0 || capacity > QUEUE_CAPACITY_MAX)
		return error_set(-EINVAL, "sar_queue_open: a queue is for 1 to %d operations",
				 QUEUE_CAPACITY_MAX);
	struct sar_queue *q = malloc(sizeof(*q));
	if (!q)
		return error_set(-ENOMEM, "out of memory");
	queue_init(q, s);
	r = queue_memory(q, capacity);
	if (r == 0)
		r = queue_descriptors(q);
	if (r < 0) {
		queue_free(q);
		return r;
	}
	q->watch = (struct mux_watch){.epoll_fd = q->epoll_fd, .changed = queue_changed};
	mux_watch(&s->mux, &q->watch);
	pthread_mutex_lock(&s->queues_lock);
	q->next = s->queues;
	s->queues = q;
	pthread_mutex_unlock(&s->queues_lock);
	*out = q;
	return 0;
}

static void queue_unlink(struct sar_queue *q)
{
	struct sar *s = q->s;
	pthread_mutex_lock(&s->queues_lock);
	for (struct sar_queue **at = &s->queues; *at; at = &(*at)->next) {
		if (*at == q) {
			*at = q->next;
			break;
		}
	}
	pthread_mutex_unlock(&s->queues_lock);
}

void queue_drop(struct sar_queue *q)
{
	for (unsigned i = 0; i < q->fresh; i++) {
		struct op *op = &q->op[i];
		uint32_t seq = op->request.seq;
		bool waits = op->state == OP_OUT && mux_waits(op->request.op);
		if (op->state == OP_FREE)
			continue;
		if (op->state != OP_DONE)
			op_stop(op);
		mux_result_free(&op->call.result);
		op_watch_free(op);
		if (waits)
			op_tell_cancelled(q->s, seq);
		op_release(op);
		op_group_release(op);
	}
}

void sar_queue_close(sar_queue *q)
{
	if (!q)
		return;
	/* In a forked child all of it is the parent's, but for the memory and the descriptors. */
	if (*q->s->fork_guard != 0) {
		queue_unlink(q);
		pthread_mutex_lock(&q->lock);
		queue_drop(q);
		pthread_mutex_unlock(&q->lock);
		mux_unwatch(&q->s->mux, &q->watch);
	}
	queue_free(q);
}
