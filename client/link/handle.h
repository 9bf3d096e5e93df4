/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a sar is: one connection to the local node. Any thread.
 *
 * When control has gone the next call connects to the one that is started in its place (rejoin.c),
 * and calls that wait for an answer are made again there (run.h, op.c).
 *
 * After fork() the child must not use the handle: it would share the parent's socket and pins. A
 * page that the kernel clears in the child (MADV_WIPEONFORK) tells, without a system call.
 */
#ifndef SARISSA_CLIENT_LINK_HANDLE_H
#define SARISSA_CLIENT_LINK_HANDLE_H

#include "internal/object_table.h"
#include "device/windows.h"
#include "kept.h"
#include "leases.h"
#include "map.h"
#include "mux.h"
#include "pins.h"
#include "reduces.h"
#include "sarissa/sarissa.h"

struct handle_store { /* one that the node has lost, while it may still be read here */
	struct handle_store *next;
	struct map map;
};

struct joiner { /* the thread that connects again for the queues; under queues_lock */
	pthread_t thread;
	bool started; /* there is a thread to be joined */
	bool running;
	_Atomic bool stop;
	int error; /* how it has ended, with its words, and when */
	int64_t ended_ns;
	char words[SAR_DETAIL_MAX];
};

struct sar {
	struct mux mux;
	struct map map; /* store and store_bytes: change in odd turns of the pins only */
	struct pins pins;
	_Atomic uint64_t control_epoch;		     /* as it was at ATTACH */
	_Atomic uint32_t stores;		     /* how many the node has lost */
	_Atomic uint64_t writing[SESSION_PINS / 64]; /* the pins of objects under creation */
	struct kept kept;
	struct reduces reduces;
	struct leases leases;
	struct windows windows;
	uint32_t *fork_guard; /* 0 in a forked child */
	char *path;
	pthread_mutex_t joining; /* one thread connects at a time */
	/* under joining */
	int64_t tried_ns;
	struct handle_store *lost;
	/* queue.h */
	_Atomic unsigned pins_wanted; /* operations of queues that wait for a pin */
	pthread_mutex_t queues_lock;
	struct sar_queue *queues;
	struct joiner joiner;
};

#define HANDLE_PINLESS_TEXT                                           \
	"%d buffers are in use on this connection: release some, or " \
	"open another connection"

/* How long control may take over a request that needs no waiting. */
#define HANDLE_CALL_NS (30 * 1000000000ll)

/* 0, or -EINVAL in a forked child. No system call. */
int handle_check(const struct sar *s);

/* Whether the control that we are attached to has gone, or another one has taken over. No system
 * call. */
bool handle_lost(const struct sar *s);

/* Whether another control has taken over. Part of handle_lost. */
bool handle_replaced(const struct sar *s);

/* A request about the object, with everything else zero. */
struct session_request handle_request(uint16_t op, const sar_id *id);

/* Sets the name; NULL: none. -ENAMETOOLONG. */
int handle_name(struct session_request *request, const char *name);

/* Names the object of the slot in the text of the last failure, when it is still that generation.
 * Returns error. */
int handle_name_slot(const struct sar *s, uint32_t slot, uint64_t generation, int error);

/* Takes a pin index for a call. -EMFILE. */
int handle_take_pin(struct sar *s, uint32_t *out);
/* Gives it back; operations of queues that wait for one go on. */
void handle_give_pin(struct sar *s, uint32_t pin);

#endif
