/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A network card as the kernel shows it below /sys: who drives it, whether an IOMMU stands before
 * it, at which memory node it is. Read before DPDK starts (port.c, port_auto.c), so that what is
 * missing gets a line of its own. Knows nothing of DPDK.
 */
#ifndef SARISSA_DATAPLANE_IO_PORTS_CARD_H
#define SARISSA_DATAPLANE_IO_PORTS_CARD_H

#include <stdbool.h>

enum { CARD_ADDRESS_BYTES = 16 /* "0000:3b:00.0" */ };

struct card {
	char address[CARD_ADDRESS_BYTES];
	char driver[32]; /* of the kernel; "": none */
	bool network;	 /* its class says so */
	bool iommu;	 /* it is in a group of one, or passes for that in no-IOMMU mode */
	int memory_node; /* -1: the machine does not say */
};

enum card_verdict {
	CARD_GOOD,
	CARD_NO_ADDRESS, /* the text is none */
	CARD_MISSING,
	CARD_NOT_NETWORK,
	CARD_UNBOUND,	/* no driver has it */
	CARD_OF_KERNEL, /* a driver has it that does not give it to programs */
	CARD_NO_IOMMU,	/* vfio-pci has it, and nothing to protect memory with */
};

/* sys: "/sys", or a folder that stands for it; text: ADDRESS[,KEY=VALUE...], where the domain may
 * be left out. Sets what it finds in out, whatever the verdict. */
enum card_verdict card_read(const char *sys, const char *text, struct card *out);

/* The kernel driver passes on one interrupt, shared and level-triggered, or none: it is not used.
 */
bool card_is_uio(const struct card *c);

/* The memory node of a core; -1: the machine does not say, or has only one. */
int card_core_node(const char *sys, int core);

#endif
