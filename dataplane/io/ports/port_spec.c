/* SPDX-License-Identifier: BSD-3-Clause */
#include "port_spec.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include "io/net/ether.h"
#include "internal/arguments.h"

static const char *const kind_names[PORT_KINDS] = {"af_xdp", "udp", "tap", "memif",
						   "ring",   "pci", "vdev"};

const char *port_kind_name(enum port_kind kind)
{
	return kind_names[kind];
}

static bool port_spec_fail(const char **why, const char *text)
{
	*why = text;
	return false;
}

static bool port_spec_kind(const char *text, size_t length, enum port_kind *out)
{
	for (int k = 0; k < PORT_KINDS; k++)
		if (strlen(kind_names[k]) == length && memcmp(text, kind_names[k], length) == 0) {
			*out = (enum port_kind)k;
			return true;
		}
	return false;
}

/* What follows key= when option is key=..., or NULL. */
static const char *port_spec_option_value(const char *option, const char *key)
{
	size_t n = strlen(key);
	return strncmp(option, key, n) == 0 && option[n] == '=' ? option + n + 1 : NULL;
}

static bool port_spec_queues(const char *value, struct port_spec *out, const char **why)
{
	uint64_t n;
	if (!argument_number(value, 10, 1, PORT_SPEC_QUEUES_MAX, &n))
		return port_spec_fail(why, "queues must be 1 to 16");
	out->queues = (unsigned)n;
	return true;
}

static bool port_spec_memif_option(const char *option, struct port_spec *out, const char **why)
{
	const char *value = port_spec_option_value(option, "role");
	if (value) {
		out->server = strcmp(value, "server") == 0;
		if (!out->server && strcmp(value, "client") != 0)
			return port_spec_fail(why, "role must be server or client");
		return true;
	}
	value = port_spec_option_value(option, "socket");
	if (!value)
		return port_spec_fail(why, "memif takes the options role= and socket=");
	if (*value != '/' || strlen(value) >= sizeof(out->socket))
		return port_spec_fail(why, "socket must be an absolute path of at most 107 bytes");
	strcpy(out->socket, value);
	return true;
}

static bool port_spec_udp_option(const char *option, struct port_spec *out, const char **why)
{
	uint64_t kib;
	const char *value = port_spec_option_value(option, "buffer");
	if (!value) {
		out->single = strcmp(option, "single") == 0;
		return out->single ||
		       port_spec_fail(why, "udp takes the options single and buffer=KIB");
	}
	if (!argument_number(value, 10, 1, 1 << 20, &kib))
		return port_spec_fail(why, "buffer must be 1 to 1048576 KiB");
	out->buffer = (unsigned)kib << 10;
	return true;
}

static bool port_spec_option(const char *option, struct port_spec *out, const char **why)
{
	const char *value = port_spec_option_value(option, "queues");
	switch (out->kind) {
	case PORT_AF_XDP:
		if (value)
			return port_spec_queues(value, out, why);
		if (strcmp(option, "copy") != 0)
			return port_spec_fail(why, "af_xdp takes the options queues=N and copy");
		out->copy = true;
		return true;
	case PORT_UDP:
		return port_spec_udp_option(option, out, why);
	case PORT_MEMIF:
		return port_spec_memif_option(option, out, why);
	default:
		return port_spec_fail(why, "this kind of port takes no options");
	}
}

/* An address of one host, or the one that stands for all of this one's. */
static bool port_spec_udp_name(struct port_spec *out, const char **why)
{
	uint8_t v4[4];
	if (inet_pton(AF_INET, out->name, v4) == 1)
		ether_map_v4(out->addr.ip, v4);
	else if (inet_pton(AF_INET6, out->name, out->addr.ip) != 1)
		return (strlen(out->name) < IFNAMSIZ && !strchr(out->name, ':')) ||
		       port_spec_fail(why, "neither an IP address nor the name of an interface");
	out->has_addr = true;
	bool is_v4 = net_addr_is_v4(&out->addr);
	if (is_v4 ? out->addr.ip[12] >= 224 : out->addr.ip[0] == 0xff)
		return port_spec_fail(why, "not the address of one host");
	if (!is_v4 && out->addr.ip[0] == 0xfe && (out->addr.ip[1] & 0xc0) == 0x80)
		return port_spec_fail(why, "a link-local address: peers elsewhere cannot use it");
	return true;
}

