/* SPDX-License-Identifier: BSD-3-Clause */
#include "capture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>
#include <rte_mbuf_dyn.h>
#include <rte_pcapng.h>
#include <rte_ring.h>
#include <rte_version.h>
#include "io/net/ether.h"
#include "log.h"
#include "io/ports/port.h"

enum {
	CAPTURE_RING = 4096,
	CAPTURE_BATCH = 64,
};

struct capture {
	rte_pcapng_t *file;
	struct rte_ring *ring;
	struct rte_mempool *pool;
	uint32_t length; /* longest packet */
	uint64_t known;	 /* the flag of packets that are in the file */
	_Atomic uint64_t missed;
	uint64_t written;
};

static void capture_copy(struct capture *c, uint16_t port, uint16_t queue, struct rte_mbuf **m,
			 uint16_t count, enum rte_pcapng_direction direction)
{
	for (uint16_t i = 0; i < count; i++) {
#if RTE_VERSION >= RTE_VERSION_NUM(23, 11, 0, 0)
		struct rte_mbuf *copy =
			rte_pcapng_copy(port, queue, m[i], c->pool, c->length, direction, NULL);
#else
		struct rte_mbuf *copy = rte_pcapng_copy(port, queue, m[i], c->pool, c->length,
							rte_rdtsc(), direction);
#endif
		if (copy && rte_ring_mp_enqueue(c->ring, copy) == 0)
			continue;
		rte_pktmbuf_free(copy);
		c->missed++;
	}
}

static uint16_t capture_rx(uint16_t port, uint16_t queue, struct rte_mbuf **m, uint16_t count,
			   uint16_t max, void *arg)
{
	capture_copy(arg, port, queue, m, count, RTE_PCAPNG_DIRECTION_IN);
	return count;
}

/* A packet that the port has no room for is offered again: then it has its mark, and is at the
 * front. */
static uint16_t capture_tx(uint16_t port, uint16_t queue, struct rte_mbuf **m, uint16_t count,
			   void *arg)
{
	struct capture *c = arg;
	uint16_t known = 0;

	while (known < count && (m[known]->ol_flags & c->known))
		known++;
	capture_copy(c, port, queue, m + known, (uint16_t)(count - known),
		     RTE_PCAPNG_DIRECTION_OUT);
	for (uint16_t i = known; i < count; i++)
		m[i]->ol_flags |= c->known;
	return count;
}

static int capture_open(struct capture *c, const char *file, const struct port *p, unsigned ports)
{
	static const struct rte_mbuf_dynflag known = {.name = "sarissa_captured"};
	int bit = rte_mbuf_dynflag_register(&known);
	if (bit < 0)
		return -rte_errno;
	c->known = RTE_BIT64(bit);
	c->length = (uint32_t)(p->mtu + ETHER_HEADER); /* one MTU for all ports */
	c->pool = rte_pktmbuf_pool_create("capture", CAPTURE_RING, 0, 0,
					  (uint16_t)rte_pcapng_mbuf_size(c->length), SOCKET_ID_ANY);
	c->ring = rte_ring_create("capture", CAPTURE_RING, SOCKET_ID_ANY, RING_F_SC_DEQ);
	if (!c->pool || !c->ring)
		return -ENOMEM;
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	c->file = rte_pcapng_fdopen(fd, NULL, NULL, "sarissa-dataplane", NULL);
	if (!c->file) {
		close(fd);
		return -ENOMEM;
	}
#if RTE_VERSION >= RTE_VERSION_NUM(23, 11, 0, 0)
	for (unsigned k = 0; k < ports; k++)
		for (unsigned d = 0; d < p[k].devices; d++)
			if (rte_pcapng_add_interface(c->file, p[k].device[d], NULL, NULL, NULL) < 0)
				return -EIO;
	return 0;
#else
	return 0;
#endif
}

int capture_hook(struct capture *c, struct port *p)
{
	for (unsigned i = 0; !p->type->sockets && i < p->queues; i++) {
		struct port_queue *q = &p->queue[i];
		q->capture_rx = rte_eth_add_rx_callback(q->device, q->queue, capture_rx, c);
		q->capture_tx = rte_eth_add_tx_callback(q->device, q->queue, capture_tx, c);
		if (!q->capture_rx || !q->capture_tx)
			return -ENOTSUP;
	}
	return 0;
}

/* A packet that a hook took up is freed by nobody else. */
void capture_unhook(struct port *p)
{
	for (struct port_queue *q = p->queue; q < p->queue + p->queues; q++) {
		if (q->capture_rx &&
		    rte_eth_remove_rx_callback(q->device, q->queue, q->capture_rx) == 0)
			rte_free((void *)(uintptr_t)q->capture_rx);
		if (q->capture_tx &&
		    rte_eth_remove_tx_callback(q->device, q->queue, q->capture_tx) == 0)
			rte_free((void *)(uintptr_t)q->capture_tx);
		q->capture_rx = q->capture_tx = NULL;
	}
}

struct capture *capture_start(const char *file, struct port *port, unsigned ports)
{
	struct capture *c = calloc(1, sizeof(*c));
	int error = c ? capture_open(c, file, port, ports) : -ENOMEM;
	for (unsigned k = 0; k < ports && !error; k++)
		error = capture_hook(c, &port[k]);
	if (!error)
		return c;
	log_error("cannot capture into %s (%s): choose another --capture file", file,
		  strerror(-error));
	free(c);
	return NULL;
}

void capture_write(struct capture *c)
{
	struct rte_mbuf *m[CAPTURE_BATCH];
	unsigned n;
	while ((n = rte_ring_sc_dequeue_burst(c->ring, (void **)m, CAPTURE_BATCH, NULL)) > 0) {
		if (rte_pcapng_write_packets(c->file, m, (uint16_t)n) < 0)
			c->missed += n;
		else
			c->written += n;
		rte_pktmbuf_free_bulk(m, n);
	}
}

void capture_stop(struct capture *c)
{
	capture_write(c);
	rte_pcapng_close(c->file);
	log_info("captured %llu packets, missed %llu", (unsigned long long)c->written,
		 (unsigned long long)c->missed);
	free(c);
}
