/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One small control core of a cluster of three, of which it keeps a shard, with connections to the
 * two others, for the fuzz targets. Its records go nowhere; its messages are encoded and decoded
 * again, which must succeed.
 */
#ifndef SARISSA_TESTS_FUZZ_CONTROL_RIG_H
#define SARISSA_TESTS_FUZZ_CONTROL_RIG_H

#include "core/control.h"
#include "rpc/codec.h"

enum {
	RIG_NODES = 3,
	RIG_SESSIONS = 3,
	RIG_TABLE_SLOTS = 64,
	RIG_STORE_BYTES = 1 << 20,
};

struct rig {
	struct control *core;
	uint64_t now_ns;
	_Atomic uint64_t pins[RIG_SESSIONS][SESSION_PINS];
	bool open[RIG_SESSIONS];
	bool left[RIG_SESSIONS];      /* by control: its pins go along to the next one */
	bool old_clients;	      /* some have not come back, nor gone */
	bool memory[RIG_TABLE_SLOTS]; /* private staging buffers */
	struct object_table *table;
	uint8_t *store;
	struct session_reply last; /* answer */
	uint64_t sent[16];
	uint32_t sent_count;
};

/* A fresh one; the one before is gone. */
struct rig *rig_begin(void);
/* Everything ends; aborts when something is left over. */
void rig_end(struct rig *r);

/* Connection to node 1 or 2. */
uint32_t rig_conn(uint32_t node);
void rig_hello(struct rig *r, uint32_t node);
/* The node says it, if the codec lets it through. */
void rig_say(struct rig *r, uint32_t node, const struct message *m);
/* Control is killed and started again: the table stays as it was. */
void rig_restart(struct rig *r);
void rig_open(struct rig *r, uint32_t session);
void rig_close(struct rig *r, uint32_t session);
/* Lets time pass and timers fire, and takes the commands. Commands that end something are answered
 * as a worker would. */
void rig_turn(struct rig *r, uint64_t ns);

/* Bytes of an input, taken from its front; zero when it is used up. */
struct rig_input {
	const uint8_t *bytes;
	size_t left;
};
uint64_t rig_take(struct rig_input *in, unsigned bytes);

#endif
