/* SPDX-License-Identifier: BSD-3-Clause */
#include "handle.h"

#include <errno.h>
#include "deadline.h"
#include "error.h"

int handle_check(const struct sar *s)
{
	if (*(const volatile uint32_t *)s->fork_guard == 0)
		return error_set(-EINVAL, "this connection belongs to the parent process: open "
					  "another one after fork");
	int error = mux_error(&s->mux);
	if (error == 0 && atomic_load_explicit(&s->map.table->control_epoch,
					       memory_order_relaxed) != s->control_epoch)
		error = -ENOTCONN;
	if (error == 0)
		return 0;
	return error_set(error, "the node's control process has gone away: start it again and "
				"reopen the connection");
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

int handle_call(struct sar *s, struct session_request *request, size_t item_bytes,
		int64_t deadline_ns, struct mux_result *out)
{
	return handle_call_tail(s, request, NULL, item_bytes, deadline_ns, out);
}

int handle_call_tail(struct sar *s, struct session_request *request, const struct iovec *tail,
		     size_t item_bytes, int64_t deadline_ns, struct mux_result *out)
{
	*out = (struct mux_result){0};
	int r = handle_check(s);
	if (r == 0)
		r = mux_call(&s->mux, request, tail, item_bytes, deadline_ns, out);
	if (r < 0)
		return r;
	int status = out->reply.status;
	if (status == 0)
		return 0;
	mux_result_free(out);
	return error_set_text(status < 0 ? status : -EPROTO, out->reply.text,
			      sizeof(out->reply.text));
}

int handle_command(struct sar *s, struct session_request *request)
{
	struct mux_result result;
	int r = handle_call(s, request, 0, deadline_after(HANDLE_CALL_NS), &result);
	if (r == 0)
		mux_result_free(&result);
	return r;
}

int64_t handle_deadline(int64_t timeout_ns)
{
	const int64_t grace_ns = 50000000;
	/* without waiting, control still gives the directory the time to answer */
	const int64_t least_ns = timeout_ns == 0 ? 5000000000 : 1000000000;
	if (timeout_ns == SAR_FOREVER)
		return DEADLINE_NEVER;
	int64_t deadline = deadline_after(timeout_ns);
	if (timeout_ns < least_ns)
		return deadline_after(least_ns);
	return deadline > DEADLINE_NEVER - grace_ns ? DEADLINE_NEVER : deadline + grace_ns;
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
