/* SPDX-License-Identifier: BSD-3-Clause */
#include "interface.h"

#include <errno.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

static bool interface_address_take(const struct ifaddrs *a, struct interface *out)
{
	memset(&out->addr, 0, sizeof(out->addr));
	if (a->ifa_addr->sa_family == AF_INET) {
		const struct sockaddr_in *v4 = (const void *)a->ifa_addr;
		out->addr.ip[10] = out->addr.ip[11] = 0xff;
		memcpy(out->addr.ip + 12, &v4->sin_addr, 4);
		return true;
	}
	const struct sockaddr_in6 *v6 = (const void *)a->ifa_addr;
	if (a->ifa_addr->sa_family != AF_INET6 || IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr))
		return false;
	memcpy(out->addr.ip, &v6->sin6_addr, 16);
	return true;
}

static int interface_address(const char *name, struct interface *out)
{
	struct ifaddrs *list;
	if (getifaddrs(&list) != 0)
		return -errno;
	for (int family = AF_INET; !out->has_addr && family;
	     family = family == AF_INET ? AF_INET6 : 0)
		for (struct ifaddrs *a = list; a && !out->has_addr; a = a->ifa_next)
			if (a->ifa_addr && a->ifa_addr->sa_family == family &&
			    strcmp(a->ifa_name, name) == 0)
				out->has_addr = interface_address_take(a, out);
	freeifaddrs(list);
	return 0;
}

static int interface_ioctls(int fd, struct ifreq *r, struct interface *out)
{
	struct ethtool_drvinfo driver = {.cmd = ETHTOOL_GDRVINFO};
	if (ioctl(fd, SIOCGIFINDEX, r) < 0)
		return -errno;
	out->index = r->ifr_ifindex;
	if (ioctl(fd, SIOCGIFMTU, r) < 0)
		return -errno;
	out->mtu = (unsigned)r->ifr_mtu;
	if (ioctl(fd, SIOCGIFFLAGS, r) < 0)
		return -errno;
	out->up = r->ifr_flags & IFF_UP;
	if (ioctl(fd, SIOCGIFHWADDR, r) < 0)
		return -errno;
	memcpy(out->mac, r->ifr_hwaddr.sa_data, 6);
	struct ethtool_channels channels = {.cmd = ETHTOOL_GCHANNELS};
	r->ifr_data = (void *)&channels;
	out->queues = 1; /* of a device that does not tell */
	if (ioctl(fd, SIOCETHTOOL, r) == 0 && channels.rx_count + channels.combined_count > 0)
		out->queues = channels.rx_count + channels.combined_count;
	r->ifr_data = (void *)&driver;
	if (ioctl(fd, SIOCETHTOOL, r) == 0) /* the driver's name is for the log only */
		memcpy(out->driver, driver.driver, sizeof(out->driver) - 1);
	return 0;
}

int interface_read(const char *name, struct interface *out)
{
	struct ifreq r = {0};
	memset(out, 0, sizeof(*out));
	if (strlen(name) >= sizeof(r.ifr_name))
		return -ENODEV;
	strcpy(r.ifr_name, name);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	int error = interface_ioctls(fd, &r, out);
	close(fd);
	return error ? error : interface_address(name, out);
}

/* The bytes of an address or a mask. */
static const uint8_t *interface_bytes(const struct sockaddr *a, bool v4)
{
	return v4 ? (const uint8_t *)&((const struct sockaddr_in *)a)->sin_addr
		  : (const uint8_t *)&((const struct sockaddr_in6 *)a)->sin6_addr;
}

static bool interface_has(const struct ifaddrs *a, const struct net_addr *addr, bool net)
{
	bool v4 = net_addr_is_v4(addr);
	unsigned skip = v4 ? 12 : 0;
	if (!a->ifa_addr || a->ifa_addr->sa_family != (v4 ? AF_INET : AF_INET6) ||
	    (net && !a->ifa_netmask))
		return false;
	for (unsigned i = skip; i < 16; i++) {
		uint8_t mask = net ? interface_bytes(a->ifa_netmask, v4)[i - skip] : 0xff;
		if ((interface_bytes(a->ifa_addr, v4)[i - skip] ^ addr->ip[i]) & mask)
			return false;
	}
	return true;
}

bool interface_find(const struct net_addr *addr, bool net, char out[IFNAMSIZ])
{
	struct ifaddrs *list, *a;
	if (getifaddrs(&list) != 0)
		return false;
	for (a = list; a && !interface_has(a, addr, net);)
		a = a->ifa_next;
	if (a)
		snprintf(out, IFNAMSIZ, "%s", a->ifa_name);
	freeifaddrs(list);
	return a != NULL;
}
