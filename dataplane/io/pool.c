/* SPDX-License-Identifier: BSD-3-Clause */
#include "port.h"

#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include "ether.h"

enum {
	CACHE = 128,	/* buffers, per core */
	IN_HAND = 2048, /* buffers a worker may hold: bursts, hand-over, capture */
	XDP_HEADROOM = 256,
	LINES = 64,
	PAGE = 4096,
};

/*
 * The af_xdp driver takes the memory of the pool as the socket's frames: buffers must lie packed,
 * at a stride of at most a page, in one piece. A stride of an odd number of cache lines spreads
 * the headers over the cache's sets; frames for a large MTU need the whole page. In a packed pool
 * frames may cross pages, which zero-copy drivers refuse unless the pages are neighbours, so in
 * ordinary pages each gets its own.
 */
static struct rte_mempool *pool_create_xdp(const char *name, uint16_t mtu, unsigned count)
{
	unsigned fixed = sizeof(struct rte_mbuf) + RTE_PKTMBUF_HEADROOM;
	unsigned header = RTE_CACHE_LINE_ROUNDUP(sizeof(struct rte_mempool_objhdr));
	unsigned stride = header + fixed + XDP_HEADROOM + mtu + ETHER_HEADER;
	stride = (stride + LINES - 1) / LINES * LINES;
	if (stride > PAGE)
		return NULL;
	stride = PAGE;
	unsigned element = stride - header;
	struct rte_pktmbuf_pool_private private = {
		.mbuf_data_room_size = (uint16_t)(element - sizeof(struct rte_mbuf))};
	struct rte_mempool *mp =
		rte_mempool_create_empty(name, count, element, CACHE, sizeof(private),
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

struct rte_mempool *pool_create(const char *name, enum port_kind kind, uint16_t mtu,
				unsigned rx_descs, unsigned tx_descs)
{
	if (kind == PORT_AF_XDP)
		return pool_create_xdp(name, mtu, PORT_XDP_FILL + tx_descs + IN_HAND - 1);
	unsigned room = RTE_PKTMBUF_HEADROOM + ETHER_HEADER + mtu + 8;
	if (room < RTE_MBUF_DEFAULT_BUF_SIZE)
		room = RTE_MBUF_DEFAULT_BUF_SIZE;
	return rte_pktmbuf_pool_create(name, rx_descs + tx_descs + IN_HAND - 1, CACHE, 0,
				       (uint16_t)room, SOCKET_ID_ANY);
}

unsigned pool_eal_mib(enum port_kind kind, unsigned queues)
{
	return 24 + queues * (kind == PORT_AF_XDP ? 28 : 16);
}
