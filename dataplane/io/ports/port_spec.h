/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The --port option, TYPE:NAME[,OPTION...]: which type of port carries our packets, and its device.
 * Called by the main thread.
 */
#ifndef SARISSA_DATAPLANE_IO_PORTS_PORT_SPEC_H
#define SARISSA_DATAPLANE_IO_PORTS_PORT_SPEC_H

#include "internal/ids.h"
#include "io/ports/types/port_type.h"

enum {
	PORT_SPEC_TEXT = 256,
	PORT_SPEC_DEVARGS = 1024,
	PORT_SPEC_QUEUES_MAX = 16,
};

struct port_spec {
	const struct port_type *type;
	char text[PORT_SPEC_TEXT]; /* as given */
	char name[PORT_SPEC_TEXT]; /* interface, ring, id, PCI address or raw device arguments */
	unsigned queues;	   /* af_xdp; 0: all that the interface has */
	bool copy;		   /* af_xdp: do not ask for zero-copy */
	bool server;		   /* memif */
	bool has_addr;		   /* udp: the name is this address, not an interface */
	struct net_addr addr;
	bool single;	  /* udp: packets one by one */
	unsigned buffer;  /* udp: bytes of a socket's buffers; 0: as many as there may be */
	char socket[108]; /* memif */
};

/* Reads text. On a fault returns false and sets *why to what is wrong with it. */
bool port_spec_parse(const char *text, struct port_spec *out, const char **why);

/* Whether both name the same device. */
bool port_spec_same(const struct port_spec *a, const struct port_spec *b);

/* For the types: sets *why and returns false; what follows key= when option is key=..., or NULL;
 * whether the name can be an interface's. */
bool port_spec_fail(const char **why, const char *text);
const char *port_spec_value(const char *option, const char *key);
bool port_spec_interface(struct port_spec *out, const char **why);

#endif
