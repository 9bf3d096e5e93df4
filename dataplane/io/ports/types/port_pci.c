/* SPDX-License-Identifier: BSD-3-Clause */
/* pci:ADDR[,KEY=VALUE...]: a network card that a DPDK driver has. */
#include "io/ports/port.h"

#include <errno.h>
#include <stdio.h>

/* Faults that DPDK would answer with one word, or not at all. */
static int port_pci_plan(const struct options *o, struct port *p)
{
	char what[96], todo[96];
	struct card *card = &p->card;
	switch (card_read("/sys", o->port.name, card)) {
	case CARD_GOOD:
		return 0;
	case CARD_NO_ADDRESS:
		return port_fail(o, -EINVAL, "not the address of a PCI card",
				 "give DOMAIN:BUS:DEVICE.FUNCTION, such as pci:0000:3b:00.0");
	case CARD_MISSING:
		return port_fail(o, -ENODEV, "no such card", "see dpdk-devbind.py --status");
	case CARD_NOT_NETWORK:
		return port_fail(o, -ENODEV, "not a network card", "see dpdk-devbind.py --status");
	case CARD_NO_IOMMU:
		return port_fail(o, -ENODEV, "vfio-pci has it, but there is no IOMMU",
				 "switch it on in the firmware and boot with intel_iommu=on, or "
				 "load vfio with enable_unsafe_noiommu_mode=1");
	case CARD_UNBOUND:
	case CARD_OF_KERNEL:
		break;
	}
	snprintf(what, sizeof(what), "%s%s%s", *card->driver ? "the kernel's driver " : "no driver",
		 card->driver, " has it");
	snprintf(todo, sizeof(todo), "dpdk-devbind.py -b vfio-pci %s", card->address);
	return port_fail(o, -EBUSY, what, todo);
}

static int port_pci_describe(const struct options *o, struct port *p)
{
	const char *way = p->queues == 1 ? "" : p->steered ? ", by rule" : ", by hash";
	snprintf(p->text, sizeof(p->text), "pci %s (%.24s%s)", p->card.address, p->card.driver,
		 way);
	return 0;
}

static bool port_pci_is_back(const struct options *o)
{
	struct card card;
	return card_read("/sys", o->port.name, &card) == CARD_GOOD;
}

const struct port_type port_pci = {
	.name = "pci",
	.usage = "pci:ADDR[,KEY=VALUE...]",
	.help = "a network card bound to a DPDK driver",
	.chosen = true,
	.card = true,
	.user_rings = true,
	.tell_mtu = true,
	.ops = &device_ops,
	.plan = port_pci_plan,
	.opened = port_pci_describe,
	.is_back = port_pci_is_back,
};
