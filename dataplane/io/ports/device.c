/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One device of DPDK's ethdev: configuration, queues, steering, start. Called by port.c for each
 * device of a port, before the workers run. It asks the port's type (types/port_type.h) for what is
 * special, and must not know packets.
 */
#include "port.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_flow.h>
#include "io/net/ether.h"
#include "io/observe/log.h"

enum { DESCRIPTORS = 1024 };

/* Queues of one device: all of them, except where each is a device of its own. */
static uint16_t device_queues(const struct port *p)
{
	return (uint16_t)(p->queues / p->devices);
}

static int device_check(const struct options *o, struct port *p,
			const struct rte_eth_dev_info *info)
{
	char what[96];
	unsigned queues = device_queues(p),
		 most = RTE_MIN(info->max_rx_queues, info->max_tx_queues);
	if (most < queues) {
		snprintf(what, sizeof(what), "it has %u queue%s for %u workers", most,
			 most == 1 ? "" : "s", queues);
		return port_fail(o, -EINVAL, what, "use fewer --workers, or add queues to it");
	}
	unsigned frame = p->mtu + ETHER_HEADER + RTE_ETHER_CRC_LEN + (p->vlan ? ETHER_TAG : 0);
	if (p->type->chosen && p->mtu > info->max_mtu) {
		snprintf(what, sizeof(what), "it takes an MTU of at most %u, not %u", info->max_mtu,
			 p->mtu);
		return port_fail(o, -EMSGSIZE, what, "use a smaller --mtu");
	}
	if (p->type->tell_mtu && info->max_rx_pktlen && frame > info->max_rx_pktlen) {
		snprintf(what, sizeof(what), "it takes frames of %u bytes, MTU %u needs %u",
			 info->max_rx_pktlen, p->mtu, frame);
		return port_fail(o, -EMSGSIZE, what, "use a smaller --mtu");
	}
	return 0;
}

/* Whether the card finds the store by our own addresses of it: through an IOMMU, or because its
 * driver names memory by keys. Physical addresses of a store in many pages we have none. */
static bool device_reads_virtual(const struct options *o, const struct rte_eth_dev_info *info)
{
	if (rte_eal_iova_mode() == RTE_IOVA_VA || strstr(info->driver_name, "mlx"))
		return true;
	log_info("port %s: no IOMMU: payload is copied once", o->port.text);
	return false;
}

/* Whether the driver itself copies what it sends, before its call returns. */
static bool device_copies(const struct rte_eth_dev_info *info)
{
	static const char *const drivers[] = {"net_tap", "net_memif", "net_vhost"};
	for (unsigned i = 0; i < RTE_DIM(drivers); i++)
		if (strcmp(info->driver_name, drivers[i]) == 0)
			return true;
	return false;
}

/* Which of the card's abilities we use. */
static void device_choose(const struct options *o, struct port *p,
			  const struct rte_eth_dev_info *info, struct rte_eth_conf *conf)
{
	bool chains = info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	if (p->type->tell_mtu)
		conf->rxmode.mtu = p->mtu;
	if (p->type->card && device_queues(p) > 1) {
		conf->rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		conf->rx_adv_conf.rss_conf.rss_hf =
			info->flow_type_rss_offloads &
			(RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_NONFRAG_IPV6_UDP);
	}
	if (chains && device_copies(info))
		p->payload = PAYLOAD_CHAIN;
	else if (chains && p->type->card && device_reads_virtual(o, info))
		p->payload = PAYLOAD_DMA;
	if (p->payload != PAYLOAD_COPY)
		conf->txmode.offloads |= RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	if (p->vlan && (info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_VLAN_FILTER))
		conf->rxmode.offloads |= RTE_ETH_RX_OFFLOAD_VLAN_FILTER;
	if (p->type->chosen)
		conf->rxmode.offloads |= info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_IPV4_CKSUM;
	p->udp6_checksum = p->type->chosen && !net_addr_is_v4(&p->addr) &&
			   (info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_UDP_CKSUM);
	if (p->udp6_checksum)
		conf->txmode.offloads |= RTE_ETH_TX_OFFLOAD_UDP_CKSUM;
	/* a uio driver has one interrupt, which stays up until the card is asked why: it storms */
	p->rx_interrupt = !o->busy_poll && p->type->chosen && !card_is_uio(&p->card);
	conf->intr_conf.rxq = p->rx_interrupt || (!o->busy_poll && p->type->waitable);
}

/* Drivers have bounds, and want multiples of something: a number that the user gave is not changed
 * in silence. */
