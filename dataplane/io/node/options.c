/* SPDX-License-Identifier: BSD-3-Clause */
#include "options.h"

#include <arpa/inet.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/wire/wire.h"
#include "io/net/ether.h"
#include "internal/object_table.h"
#include "internal/arguments.h"
#include "internal/record.h"
#include "io/observe/log.h"
#include "io/ports/types/port_auto.h"

#ifndef SARISSA_VERSION
#error "the build says which version this is"
#endif

enum {
	MTU_MIN = 1280, /* what the protocol needs of every path */
	MTU_MAX = 9000,
	STORE_MIB_MAX = 1 << 22,
	OPTION_FIRST = 256,
};

#define OPTIONS(X)                                                                              \
	X(RUNDIR, "rundir", "DIR", "where sockets and counters live (/run/sarissa)")            \
	X(PORT, "port", "SPEC", "what carries the packets, see below (auto); may be repeated")  \
	X(ADDR, "addr", "IP[/PREFIX]", "our address (af_xdp, udp: default the interface's)")    \
	X(GATEWAY, "gateway", "IP", "next hop to other networks (not for af_xdp, udp)")         \
	X(UDP_PORT, "udp-port", "PORT", "worker w listens on PORT + w (7400)")                  \
	X(MTU, "mtu", "BYTES", "IP bytes per packet (af_xdp, udp: the interface's, else 1500)") \
	X(VLAN, "vlan", "ID", "all frames are of this VLAN, 1 to 4094 (not for af_xdp, udp)")   \
	X(DESCRIPTORS, "descriptors", "N", "of each ring of a card: 64 to 8192 (1024)")         \
	X(WORKERS, "workers", "W", "packet threads, 1 to 16 (1)")                               \
	X(STORE, "store", "MIB", "size of the object store (1024)")                             \
	X(OBJECTS, "objects", "N", "objects that the store holds at most (65536)")              \
	X(CORES, "cores", "LIST", "pin worker w to the w-th core, such as 2,3 or 4-7")          \
	X(BUSY_POLL, "busy-poll", NULL, "workers never sleep: for dedicated cores")             \
	X(RATE, "rate", "MBIT", "never send faster (no bound)")                                 \
	X(DELAY_TARGET, "delay-target", "US", "queueing delay that congestion control aims at") \
	X(ACK_DELAY, "ack-delay", "US", "an acknowledgement waits at most so long")             \
	X(PEERS_MAX, "peers-max", "N", "connections that a worker has at most (1024)")          \
	X(CREDIT, "credit", "KIB", "bytes granted to senders and not yet arrived, at most")     \
	X(LOG_LEVEL, "log-level", "LEVEL", "error, warning, info or debug (info)")              \
	X(CAPTURE, "capture", "FILE", "write every packet to FILE (pcapng)")                    \
	X(HELP, "help", NULL, "this text")                                                      \
	X(VERSION, "version", NULL, "the version")

enum {
	OPTION_BEFORE_FIRST = OPTION_FIRST - 1,
#define X(id, name, argument, help) OPTION_##id,
	OPTIONS(X)
#undef X
};

static enum options_result options_help(void)
{
	static const struct argument_help rows[] = {
#define X(id, name, argument, help) {name, argument, help},
		OPTIONS(X)
#undef X
	};
	printf("Usage: sarissa-dataplane [--port SPEC] [OPTION...]\n"
	       "Moves the packets of one Sarissa node. With --role switch as the first option:\n"
	       "see sarissa-switch(8).\n\n");
	argument_help_print(rows, sizeof(rows) / sizeof(*rows));
	printf("\nSPEC: %-30s   the fastest that is there and permitted\n", "auto");
	for (const struct port_type *const *type = port_types; *type; type++)
		printf("      %-30s   %s\n", (*type)->usage, (*type)->help);
	printf("Each --port is a rail, up to 8 of any kinds: a copy is striped over all that both nodes have.\n"
	       "--addr, --gateway, --vlan, --descriptors, --udp-port, --mtu and --rate after a --port are of\n"
	       "that one; the last three, where a later port names none, are those of the first.\n");
	return OPTIONS_DONE;
}

static enum options_result options_wrong(const char *name, const char *value, const char *why)
{
	log_error("--%s %s: %s: see --help", name, value, why);
	return OPTIONS_WRONG;
}

