/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of a device: packets wait (told by itself); its link changes (told when looked at); it is
 * gone. */
#include "port.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <rte_dev.h>
#include <rte_ethdev.h>
#include <rte_interrupts.h>
#include "internal/counters.h"
#include "io/observe/log.h"

/* ---- the link -------------------------------------------------------------------------------- */

static void device_tell_link(const char *text, const struct rte_eth_link *link, enum link_news news)
{
	bool known = link->link_speed != RTE_ETH_SPEED_NUM_NONE &&
		     link->link_speed != RTE_ETH_SPEED_NUM_UNKNOWN;
	if (news == LINK_UP)
		log_info("port %s: the link is up%s%s", text, known ? ", " : "",
			 known ? rte_eth_link_speed_to_str(link->link_speed) : "");
	else if (news == LINK_DOWN)
		log_warning("port %s: the link is down: packets are lost until it is up, look at "
			    "the cable and the other end",
			    text);
}

static void device_note(struct port *p, struct counters *out)
{
	struct rte_eth_stats s;
	if (rte_eth_stats_get(p->device[0], &s) != 0)
		return;
	out->port_rx_missed += s.imissed - p->noted.rx_missed;
	out->port_rx_errors += s.ierrors - p->noted.rx_errors;
	out->port_rx_no_mbuf += s.rx_nombuf - p->noted.rx_no_mbuf;
	out->port_tx_errors += s.oerrors - p->noted.tx_errors;
	p->noted = (struct port_noted){.rx_missed = s.imissed,
				       .rx_errors = s.ierrors,
				       .rx_no_mbuf = s.rx_nombuf,
				       .tx_errors = s.oerrors};
}

void device_look(struct port *p, const char *text, struct counters *out, uint64_t now_ns)
{
	struct rte_eth_link link = {.link_status = RTE_ETH_LINK_DOWN};
	if (!p->type->chosen || !link_is_due(&p->link, now_ns))
		return;
	bool asked = rte_eth_link_get_nowait(p->device[0], &link) == 0;
	enum link_news news =
		link_look(&p->link, asked && link.link_status == RTE_ETH_LINK_UP, now_ns);
	device_tell_link(text, &link, news);
	device_note(p, out);
}

int device_look_ms(const struct port *p, uint64_t now_ns)
{
	if (!p->type->chosen)
		return -1;
	return link_is_due(&p->link, now_ns) ? 0 : (int)((p->link.look_ns - now_ns) / 1000000) + 1;
}

/* ---- a card that goes ------------------------------------------------------------------------ */

static _Atomic bool removed[RAILS_MAX];

/* The node ends as if it were asked to: others go on without it at once, and a service manager
 * starts it again. One with other ports goes on (away.c). Told by several, and by vfio-pci again
 * and again: said once. */
static void device_gone(const struct options *o)
{
	if (atomic_exchange(&removed[o->rail], true) || o->rails > 1)
		return;
	log_error("port %s: the card has been taken away: ending", o->port.text);
	kill(getpid(), SIGTERM);
}

bool device_was_removed(unsigned rail)
{
	return atomic_load_explicit(&removed[rail], memory_order_relaxed);
}

/* Both are called by EAL's thread. */
static int device_removed(uint16_t id, enum rte_eth_event_type type, void *o, void *unused)
{
	device_gone(o);
	return 0;
}

static void device_event(const char *name, enum rte_dev_event_type type, void *o)
{
	if (type == RTE_DEV_EVENT_REMOVE)
		device_gone(o);
}

void device_watch(const struct options *o, uint16_t id, const struct rte_eth_dev_info *info,
		  struct rte_eth_conf *conf)
{
	void *arg = (void *)(uintptr_t)o;
	atomic_store(&removed[o->rail], false);
	uint32_t flags = *info->dev_flags;
	conf->intr_conf.rmv = (flags & RTE_ETH_DEV_INTR_RMV) != 0;
	rte_eth_dev_callback_register(id, RTE_ETH_EVENT_INTR_RMV, device_removed, arg);
	/* vfio-pci asks for the card before the kernel lets it go */
	rte_dev_event_callback_register(rte_dev_name(info->device), device_event, arg);
}

void device_unwatch(uint16_t id)
{
	rte_eth_dev_callback_unregister(id, RTE_ETH_EVENT_INTR_RMV, device_removed, (void *)-1);
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
