# SPDX-License-Identifier: BSD-3-Clause
"""A switch and N hosts in network namespaces: links, addresses, rate limits.

Every host hangs on its own port pI of a bridge in the switch namespace. All limits and faults are
made there, outside the hosts: a sender over AF_XDP passes no queueing discipline of its own device.
"""

import os
import re
from pathlib import Path

from lib.cluster import bpf
from lib.shell import Failure, run, say, succeeds

HYSTERESIS = Path("/sys/module/sch_htb/parameters/htb_hysteresis")
PORT_BUFFER_BYTES = 512 * 1024  # what a switch port may queue
FAULT_PREF, PORT_PREF, SHAPE_PREF = 1, 5, 10  # order of the classifiers of a port


def switch_netns(name):
    return f"sar-{name}-sw"


def node_netns(name, node):
    return f"sar-{name}-{node}"


def node_ip(node, rail=0):
    """Of a port: each rail has a network of its own."""
    return f"10.{77 + rail}.{node // 250}.{node % 250 + 1}"


def home_ip(node):
    """Of a node of a topology, whichever rail leads to it."""
    return f"10.76.{node // 250}.{node % 250 + 1}"


def node_ip6(node):
    return f"fd77::{node + 1:x}"


def node_mac(node, rail=0):
    return f"02:77:00:{rail:02x}:{node >> 8:02x}:{node & 255:02x}"


def port_name(node, rail=0):
    """The switch's end of a node's cable."""
    return f"p{node}r{rail}" if rail else f"p{node}"


def limiter_name(node, rail=0):
    """The device that limits what comes from the node."""
    return f"ifb{node}r{rail}" if rail else f"ifb{node}"


def aggregator_ip():
    """Of the switch itself, when it aggregates (--switch)."""
    return "10.77.255.254"


def inner_names(node):
    """The cable between a node's port, where limits and faults are, and the aggregating switch: the
    port's end, the switch's end."""
    return f"a{node}", f"s{node}"


def batch(tool, netns, lines):
    """All lines in one call; a failure names the one that failed."""
    try:
        run(tool, "-n", netns, "-batch", "-", input="\n".join(lines) + "\n")
    except Failure as failure:
        told = re.search(r"\): (.*)\n.*Command failed -:(\d+)", str(failure), re.S)
        if not told:
            raise
        why, line = " ".join(told[1].split()).removeprefix("Error: "), lines[int(told[2]) - 1]
        if re.search("[Uu]nknown|not supported", why):
            why += " Has this kernel the module for it?"
        raise Failure(f"'{tool} -n {netns} {line}' failed: {why}") from None


def ip_batch(netns, lines):
    if lines:
        batch("ip", netns, lines)


def tc_batch(netns, lines):
    if lines:
        batch("tc", netns, lines)


def in_netns(netns, script):
    """A shell script inside the namespace, with its own /sys."""
    return run("ip", "netns", "exec", netns, "sh", "-c", script)


def create(config):
    """The whole network of a cluster; the caller calls destroy() when this fails."""
    switch = switch_netns(config["name"])
    create_switches(config, ["br0"])
    if config.get("switch"):
        ip_batch(switch, [f"addr add {aggregator_ip()}/16 dev br0"])
    for node in range(config["nodes"]):
        create_host(config, node)
        create_port(config, node)
    if config["rate"]:
        use_hysteresis()
        pin_receive(switch, "*")


def create_switches(config, bridges):
    switch = switch_netns(config["name"])
    run("ip", "netns", "add", switch)
    in_netns(switch, "sysctl -qw net.ipv6.conf.all.disable_ipv6=1"
             " net.ipv6.conf.default.disable_ipv6=1;"
             "for key in /proc/sys/net/bridge/bridge-nf-call-*; do"
             " if [ -e $key ]; then echo 0 >$key; fi; done")
    lines = ["link set lo up"]
    for bridge in bridges:
        lines += [f"link add name {bridge} mtu {config['mtu']} type bridge mcast_snooping 0"
                  " forward_delay 0",
                  f"link set {bridge} up"]
    ip_batch(switch, lines)


def create_netns(config, node):
    netns = node_netns(config["name"], node)
    run("ip", "netns", "add", netns)
    off = 0 if config["ipv6"] else 1
    in_netns(netns, "sysctl -qw" + "".join(
        f" net.ipv6.conf.{which}.disable_ipv6={off} net.ipv6.conf.{which}.accept_ra=0"
        f" net.ipv6.conf.{which}.autoconf=0 net.ipv6.conf.{which}.accept_dad=0"
        for which in ("all", "default")))
    return netns


