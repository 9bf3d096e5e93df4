/* SPDX-License-Identifier: BSD-3-Clause */
#include "handle.h"

#include <errno.h>
#include "api/error.h"
#include "queue/queue.h"

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

int handle_name_slot(const struct sar *s, uint32_t slot, uint64_t generation, int error)
{
	struct object_slot image;
	if (slot < s->map.table->slots && object_slot_read(s->map.table, slot, &image) &&
	    image.generation == generation)
		return error_name(error, image.id.bytes, NULL);
	return error;
}

int handle_take_pin(struct sar *s, uint32_t *out)
{
	uint32_t pin = pins_take(&s->pins);
	if (pin == SESSION_PIN_NONE)
		return error_set(-EMFILE, HANDLE_PINLESS_TEXT, SESSION_PINS);
	*out = pin;
	return 0;
}

void handle_give_pin(struct sar *s, uint32_t pin)
{
	pins_give(&s->pins, pin);
	if (atomic_load(&s->pins_wanted) > 0)
		queue_signal_all(s);
}
