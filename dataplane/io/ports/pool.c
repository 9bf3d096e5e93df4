/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory for packets: how many buffers of which size a port needs, in how many MiB, and the pools
 * of packet buffers themselves. Called by eal.c and the ports at the start. Must not know what
 * packets carry.
 */
#include "port.h"

#include <rte_ether.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include "io/net/ether.h"
#include "io/node/worker.h"

enum {
	CACHE = RTE_MEMPOOL_CACHE_MAX_SIZE, /* buffers that a core keeps, to use them while warm */
	IN_HAND = 2048, /* buffers a worker may hold: bursts, hand-over, capture */
	XDP_HEADROOM = 256,
	LINES = 64,
	PAGE = 4096,
	FRAME_ENDS = ETHER_HEADER + RTE_ETHER_CRC_LEN +
		     2 * sizeof(struct rte_vlan_hdr), /* as drivers count */
	RX_STEP = 1024,	    /* cards take receive buffers in steps of up to this many bytes */
	QUEUE_DESCS = 1024, /* of a direction, at most */
	QUEUE_REST_MIB = 8, /* rings of descriptors, and what a driver allots */
};

/* Buffers of a pool that its own worker has beside the rings: those it fills next, those the port
 * refused and what it is being given, each with a segment behind; what has just come. */
_Static_assert(6 * WORKER_BURST <= IN_HAND / 2, "the rest is for packets handed to others");

/* A core keeps up to one and a half times its cache where nobody else gets at it. Workers hand
 * packets over: all others together keep at most half of what a pool has in hand. */
static unsigned pool_cache(unsigned workers)
{
	unsigned others = RTE_MAX(workers - 1, 1u);
	return RTE_MIN((unsigned)CACHE, IN_HAND / 2 * 2 / 3 / others);
}

/*
 * The af_xdp driver takes the memory of the pool as the socket's frames: buffers must lie packed,
 * at a stride of at most a page, in one piece. Packed more densely frames would cross pages, which
 * zero-copy drivers refuse unless the pages are neighbours: each has a page of its own.
 */
static struct rte_mempool *pool_create_xdp(const char *name, uint16_t mtu, unsigned count,
					   unsigned cache)
{
	unsigned fixed = sizeof(struct rte_mbuf) + RTE_PKTMBUF_HEADROOM;
	unsigned header = RTE_CACHE_LINE_ROUNDUP(sizeof(struct rte_mempool_objhdr));
	if (header + fixed + XDP_HEADROOM + mtu + ETHER_HEADER > PAGE)
		return NULL;
	unsigned element = PAGE - header;
	struct rte_pktmbuf_pool_private private = {
		.mbuf_data_room_size = (uint16_t)(element - sizeof(struct rte_mbuf))};
	struct rte_mempool *mp =
		rte_mempool_create_empty(name, count, element, cache, sizeof(private),
					 SOCKET_ID_ANY, RTE_MEMPOOL_F_NO_SPREAD);
	if (!mp)
		return NULL;
	rte_pktmbuf_pool_init(mp, &private);
	if (rte_mempool_populate_default(mp) < 0 || mp->nb_mem_chunks != 1) {
		rte_mempool_free(mp);
		return NULL;
	}
	rte_mempool_obj_iter(mp, rte_pktmbuf_init, NULL);
	return mp;
}

/* Room for a whole frame after the driver has rounded it down to what its card can be told: a frame
 * in two pieces would have to be put together. */
static unsigned pool_room(uint16_t mtu)
{
	unsigned frame = RTE_ALIGN_CEIL(mtu + FRAME_ENDS, RX_STEP);
	return RTE_MAX(RTE_PKTMBUF_HEADROOM + frame, (unsigned)RTE_MBUF_DEFAULT_BUF_SIZE);
}

unsigned pool_frame_bytes(uint16_t mtu)
{
	return pool_room(mtu) - RTE_PKTMBUF_HEADROOM;
}

struct rte_mempool *pool_create(const char *name, bool paged, uint16_t mtu, unsigned rx_descs,
				unsigned tx_descs, unsigned workers, int socket)
{
	unsigned cache = pool_cache(workers);
	if (paged)
		return pool_create_xdp(name, mtu, PORT_XDP_FILL + tx_descs + IN_HAND - 1, cache);
	unsigned count = rx_descs + tx_descs + IN_HAND - 1;
	uint16_t room = (uint16_t)pool_room(mtu);
	struct rte_mempool *mp = rte_pktmbuf_pool_create(name, count, cache, 0, room, socket);
	if (!mp && socket != SOCKET_ID_ANY) /* a node without memory of its own, or without pages */
		mp = rte_pktmbuf_pool_create(name, count, cache, 0, room, SOCKET_ID_ANY);
	return mp;
}

unsigned pool_mib(bool paged, uint16_t mtu, unsigned queues, bool huge)
{
	unsigned rx = paged ? PORT_XDP_FILL : QUEUE_DESCS;
	unsigned fixed = sizeof(struct rte_mempool_objhdr) + sizeof(struct rte_mbuf);
	unsigned element = paged ? PAGE : fixed + pool_room(mtu);
	if (!huge && element > PAGE) /* then the library begins each at a page */
		element = RTE_ALIGN_CEIL(element, PAGE);
	unsigned kib = (rx + QUEUE_DESCS + IN_HAND) * RTE_ALIGN_CEIL(element, LINES) >> 10;
	return queues * ((kib >> 10) + QUEUE_REST_MIB);
}
