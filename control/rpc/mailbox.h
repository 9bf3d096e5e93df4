/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages over the rings and message areas of internal/ipc.h: free transmit slots, messages to
 * send, receive slots to return. Without I/O: the shell and the simulator pass its records to
 * worker 0, and that worker's message events in. One thread.
 */
#ifndef SARISSA_CONTROL_RPC_MAILBOX_H
#define SARISSA_CONTROL_RPC_MAILBOX_H

#include "codec.h"
#include "internal/ipc.h"

enum {
	MAILBOX_ARENA_BYTES = CODEC_ARENA_BYTES + CODEC_SCRATCH_BYTES,
};

struct mailbox {
	uint8_t *tx;
	const uint8_t *rx;
	uint8_t *arena;	       /* MAILBOX_ARENA_BYTES, may be shared with other mailboxes */
	uint32_t *tx_free;     /* stack of slots */
	uint8_t *tx_in_flight; /* per slot: 1 while the dataplane has it */
	struct record *ring;
	uint32_t tx_slots, rx_slots, tx_free_count;
	uint32_t head, count, capacity;
	uint64_t bad; /* messages that did not decode */
};

/* Bytes of memory for so many slots per direction. */
size_t mailbox_bytes(uint32_t tx_slots, uint32_t rx_slots);

/* Resets it: all transmit slots are free. memory: 64-aligned, mailbox_bytes() long. */
void mailbox_init(struct mailbox *b, void *memory, uint8_t *arena, uint8_t *tx, uint32_t tx_slots,
		  const uint8_t *rx, uint32_t rx_slots);

/* Queues a message; false when no slot is free or it is too long. */
bool mailbox_send(struct mailbox *b, uint32_t conn, const struct message *m);

/* Takes EVENT_MSG or EVENT_MSG_SENT. True when *m holds a message, valid until the next call; its
 * slot goes back by itself. Sending does not disturb it. */
bool mailbox_event(struct mailbox *b, const struct record *event, struct message *m);

/* Moves up to count records for worker 0 out. */
unsigned mailbox_commands(struct mailbox *b, struct record *out, unsigned count);

#endif