static int device_check_rings(const struct options *o, const struct port *p)
{
	char what[96], todo[48];
	uint16_t rx = o->descriptors, tx = o->descriptors;
	if (!o->descriptors || rte_eth_dev_adjust_nb_rx_tx_desc(p->device[0], &rx, &tx) != 0 ||
	    (rx == o->descriptors && tx == o->descriptors))
		return 0;
	uint16_t both =
		rx < o->descriptors || tx < o->descriptors ? RTE_MIN(rx, tx) : RTE_MAX(rx, tx);
	snprintf(what, sizeof(what), "its rings take %u and %u descriptors, not %u", rx, tx,
		 o->descriptors);
	snprintf(todo, sizeof(todo), "use --descriptors %u", both);
	return port_fail(o, -EINVAL, what, todo);
}

/* Steps in which a device is set up, in this order. Some drivers refuse only at the end what they
 * cannot do. */
enum device_step {
	STEP_CONFIGURE,
	STEP_MTU,
	STEP_BUFFERS,
	STEP_QUEUE,
	STEP_START,
};

static int device_fail(const struct options *o, enum device_step step, int error)
{
	switch (step) {
	case STEP_CONFIGURE:
		return port_fail(o, error, "it refuses its configuration", "see --log-level debug");
	case STEP_MTU:
		return port_fail(o, error, "it refuses this MTU", "use a smaller --mtu");
	case STEP_BUFFERS:
		if (o->port.type->paged && rte_eal_iova_mode() == RTE_IOVA_PA)
			return port_fail(o, error, "no memory for packet buffers in one piece",
					 "a pci: port beside it needs an IOMMU, or use udp:");
		return port_fail(o, error, "no memory for packet buffers",
				 "free some, or use fewer queues");
	case STEP_QUEUE:
		if (*xdp_attach_error())
			return port_fail(o, error, xdp_attach_error(),
					 "the interface cannot run XDP");
		return port_fail(o, error, "a queue does not come up",
				 "check that nobody else uses it, and the rights to use it and to "
				 "lock memory (ulimit -l)");
	case STEP_START:
		break;
	}
	return o->port.type->start
		       ? error /* which has said it */
		       : port_fail(o, error, "it does not start", "see --log-level debug");
}

int device_setup_rings(struct port_queue *q, uint16_t rx, uint16_t tx, int socket)
{
	int error =
		rte_eth_rx_queue_setup(q->device, q->queue, rx, (unsigned)socket, NULL, q->pool);
	return error ? error
		     : rte_eth_tx_queue_setup(q->device, q->queue, tx, (unsigned)socket, NULL);
}

static int device_setup_queue(const struct options *o, struct port *p, unsigned i,
			      enum device_step *step)
{
	char name[32];
	const struct port_type *type = p->type;
	struct port_queue *q = &p->queue[i];
	uint16_t tx = o->descriptors ? o->descriptors : DESCRIPTORS;
	uint16_t rx = !o->descriptors && type->rx_descriptors ? type->rx_descriptors : tx;
	int socket = rte_eth_dev_socket_id(q->device);
	rte_eth_dev_adjust_nb_rx_tx_desc(q->device, &rx, &tx);
	snprintf(name, sizeof(name), "packets%u.%u", o->rail, i);
	*step = STEP_BUFFERS;
	if (!q->pool)
		q->pool = pool_create(name, type->paged, p->mtu, rx, tx, p->workers, socket);
	if (!q->pool)
		return -ENOMEM;
	*step = STEP_QUEUE;
	return (type->setup_rings ? type->setup_rings : device_setup_rings)(q, rx, tx, socket);
}

/* A driver that has no call for it goes by what it was configured for. */
static int device_set_mtu(const struct port *p, uint16_t id)
{
	if (!p->type->tell_mtu || p->mtu == RTE_ETHER_MTU)
		return 0;
	int error = rte_eth_dev_set_mtu(id, p->mtu);
	return error == -ENOTSUP ? 0 : error;
}

static bool device_rule(const struct port *p, unsigned i, struct rte_flow_error *error)
{
	bool v4 = net_addr_is_v4(&p->addr);
	struct rte_flow_attr attr = {.ingress = 1};
	struct rte_flow_item_vlan vlan = {.hdr.vlan_tci = rte_cpu_to_be_16(p->vlan)};
	struct rte_flow_item_vlan vlan_mask = {.hdr.vlan_tci = RTE_BE16(0x0fff)};
	struct rte_flow_item_udp udp = {.hdr.dst_port =
						rte_cpu_to_be_16((uint16_t)(p->addr.port + i))};
	struct rte_flow_item_udp mask = {.hdr.dst_port = 0xffff};
	struct rte_flow_action_queue queue = {.index = p->queue[i].queue};
	struct rte_flow_item tag = {
		.type = RTE_FLOW_ITEM_TYPE_VLAN, .spec = &vlan, .mask = &vlan_mask};
	struct rte_flow_item none = {.type = RTE_FLOW_ITEM_TYPE_VOID};
	struct rte_flow_item pattern[] = {
		{.type = RTE_FLOW_ITEM_TYPE_ETH},
		p->vlan ? tag : none,
		{.type = v4 ? RTE_FLOW_ITEM_TYPE_IPV4 : RTE_FLOW_ITEM_TYPE_IPV6},
		{.type = RTE_FLOW_ITEM_TYPE_UDP, .spec = &udp, .mask = &mask},
		{.type = RTE_FLOW_ITEM_TYPE_END}};
	struct rte_flow_action actions[] = {{.type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &queue},
					    {.type = RTE_FLOW_ACTION_TYPE_END}};
	return rte_flow_create(p->queue[i].device, &attr, pattern, actions, error) != NULL;
}