def cable(config, node, rail=0):
    """From the switch to interface ethR of the node, as a command of ip."""
    mtu, queues = config["mtu"], config["workers"]
    return (f"link add name {port_name(node, rail)} mtu {mtu} numrxqueues {queues} numtxqueues {queues}"
            f" type veth peer name eth{rail} netns {node_netns(config['name'], node)} mtu {mtu}"
            f" address {node_mac(node, rail)} numrxqueues {queues} numtxqueues {queues}")


def whole_checksums(netns, device):
    """Frames of kernel sockets reach XDP programs as they are."""
    run("ip", "netns", "exec", netns, "ethtool", "-K", device, "tx", "off")


def create_host(config, node):
    netns = create_netns(config, node)
    ip_batch(switch_netns(config["name"]), [cable(config, node)])
    lines = ["link set lo up", "link set eth0 addrgenmode none up"]
    if config["vdev"] != "tap":  # there the dataplane owns the address
        lines.append(f"addr add {node_ip(node)}/16 dev eth0")
        if config["ipv6"]:
            lines.append(f"addr add {node_ip6(node)}/64 dev eth0 nodad")
        for other in set(range(config["nodes"])) - {node}:
            lines.append(f"neigh add {node_ip(other)} lladdr {node_mac(other)} dev eth0"
                         " nud permanent")
            if config["ipv6"]:
                lines.append(f"neigh add {node_ip6(other)} lladdr {node_mac(other)} dev eth0"
                             " nud permanent")
    ip_batch(netns, lines)
    if config["vdev"] == "af_xdp":
        whole_checksums(netns, "eth0")
    if config["rate"]:
        pin_receive(netns, "eth0", node)


def create_inner_port(config, node):
    """A port whose packets all pass an interface of the aggregating switch, behind limits and faults. That
    interface is in the bridge too, so the bridge takes over when the switch ends."""
    switch, port = switch_netns(config["name"]), port_name(node)
    (near, far), mtu = inner_names(node), config["mtu"]
    ip_batch(switch, [f"link add name {near} mtu {mtu} type veth peer name {far} mtu {mtu}",
                      f"link set {far} master br0 up", f"link set {near} up", f"link set {port} up"])
    run("bridge", "-n", switch, "fdb", "replace", node_mac(node), "dev", far, "master", "static")
    in_netns(switch, f"ethtool -K {near} gro on; ethtool -K {far} gro on")
    redirect = "u32 match u32 0 0 action mirred egress redirect dev"
    tc_batch(switch, [f"qdisc add dev {device} clsact" for device in (port, near)] +
             [f"filter add dev {port} ingress pref {SHAPE_PREF} protocol all {redirect} {near}",
              f"filter add dev {near} ingress pref {SHAPE_PREF} protocol all {redirect} {port}"])
    if config["rate"]:
        tc_batch(switch, limits(near, config["rate"], mtu) + limits(port, config["rate"], mtu))
    if config["rate"] or config["workers"] > 1:
        attach_port_program(switch, port, config)


def create_port(config, node):
    if config.get("switch"):
        create_inner_port(config, node)
        return
    switch = switch_netns(config["name"])
    join_bridge(config, node, "br0")
    tc_batch(switch, [f"qdisc add dev p{node} clsact"])
    if config["rate"]:
        shape(switch, node, config["rate"], config["mtu"])
    if config["rate"] or config["workers"] > 1:
        attach_port_program(switch, port_name(node), config)


def join_bridge(config, node, bridge):
    switch = switch_netns(config["name"])
    ip_batch(switch, [f"link set p{node} master {bridge} up"])
    if config["vdev"] != "tap":
        run("bridge", "-n", switch, "fdb", "replace", node_mac(node), "dev", f"p{node}",
            "master", "static")


def split(config, away):
    """Those nodes see each other, but none of the rest; with nobody away all see all again."""
    switch = switch_netns(config["name"])
    if away:
        ip_batch(switch, [f"link add name br1 mtu {config['mtu']} type bridge mcast_snooping 0"
                          " forward_delay 0",
                          "link set br1 up"])
        for node in away:
            join_bridge(config, node, "br1")
        return
    for node in range(config["nodes"]):
        if "master br1" in run("ip", "-n", switch, "-o", "link", "show", f"p{node}"):
            join_bridge(config, node, "br0")
    ip_batch(switch, ["link del br1"])


def cut_bursts(config):
    """Nodes cut their bursts (UDP_SEGMENT) and fill in checksums before the wire, as cards do: veths and
    bridges pass both on as they are."""
    for node in range(config["nodes"]):
        run("ip", "netns", "exec", node_netns(config["name"], node), "ethtool", "-K", "eth0", "tx", "off",
            "gso", "off", "tx-udp-segmentation", "off")


