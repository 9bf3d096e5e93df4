/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many calls under way on one socket to the node's control process, each with its own time limit.
 *
 * A request gets a sequence number; replies may come in any order. There is no thread of our own:
 * among the threads that wait, one reads the socket and wakes the others as their replies arrive;
 * when it has its own it hands the reading over to another. The thread that reads ends the calls of
 * all. A CREATE or GET_RANGES that is dropped leaves a stand-in behind: when the reply comes after
 * all, late() undoes what the node did.
 *
 * Any thread may call. Once the peer has died or has sent nonsense every call, present and future,
 * ends with the same error, until mux_reopen brings another socket.
 */
#ifndef SARISSA_CLIENT_LINK_MUX_H
#define SARISSA_CLIENT_LINK_MUX_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>
#include "internal/session.h"

enum { MUX_FDS_MAX = 3 };

#define MUX_ENDED_TEXT "the connection is being closed: open another one"

struct mux_result {
	struct session_reply reply;
	int fd[MUX_FDS_MAX]; /* the caller's to close */
	unsigned fds;
	void *items; /* what followed the replies, item_bytes each; free() it */
	size_t item_bytes;
	size_t items_count;
	size_t items_room;
	uint32_t epoch; /* of the socket that the answer came from */
	bool retried;	/* an earlier control was sent the request as well */
};

/* Bytes and descriptors that go along with a request. */
struct mux_tail {
	struct iovec bytes; /* behind it in the same packet */
	int fd;		    /* -1: none; it stays the caller's */
};

/* A thread that waits for answers. Of its owner, zeroed but for waits. */
struct mux_waiter {
	struct mux_waiter *before; /* among the sleepers */
	struct mux_waiter *after;
	pthread_cond_t wake;
	bool woken; /* a call of it has ended. Under lock */
	bool waits; /* for what may never come: mux_end_waits ends that */
};

/*
 * One request that is not answered yet. It belongs to its sender, who must not touch it between
 * mux_submit and its end (or mux_drop). The stand-in of a sender that has left is of mux.
 */
struct mux_call {
	struct mux_call *next;	   /* in its bucket */
	struct mux_waiter *waiter; /* who is woken at the end of it, or NULL */
	/* The end of it, called once, under lock, in any thread; it must not call back. Or NULL. */
	void (*ended)(struct mux_call *call);
	/* Called when an item has come and more may: WATCH. NULL: items are kept until the end.
	 */
	void (*more)(struct mux_call *call);
	struct mux_result result;
	uint32_t seq;
	uint32_t pin;
	uint32_t epoch; /* of the socket that the request went to */
	uint16_t op;
	bool abandoned; /* its caller has left */
	bool done;
	int error; /* when done: 0, or why there is no answer */
};

/* An epoll descriptor that is readable when the socket is. Of its owner; linked by mux_watch. */
struct mux_watch {
	struct mux_watch *next;
	int epoll_fd;
	bool writable; /* and when it can be written to */
	bool inside;   /* the socket is in it */
	/* The connection has gone, or has come back. Under lock; it must not call back. */
	void (*changed)(struct mux_watch *watch);
};

struct mux {
	int fd;
	_Atomic int error;	/* 0, or why no call can succeed any more: -errno */
	_Atomic uint32_t epoch; /* of the socket: how many there were before */
	_Atomic bool ended;	/* nobody is to wait any more */
	int wake_fd;		/* eventfd: readable once ended */
	pthread_mutex_t lock;
	/* all below: under lock */
	struct mux_call **bucket; /* by sequence number */
	uint32_t buckets;	  /* a power of two */
	uint32_t calls;
	struct mux_waiter *sleepers;
	struct mux_watch *watches;
	uint32_t last_seq;
	bool reading; /* some caller is in recvmsg without the lock */
	/* The end of a call that its caller gave up: a reply, or status -ENOTCONN. Runs under lock
	 * in some caller's thread; may take result->fd by setting fds to 0; may mux_post. */
	void (*late)(void *owner, uint16_t op, uint32_t pin, struct mux_result *result);
	void *owner;
};

