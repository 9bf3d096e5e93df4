/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls that wait: each is an operation in a queue of its own, which lies in the frame of the call.
 * Only the calling thread knows the queue. It has no descriptor: the thread reads the connection,
 * or sleeps while another one reads (mux.h), and it connects to another control itself (rejoin.h).
 * In place of what a queue waits for longer than its user would, a call fails: when the node has
 * too many requests at hand (-EAGAIN), and when there is no pin (-EMFILE).
 *
 *   run_begin; sar_submit_X(&run.q, ...) or an operation of one's own; run_end
 */
#ifndef SARISSA_CLIENT_QUEUE_RUN_H
#define SARISSA_CLIENT_QUEUE_RUN_H

#include "api/error.h"
#include "link/interrupt.h"
#include "queue.h"

struct run {
	struct sar_queue q;
	struct mux_waiter waiter;
	struct error_kept words; /* of its failure */
	struct interrupt before; /* interrupted: what has said so */
	int64_t tidy_ns;	 /* interrupted: when the call ends, whatever is under way */
	bool interrupted;
	/* of a queue for one operation */
	struct op op;
	struct op *user, *heap[2];
};

/* A queue for so many operations. 0, -EINVAL in a forked child, or -ENOMEM. */
int run_begin(struct run *run, struct sar *s, unsigned capacity);
/* r: of the submission; below 0: what is under way goes back. Runs its operation to the end, or
 * until the thread is interrupted: r, or the result, with its words. */
int run_end(struct run *run, int r, sar_completion *out);

/*
 * One request and its answer; returns the node's status. If control goes before it has answered,
 * the request is repeated at the next one. timeout_ns is for all of it: GET, WAIT and REDUCED carry
 * what is left of it; a positive time in the request is shortened by what has passed. tail, or
 * NULL: bytes and a descriptor that go along. On success the caller must free out with
 * mux_result_free. Otherwise it is empty but for retried. -ENOTCONN: no control within the timeout.
 */
int run_request(struct sar *s, const struct session_request *request, const struct mux_tail *tail,
		size_t item_bytes, int64_t timeout_ns, struct mux_result *out);

/* Like run_request(), where the answer is only a status. *retried, unless NULL: an earlier control
 * may have done it already. */
int run_command(struct sar *s, const struct session_request *request, int64_t timeout_ns,
		bool *retried);

#endif
