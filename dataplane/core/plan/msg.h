/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of control to a peer's control: cut into fragments, in order, each acknowledged as it
 * has arrived. Memory is the message areas', by slot. frame.c and transmit.c move the fragments.
 */
#ifndef SARISSA_DATAPLANE_CORE_PLAN_MSG_H
#define SARISSA_DATAPLANE_CORE_PLAN_MSG_H

#include "core/engine.h"
#include "core/wire/frame.h"
#include "core/list.h"
#include "core/numbers.h"
#include "core/wire/wire_field.h"

struct conn;
struct engine;

enum {
	SLOT_NONE = UINT32_MAX,
};

struct msg_out {
	struct list link; /* conn->msg.out, or engine.free_msgs */
	const uint8_t *data;
	uint64_t offset; /* in the message area, for the event */
	uint64_t token;
	uint64_t acked; /* bit per fragment */
	uint32_t length;
	uint32_t id;
	uint16_t fragments;
	uint16_t next_fragment; /* first transmissions so far */
};

struct msg_in {
	uint64_t have; /* bit per fragment */
	uint32_t total;
	uint32_t slot; /* MSG_SLOTS-relative; SLOT_NONE while nothing has arrived */
};

enum reason msg_send(struct engine *e, const struct record *r);
enum reason msg_free(struct engine *e, const struct record *r);
/* The next fragment to send for the first time: message and fragment, or NULL. */
struct msg_out *msg_next(struct conn *c, uint16_t *fragment);
struct msg_out *msg_find(struct conn *c, uint32_t id);
void msg_acked(struct engine *e, struct conn *c, uint32_t id, uint32_t fragment);
enum verdict msg_take(struct engine *e, struct conn *c, const uint8_t *frame, uint16_t length);
/* The connection is gone: outgoing messages come back with a reason, partial ones are freed. */
void msg_abandon(struct engine *e, struct conn *c, enum reason why);
static inline uint32_t msg_fragment_length(uint32_t total, uint32_t fragment)
{
	return (uint32_t)numbers_min(MSG_FRAGMENT_BYTES, total - fragment * MSG_FRAGMENT_BYTES);
}

#endif