/* One rule per worker: its UDP port to its queue. All or none: without them packets go by hash and
 * are handed over between workers. */
static bool device_steer(const struct options *o, const struct port *p)
{
	for (unsigned i = 0; i < p->queues; i++) {
		struct rte_flow_error error = {0};
		if (device_rule(p, i, &error))
			continue;
		rte_flow_flush(p->queue[i].device, NULL);
		log_dpdk_forget();
		log_warning(
			"port %s: it takes no rule for the UDP port of worker %u (%s): packets go "
			"by hash and are handed over, see io_handover_full",
			o->port.text, i, error.message ? error.message : "no reason given");
		return false;
	}
	return true;
}

/* A card that filters drops all other VLANs until it is asked for one. */
static int device_join_vlan(const struct options *o, const struct port *p, uint16_t id,
			    const struct rte_eth_conf *conf)
{
	if (!(conf->rxmode.offloads & RTE_ETH_RX_OFFLOAD_VLAN_FILTER))
		return 0;
	int error = rte_eth_dev_vlan_filter(id, p->vlan, 1);
	return error ? port_fail(o, error, "it does not let this VLAN in",
				 "see whether its host gives the VLAN to this function")
		     : 0;
}

static int device_try(const struct options *o, struct port *p, unsigned d,
		      const struct rte_eth_conf *conf, enum device_step *step)
{
	uint16_t queues = device_queues(p), id = p->device[d];
	*step = STEP_CONFIGURE;
	int error = rte_eth_dev_configure(id, queues, queues, conf);
	if (error)
		return error;
	*step = STEP_MTU;
	error = device_set_mtu(p, id);
	for (unsigned k = 0; k < queues && !error; k++) {
		unsigned i = d * queues + k;
		p->queue[i].device = id;
		p->queue[i].queue = (uint16_t)k;
		error = device_setup_queue(o, p, i, step);
	}
	if (error)
		return error;
	*step = STEP_START;
	return p->type->start ? p->type->start(o, id) : rte_eth_dev_start(id);
}

/* A card has an address of its own; the virtual ones may all have the same. */
static void device_address(struct port *p, uint16_t id)
{
	struct rte_ether_addr mac;
	if (!p->type->card)
		rte_eth_promiscuous_enable(id);
	else if (rte_eth_macaddr_get(id, &mac) == 0)
		memcpy(p->mac, mac.addr_bytes, sizeof(p->mac));
	rte_eth_allmulticast_enable(id); /* neighbour solicitations */
}

static void device_started(const struct options *o, struct port *p, uint16_t id)
{
	for (unsigned i = 0; p->type->waitable && !o->busy_poll && i < p->queues; i++) {
		struct port_queue *q = &p->queue[i];
		q->rx_fd = rte_eth_dev_rx_intr_ctl_q_get_fd(q->device, q->queue);
	}
	if (!p->type->chosen)
		return;
	device_address(p, id);
	device_find_interrupts(p);
	p->steered = p->type->card && p->queues > 1 && device_steer(o, p);
}

int device_open(const struct options *o, struct port *p, unsigned d)
{
	struct rte_eth_dev_info info;
	struct rte_eth_conf conf = {.rxmode.mq_mode = RTE_ETH_MQ_RX_NONE};
	enum device_step step = STEP_CONFIGURE;
	uint16_t id = p->device[d];
	int error = rte_eth_dev_info_get(id, &info);
	if (error)
		return device_fail(o, step, error);
	error = device_check(o, p, &info);
	if (!error)
		error = device_check_rings(o, p);
	if (error)
		return error;
	device_choose(o, p, &info, &conf);
	if (p->type->chosen)
		device_watch(o, id, &info, &conf);
	error = device_try(o, p, d, &conf, &step);
	if (error && p->rx_interrupt) { /* which not every kernel driver passes on */
		conf.intr_conf.rxq = p->rx_interrupt = false;
		log_dpdk_forget();
		error = device_try(o, p, d, &conf, &step);
	}
	if (error)
		return device_fail(o, step, error);
	device_started(o, p, id);
	return device_join_vlan(o, p, id, &conf);
}