/* Reads ADDRESS[/PREFIX]; prefix may be NULL when none is allowed. */
static bool options_address(const char *text, struct net_addr *out, uint8_t *prefix)
{
	char copy[INET6_ADDRSTRLEN + 4];
	uint8_t v4[4];
	memset(out, 0, sizeof(*out));
	if (strlen(text) >= sizeof(copy))
		return false;
	strcpy(copy, text);
	char *slash = strchr(copy, '/');
	if (slash && !prefix)
		return false;
	if (slash)
		*slash++ = 0;
	bool is_v4 = inet_pton(AF_INET, copy, v4) == 1;
	if (is_v4)
		ether_map_v4(out->ip, v4);
	else if (inet_pton(AF_INET6, copy, out->ip) != 1)
		return false;
	uint64_t bits = 0;
	if (slash && !argument_number(slash, 10, 1, is_v4 ? 32 : 128, &bits))
		return false;
	if (prefix)
		*prefix = (uint8_t)bits;
	return true;
}

/* Neither unspecified nor a group's. */
static bool options_one_host(const struct net_addr *a)
{
	static const uint8_t nobody[16];
	if (!net_addr_is_v4(a))
		return a->ip[0] != 0xff && memcmp(a->ip, nobody, sizeof(nobody)) != 0;
	return a->ip[12] != 0 && a->ip[12] < 224;
}

/* Cores: numbers and ranges, in the order of the workers. */
static bool options_parse_cores(const char *text, int *core, unsigned max, unsigned *count)
{
	*count = 0;
	for (const char *p = text;; p++) {
		char *end;
		if (*p < '0' || *p > '9')
			return false;
		long first = strtol(p, &end, 10), last = first;
		if (*end == '-' && end[1] >= '0' && end[1] <= '9')
			last = strtol(end + 1, &end, 10);
		if (first > last || last >= 1024)
			return false;
		for (long c = first; c <= last; c++) {
			if (*count == max)
				return false;
			core[(*count)++] = (int)c;
		}
		p = end;
		if (*p == 0)
			return true;
		if (*p != ',')
			return false;
	}
}

/* An option that is a number: its bounds, and what it is multiplied by. */
struct options_number {
	int id;
	uint64_t least, most, unit;
	size_t offset, bytes;
	const char *why;
};

#define OPTIONS_NUMBER(id, field, least, most, unit, why)                        \
	{                                                                        \
		OPTION_##id, least, most, unit, offsetof(struct options, field), \
			sizeof(((struct options *)0)->field), why                \
	}

static const struct options_number options_numbers[] = {
	OPTIONS_NUMBER(UDP_PORT, udp_port, 1, 65535, 1, "a port is 1 to 65535"),
	OPTIONS_NUMBER(MTU, mtu, MTU_MIN, MTU_MAX, 1, "an MTU is 1280 to 9000 bytes"),
	OPTIONS_NUMBER(VLAN, vlan, 1, ETHER_VLAN_MAX, 1, "a VLAN is 1 to 4094"),
	OPTIONS_NUMBER(DESCRIPTORS, descriptors, 64, 8192, 1, "a ring has 64 to 8192 descriptors"),
	OPTIONS_NUMBER(WORKERS, workers, 1, WORKERS_MAX, 1, "there are 1 to 16 workers"),
	OPTIONS_NUMBER(STORE, store_bytes, 1, STORE_MIB_MAX, 1 << 20,
		       "a store has 1 to 4194304 MiB"),
	OPTIONS_NUMBER(OBJECTS, objects, OBJECT_TABLE_SLOTS_MIN, OBJECT_TABLE_SLOTS_MAX, 1,
		       "a store holds 1024 to 1048576 objects"),
	OPTIONS_NUMBER(RATE, rate_bps, 0, 1000000, 1000000,
		       "a rate is 0 (no bound) to 1000000 Mbit/s"),
	OPTIONS_NUMBER(DELAY_TARGET, delay_target_ns, 1, 1000000, 1000,
		       "a delay target is 1 to 1000000 us"),
	OPTIONS_NUMBER(ACK_DELAY, ack_delay_ns, 1, 100000, 1000,
		       "an acknowledgement delay is 1 to 100000 us"),
	OPTIONS_NUMBER(PEERS_MAX, peers_max, 1, 4096, 1, "a worker has 1 to 4096 connections"),
	OPTIONS_NUMBER(CREDIT, credit_bytes, 64, 16 << 20, 1 << 10, "credit is 64 to 16777216 KiB"),
};

