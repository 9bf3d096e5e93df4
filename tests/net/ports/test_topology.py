#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The emulated network of a topology file: every port reaches every port, at the rates of the file; the ports
of a node fail one by one."""

import json
import os
import re
import signal
import struct
import subprocess
import sys

import netlib
from lib.bench import meter
from lib.cluster import network
from netlib import Cluster

# three switches in a ring, where broadcasts would go round for ever; and a faster one beside them
RING = """
switches: [a, b, c, fast]
nodes:
  - {node: 0, rails: [{to: a, rate: 100M}, {to: fast, rate: 60M}]}
  - {node: 1, rails: [{to: b, rate: 100M}, {to: fast, rate: 80M}]}
  - {node: 2, rails: [{to: c, rate: 100M}]}
links:
  - {between: [a, b], rate: 20M}
  - {between: [b, c], rate: 20M}
  - {between: [c, a], rate: 20M}
"""

# rail 0 of node 2 is elsewhere than that of the others
RELAY = """
switches: [a, b]
nodes:
  - {node: 0, rails: [{to: a, rate: 100M}, {to: b, rate: 100M}]}
  - {node: 1, rails: [{to: a, rate: 100M}]}
  - {node: 2, rails: [{to: b, rate: 100M}]}
"""


class Net(Cluster):
    """A cluster of a topology."""

    def __init__(self, topology, *options, **how):
        super().__init__(0, "--topology", topology, *options, **how)

    def cluster(self, verb, *argv):
        return super().cluster(verb, *(argv[1:] if verb == "up" else argv))  # the file says how many

    def __enter__(self):
        super().__enter__()
        self.count = self.config["nodes"]
        return self

    def ports(self):
        return [(node, rail) for node in range(self.count) for rail in range(network.rails(self.config, node))]

    def pings(self, node, port):
        """The time to live of the answer; None: there is none."""
        done = self.run(node, "ping", "-c1", "-W1", network.node_ip(*port))
        found = re.search(r"ttl=(\d+)", done.stdout)
        return int(found[1]) if found else None

    def check_all(self):
        addresses = " ".join(network.node_ip(*port) for port in self.ports())
        for node in range(self.count):
            silent = self.must(node, "sh", "-c", f"for a in {addresses}; do ping -c1 -W2 $a >/dev/null ||"
                               " echo $a; done")
            assert not silent, f"node {node} does not reach {silent.split()}"


def lost(net, source, port):
    """How many of ten packets to a port its faults have taken; None: it has none."""
    net.must(source, sys.executable, "-c", "import socket, sys\n"
             "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
             "for _ in range(10): s.sendto(b'x', (sys.argv[1], 7400))", network.node_ip(*port))

    def taken():
        made = json.loads(net.verb("status", "--json"))["members"][port[0]]["rails"][port[1]]["faults"]["to"]
        return made and made["lost"]

    return netlib.until(taken, lambda lost: lost in (None, 10), "packets lost")


def links(net):
    return {(row["node"], rail["rail"]): rail["link"]
            for row in json.loads(net.verb("status", "--json"))["members"] for rail in row["rails"]}


def ports_of_a_bcube_fail_one_by_one():
    """(1, 0) of digits is node 1: its rail 0 meets node 0, its rail 1 node 3."""
    netlib.need_root()
    with Net("bcube:2,1", daemons=False) as net:
        net.check_all()
        # a neighbour answers itself; the others by one relay; the rail that is no neighbour's by two
        for port, ttl in (((1, 0), 64), ((2, 1), 64), ((3, 0), 63), ((3, 1), 63), ((2, 0), 62), ((1, 1), 62)):
            netlib.until(lambda: net.pings(0, port), lambda lives: lives == ttl, f"time to live of an answer of {port}")
        net.verb("link", 1, "down", "--rail", 1)
        assert {port for port, state in links(net).items() if state == "down"} == {(1, 1)}
        netlib.until(lambda: net.pings(0, (1, 0)), lambda ttl: ttl == 64, "time to live")
        assert net.pings(0, (1, 1)) is None
        net.verb("link", 1, "up", "--rail", 1)
        netlib.until(lambda: net.pings(0, (1, 1)), lambda ttl: ttl == 62, "time to live")
        net.verb("fault", 3, "--loss", 100, "--rail", 1)
        assert lost(net, 1, (3, 1)) == 10 and lost(net, 2, (3, 0)) is None
        net.verb("fault", "all")
        assert lost(net, 1, (3, 1)) is None
        for verb in (("link", 0, "down"), ("fault", 0)):
            done = net.cluster(*verb, "--rail", 2)
            assert done.returncode == 2 and done.stderr == \
                "cluster: --rail 2: node 0 has rails 0 to 1\n", done.stderr


def sums_cross_direct_links(net, directory):
    """An allreduce of all four along the axes: each byte of a sum crosses one link at a time, no relay."""
    size, names = 8 << 20, [f"part-{node}" for node in range(4)]
    for node, name in enumerate(names):
        (directory / name).write_bytes(struct.pack("<f", 1 << node) * (size // 4))
        net.must(node, "sarissa", "put", name, directory / name)
    before = sum(meter.sent_bytes(net.config))
    gets = [net.start(node, "sarissa", "get", "sum", directory / f"sum-{node}", "--timeout", netlib.PATIENCE_S)
            for node in range(4)]
    for node in range(4):
        netlib.until_waiting(net, node)
    net.must(0, "sarissa", "reduce", "sum", *names, "--spread", "--timeout", netlib.PATIENCE_S)
    for node, get in enumerate(gets):
        assert get.wait(timeout=netlib.PATIENCE_S) == 0, f"node {node}: exit {get.returncode}"
        got = (directory / f"sum-{node}").read_bytes()
        assert got == struct.pack("<f", 15) * (size // 4), f"node {node}: wrong sum"
    share = (sum(meter.sent_bytes(net.config)) - before) / (2 * 3 * size)
    assert 1 < share < 1.15, f"{share:.2f} of the bytes that four nodes send each other"


def last_plan(net):
    """What each node shows of the plan of the only allreduce, when it is over: it asks the coordinator."""
    shown = [netlib.until(lambda: json.loads(net.must(node, "sarissa", "plan", "--last", "--json")),
                          lambda plan: plan["measured_ns"] > 0, "the plan") for node in range(net.count)]
    plan = shown[0]
    for other in shown:
        assert all(other[key] == plan[key] for key in ("planner", "coordinator", "bytes", "predicted_ns")), shown
    assert plan["planner"] == "hips-ring" and plan["op"] == "allreduce" and plan["nodes"] == 4, plan
    rows = plan["levels"]
    assert len(rows) == 3 and rows[2]["bytes"] == 0, plan  # all are neighbours
    for row in rows[:2]:
        assert 0.4 < row["bytes"] / plan["bytes"] < 1.2 and 0 < row["measured_ns"] <= plan["measured_ns"], plan
    assert plan["measured_ns"] > 0.9 * plan["predicted_ns"], plan


def a_node_dies_in_the_hierarchy(net, directory):
    """In the middle of an allreduce of all four, with a fifth source that has come late: the other three get the sum
    of four, the same one everywhere."""
    size, names = 16 << 20, [f"tier-{node}" for node in range(4)] + ["reserve"]
    for k, name in enumerate(names):
        (directory / name).write_bytes(struct.pack("<f", 1 << k) * (size // 4))
    for node in range(4):
        net.must(node, "sarissa", "put", names[node], directory / names[node])
    before = sum(meter.sent_bytes(net.config))
    gets = [net.start(node, "sarissa", "get", "rest", directory / f"rest-{node}", "--timeout", netlib.PATIENCE_S)
            for node in range(3)]
    for node in range(3):
        netlib.until_waiting(net, node)
    reduce = net.start(0, "sarissa", "reduce", "rest", *names, "--num", 4, "--spread", "--timeout", netlib.PATIENCE_S)
    netlib.wait_for(lambda: sum(meter.sent_bytes(net.config)) - before > size / 2, netlib.PATIENCE_S, "it runs")
    net.must(0, "sarissa", "put", names[4], directory / names[4])
    for daemon in netlib.nodes.KINDS:
        os.kill(net.pid(3, daemon), signal.SIGKILL)
    assert [one.wait(timeout=netlib.PATIENCE_S) for one in (*gets, reduce)] == [0] * 4
    sums = {(directory / f"rest-{node}").read_bytes() for node in range(3)}
    assert sums == {struct.pack("<f", 1 + 2 + 4 + 16) * (size // 4)}, [struct.unpack("<f", s[:4]) for s in sums]


def links_are_measured(net, directory):
    """Of node 0: as the file says; slower than a file says that is wrong."""
    right = netlib.state.topology_file(net.config).read_text()
    wrong = directory / "wrong.yaml"
    wrong.write_text(re.sub(r"to: 1, rate: \w+", "to: 1, rate: 400M", right))
    seen = netlib.measured(lambda: net.run(0, "sarissa", "topology", "probe", netlib.state.topology_file(net.config),
                                           "--json"), lambda done: done.returncode == 0)
    done = seen[-1]
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["to"] for row in rows] == [1, 2] and {row["links"] for row in rows} == {2}, done
    assert done.returncode == 0 and not any(row["differs"] for row in rows), done
    done = net.run(0, "sarissa", "topology", "probe", wrong)
    assert done.returncode == 1 and re.search(r"^ +1 .*slower than the file says$", done.stdout, re.M), done
    return f"{rows[0]['measured_bps'] / 1e6:.0f} Mbit/s"


def a_wrong_file_changes_nothing(net):
    """Control reads the file again on SIGHUP; the line that is wrong is named, and the earlier topology stays."""
    file, log = netlib.state.topology_file(net.config), netlib.nodes.log_file(net.config, 0, "control")
    right = file.read_text()
    for text, said in ((right.replace("at: [1, 0]", "at: [0, 0]"), r"yaml:\d+: node 0 stands there already: the earlier"),
                       (right, r"topology\.yaml: 4 nodes, read again")):
        file.write_text(text)
        os.kill(net.pid(0, "control"), signal.SIGHUP)
        netlib.wait_for(lambda said=said: re.search(said, log.read_text()), netlib.PATIENCE_S, said)


def a_torus_relays_objects():
    """With direct links only. The opposite node is no neighbour."""
    netlib.need_daemons()
    with Net("torus:2x2", "--rate", 200, "--planner", "hips-ring") as net, netlib.scratch() as directory:
        net.check_all()
        netlib.transfer(net, directory, 1 << 20, source=0, targets=(1, 2, 3))
        a_wrong_file_changes_nothing(net)
        sums_cross_direct_links(net, directory)
        last_plan(net)
        links_are_measured(net, directory)
        net.check_daemons()
        net.verb("link", 0, "down", "--rail", 1)  # both ends of it, as of a real one
        assert {port for port, state in links(net).items() if state == "down"} == {(0, 1), (1, 0)}
        net.verb("link", 0, "up", "--rail", 1)
        a_node_dies_in_the_hierarchy(net, directory)


def copies_are_striped_over_the_rails_of_a_bcube():
    netlib.need_daemons()
    with Net("bcube:2,1", "--rate", 100, "--all-rails", "--vdev", "af_xdp,udp") as net, netlib.scratch() as directory:
        before = meter.sent_bytes(net.config)
        netlib.transfer(net, directory, 8 << 20, source=0, targets=(1,))
        rails = [b - a for a, b in zip(before, meter.sent_bytes(net.config))][:2]  # of node 0
        net.check_daemons()
    assert min(rails) > (8 << 20) / 4, f"node 0 has sent {rails} bytes by its rails"


def mbit_both(net):
    """What node 0 brings to node 1 on both rails at the same time."""
    servers = [net.start(1, "iperf3", "-s", "-1", "-p", 5201 + rail, "-B", network.node_ip(1, rail),
                         stdout=subprocess.DEVNULL) for rail in (0, 1)]
    netlib.wait_for(lambda: all(f":{5201 + rail} " in net.must(1, "ss", "-ltn") for rail in (0, 1)),
                    netlib.PATIENCE_S, "iperf3 listens")
    clients = [net.start(0, "iperf3", "-J", "-t", "1", "-p", 5201 + rail, "-c", network.node_ip(1, rail),
                         stdout=subprocess.PIPE, text=True) for rail in (0, 1)]
    out = [json.loads(client.communicate(timeout=30)[0]) for client in clients]
    for server in servers:
        server.wait(timeout=netlib.PATIENCE_S)
    return [one["end"]["sum_received"]["bits_per_second"] / 1e6 for one in out]


def links_have_the_rates_of_the_file():
    netlib.need_root()
    netlib.need_command("iperf3")
    best = [mbit * 1448 / 1514 for mbit in (20, 60)]

    def hold(seen):
        return all(0.85 * most < mbit < 1.05 * most + 1 for mbit, most in zip(seen, best))

    with netlib.scratch() as directory:
        file = directory / "ring.yaml"
        file.write_text(RING)
        with Net(file, daemons=False) as net:
            net.check_all()
            seen = netlib.measured(lambda: mbit_both(net), hold)
    assert hold(seen[-1]), f"{seen} of {best} Mbit/s"
    return " and ".join(f"{mbit:.1f}" for mbit in seen[-1]) + " of " + " and ".join(f"{m:.1f}" for m in best) + " Mbit/s"


def what_no_cluster_can_be_made_of_is_said_in_one_line():
    netlib.need_root()
    with netlib.scratch() as directory:
        file = directory / "net.yaml"
        for text, options, said in (
                (RING.replace("node: 0", "node: 7"), (), "there is no node 0: a cluster has all nodes from 0 to 2"),
                (RING.replace("to: c", "to: x"), (), "net.yaml:6: unknown switch 'x'"),
                (RING, ("--vdev", "tap"), "take --vdev udp"),
                (RING, ("--vdev", "af_xdp"), "take --all-rails"),
                (RING, ("--vdev", "udp,af_xdp,udp", "--all-rails"), "nodes have up to 2 rails"),
                (RELAY, ("--vdev", "af_xdp", "--all-rails"), "nodes 0 and 2 have no rail in common"),
                (RING, ("--spare", 3), "--spare 3: the topology has 3 nodes"),
                (RING, (2,), "2 with --topology: the file says")):
            file.write_text(text)
            done = subprocess.run([netlib.CLUSTER, "up", "--name", "t-bad", "--topology", file, *map(str, options)],
                                  capture_output=True, text=True)
            assert done.returncode in (1, 2) and done.stderr.count("\n") == 1 and said in done.stderr, done.stderr
            assert not netlib.state.exists("t-bad")


netlib.run(ports_of_a_bcube_fail_one_by_one, a_torus_relays_objects,
           copies_are_striped_over_the_rails_of_a_bcube, links_have_the_rates_of_the_file,
           what_no_cluster_can_be_made_of_is_said_in_one_line)