static bool port_spec_name(struct port_spec *out, const char **why)
{
	if (!*out->name)
		return port_spec_fail(why, "a name is missing after the colon");
	if ((out->kind == PORT_AF_XDP || out->kind == PORT_TAP) && strlen(out->name) >= IFNAMSIZ)
		return port_spec_fail(why, "an interface name has at most 15 bytes");
	if (out->kind == PORT_UDP)
		return port_spec_udp_name(out, why);
	if (out->kind == PORT_RING && strlen(out->name) > 24)
		return port_spec_fail(why, "a ring name has at most 24 bytes");
	if (out->kind == PORT_MEMIF) {
		uint64_t id;
		if (!argument_number(out->name, 10, 0, UINT32_MAX, &id))
			return port_spec_fail(why, "a memif is named by a number");
	}
	return true;
}

bool port_spec_parse(const char *text, struct port_spec *out, const char **why)
{
	memset(out, 0, sizeof(*out));
	const char *colon = strchr(text, ':');
	if (!colon || !port_spec_kind(text, (size_t)(colon - text), &out->kind))
		return port_spec_fail(
			why,
			"it must start with af_xdp:, udp:, tap:, memif:, ring:, pci: or vdev:");
	if (strlen(text) >= sizeof(out->text))
		return port_spec_fail(why, "it is longer than 255 bytes");
	strcpy(out->text, text);
	strcpy(out->name, colon + 1);
	if (out->kind == PORT_PCI || out->kind == PORT_VDEV) /* options are the driver's own */
		return port_spec_name(out, why);
	char *next = strchr(out->name, ',');
	while (next) {
		char *option = next + 1;
		*next = 0;
		next = strchr(option, ',');
		if (next)
			*next = 0;
		bool ok = port_spec_option(option, out, why);
		if (!ok)
			return false;
	}
	return port_spec_name(out, why);
}

/* Text up to its first comma. */
static bool port_spec_same_head(const char *a, const char *b)
{
	size_t n = strcspn(a, ",");
	return strcspn(b, ",") == n && strncmp(a, b, n) == 0;
}

static bool port_spec_of_interface(const struct port_spec *s)
{
	return s->kind == PORT_AF_XDP || (s->kind == PORT_UDP && !s->has_addr);
}

bool port_spec_same(const struct port_spec *a, const struct port_spec *b)
{
	if (port_spec_of_interface(a) && port_spec_of_interface(b))
		return strcmp(a->name, b->name) == 0;
	if (a->kind == PORT_UDP && b->kind == PORT_UDP && a->has_addr && b->has_addr)
		return memcmp(a->addr.ip, b->addr.ip, sizeof(a->addr.ip)) == 0;
	return a->kind == b->kind && port_spec_same_head(a->name, b->name);
}

bool port_spec_devargs(const struct port_spec *spec, unsigned rail, unsigned queue,
		       const char *program, bool busy, char *out, unsigned size)
{
	int n = -1;
	switch (spec->kind) {
	case PORT_AF_XDP:
		n = snprintf(out, size,
			     "net_af_xdp%u,iface=%s,start_queue=%u,xdp_prog=%s,force_copy=%d%s",
			     rail * PORT_SPEC_QUEUES_MAX + queue, spec->name, queue, program,
			     spec->copy, busy ? "" : ",busy_budget=0");
		break;
	case PORT_TAP:
		n = snprintf(out, size, "net_tap%u,iface=%s", rail, spec->name);
		break;
	case PORT_MEMIF:
		n = snprintf(out, size, "net_memif%s,id=%s,role=%s%s%s", spec->name, spec->name,
			     spec->server ? "server" : "client",
			     *spec->socket ? ",socket-abstract=no,socket=" : "", spec->socket);
		break;
	case PORT_RING:
		n = snprintf(out, size, "net_ring_%s", spec->name);
		break;
	case PORT_UDP: /* no device of DPDK's */
		return false;
	case PORT_PCI:
	case PORT_VDEV:
	case PORT_KINDS:
		n = snprintf(out, size, "%s", spec->name);
		break;
	}
	return n > 0 && (unsigned)n < size;
}
