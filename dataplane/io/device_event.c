/* SPDX-License-Identifier: BSD-3-Clause */
/* What a device tells by itself: that packets wait, that the link has changed, that it is gone. */
#include "port.h"

#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <rte_ethdev.h>
#include <rte_interrupts.h>
#include "log.h"

/* ---- the link -------------------------------------------------------------------------------- */

static void device_tell_link(const char *text, const struct rte_eth_link *link)
{
	if (link->link_status == RTE_ETH_LINK_UP)
		log_info("port %s: the link is up, %s", text,
			 rte_eth_link_speed_to_str(link->link_speed));
	else
		log_warning("port %s: the link is down: packets are lost until it is up, look at "
			    "the cable and the other end",
			    text);
}

/* Called by EAL's thread. */
static int device_link_changed(uint16_t id, enum rte_eth_event_type type, void *text, void *unused)
{
	struct rte_eth_link link;
	if (rte_eth_link_get_nowait(id, &link) == 0)
		device_tell_link(text, &link);
	return 0;
}

/* The node ends as if it were asked to: others go on without it at once, and a service manager
 * starts it again. */
static int device_removed(uint16_t id, enum rte_eth_event_type type, void *text, void *unused)
{
	log_error("port %s: the card has been taken away: ending", (const char *)text);
	kill(getpid(), SIGTERM);
	return 0;
}

void device_watch(const struct options *o, uint16_t id, const struct rte_eth_dev_info *info,
		  struct rte_eth_conf *conf)
{
	void *text = (void *)(uintptr_t)o->port.text;
	uint32_t flags = *info->dev_flags;
	conf->intr_conf.lsc = (flags & RTE_ETH_DEV_INTR_LSC) != 0;
	conf->intr_conf.rmv = (flags & RTE_ETH_DEV_INTR_RMV) != 0;
	rte_eth_dev_callback_register(id, RTE_ETH_EVENT_INTR_LSC, device_link_changed, text);
	rte_eth_dev_callback_register(id, RTE_ETH_EVENT_INTR_RMV, device_removed, text);
}

void device_link(const struct options *o, uint16_t id)
{
	struct rte_eth_link link;
	if (rte_eth_link_get_nowait(id, &link) == 0 && link.link_status == RTE_ETH_LINK_DOWN)
		device_tell_link(o->port.text, &link);
}

/* ---- packets --------------------------------------------------------------------------------- */

static int device_interrupt(const struct port_queue *q, int op)
{
	return rte_eth_dev_rx_intr_ctl_q(q->device, q->queue, q->rx_fd, op, NULL);
}

/* How an interrupt is quieted again differs from driver to driver: EAL's epoll does it. */
static bool device_find_interrupt(struct port_queue *q)
{
	q->rx_fd = epoll_create1(EPOLL_CLOEXEC);
	return q->rx_fd >= 0 && device_interrupt(q, RTE_INTR_EVENT_ADD) == 0 &&
	       rte_eth_dev_rx_intr_enable(q->device, q->queue) == 0;
}

static void device_drop_interrupt(struct port_queue *q)
{
	if (q->rx_fd < 0)
		return;
	device_interrupt(q, RTE_INTR_EVENT_DEL);
	close(q->rx_fd);
	q->rx_fd = -1;
}

void device_find_interrupts(struct port *p)
{
	for (unsigned i = 0; p->rx_interrupt && i < p->queues; i++)
		p->rx_interrupt = device_find_interrupt(&p->queue[i]);
	for (unsigned i = 0; !p->rx_interrupt && i < p->queues; i++)
		device_drop_interrupt(&p->queue[i]);
}
