/* SPDX-License-Identifier: BSD-3-Clause */
/* memif:ID: memory shared with another process. */
#include "io/ports/port.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <rte_common.h>
#include <rte_ethdev.h>
#include "internal/program/arguments.h"
#include "io/observe/log.h"

enum {
	MEMIF_BYTES = 3 << 20, /* of a direction */
	CLIENT_WAIT_MS = 10000,
	CLIENT_RETRY_MS = 50,
};

static bool port_memif_option(const char *option, struct port_spec *out, const char **why)
{
	const char *value = port_spec_value(option, "role");
	if (value) {
		out->server = strcmp(value, "server") == 0;
		return out->server || strcmp(value, "client") == 0 ||
		       port_spec_fail(why, "role must be server or client");
	}
	value = port_spec_value(option, "socket");
	if (!value)
		return port_spec_fail(why, "memif takes the options role= and socket=");
	if (*value != '/' || strlen(value) >= sizeof(out->socket))
		return port_spec_fail(why, "socket must be an absolute path of at most 107 bytes");
	strcpy(out->socket, value);
	return true;
}

static bool port_memif_check_name(struct port_spec *out, const char **why)
{
	uint64_t id;
	return argument_number(out->name, 10, 0, UINT32_MAX, &id) ||
	       port_spec_fail(why, "a memif is named by a number");
}

static int port_memif_plan(const struct options *o, struct port *p)
{
	return port_plan_socket(o, o->port.socket, o->port.server ? SOCK_SEQPACKET : 0);
}

/* Packets lie in places of the shared memory that have one size: each packet in one. As many as a
 * cache has room for: with 1,024 places for 9,000 bytes the copies take half as long again. */
static int port_memif_devargs(const struct options *o, const struct port *p, unsigned d, char *out,
			      unsigned size)
{
	const struct port_spec *s = &o->port;
	unsigned bytes = pool_frame_bytes(p->mtu), places = rte_log2_u32(MEMIF_BYTES / bytes);
	if (1u << places > MEMIF_BYTES / bytes)
		places--;
	return snprintf(out, size, "net_memif%s,id=%s,role=%s%s%s,bsize=%u,rsize=%u", s->name,
			s->name, s->server ? "server" : "client",
			*s->socket ? ",socket-abstract=no,socket=" : "", s->socket, bytes, places);
}

/* A client may be up before its server: it waits, unless it is told to end. */
static int port_memif_start(const struct options *o, uint16_t device)
{
	struct timespec pause = {.tv_nsec = CLIENT_RETRY_MS * 1000000};
	sigset_t ends;
	int error = rte_eth_dev_start(device);
	if (error && o->port.server)
		return port_fail(o, error, "it does not start", "see --log-level debug");
	if (error)
		log_info("port %s: waiting for the memif server", o->port.text);
	for (unsigned ms = 0; error && ms < CLIENT_WAIT_MS; ms += CLIENT_RETRY_MS) {
		nanosleep(&pause, NULL);
		if (sigpending(&ends) == 0 &&
		    (sigismember(&ends, SIGTERM) || sigismember(&ends, SIGINT)))
			break;
		error = rte_eth_dev_start(device);
	}
	return error ? port_fail(o, -ECONNREFUSED, "no memif server answers",
				 "start that one first")
		     : 0;
}

/* The driver says 1,500 bytes and does not look at it: its places are as large as we say. */
const struct port_type port_memif = {
	.name = "memif",
	.usage = "memif:ID[,role=server|client][,socket=PATH]",
	.help = "memory shared with a process",
	.ops = &device_ops,
	.option = port_memif_option,
	.check_name = port_memif_check_name,
	.plan = port_memif_plan,
	.devargs = port_memif_devargs,
	.start = port_memif_start,
};
