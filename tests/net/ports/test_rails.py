#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Nodes with several ports, each a rail of its own: copies over all of them, a rail at half the rate, rails
that are pulled, put back, or that only one of the nodes has; ports of other kinds than UDP sockets."""

import contextlib
import json
import os
import struct
import subprocess
import time
from pathlib import Path

import netlib
from netlib import network, nodes, process

MIB = 1 << 20
RATE_MBIT = 100
LEADER_BYTES = 1514 / 1408  # what a chunk of 1,408 bytes takes of the link, with its headers


class Railed:
    """Nodes in namespaces of their own, with a veth of each to a bridge for each rail; rates: of the rails."""

    def __init__(self, directory, rails, rates, kinds):
        self.directory, self.rails, self.rates, self.kinds = directory, rails, rates, kinds
        self.switch, self.children = f"sar-rails-{os.getpid()}", []

    def __enter__(self):
        try:
            network.run("ip", "netns", "add", self.switch)
            for rail, _ in enumerate(self.rates):
                network.ip_batch(self.switch, [f"link add br{rail} type bridge", f"link set br{rail} up"])
            for node in range(len(self.rails)):
                self.wire(node)
            for node in range(len(self.rails)):
                self.begin(node)
            for node in range(len(self.rails)):
                netlib.wait_for(lambda node=node: self.sarissa(node, "status").returncode == 0,
                                netlib.PATIENCE_S, f"node {node} answers")
        except BaseException as error:
            self.__exit__(type(error))
            raise
        return self

    def __exit__(self, kind, *_):
        for child in self.children:
            process.end_all([child.pid])
            child.wait()
        for netns in (*map(self.netns, range(len(self.rails))), self.switch):
            network.succeeds("ip", "netns", "del", netns)
        if kind:
            for log in sorted(self.directory.glob("*.log")):
                print(f"  -- {log.name}:\n{netlib.tail(log.read_text(errors='replace'))}")

    def netns(self, node):
        return f"{self.switch}-{node}"

    def wire(self, node):
        network.run("ip", "netns", "add", self.netns(node))
        network.run("ip", "-n", self.netns(node), "link", "set", "lo", "up")
        for rail in range(self.rails[node]):
            self.wire_rail(node, rail)

    def wire_rail(self, node, rail):
        network.ip_batch(self.switch, [
            f"link add p{node}.{rail} type veth peer name eth{rail} netns {self.netns(node)}",
            f"link set p{node}.{rail} master br{rail} up"])
        address = [f"addr add 10.78.{rail}.{node + 1}/24 dev eth{rail}"] * (self.kinds[rail] != "tap")
        network.ip_batch(self.netns(node), [*address, f"link set eth{rail} up"])
        limit = f"root tbf rate {self.rates[rail]}mbit burst 8kb limit 262144"
        network.tc_batch(self.switch, [f"qdisc add dev p{node}.{rail} {limit}"])
        network.tc_batch(self.netns(node), [f"qdisc add dev eth{rail} {limit}"])

    def begin(self, node):
        rundir = self.rundir(node)
        rundir.mkdir()
        ports = [word for rail in range(self.rails[node]) for word in self.port(node, rail)]
        self.spawn(node, "dataplane", "--rundir", rundir, *ports, "--store", 192)
        netlib.wait_for(lambda: (rundir / "dataplane.sock").exists(), netlib.PATIENCE_S,
                        f"dataplane {node} listens")
        for rail in range(self.rails[node]):
            if self.kinds[rail] == "tap":
                network.join(self.netns(node), f"tap{rail}", f"eth{rail}")
        peers = ",".join(f"10.78.0.{n + 1}:7400" for n in range(len(self.rails)))
        self.spawn(node, "control", "--rundir", rundir, "--node", node, "--nodes", peers)

    def port(self, node, rail):
        address = f"10.78.{rail}.{node + 1}"
        return {"udp": ("--port", f"udp:{address}"), "af_xdp": ("--port", f"af_xdp:eth{rail}"),
                "tap": ("--port", f"tap:tap{rail}", "--addr", f"{address}/24")}[self.kinds[rail]]

    def rundir(self, node):
        return self.directory / f"node{node}"

    def argv(self, node, *argv):
        return [str(a) for a in ("ip", "netns", "exec", self.netns(node), *argv)]

    def spawn(self, node, kind, *argv):
        with open(self.directory / f"{kind}{node}.log", "w") as log:
            self.children.append(subprocess.Popen(self.argv(node, nodes.binary(kind), *argv),
                                                  stdout=log, stderr=log, start_new_session=True))

    def cli(self, node, *argv):
        return self.argv(node, nodes.binary("cli"), "--socket", self.rundir(node) / "control.sock", *argv)

    def sarissa(self, node, *argv, **how):
        return subprocess.run(self.cli(node, *argv), capture_output=True, timeout=120, **how)

    def put(self, node, name, size):
        data = os.urandom(size)
        done = self.sarissa(node, "put", name, "-", input=data)
        assert done.returncode == 0, done.stderr.decode()
        return data

    def start(self, node, *argv):
        return subprocess.Popen(self.cli(node, *argv), stdout=subprocess.DEVNULL)

    def sent(self):
        """Bytes that have come into the switch from all rails."""
        files = " ".join(f"/sys/class/net/p{node}.{rail}/statistics/rx_bytes" for node, count in enumerate(self.rails)
                         for rail in range(count))
        return sum(map(int, network.run("ip", "netns", "exec", self.switch, "sh", "-c", f"cat {files}").split()))

    def start_get(self, node, name):
        return subprocess.Popen(self.cli(node, "get", name, "-"), stdout=subprocess.PIPE)

    def get(self, node, name, data):
        """Seconds that it took."""
        start = time.monotonic()
        done = self.sarissa(node, "get", name, "-")
        took = time.monotonic() - start
        assert done.returncode == 0, done.stderr.decode()
        assert done.stdout == data, f"{name}: other bytes arrived"
        return took

    def cross(self, size):
        return self.get(1, f"warm{size}", self.put(0, f"warm{size}", size))

    def pull(self, rail):
        network.ip_batch(self.switch, [f"link set br{rail} down"])

    def plug(self, rail):
        network.ip_batch(self.switch, [f"link set br{rail} up"])

    def delete(self, node, rail):
        """The interface."""
        network.ip_batch(self.switch, [f"link del p{node}.{rail}"])

    def descriptors(self):
        """Sockets, programs and maps that the dataplane of node 0 has open."""
        links = [os.readlink(one) for one in Path(f"/proc/{self.children[0].pid}/fd").iterdir()]
        return sum(link.startswith(("socket:", "anon_inode:")) for link in links)

    def paths(self, node):
        rows = map(json.loads, self.sarissa(node, "peers", "--json").stdout.splitlines())
        return {row["rail"]: row for row in rows if row["up"]}

    def until_paths(self, count):
        for node in range(2):
            netlib.wait_for(lambda node=node: len(self.paths(node)) == count, netlib.PATIENCE_S,
                            f"{count} paths of node {node}")

    def counters(self, node):
        return netlib.counters.read(self.rundir(node) / "counters")

    def log(self, node, kind="control"):
        return (self.directory / f"{kind}{node}.log").read_text(errors="replace")

    def alive(self):
        return all(child.poll() is None for child in self.children)


@contextlib.contextmanager
def railed(rails=(2, 2), rates=(RATE_MBIT, RATE_MBIT), kinds=("udp", "udp")):
    netlib.need_daemons()
    with netlib.scratch() as directory, Railed(directory, rails, rates, kinds) as cluster:
        yield cluster
        assert cluster.alive(), "a daemon has died"


def bound(size, *rates):
    return size * 8 * LEADER_BYTES / (sum(rates) * 1e6)


def of_the_bound(cluster, size, *rates):
    """A copy takes about as long as rails of these rates do, or, on a busy machine, less than without the second:
    half as long again, or twice as long."""
    names = iter("abcdefgh")

    def ratio():
        name = next(names)
        return cluster.get(1, name, cluster.put(0, name, size)) / bound(size, *rates)
    ratios = netlib.measured(ratio, lambda ratio: ratio < 1.25)
    assert min(ratios) < 1.4, f"{ratios} times the bound of both rails"
    return f"{min(ratios):.3f} x the bound of both"


def a_copy_takes_all_rails():
    size = 32 * MIB
    with railed() as cluster:
        cluster.until_paths(2)
        cluster.cross(4 * MIB)
        return of_the_bound(cluster, size, RATE_MBIT, RATE_MBIT)


def a_slower_rail_carries_its_share():
    size = 24 * MIB
    with railed(rates=(RATE_MBIT, RATE_MBIT // 2)) as cluster:
        cluster.until_paths(2)
        cluster.cross(4 * MIB)
        return of_the_bound(cluster, size, RATE_MBIT, RATE_MBIT // 2)


def a_rail_that_is_pulled_loses_nothing():
    size, names = 24 * MIB, iter("abcdefghij")

    def later(rail):
        """In parts of the time that a copy over both rails takes."""
        name = next(names)
        cluster.until_paths(2)
        data = cluster.put(0, name, size)
        start = time.monotonic()
        child = cluster.start_get(1, name)
        got = child.stdout.read(size // 2)
        cluster.pull(rail)
        got += child.stdout.read()
        took = time.monotonic() - start
        assert child.wait(timeout=60) == 0 and got == data, "other bytes arrived"
        until_impaired(cluster, rail)
        cluster.get(1, f"small {name}", cluster.put(0, f"small {name}", MIB))  # messages go by the other one
        assert "taken for dead" not in cluster.log(0) + cluster.log(1)
        cluster.plug(rail)
        until_whole(cluster)
        assert cluster.sarissa(0, "rm", name).returncode == 0
        return took / bound(size, RATE_MBIT, RATE_MBIT) - 1

    with railed() as cluster:
        seen = [netlib.measured(lambda: later(rail), lambda later: later < 1.2)[-1] for rail in (1, 0)]
        assert max(seen) < 1.2, f"{seen} x the bound later than without the loss"
        return " and ".join(f"{one:.2f}" for one in seen) + " x the bound later"


def copy(cluster, name, size, pulled=None):
    """A node gets an object; pulled: a rail whose cable is out from the middle on."""
    data = cluster.put(0, name, size)
    child = cluster.start_get(1, name)
    got = child.stdout.read(size // 2)
    if pulled is not None:
        cluster.pull(pulled)
    got += child.stdout.read()
    assert child.wait(timeout=60) == 0 and got == data, f"{name}: other bytes arrived"


def on_all(cluster, name, size):
    """An object crosses, and no rail carries less than an eighth of it."""
    def sent():
        return {rail: row["tx_bytes"] for rail, row in cluster.paths(0).items()}

    def carried():
        now = sent()
        return {rail: now.get(rail, 0) - bytes_before for rail, bytes_before in before.items()}

    before = sent()
    copy(cluster, name, size)
    by_rail = netlib.until(carried, lambda rails: min(rails.values()) > size // 8, f"{name}: bytes by rail")
    return f"MiB by rail {[count >> 20 for count in by_rail.values()]}"


def until_impaired(cluster, rail):
    """Or given up, when this machine has been slow."""
    netlib.wait_for(lambda: cluster.paths(0).get(rail, {"impaired": True})["impaired"], netlib.PATIENCE_S,
                    f"rail {rail} is missed")


def until_whole(cluster):
    netlib.wait_for(lambda: not any(row["impaired"] for row in cluster.paths(0).values()),
                    netlib.PATIENCE_S, "the rail is used again")


@contextlib.contextmanager
def ports_of_kinds(*kinds):
    """Copies cross, also while the last rail's cable is pulled and put back."""
    size, last = 12 * MIB, len(kinds) - 1
    with railed((len(kinds),) * 2, (RATE_MBIT,) * len(kinds), kinds) as cluster:
        cluster.until_paths(len(kinds))
        on_all(cluster, "all", size)
        copy(cluster, "cut", size, pulled=last)
        until_impaired(cluster, last)
        cluster.plug(last)
        until_whole(cluster)
        yield cluster
        assert "taken for dead" not in cluster.log(0) + cluster.log(1)