def narrow(config, node, mtu):
    """The switch drops longer packets on their way to the node."""
    cut_bursts(config)  # a bridge passes a whole burst, however long its packets are
    ip_batch(switch_netns(config["name"]), [f"link set p{node} mtu {mtu}"])


def limits(device, rate_mbit, mtu):
    """What leaves by a device, as commands of tc."""
    burst = max(int(rate_mbit * 1e6 / 8 * 0.0005), 2 * (mtu + 14))
    return [f"qdisc add dev {device} root handle 1: htb default 1",
            f"class add dev {device} parent 1: classid 1:1 htb rate {rate_mbit}mbit"
            f" ceil {rate_mbit}mbit burst {burst} cburst {burst} quantum {mtu + 14}",
            f"qdisc add dev {device} parent 1:1 bfifo limit {PORT_BUFFER_BYTES}"]


def shape(switch, node, rate_mbit, mtu, rail=0):
    """Both directions of a port: from the host over an ifb, to the host at the port itself."""
    port, limiter = port_name(node, rail), limiter_name(node, rail)
    ip_batch(switch, [f"link add name {limiter} mtu {mtu} txqueuelen 1000 type ifb",
                      f"link set {limiter} up"])
    tc_batch(switch, limits(limiter, rate_mbit, mtu) + limits(port, rate_mbit, mtu) +
             [f"filter add dev {port} ingress pref {SHAPE_PREF} protocol all u32"
              f" match u32 0 0 action mirred egress redirect dev {limiter}"])


def use_hysteresis():
    """htb charges by the batch, not by the packet; it costs far less on few cores."""
    if HYSTERESIS.exists() and HYSTERESIS.read_text().strip() == "0":
        HYSTERESIS.write_text("1")


def attach_port_program(switch, port, config):
    program = bpf.attach(switch, port, "egress", PORT_PREF, "port.bpf.o", "tc")
    bpf.write(program, "port_config", [config["udp_port"], config["workers"],
                                       1 if config["rate"] else 0])


def pin_receive(netns, pattern, first=0):
    """One CPU per device for what the kernel receives: a limiter may be run by either, and two CPUs
    would reorder. Without limits a packet stays on its sender's CPU, which is faster."""
    in_netns(netns, f"i={first}; for d in /sys/class/net/{pattern}; do case $d in */lo) continue;;"
             f" esac; for q in $d/queues/rx-*; do"
             f" printf %x $((1 << (i % {os.cpu_count()}))) >$q/rps_cpus; done; i=$((i+1)); done")


def join(netns, one, other):
    """What comes in on one of two devices goes out on the other, frame for frame."""
    lines = []
    for here, there in ((one, other), (other, one)):
        lines += [f"qdisc replace dev {here} clsact",
                  f"filter replace dev {here} ingress pref 1 handle 800::800 protocol all u32"
                  f" match u32 0 0 action mirred egress redirect dev {there}"]
    tc_batch(netns, lines)
    ip_batch(netns, [f"link set {device} up" for device in (one, other)])


def connect_tap(config, node, device):
    """Joins the kernel's side of the dataplane's tap to the cable."""
    netns = node_netns(config["name"], node)
    join(netns, device, "eth0")
    pin_receive(netns, device, node)


def set_link(config, node, up, rail=0):
    """Plugs a cable or pulls it. Of a direct link both ends see that."""
    ports = [port_name(node, rail)]
    if other := direct_end(config, node, rail):
        ports.append(port_name(*other))
    ip_batch(switch_netns(config["name"]), [f"link set {port} {'up' if up else 'down'}" for port in ports])


def direct_end(config, node, rail):
    """The port at the other end of a direct link of a topology, or None: a switch is there."""
    return (config.get("direct") or {}).get(port_name(node, rail))


def link_is_up(config, node, rail=0):
    out = run("ip", "-n", switch_netns(config["name"]), "-br", "link", "show", port_name(node, rail),
              check=False)
    return ",UP" in out


def rails(config, node):
    """How many ports a node has."""
    return config["rails"][node] if config.get("rails") else 1


def namespaces(name):
    """Those of this cluster that exist."""
    have = {line.split()[0] for line in run("ip", "netns", "list").splitlines() if line}
    return sorted(n for n in have if n.startswith(f"sar-{name}-")
                  and (n[len(f"sar-{name}-"):].isdigit() or n == switch_netns(name)))


def destroy(name):
    for netns in namespaces(name):
        if not succeeds("ip", "netns", "del", netns):
            say(f"cluster: cannot delete namespace {netns}")