static const char *options_set_number(int id, const char *value, struct options *o)
{
	const struct options_number *row = options_numbers;
	uint64_t n = 0;
	while (row->id != id)
		row++;
	if (!argument_number(value, 10, row->least, row->most, &n))
		return row->why;
	n *= row->unit;
	memcpy((char *)o + row->offset, &n, row->bytes); /* the low bytes come first */
	return NULL;
}

static const char *options_set(int id, char *value, struct options *o)
{
	const char *why = NULL;
	switch (id) {
	case OPTION_RUNDIR:
		o->rundir = value;
		return *value && strlen(value) < 80 ? NULL : "not a path of 1 to 79 bytes";
	case OPTION_PORT:
		*o->port.text = '\0';
		if (strcmp(value, "auto") == 0)
			return NULL;
		return port_spec_parse(value, &o->port, &why) ? NULL : why;
	case OPTION_ADDR:
		o->has_addr = true;
		if (!options_address(value, &o->addr, &o->prefix))
			return "not IP[/PREFIX]";
		return options_one_host(&o->addr) ? NULL : "not the address of one host";
	case OPTION_GATEWAY:
		o->has_gateway = true;
		return options_address(value, &o->gateway, NULL) ? NULL : "not an IP address";
	case OPTION_CORES:
		o->cores = value;
		return NULL;
	case OPTION_BUSY_POLL:
		o->busy_poll = true;
		return NULL;
	case OPTION_LOG_LEVEL:
		return log_parse_level(value, &o->log_level) ? NULL : "not a level";
	case OPTION_CAPTURE:
		o->capture = value;
		return NULL;
	default:
		return options_set_number(id, value, o);
	}
}

/* Checks of one port that need all options. */
static enum options_result options_check_port(struct options *o)
{
	unsigned count;
	if (!*o->port.text && port_auto(o, o->port_why) < 0)
		return OPTIONS_WRONG;
	if (o->udp_port + o->workers - 1 > 65535)
		return options_wrong("workers", "", "the last worker's port is above 65535");
	if (o->cores &&
	    (!options_parse_cores(o->cores, o->core, WORKERS_MAX, &count) || count < o->workers))
		return options_wrong("cores", o->cores, "not a list with a core for each worker");
	if (!o->has_addr && !o->port.type->kernel_address)
		return options_wrong("port", o->port.text,
				     "--addr is missing, this port has no address of its own");
	if (o->has_gateway && o->port.type->kernel_address)
		return options_wrong("port", o->port.text,
				     "--gateway does not go with it, the kernel's routes are used");
	if (o->vlan && o->port.type->kernel_address)
		return options_wrong(
			"port", o->port.text,
			"--vlan does not go with it, use a VLAN interface of the kernel");
	if (o->descriptors && !o->port.type->user_rings)
		return options_wrong("port", o->port.text, "--descriptors is for pci: and vdev:");
	if (o->has_gateway && net_addr_is_v4(&o->gateway) != net_addr_is_v4(&o->addr))
		return options_wrong("gateway", "", "not of the same family as --addr");
	if (o->has_gateway && o->prefix == 0)
		return options_wrong("gateway", "", "--addr needs a /PREFIX to tell what is local");
	o->addr.port = o->udp_port;
	return OPTIONS_RUN;
}

/* Values that are not of a port alone are as the first has them. */
static void options_share(struct options *o, const struct options *first)
{
	struct options own = *o;
	*o = *first;
	o->port = own.port;
	o->has_addr = own.has_addr;
	o->has_gateway = own.has_gateway;
	o->addr = own.addr;
	o->prefix = own.prefix;
	o->gateway = own.gateway;
	o->udp_port = own.udp_port;
	o->mtu = own.mtu;
	o->vlan = own.vlan;
	o->descriptors = own.descriptors;
	o->rate_bps = own.rate_bps;
}

