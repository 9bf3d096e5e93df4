/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is worth saying about the link of a device, from looks at it: pure, for device_event.c,
 * which looks once a second. Interrupts for changes are not asked for: some drivers (e1000e and
 * vmxnet3 behind vfio-pci) give one and then no other, and with them answer later looks from
 * memory.
 */
#ifndef SARISSA_DATAPLANE_IO_NET_LINK_H
#define SARISSA_DATAPLANE_IO_NET_LINK_H

#include <stdbool.h>
#include <stdint.h>

#define LINK_LOOK_NS   1000000000ull /* from one look to the next */
#define LINK_SETTLE_NS 5000000000ull /* a card that has just been started may negotiate so long */

enum link_news { LINK_NOTHING, LINK_UP, LINK_DOWN };

struct link_watch {
	uint64_t started_ns, look_ns; /* when it began; when the next look is due */
	enum link_news said;	      /* LINK_NOTHING: neither yet */
};

void link_begin(struct link_watch *l, uint64_t now_ns);
static inline bool link_is_due(const struct link_watch *l, uint64_t now_ns)
{
	return now_ns >= l->look_ns;
}
/* A look found it up, or not. Returns what to say: each change once. A link that is not up yet
 * after the start is down only when LINK_SETTLE_NS have passed. */
enum link_news link_look(struct link_watch *l, bool up, uint64_t now_ns);

#endif
