/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory that control and dataplane of one node share, and how they attach.
 *
 * Memory, four memfds:
 *   store    bytes of objects, and the bitmaps of running transfers; both map it read-write
 *   table    the object table (object_table.h)
 *   private  more of the objects (object_private.h); only control maps it
 *   ipc      this header, the rings, the message areas; private to the two processes
 *
 * Meeting: the dataplane listens on RUNDIR/dataplane.sock (SOCK_SEQPACKET). Control connects and
 * sends one attach_request, with the fds {store, table, private} of an earlier life of the
 * dataplane when it holds them (adoption); the dataplane answers one attach_reply with the fds
 * {store, table, private, ipc, control_wake, worker_wake[0..workers-1]}. The socket then stays open
 * without traffic: its end tells either side that the other has died.
 *
 * Rings: per worker a command ring (single producer control, single consumer the worker) and an
 * event ring (the other way), of RECORD_BYTES elements (ring.h).
 *
 * Sleeping: a consumer that wants to sleep stores 1 into its flag, full fence, looks at its rings
 * once more, then polls its eventfd. A producer enqueues, full fence, and only when it reads the
 * flag as 1 exchanges it with 0 and, having got 1, writes the eventfd.
 *
 * Message areas: MSG_SLOTS slots of MSG_SLOT_BYTES each for either direction (sparse: only touched
 * pages exist). Transmit slots belong to control, but to the dataplane from MSG_SEND until
 * EVENT_MSG_SENT; receive slots belong to the dataplane, but to control from EVENT_MSG until
 * MSG_FREE. Only worker 0 carries messages.
 */
#ifndef SARISSA_INCLUDE_INTERNAL_IPC_H
#define SARISSA_INCLUDE_INTERNAL_IPC_H

#include <stdatomic.h>
#include "record.h"

#define IPC_MAGIC 0x3143504953524153ull /* "SARSIPC1" */

enum {
	IPC_VERSION = 5,	    /* with the layouts of the object table and the rings */
	IPC_RING_RECORDS = 4096,    /* power of two */
	MSG_SLOT_BYTES = 72 * 1024, /* an inline object and its envelope */
	MSG_BYTES_MAX = MSG_SLOT_BYTES,
	MSG_SLOTS = 1024,     /* per direction */
	ATTACH_STORE_FDS = 3, /* store, table, private */
	ATTACH_OWN_FDS = 5,
	ATTACH_FDS_MAX = ATTACH_OWN_FDS + WORKERS_MAX,
};

struct ipc_header {
	uint64_t magic;
	uint32_t version;
	uint32_t workers;
	uint64_t bytes; /* of the whole memfd */
	uint64_t command_ring_offset[WORKERS_MAX];
	uint64_t event_ring_offset[WORKERS_MAX];
	uint64_t msg_tx_offset; /* slots that control fills */
	uint64_t msg_rx_offset; /* slots that the dataplane fills */
	/* each on a line of its own: 1 while the process sleeps or is about to */
	_Alignas(64) _Atomic uint32_t control_sleeping;
	struct {
		_Alignas(64) _Atomic uint32_t sleeping;
	} worker[WORKERS_MAX];
};

#define ATTACH_MAGIC 0x54415353u

struct attach_request {
	uint32_t magic;
	uint32_t version; /* IPC_VERSION */
	int32_t pid;
	uint32_t has_store; /* 1: the fds {store, table, private} come along */
};

struct attach_rail {
	struct net_addr addr; /* of worker 0 */
	uint64_t rate_bps;    /* it never sends faster; 0: no bound */
	char port[64]; /* what carries the packets, for status: "af_xdp eth0 (native, copy)" */
};

struct attach_reply {
	uint32_t magic;
	uint32_t version;
	int32_t pid;
	int32_t error; /* 0, or -errno when the request was refused */
	uint32_t workers;
	uint32_t adopted; /* 1: the store is the one that control brought */
	uint64_t store_bytes;
	uint64_t incarnation; /* of this dataplane process: what peers see */
	struct net_addr addr; /* of worker 0, on rail 0 */
	uint16_t mtu;	      /* IP bytes, of all rails */
	uint16_t chunk_bytes; /* largest chunk for that MTU */
	uint8_t hugepages;    /* 1: the store lies in huge pages */
	uint8_t busy_poll;
	uint8_t rails; /* ports of this node, 1 or more; rail[0] has addr */
	uint8_t pad;
	struct attach_rail rail[RAILS_MAX];
};

#endif