/* The address of a port as far as the command line says; false: its interface's. */
static bool options_known_addr(const struct options *o, struct net_addr *out)
{
	*out = o->has_addr ? o->addr : o->port.addr;
	return o->has_addr || o->port.has_addr;
}

static enum options_result options_check_two(const struct options *a, const struct options *b)
{
	struct net_addr x, y;
	if (port_spec_same(&a->port, &b->port))
		return options_wrong("port", b->port.text,
				     "an earlier --port has this device: a rail has its own");
	if (options_known_addr(a, &x) && options_known_addr(b, &y) &&
	    memcmp(x.ip, y.ip, sizeof(x.ip)) == 0)
		return options_wrong("port", b->port.text,
				     "an earlier --port has this address: a rail has its own");
	return OPTIONS_RUN;
}

static enum options_result options_check_capture(const struct options *first)
{
	for (unsigned i = 0; i < first->rails; i++)
		if (!first->capture || !first[i].port.type->sockets)
			return OPTIONS_RUN;
	return options_wrong("capture", first->capture,
			     "not with --port udp: the kernel has the packets, use tcpdump");
}

static enum options_result options_check(struct options *first)
{
	unsigned peers = first->peers_max * first->rails; /* each may have as many paths */
	first->peers_max = (uint16_t)(peers < 4096 ? peers : 4096);
	for (unsigned i = 0; i < first->rails; i++) {
		struct options *o = &first[i];
		if (i > 0)
			options_share(o, first);
		o->rail = (uint8_t)i;
		if (options_check_port(o) == OPTIONS_WRONG)
			return OPTIONS_WRONG;
		for (unsigned k = 0; k < i; k++)
			if (options_check_two(&first[k], o) == OPTIONS_WRONG)
				return OPTIONS_WRONG;
	}
	return options_check_capture(first);
}

/* The port that options belong to from here on; NULL: too many. */
static struct options *options_next_port(struct options *first, bool again)
{
	if (!again)
		return first;
	if (first->rails == RAILS_MAX)
		return NULL;
	struct options *o = &first[first->rails++];
	*o = (struct options){
		.udp_port = first->udp_port, .mtu = first->mtu, .rate_bps = first->rate_bps};
	return o;
}

static bool options_of_port(int id)
{
	return id == OPTION_PORT || id == OPTION_ADDR || id == OPTION_GATEWAY ||
	       id == OPTION_UDP_PORT || id == OPTION_MTU || id == OPTION_RATE ||
	       id == OPTION_VLAN || id == OPTION_DESCRIPTORS;
}

enum options_result options_parse(int argc, char **argv, struct options out[RAILS_MAX])
{
	static const struct option rows[] = {
#define X(id, name, argument, help) \
	{name, (argument) ? required_argument : no_argument, NULL, OPTION_##id},
		OPTIONS(X)
#undef X
			{NULL, 0, NULL, 0}};
	struct options *port = out;
	bool named = false;
	*out = (struct options){.rails = 1,
				.rundir = "/run/sarissa",
				.udp_port = UDP_PORT_DEFAULT,
				.workers = 1,
				.peers_max = NODES_MAX,
				.store_bytes = 1ull << 30,
				.objects = OBJECT_TABLE_SLOTS_DEFAULT,
				.log_level = LOG_INFO};
	opterr = 0;
	for (int id, row; (id = getopt_long(argc, argv, ":", rows, &row)) != -1;) {
		if (id == '?' || id == ':') {
			log_error("%s: %s: see --help", argument_refused(argc, argv),
				  id == '?' ? "unknown option" : "needs a value");
			return OPTIONS_WRONG;
		}
		if (id == OPTION_HELP)
			return options_help();
		if (id == OPTION_VERSION) {
			printf("sarissa-dataplane %s, wire protocol %u\n", SARISSA_VERSION,
			       WIRE_VERSION);
			return OPTIONS_DONE;
		}
		if (id == OPTION_PORT) {
			port = options_next_port(out, named);
			named = true;
		}
		const char *why = !port ? "a node has at most 8 ports"
					: options_set(id, optarg, options_of_port(id) ? port : out);
		if (why)
			return options_wrong(rows[id - OPTION_FIRST].name, optarg, why);
	}
	if (optind < argc) {
		log_error("%s: unexpected argument: see --help", argv[optind]);
		return OPTIONS_WRONG;
	}
	return options_check(out);
}