/* Takes fd over, unless it fails: -ENOMEM, -EMFILE. */
int mux_init(struct mux *m, int fd,
	     void (*late)(void *owner, uint16_t op, uint32_t pin, struct mux_result *result),
	     void *owner);
/* Closes the socket and forgets the abandoned calls. No other thread may be in a call. */
void mux_fini(struct mux *m);
/* Ends all calls with error. */
void mux_break(struct mux *m, int error);
/* Ends the waits for what may never happen (mux_waits), now and later. The connection goes on. */
void mux_end_waits(struct mux *m);
/* After mux_break, or an error by itself: calls go to the peer of fd, which is taken over, from now
 * on. 0 or -errno. */
int mux_reopen(struct mux *m, int fd);

/*
 * Sends request (magic, version and seq are filled in here) with tail (or NULL), and waits for the
 * whole answer until deadline_ns. Returns 0 and sets out (whose reply.status may still be an
 * error), or -ETIMEDOUT, -EINTR, -ENOTCONN, -EPROTO, -ENOMEM; then out is empty.
 * item_bytes: length of what may follow a reply to this request, or 0.
 */
int mux_call(struct mux *m, struct session_request *request, const struct mux_tail *tail,
	     size_t item_bytes, int64_t deadline_ns, struct mux_result *out);

void mux_waiter_init(struct mux_waiter *w);
/* None of its calls is under way. */
void mux_waiter_fini(struct mux *m, struct mux_waiter *w);
/* Until a call of the waiter has ended: true. False: the time is over, the thread is interrupted,
 * or nobody is to wait. It reads for all, or sleeps while another thread does. */
bool mux_wait(struct mux *m, struct mux_waiter *w, int64_t deadline_ns);
/* Until the socket has room for a request, or one of those. */
void mux_wait_room(struct mux *m, const struct mux_waiter *w, int64_t deadline_ns);

/*
 * Sends request without waiting for anything; call->ended hears how it ends. call is zeroed but for
 * waiter, ended and more. item_bytes as in mux_call. 0; -EAGAIN: the socket is full, -ENOTCONN:
 * there is none; then ended is not called for it.
 */
int mux_submit(struct mux *m, struct mux_call *call, struct session_request *request,
	       const struct mux_tail *tail, size_t item_bytes);
/* The sender wants no answer any more: ended is not called for it from now on. What a late answer
 * to a CREATE brings is given back by late(). False: it has ended already. */
bool mux_drop(struct mux *m, struct mux_call *call);
/* Takes the items that have come so far, when call->more was called: how many. *items is the
 * caller's to free. */
size_t mux_items(struct mux *m, struct mux_call *call, void **items);
/* Reads what is there, at most so many packets, without waiting. Nothing when a caller reads. */
void mux_pump(struct mux *m, unsigned packets);
/* The socket is in the watch's epoll descriptor from now on, whenever there is one. */
void mux_watch(struct mux *m, struct mux_watch *watch);
void mux_unwatch(struct mux *m, struct mux_watch *watch);
/* Whether the watch waits for room in the socket as well. */
void mux_watch_writable(struct mux *m, struct mux_watch *watch, bool writable);

/* Sends a request whose answer nobody wants, without waiting. 0 or -errno. */
int mux_post(struct mux *m, struct session_request *request);

/* Frees what a result holds. */
void mux_result_free(struct mux_result *result);

/* Whether control answers such a request only when something has happened. */
static inline bool mux_waits(uint16_t op)
{
	return op == SESSION_GET || op == SESSION_GET_RANGES || op == SESSION_WAIT ||
	       op == SESSION_REDUCED || op == SESSION_BROADCAST || op == SESSION_WATCH ||
	       op == SESSION_GROUP;
}

/* Whether such calls are not to wait any more. No lock, no system call. */
static inline bool mux_ended(const struct mux *m, uint16_t op)
{
	return mux_waits(op) && atomic_load_explicit(&m->ended, memory_order_relaxed);
}

/* 0, or why the connection is of no use any more. No lock, no system call. */
static inline int mux_error(const struct mux *m)
{
	return atomic_load_explicit(&m->error, memory_order_relaxed);
}

#endif
