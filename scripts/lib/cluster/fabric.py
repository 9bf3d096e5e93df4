# SPDX-License-Identifier: BSD-3-Clause
"""The emulated network of a topology file, for scripts/cluster: a bridge per switch and per direct
link, a cable per port of a node, links between switches, and routes by which nodes relay to each other.

All bridges are in the switch namespace, those of direct links too: rates and faults are made there,
outside the nodes. Addresses and routes do not change; latencies of the file are not emulated."""

from itertools import combinations

from lib.cluster import network
from lib.cluster.network import home_ip, ip_batch, node_ip, node_mac, node_netns, port_name, switch_netns, tc_batch
from lib.cluster.wires import Wires
from lib.options import vdev_of
from lib.shell import Failure, run

ROUTER = ("net.ipv4.ip_forward=1", "net.ipv4.conf.all.send_redirects=0",
          "net.ipv4.conf.default.send_redirects=0", "net.ipv4.conf.all.rp_filter=0",
          "net.ipv4.conf.default.rp_filter=0",
          # a pulled cable leaves the routes that have another rail
          "net.ipv4.conf.all.ignore_routes_with_linkdown=1",
          "net.ipv4.conf.default.ignore_routes_with_linkdown=1")


def describe(config, shown):
    """What the rest of the scripts asks the configuration of a cluster about a topology."""
    wires = Wires(shown)
    config["rails"] = [len(rails) for rails in wires.nodes]
    config["direct"] = {port_name(*one): other for one, other in wires.other_end.items()}
    config["topology"] = shown


def check_reach(config):
    """An AF_XDP port sends by its own interface only, and takes only what arrives there."""
    wires = Wires(config["topology"])
    for a, b in combinations(range(len(wires.nodes)), 2):
        both = range(min(len(wires.nodes[a]), len(wires.nodes[b])))
        if not any(vdev_of(config, rail) == "udp" or wires.segment[a, rail] == wires.segment[b, rail] for rail in both):
            raise Failure(f"--vdev {config['vdev']}: nodes {a} and {b} have no rail in common on one segment, and relays"
                          " are for udp: name udp for a rail, such as --vdev af_xdp,udp", 2)


def set_rates(shown, rate_mbit):
    """Gives all links one rate; 0: no limit."""
    for link in [rail for node in shown["nodes"] for rail in node["rails"]] + shown["links"]:
        link["rate_bps"] = rate_mbit * 1e6


def highest_mbit(shown):
    return max(rail["rate_bps"] for node in shown["nodes"] for rail in node["rails"]) / 1e6


def create(config):
    """The caller calls network.destroy() when this fails."""
    wires = Wires(config["topology"])
    switch = switch_netns(config["name"])
    network.create_switches(config, [f"br{i}" for i in range(wires.bridges)])
    for node in range(config["nodes"]):
        create_host(config, wires, node)
    for port in wires.ports():
        limit_port(config, wires, port)
    for i in range(len(wires.trunks)):
        create_trunk(config, wires, i)
    forward_frames(config, wires)
    for node, lines in routes(wires).items():
        ip_batch(node_netns(config["name"], node), lines)
    if config["rate"]:
        network.use_hysteresis()
        network.pin_receive(switch, "*")


def create_host(config, wires, node):
    name, ports = config["name"], wires.ports_of(node)
    netns = network.create_netns(config, node)
    network.in_netns(netns, "sysctl -qw " + " ".join(ROUTER))
    lines = ["link set lo up", f"addr add {home_ip(node)}/32 dev lo"]
    for port in ports:
        device = f"eth{port[1]}"
        lines += [f"link set {device} addrgenmode none up", f"addr add {node_ip(*port)}/32 dev {device}"]
        lines += [f"neigh add {node_ip(*other)} lladdr {node_mac(*other)} dev {device} nud permanent"
                  for other in wires.neighbours(port)]
    ip_batch(switch_netns(name), [network.cable(config, *port) for port in ports] +
             [f"link set {port_name(*port)} master br{wires.bridge[port]} up" for port in ports])
    ip_batch(netns, lines)
    for _, rail in ports:
        if vdev_of(config, rail) == "af_xdp":
            network.whole_checksums(netns, f"eth{rail}")
    if config["rate"]:
        network.pin_receive(netns, "eth*", node)


def limit_port(config, wires, port):
    """A direct link is limited once in each direction: on the way to the node."""
    switch, device, mtu = switch_netns(config["name"]), port_name(*port), config["mtu"]
    mbit = wires.rate_bps(port) / 1e6
    tc_batch(switch, [f"qdisc add dev {device} clsact"])
    if mbit and port in wires.other_end:
        tc_batch(switch, network.limits(device, mbit, mtu))
    elif mbit:
        network.shape(switch, port[0], mbit, mtu, port[1])
    if mbit or config["workers"] > 1:
        network.attach_port_program(switch, device, config)


def trunk_end(i, end):
    return f"t{i}{'ab'[end]}"


def create_trunk(config, wires, i):
    """A link between switches. Where these form a ring, nothing may be sent to all ports: what goes to
    whom is known."""
    switch, mtu = switch_netns(config["name"]), config["mtu"]
    ends = [trunk_end(i, end) for end in (0, 1)]
    ip_batch(switch, [f"link add name {ends[0]} mtu {mtu} type veth peer name {ends[1]} mtu {mtu}"] +
             [f"link set {end} master br{bridge} up" for end, bridge in zip(ends, wires.trunks[i])])
    for end in ends:
        run("bridge", "-n", switch, "link", "set", "dev", end, "flood", "off", "mcast_flood", "off",
            "bcast_flood", "off", "learning", "off")
        if mbit := wires.trunks[i][2] / 1e6:
            tc_batch(switch, network.limits(end, mbit, mtu))


def forward_frames(config, wires):
    """Which way each switch has to each port."""
    lines = []
    for port in wires.ports():
        lines.append(f"fdb replace {node_mac(*port)} dev {port_name(*port)} master static")
        for bridge, link in wires.forwarding(port):
            end = trunk_end(link, wires.trunks[link][:2].index(bridge))
            lines.append(f"fdb replace {node_mac(*port)} dev {end} master static")
    network.batch("bridge", switch_netns(config["name"]), lines)


def routes(wires):
    """By node, commands of ip."""
    out = {node: [] for node in range(len(wires.nodes))}
    for target in range(len(wires.nodes)):
        for node, rail, hop, metric in wires.routes(wires.ports_of(target)):
            out[node].append(f"route add {home_ip(target)}/32 dev eth{rail} via {node_ip(*hop)} onlink"
                             f" src {home_ip(node)} metric {metric}")
    for target in wires.ports():
        for node, rail, hop, metric in wires.routes([target]):
            way = "scope link" if hop == target else f"via {node_ip(*hop)} onlink"
            own = target[1] if target[1] < len(wires.nodes[node]) else 0
            out[node].append(f"route add {node_ip(*target)}/32 dev eth{rail} {way} src {node_ip(node, own)}"
                             f" metric {metric}")
    return out
