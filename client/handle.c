/* SPDX-License-Identifier: BSD-3-Clause */
#include "handle.h"

#include <errno.h>
#include "deadline.h"
#include "error.h"
#include "queue.h"
#include "rejoin.h"

int handle_check(const struct sar *s)
{
	if (*(const volatile uint32_t *)s->fork_guard != 0)
		return 0;
	return error_set(-EINVAL, "this connection belongs to the parent process: open another one "
				  "after fork");
}

bool handle_replaced(const struct sar *s)
{
	return atomic_load_explicit(&s->map.table->control_epoch, memory_order_relaxed) !=
	       atomic_load_explicit(&s->control_epoch, memory_order_relaxed);
}

bool handle_lost(const struct sar *s)
{
	return mux_error(&s->mux) != 0 || handle_replaced(s);
}

struct session_request handle_request(uint16_t op, const sar_id *id)
{
	struct session_request request = {.op = op, .pin = SESSION_PIN_NONE};
	if (id)
		memcpy(request.id.bytes, id->bytes, sizeof(request.id.bytes));
	return request;
}

int handle_name(struct session_request *request, const char *name)
{
	if (name && strlen(name) > SAR_NAME_MAX)
		return error_set(-ENAMETOOLONG, "the name has %zu bytes: use at most %d",
				 strlen(name), SAR_NAME_MAX);
	strcpy(request->name, name ? name : "");
	return 0;
}

/* When to stop waiting for an answer that control itself gives up after timeout_ns. Control has
 * the first word, because it knows the reason: only one that hangs takes longer than the grace. */
static int64_t handle_deadline(int64_t timeout_ns)
{
	const int64_t grace_ns = 1000000000;
	int64_t deadline = deadline_after(timeout_ns == 0 ? SESSION_DIRECTORY_NS : timeout_ns);
	return deadline > DEADLINE_NEVER - grace_ns ? DEADLINE_NEVER : deadline + grace_ns;
}

/* One try. -ENOTCONN: control went before it answered. */
static int handle_try(struct sar *s, struct session_request *request, const struct mux_tail *tail,
		      size_t item_bytes, int64_t timeout_ns, int64_t until_ns,
		      struct mux_result *out)
{
	if (!mux_waits(request->op))
		return mux_call(&s->mux, request, tail, item_bytes, until_ns, out);
	int64_t left = deadline_left(until_ns);
	if (timeout_ns > 0 && left == 0)
		left = 1; /* 0 would be another question */
	request->timeout_ns = left == SAR_FOREVER ? -1 : left;
	return mux_call(&s->mux, request, tail, item_bytes, handle_deadline(left), out);
}

/* A request that is the end of each control that it meets must not meet many. */
#define HANDLE_SHORT_RUN_NS   1000000000
#define HANDLE_SHORT_RUNS_MAX 5

/* Whose parts of the directory are missing, of the items of a STAT or LIST. */
static void handle_missing(const struct mux_result *result)
{
	const struct session_object *object = result->items;
	bool objects = result->item_bytes == sizeof(*object);
	for (size_t i = 0; objects && i < result->items_count; i++)
		if (object[i].flags & SESSION_OBJECT_MISSING)
			error_set_node(object[i].holder[0].node);
}

int handle_name_slot(const struct sar *s, uint32_t slot, uint64_t generation, int error)
{
	struct object_slot image;
	if (slot < s->map.table->slots && object_slot_read(s->map.table, slot, &image) &&
	    image.generation == generation)
		return error_name(error, image.id.bytes, NULL);
	return error;
}

/* The node's words need not say which object they are about. */
static int handle_name_object(struct sar *s, const struct session_request *request, int error)
{
	switch (request->op) {
	case SESSION_GET:
	case SESSION_CREATE:
	case SESSION_PUT:
	case SESSION_DELETE:
	case SESSION_STAT:
	case SESSION_REDUCE:
	case SESSION_REDUCED:
	case SESSION_HOLD:
	case SESSION_RELEASE:
	case SESSION_EXPIRE:
		return error_name(error, request->id.bytes, request->name);
	case SESSION_PUBLISH:
	case SESSION_SEAL:
	case SESSION_ABORT:
	case SESSION_WAIT:
		return handle_name_slot(s, request->slot, request->generation, error);
	default:
		return error;
	}
}

int handle_call(struct sar *s, struct session_request *request, const struct mux_tail *tail,
		size_t item_bytes, int64_t timeout_ns, struct mux_result *out)
{
	int64_t until_ns = timeout_ns == SAR_FOREVER ? DEADLINE_NEVER : deadline_after(timeout_ns);
	int64_t began_ns = deadline_now(), given_ns = request->timeout_ns;
	int64_t given_deadline_ns = request->reduction.deadline_ns;
	bool retried = false;
	*out = (struct mux_result){0};
	for (unsigned short_runs = 0;; retried = true) {
		int r = rejoin(s, request->op, until_ns);
		if (r < 0)
			return r;
		int64_t tried_ns = deadline_now();
		if (retried && (request->op == SESSION_CREATE || request->op == SESSION_SEAL ||
				request->op == SESSION_REDUCE))
			request->flags |= SESSION_FLAG_RETRY;
		if (retried)
			request->reduction.deadline_ns = deadline_rest(given_deadline_ns, began_ns);
		if (retried && given_ns > 0) {
			int64_t left = deadline_rest(given_ns, began_ns);
			request->timeout_ns = left > 0 ? left : 1;
		}
		r = handle_try(s, request, tail, item_bytes, timeout_ns, until_ns, out);
		if (r == 0)
			break;
		if (r != -ENOTCONN)
			return r;
		if (deadline_now() - tried_ns > HANDLE_SHORT_RUN_NS)
			short_runs = 0;
		else if (++short_runs == HANDLE_SHORT_RUNS_MAX)
			return error_set(r, "control goes away each time that it is asked this: "
					    "look into its log, and start it again");
	}
	out->retried = retried;
	int status = out->reply.status;
	if (status == 0)
		return 0;
	error_set_text(status < 0 ? status : -EPROTO, out->reply.text, sizeof(out->reply.text));
	handle_missing(out);
	mux_result_free(out);
	return handle_name_object(s, request, status < 0 ? status : -EPROTO);
}

int handle_command(struct sar *s, struct session_request *request, int64_t timeout_ns,
		   bool *retried)
{
	struct mux_result result;
	int r = handle_call(s, request, NULL, 0, timeout_ns, &result);
	if (r == 0)
		mux_result_free(&result);
	if (retried)
		*retried = result.retried;
	return r;
}

int handle_take_pin(struct sar *s, uint32_t *out)
{
	uint32_t pin = pins_take(&s->pins);
	if (pin == SESSION_PIN_NONE)
		return error_set(-EMFILE,
				 "%d buffers are in use on this connection: release some, "
				 "or open another connection",
				 SESSION_PINS);
	*out = pin;
	return 0;
}

void handle_give_pin(struct sar *s, uint32_t pin)
{
	pins_give(&s->pins, pin);
	if (atomic_load(&s->pins_wanted) > 0)
		queue_signal_all(s);
}
