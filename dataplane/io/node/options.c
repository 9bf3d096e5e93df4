/* SPDX-License-Identifier: BSD-3-Clause */
#include "options.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/wire/wire_field.h"
#include "io/net/ether.h"
#include "internal/object_table.h"
#include "internal/program/option.h"
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
};

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

static const char *options_rundir(const char *value, void *into)
{
	((struct options *)into)->rundir = value;
	return *value && strlen(value) < 80 ? NULL : "not a path of 1 to 79 bytes";
}

static const char *options_port(const char *value, void *into)
{
	struct options *o = into;
	const char *why = NULL;
	if (!o)
		return "a node has at most 8 ports";
	*o->port.text = '\0';
	if (strcmp(value, "auto") == 0)
		return NULL;
	return port_spec_parse(value, &o->port, &why) ? NULL : why;
}

static const char *options_addr(const char *value, void *into)
{
	struct options *o = into;
	o->has_addr = true;
	if (!options_address(value, &o->addr, &o->prefix))
		return "not IP[/PREFIX]";
	return options_one_host(&o->addr) ? NULL : "not the address of one host";
}

static const char *options_gateway(const char *value, void *into)
{
	struct options *o = into;
	o->has_gateway = true;
	return options_address(value, &o->gateway, NULL) ? NULL : "not an IP address";
}

#define NUMBER(field, low, high, unit) OPTION_NUMBER(struct options, field, low, high, unit)

/* Those of the port that stands before them name it. */
static const struct option_row options_rows[] = {
	{"rundir", "DIR", "where sockets and counters live (/run/sarissa)",
	 OPTION_TAKE(options_rundir)},
	{"port", "SPEC", "what carries the packets, see below (auto); may be repeated",
	 OPTION_TAKE(options_port), .of = "port"},
	{"addr", "IP[/PREFIX]", "our address (af_xdp, udp: default the interface's)",
	 OPTION_TAKE(options_addr), .of = "port"},
	{"gateway", "IP", "next hop to other networks (not for af_xdp, udp)",
	 OPTION_TAKE(options_gateway), .of = "port"},
	{"udp-port", "PORT", "worker w listens on PORT + w (7400)", NUMBER(udp_port, 1, 65535, 1),
	 .of = "port"},
	{"mtu", "BYTES", "IP bytes per packet (af_xdp, udp: the interface's, else 1500)",
	 NUMBER(mtu, MTU_MIN, MTU_MAX, 1), .of = "port"},
	{"vlan", "ID", "all frames are of this VLAN, 1 to 4094 (not for af_xdp, udp)",
	 NUMBER(vlan, 1, ETHER_VLAN_MAX, 1), .of = "port"},
	{"descriptors", "N", "of each ring of a card: 64 to 8192 (1024)",
	 NUMBER(descriptors, 64, 8192, 1), .of = "port"},
	{"workers", "W", "packet threads, 1 to 16 (1)", NUMBER(workers, 1, WORKERS_MAX, 1)},
	{"store", "MIB", "size of the object store (1024)",
	 NUMBER(store_bytes, 1, STORE_MIB_MAX, 1 << 20)},
	{"objects", "N", "objects that the store holds at most (65536)",
	 NUMBER(objects, OBJECT_TABLE_SLOTS_MIN, OBJECT_TABLE_SLOTS_MAX, 1)},
	{"cores", "LIST", "pin worker w to the w-th core, such as 2,3 or 4-7",
	 OPTION_TEXT(struct options, cores)},
	{"busy-poll", NULL, "workers never sleep: for dedicated cores",
	 OPTION_FLAG(struct options, busy_poll)},
	{"rate", "MBIT", "never send faster (no bound)", NUMBER(rate_bps, 0, 1000000, 1000000),
	 .of = "port"},
	{"delay-target", "US", "queueing delay that congestion control aims at",
	 NUMBER(delay_target_ns, 1, 1000000, 1000)},
	{"ack-delay", "US", "an acknowledgement waits at most so long",
	 NUMBER(ack_delay_ns, 1, 100000, 1000)},
	{"peers-max", "N", "connections that a worker has at most (1024)",
	 NUMBER(peers_max, 1, 4096, 1)},
	{"credit", "KIB", "bytes granted to senders and not yet arrived, at most",
	 NUMBER(credit_bytes, 64, 16 << 20, 1 << 10)},
	{"log-level", "LEVEL", "error, warning, info or debug (info)",
	 OPTION_CHOICE(struct options, log_level, LOG_ERROR, "error warning info debug")},
	{"capture", "FILE", "write every packet to FILE (pcapng)",
	 OPTION_TEXT(struct options, capture)},
	{"help", NULL, "this text", OPTION_STOP},
	{"version", NULL, "the version", OPTION_STOP},
};

enum { OPTIONS_ROWS = sizeof(options_rows) / sizeof(*options_rows) };

static enum options_result options_show(const struct option_row *row)
{
	if (strcmp(row->name, "version") == 0) {
		printf("sarissa-dataplane %s, wire protocol %u\n", SARISSA_VERSION, WIRE_VERSION);
		return OPTIONS_DONE;
	}
	printf("Usage: sarissa-dataplane [--port SPEC] [OPTION...]\n"
	       "Moves the packets of one Sarissa node. With --role switch as the first option:\n"
	       "see sarissa-switch(8).\n\n");
	option_help(options_rows, OPTIONS_ROWS);
	printf("\nSPEC: %-30s   the fastest that is there and permitted\n", "auto");
	for (const struct port_type *const *type = port_types; *type; type++)
		printf("      %-30s   %s\n", (*type)->usage, (*type)->help);
	printf("Each --port is a rail, up to 8 of any kinds: a copy is striped over all that both nodes have.\n"
	       "--addr, --gateway, --vlan, --descriptors, --udp-port, --mtu and --rate after a --port are of\n"
	       "that one; the last three, where a later port names none, are those of the first.\n");
	return OPTIONS_DONE;
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

enum options_result options_parse(int argc, char **argv, struct options out[RAILS_MAX])
{
	struct option_reader reader = {
		.row = options_rows, .rows = OPTIONS_ROWS, .argc = argc, .argv = argv, .form = ":"};
	const struct option_row *row;
	struct options *port = out;
	bool named = false, good = true;
	*out = (struct options){.rails = 1,
				.rundir = "/run/sarissa",
				.udp_port = UDP_PORT_DEFAULT,
				.workers = 1,
				.peers_max = NODES_MAX,
				.store_bytes = 1ull << 30,
				.objects = OBJECT_TABLE_SLOTS_DEFAULT,
				.log_level = LOG_INFO};
	while (good && (row = option_next(&reader))) {
		if (row->kind == OPTION_IS_STOP)
			return options_show(row);
		if (row->take == options_port) {
			port = options_next_port(out, named);
			named = true;
		}
		good = option_set(&reader, row, row->of ? port : out);
	}
	if (!*reader.wrong && optind < argc)
		snprintf(reader.wrong, sizeof(reader.wrong), "unexpected argument %.200s",
			 argv[optind]);
	if (!*reader.wrong)
		return options_check(out);
	log_error("%s: see --help", reader.wrong);
	return OPTIONS_WRONG;
}
