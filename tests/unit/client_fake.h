/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node's control process reduced to its client side, in a thread of the test: one store, one
 * object table, the session protocol, no network. It keeps the protocol to the letter unless a
 * hook answers instead, which is how hostile replies are made.
 */
#ifndef SARISSA_TESTS_CLIENT_FAKE_H
#define SARISSA_TESTS_CLIENT_FAKE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include "internal/object_table.h"
#include "internal/session.h"

enum {
	FAKE_STORE_BYTES = 8 << 20,
	FAKE_SLOTS = 256,
	FAKE_CONNS = 32,
	FAKE_WAITS = 256, /* more are told to come later */
	FAKE_REDUCED_BYTES = 1000,
};

struct fake_conn {
	int fd;
	_Atomic uint64_t *pins;
};

struct fake_wait {
	int conn; /* -1: unused */
	struct session_request request;
	int64_t until_ns; /* CLOCK_MONOTONIC, INT64_MAX: never */
};

struct fake {
	char dir[32], path[64];
	int listen_fd, wake_fd, store_fd, table_fd;
	pthread_t thread;
	uint8_t *store;
	struct object_table *table;
	uint64_t table_bytes, used;
	char name[FAKE_SLOTS][OBJECT_NAME_MAX + 1];
	struct fake_conn conn[FAKE_CONNS];
	struct fake_wait wait[FAKE_WAITS];
	pthread_mutex_t lock; /* of table, store allocation, waits */
	_Atomic bool stop;
	struct session_request reduce; /* the last one */
	struct object_id reduce_source[SESSION_SOURCES_MAX];
	bool reduce_goes_on;
	uint32_t tree;		  /* STAT tells of so many holders, in pages; 0: of one */
	bool lost;		  /* the objects are on node 1, which is dead */
	_Atomic uint32_t missing; /* nodes from 1 on whose part of the directory does not answer */
	bool staged;		  /* objects are created in private staging buffers */
	int memory[FAKE_SLOTS];	  /* where; 0: nowhere */
	int brought;		  /* came along with the request; 0: nothing */
	int creator[FAKE_SLOTS];  /* connection; -1: one of an earlier control */
	_Atomic int mute;	  /* requests of this op are served, but not answered */
	uint32_t broadcast[8];	  /* the nodes of the last one */
	struct session_request hold; /* the last one */
	_Atomic unsigned aborts, resumed, descriptors, requests[SESSION_OPS];
	const uint8_t *tail; /* what follows the request that a hook is called with */
	size_t tail_bytes;
	/* Returns true when it has dealt with the request. Set before the client connects. */
	bool (*hook)(struct fake *f, int conn, const struct session_request *request);
};

void fake_start(struct fake *f);
/* Ends the thread and closes every connection, as the death of the process would. */
void fake_kill(struct fake *f);
/* Another control, after fake_kill: with the store of before, or, as when the dataplane died as
 * well, with another one. */
void fake_restart(struct fake *f, bool same_store);
void fake_stop(struct fake *f);

/* A reply to request with status, everything else zero. */
struct session_reply fake_reply(const struct session_request *request, int status);
void fake_send(struct fake *f, int conn, const void *bytes, size_t length, const int *fd,
	       unsigned fds);

/* Of client_fake.c, client_fake_directory.c and hooks only: under lock. */
void fake_status(struct fake *f, int conn, const struct session_request *request, int status);
void fake_state(struct fake *f, uint32_t slot, enum object_state state);
int64_t fake_make(struct fake *f, const struct object_id *id, uint64_t size,
		  enum object_state state);
void fake_put(struct fake *f, int conn, const struct session_request *request, const uint8_t *bytes,
	      size_t length);
void fake_list(struct fake *f, int conn, const struct session_request *request);
void fake_stat(struct fake *f, int conn, const struct session_request *request);
void fake_nodes(struct fake *f, int conn, const struct session_request *request);

/* Makes an object that arrives from elsewhere: size bytes of pattern, of which ready are here. */
uint32_t fake_fetching(struct fake *f, const struct object_id *id, uint64_t size, uint64_t ready);
/* Moves its watermark; at the full size it is sealed. */
void fake_advance(struct fake *f, uint32_t slot, uint64_t ready);
/* Marks it deleted; as replaced by another generation. */
void fake_delete(struct fake *f, uint32_t slot);
void fake_replace(struct fake *f, uint32_t slot);
/* Requests that wait. */
unsigned fake_waiting(struct fake *f);
/* Pins that stand anywhere. */
unsigned fake_pins(struct fake *f);
/* Whether some client's pin stands on the slot. */
bool fake_pinned(struct fake *f, uint32_t slot);

/* Byte i of every test object. */
static inline uint8_t fake_pattern(uint64_t i)
{
	return (uint8_t)(i * 131 + (i >> 8) * 17 + 7);
}

#endif
