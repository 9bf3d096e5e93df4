/* SPDX-License-Identifier: BSD-3-Clause */
#include "port_auto.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <linux/if_xdp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "io/net/ether.h"
#include "io/net/interface.h"
#include "io/observe/log.h"
#include "io/ports/card.h"

#ifndef AF_XDP
#define AF_XDP 44
#endif

enum {
	PROBE_FRAMES = 64,
	PROBE_FRAME_BYTES = 4096,
};

/* --- cards that a DPDK driver has --- */

/* How many there are; out is the first by address. */
static unsigned port_auto_cards(char out[CARD_ADDRESS_BYTES])
{
	static const char *const drivers[] = {"vfio-pci", "igb_uio", "uio_pci_generic"};
	unsigned count = 0;
	for (unsigned i = 0; i < sizeof(drivers) / sizeof(*drivers); i++) {
		char path[64];
		snprintf(path, sizeof(path), "/sys/bus/pci/drivers/%s", drivers[i]);
		DIR *folder = opendir(path);
		for (struct dirent *e; folder && (e = readdir(folder));) {
			struct card card;
			card_read("/sys", e->d_name, &card);
			if (!card.network)
				continue;
			if (count++ == 0 || strcmp(card.address, out) < 0)
				strcpy(out, card.address);
		}
		if (folder)
			closedir(folder);
	}
	return count;
}

/* --- AF_XDP --- */

static int port_auto_bind_zero_copy(int fd, void *umem, unsigned index)
{
	struct xdp_umem_reg reg = {.addr = (uint64_t)(uintptr_t)umem,
				   .len = PROBE_FRAMES * PROBE_FRAME_BYTES,
				   .chunk_size = PROBE_FRAME_BYTES};
	int entries = PROBE_FRAMES;
	const int rings[] = {XDP_UMEM_FILL_RING, XDP_UMEM_COMPLETION_RING, XDP_RX_RING,
			     XDP_TX_RING};
	if (setsockopt(fd, SOL_XDP, XDP_UMEM_REG, &reg, sizeof(reg)) < 0)
		return -errno;
	for (unsigned i = 0; i < sizeof(rings) / sizeof(*rings); i++)
		if (setsockopt(fd, SOL_XDP, rings[i], &entries, sizeof(entries)) < 0)
			return -errno;
	struct sockaddr_xdp at = {
		.sxdp_family = AF_XDP, .sxdp_flags = XDP_ZEROCOPY, .sxdp_ifindex = index};
	return bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ? -errno : 0;
}

int port_auto_zero_copy(const char *interface)
{
	size_t bytes = PROBE_FRAMES * PROBE_FRAME_BYTES;
	int fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return errno == EAFNOSUPPORT ? -EOPNOTSUPP : -errno;
	void *umem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int error = umem == MAP_FAILED
			    ? -errno
			    : port_auto_bind_zero_copy(fd, umem, if_nametoindex(interface));
	close(fd);
	if (umem != MAP_FAILED)
		munmap(umem, bytes);
	return error;
}

/* --- addresses --- */

/* From where the kernel would send to the rest of the world: no packet leaves. Without such a
 * route, the loopback address. */
static void port_auto_default_address(struct net_addr *out)
{
	struct sockaddr_in far = {.sin_family = AF_INET, .sin_port = htons(9)}, near;
	socklen_t length = sizeof(near);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	far.sin_addr.s_addr = htonl(0xc0000201); /* 192.0.2.1: for documentation, RFC 5737 */
	if (fd < 0 || connect(fd, (struct sockaddr *)&far, sizeof(far)) < 0 ||
	    getsockname(fd, (struct sockaddr *)&near, &length) < 0)
		near.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd >= 0)
		close(fd);
	ether_map_v4(out->ip, (const uint8_t *)&near.sin_addr);
}

static bool port_auto_is_loopback(const struct net_addr *a)
{
	static const uint8_t one[16] = {[15] = 1};
	return net_addr_is_v4(a) ? a->ip[12] == 127 : memcmp(a->ip, one, 16) == 0;
}

/* --- the choice --- */

static int port_auto_take(struct options *o, const char *kind, const char *name)
{
	char text[PORT_SPEC_TEXT];
	const char *wrong;
	snprintf(text, sizeof(text), "%s:%s", kind, name);
	if (port_spec_parse(text, &o->port, &wrong))
		return 0;
	log_error("--port auto: %s cannot be used: %s: name a port with --port", text, wrong);
	return -EINVAL;
}

/* No interface has the address, so it can only be a card's. */
static int port_auto_take_card(struct options *o, unsigned cards, const char *card,
			       char why[PORT_AUTO_WHY])
{
	if (cards == 0) {
		log_error(
			"--port auto: no interface has the address of --addr, and no network card is "
			"bound to a DPDK driver: give the address to an interface, or bind a card");
		return -EADDRNOTAVAIL;
	}
	if (cards > 1) {
		log_error(
			"--port auto: %u network cards are bound to DPDK drivers: name one, such as "
			"--port pci:%s",
			cards, card);
		return -EINVAL;
	}
	snprintf(why, PORT_AUTO_WHY,
		 "a network card bound to a DPDK driver, and no interface has "
		 "the address of --addr");
	return port_auto_take(o, "pci", card);
}

static void port_auto_why_udp(char why[PORT_AUTO_WHY], const char *interface, int zero_copy,
			      unsigned cards, const char *card)
{
	struct interface i;
	int n = snprintf(why, PORT_AUTO_WHY, "kernel UDP sockets; ");
	if (zero_copy == -EPERM)
		n += snprintf(why + n, PORT_AUTO_WHY - (size_t)n,
			      "AF_XDP needs root or CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF");
	else if (zero_copy == -ENODEV)
		n += snprintf(why + n, PORT_AUTO_WHY - (size_t)n, "a loopback address has no card");
	else
		n += snprintf(why + n, PORT_AUTO_WHY - (size_t)n,
			      "the driver of %s (%s) has no AF_XDP zero-copy", interface,
			      interface_read(interface, &i) == 0 && *i.driver ? i.driver
									      : "unknown");
	if (cards > 0)
		snprintf(why + n, PORT_AUTO_WHY - (size_t)n,
			 "; the card %s is bound to a DPDK driver, but --addr does not name an "
			 "address for it",
			 card);
}

int port_auto(struct options *o, char why[PORT_AUTO_WHY])
{
	char card[CARD_ADDRESS_BYTES] = "", interface[IFNAMSIZ] = "", text[INET6_ADDRSTRLEN];
	struct net_addr addr = o->addr;
	unsigned cards = port_auto_cards(card);
	int zero_copy = -ENODEV;
	if (!o->has_addr)
		port_auto_default_address(&addr);
	if (!interface_find(&addr, false, interface) && !port_auto_is_loopback(&addr))
		return port_auto_take_card(o, cards, card, why);
	if (!port_auto_is_loopback(&addr))
		zero_copy = port_auto_zero_copy(interface);
	if (zero_copy == 0) {
		snprintf(why, PORT_AUTO_WHY, "the driver of %s does AF_XDP zero-copy", interface);
		return port_auto_take(o, "af_xdp", interface);
	}
	port_auto_why_udp(why, interface, zero_copy, cards, card);
	bool v4 = net_addr_is_v4(&addr);
	inet_ntop(v4 ? AF_INET : AF_INET6, addr.ip + (v4 ? 12 : 0), text, sizeof(text));
	return port_auto_take(o, "udp", text);
}
