/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doctor's checks of this node: its port, link and MTU, and which other nodes it sees. doctor.c
 * calls doctor_check_node. Asks control through the library and reads the dataplane's counters.
 */
#include "doctor.h"

#include <errno.h>
#include <string.h>
#include "cli/support/text.h"

enum { DOCTOR_NODES = 64 }; /* of the others, so many are spoken of one by one */

struct doctor_nodes {
	struct doctor *d;
	sar_node other[DOCTOR_NODES];
	unsigned others, up;
};

static int doctor_take_node(const sar_node *node, void *arg)
{
	struct doctor_nodes *nodes = arg;
	if (node->self) {
		nodes->d->node = *node;
		nodes->d->has_node = true;
		if (nodes->d->dataplane_error == 0)
			counters_file_link(&nodes->d->dataplane, nodes->d->node.link,
					   sizeof(nodes->d->node.link));
		return 0;
	}
	if (nodes->others < DOCTOR_NODES)
		nodes->other[nodes->others] = *node;
	nodes->others++;
	nodes->up += node->state == SAR_NODE_UP;
	return 0;
}

/* The port's own words: "af_xdp eth0 (native, copy)". */
static void doctor_link(struct doctor *d)
{
	const char *link = d->node.link;
	bool xdp = strncmp(link, "af_xdp", 6) == 0;
	if (strstr(link, "gso refused")) {
		doctor_report(
			d, DOCTOR_WARN, "link", "ethtool -K DEV tx on, or another way to the peers",
			"%s: the device takes no bursts, so packets leave one by one, at a multiple of "
			"the CPU time",
			link);
		return;
	}
	if (xdp && (strstr(link, "generic") || strstr(link, "skb")))
		doctor_report(
			d, DOCTOR_WARN, "link",
			"some drivers have native XDP only with an MTU below a page (veth: "
			"ip link set IFACE mtu 3498), with half of their queues (ena, "
			"virtio_net: ethtool -L IFACE combined N) or without LRO (ethtool -K "
			"IFACE lro off); others not at all (ethtool -i IFACE names the driver)",
			"%s: XDP runs after the kernel built its packet, which costs speed", link);
	else if (xdp && strstr(link, "zero"))
		doctor_report(d, DOCTOR_OK, "link", NULL, "%s", link);
	else if (xdp)
		doctor_report(d, DOCTOR_OK, "link", NULL,
			      "%s: one copy per packet; drivers with XDP zero-copy (mlx5, ice, "
			      "i40e, ixgbe) avoid it",
			      link);
	else
		doctor_report(d, DOCTOR_OK, "link", NULL, "%s", *link ? link : "not told");
}

bool doctor_on_sockets(const struct doctor *d)
{
	char spec[PORT_NOTE_BYTES], why[PORT_NOTE_BYTES];
	if (d->has_node && *d->node.link)
		return strncmp(d->node.link, "udp ", 4) == 0;
	return counters_file_port(d->args->socket, 0, spec, why) && strncmp(spec, "udp:", 4) == 0;
}

/* Which port was asked for, or chosen, and why. */
static void doctor_port(struct doctor *d)
{
	char spec[PORT_NOTE_BYTES], why[PORT_NOTE_BYTES];
	if (counters_file_port(d->args->socket, 0, spec, why))
		doctor_report(d, DOCTOR_OK, "port", NULL, "%s: %s", spec, why);
}

static void doctor_mtu(struct doctor *d, const struct doctor_nodes *nodes)
{
	uint32_t mtu = d->node.mtu, least = mtu;
	uint32_t least_node = d->node.node;
	for (unsigned i = 0; i < nodes->others && i < DOCTOR_NODES; i++) {
		if (nodes->other[i].state == SAR_NODE_UP && nodes->other[i].mtu > 0 &&
		    nodes->other[i].mtu < least) {
			least = nodes->other[i].mtu;
			least_node = nodes->other[i].node;
		}
	}
	if (least < mtu)
		doctor_report(
			d, DOCTOR_WARN, "mtu", "give all nodes and the switch between them one MTU",
			"%u here, but the path to node %u carries only %u", mtu, least_node, least);
	else if (mtu < 1280)
		doctor_report(d, DOCTOR_WARN, "mtu", "ip link set IFACE mtu 1500, or more",
			      "%u bytes: most of a packet is header", mtu);
	else if (mtu < 3000)
		doctor_report(d, DOCTOR_OK, "mtu", NULL,
			      "%u bytes; larger frames cost less CPU per byte where the network "
			      "has them",
			      mtu);
	else
		doctor_report(d, DOCTOR_OK, "mtu", NULL, "%u bytes", mtu);
}

static void doctor_peers(struct doctor *d, const struct doctor_nodes *nodes)
{
	if (nodes->others == 0) {
		doctor_report(d, DOCTOR_OK, "peers", NULL, "this node is the only one configured");
		return;
	}
	if (nodes->up == nodes->others)
		doctor_report(d, DOCTOR_OK, "peers", NULL, "all %u other nodes are up",
			      nodes->others);
	for (unsigned i = 0; i < nodes->others && i < DOCTOR_NODES; i++) {
		const sar_node *n = &nodes->other[i];
		char address[TEXT_BYTES];
		if (n->state == SAR_NODE_UP)
			continue;
		doctor_report(
			d, DOCTOR_WARN, "peers",
			"see on that node whether it runs (sarissa doctor there), and whether "
			"UDP to that address and port passes",
			"node %u at %s %s", n->node, text_endpoint(address, n->ip, n->port),
			n->state == SAR_NODE_DOWN ? "is down" : "was never seen");
	}
}

static void doctor_no_node(struct doctor *d, int error)
{
	const char *fix =
		error == -EACCES
			? "run as a user that may write to the socket"
			: "start sarissa-control and sarissa-dataplane, or name the node's "
			  "socket with --socket or SARISSA_SOCKET";
	d->no_node = error == -ECONNREFUSED || error == -ENOTCONN || error == -ENOENT;
	doctor_report(d, DOCTOR_FAIL, "node", fix, "%s", sar_error_detail());
}

void doctor_check_node(struct doctor *d)
{
	static struct doctor_nodes nodes;
	sar *s;
	nodes = (struct doctor_nodes){.d = d};
	int r = sar_open(d->args->socket, &s);
	if (r < 0) {
		doctor_no_node(d, r);
		return;
	}
	r = sar_nodes(s, doctor_take_node, &nodes);
	sar_close(s);
	if (r < 0 || !d->has_node) {
		doctor_report(d, DOCTOR_FAIL, "node", "restart sarissa-control",
			      "%s answers, but does not tell its status: %s", d->args->socket,
			      r < 0 ? sar_error_detail() : "it is not in its own list");
		return;
	}
	doctor_report(d, DOCTOR_OK, "node", NULL, "node %u answers at %s", d->node.node,
		      d->args->socket);
	doctor_port(d);
	doctor_link(d);
	doctor_mtu(d, &nodes);
	doctor_peers(d, &nodes);
}