def two_ports_are_of_af_xdp():
    """And one of the interfaces is deleted and made again."""
    with ports_of_kinds("af_xdp", "af_xdp") as cluster:
        before = cluster.descriptors()
        cluster.delete(0, 0)
        cluster.cross(MIB)
        until_impaired(cluster, 0)
        cluster.wire_rail(0, 0)
        until_whole(cluster)
        assert "af_xdp:eth0: it is back" in cluster.log(0, "dataplane")
        assert cluster.descriptors() == before, f"{before} descriptors before, {cluster.descriptors()} now"
        return on_all(cluster, "again", 12 * MIB)


def ports_of_three_kinds_go_together():
    with ports_of_kinds("tap", "udp", "af_xdp") as cluster:
        return on_all(cluster, "again", 12 * MIB)


def a_rail_is_pulled_in_an_allreduce():
    """When half of it has crossed: the rest takes the other rail."""
    size, names = 16 * MIB, [f"part{node}" for node in range(3)]

    def seconds(pulled):
        for node in range(3):
            cluster.until_paths(2)
            done = cluster.sarissa(node, "put", names[node], "-", input=struct.pack("<I", 1 << node) * (size // 4))
            assert done.returncode == 0, done.stderr.decode()
        gets = [subprocess.Popen(cluster.cli(node, "get", "sum", cluster.directory / f"sum{node}")) for node in range(3)]
        before, start = cluster.sent(), time.monotonic()
        done = cluster.start(0, "reduce", "sum", *names, "--dtype", "u32", "--spread")
        if pulled:
            netlib.wait_for(lambda: cluster.sent() - before > 2 * size, netlib.PATIENCE_S, "half has crossed")
            cluster.pull(1)
        assert [one.wait(timeout=60) for one in (*gets, done)] == [0] * 4
        took = time.monotonic() - start
        for node in range(3):
            got = (cluster.directory / f"sum{node}").read_bytes()
            assert got == struct.pack("<I", 7) * (size // 4), f"node {node}: a wrong sum"
        assert "taken for dead" not in "".join(cluster.log(node) for node in range(3))
        cluster.plug(1)
        until_whole(cluster)
        assert cluster.sarissa(0, "rm", "sum", *names).returncode == 0
        return took

    def later():
        alone.append(seconds(pulled=False))
        return (seconds(pulled=True) - min(alone)) / bound(4 * size // 3, RATE_MBIT, RATE_MBIT)

    alone = []
    with railed(rails=(2, 2, 2)) as cluster:
        seen = netlib.measured(later, lambda later: later < 1.0)
        assert seen[-1] < 1.0, f"{seen} x the bound later"
        return f"{seen[-1]:.2f} x the bound later"


def nodes_of_one_rail_and_of_two():
    with railed(rails=(2, 1)) as cluster:
        cluster.cross(2 * MIB)
        netlib.until(lambda: list(cluster.paths(0)), lambda rails: rails == [0], "rails that are up")


def a_node_without_rails_is_dead():
    with railed() as cluster:
        cluster.until_paths(2)
        cluster.pull(0)
        cluster.cross(MIB)
        cluster.pull(1)
        netlib.wait_for(lambda: "is taken for dead" in cluster.log(0), netlib.PATIENCE_S, "it is dead")


netlib.run(a_copy_takes_all_rails, a_slower_rail_carries_its_share, a_rail_that_is_pulled_loses_nothing,
            a_rail_is_pulled_in_an_allreduce, two_ports_are_of_af_xdp, ports_of_three_kinds_go_together,
            nodes_of_one_rail_and_of_two, a_node_without_rails_is_dead)
