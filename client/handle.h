/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a sar is: one connection to the local node, and how its calls are made. Any thread.
 *
 * After fork() the child must not use the handle: it would share the parent's socket and pins. A
 * page that the kernel clears in the child (MADV_WIPEONFORK) tells, without a system call.
 */
#ifndef SARISSA_CLIENT_HANDLE_H
#define SARISSA_CLIENT_HANDLE_H

#include "internal/object_table.h"
#include "map.h"
#include "mux.h"
#include "pins.h"
#include "sarissa/sarissa.h"

struct sar {
	struct mux mux;
	struct map map;
	struct pins pins;
	uint64_t control_epoch; /* as it was at ATTACH */
	uint32_t *fork_guard;	/* 0 in a forked child */
};

/* How long control may take over a request that needs no waiting. */
#define HANDLE_CALL_NS (30 * 1000000000ll)

/*
 * 0, or why the handle is of no use: -EINVAL in a forked child, -ENOTCONN when control is known to
 * be gone or another one has taken over. No system call.
 */
int handle_check(const struct sar *s);

/* A request about the object, with everything else zero. */
struct session_request handle_request(uint16_t op, const sar_id *id);

/* Sets the name; NULL: none. -ENAMETOOLONG. */
int handle_name(struct session_request *request, const char *name);

/* A timeout as the protocol has it. */
static inline int64_t handle_timeout(int64_t timeout_ns)
{
	return timeout_ns == SAR_FOREVER ? -1 : timeout_ns;
}

/*
 * Checks the handle, makes the call, turns a status of the node into the return value (the node's
 * words into the detail). On success out is the caller's to free with mux_result_free; otherwise
 * it holds nothing, and out->abandoned says whether the pin of the request is still lent out.
 */
int handle_call(struct sar *s, struct session_request *request, size_t item_bytes,
		int64_t deadline_ns, struct mux_result *out);

/* handle_call with bytes that follow the request in its packet. */
int handle_call_tail(struct sar *s, struct session_request *request, const struct iovec *tail,
		     size_t item_bytes, int64_t deadline_ns, struct mux_result *out);

/* handle_call for requests whose answer is only a status. */
int handle_command(struct sar *s, struct session_request *request);

/* When to stop waiting for an answer that control itself gives up after timeout_ns. Control has
 * the first word, because it knows the reason; a control that hangs is given up soon after. */
int64_t handle_deadline(int64_t timeout_ns);

/* Takes a pin index for a call. -EMFILE. */
int handle_take_pin(struct sar *s, uint32_t *out);

#endif
