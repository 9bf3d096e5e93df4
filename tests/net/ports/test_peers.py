#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`sarissa peers` and doctor name the path that is worse than the rest, and what is wrong with it."""

import json
import os
import socket
import time

import netlib
from netlib import Cluster

MIB = 1 << 20
GOOD, SLOW, LOSSY = 1, 2, 3
SLOW_MBIT, LOSS = 10, 5
TOLD_S = 0.2  # a worker tells each tenth of a second, in which a transfer may be over
SIZES = {GOOD: 16 * MIB, SLOW: 2 * MIB, LOSSY: 16 * MIB}


def peers(cluster, node, *options):
    """What a node says of the others' first worker, by node."""
    lines = cluster.must(node, "sarissa", "peers", "--json", *options).splitlines()
    return {peer["node"]: peer for peer in map(json.loads, lines)}


def feed(cluster, directory):
    """Each of the others gets an object of its own from node 0."""
    for target, size in SIZES.items():
        netlib.transfer(cluster, directory, size, targets=(target,))
    time.sleep(TOLD_S)


def bad_paths_are_named():
    netlib.need_daemons()
    with Cluster(4, "--store", 128) as cluster, netlib.scratch() as directory:
        netlib.network.shape(cluster.switch_netns(), SLOW, SLOW_MBIT, cluster.config["mtu"])
        cluster.verb("fault", LOSSY, "--loss", LOSS)

        def told():
            """The notes by node, that of LOSSY of node 0 last; Mbit/s of the slow path, % that is lost."""
            feed(cluster, directory)
            seen = peers(cluster, 0)
            notes = [seen[node]["note"] or "" for node in SIZES] + [peers(cluster, LOSSY)[0]["note"] or ""]
            return (*notes, seen[SLOW]["path_bytes_per_s"] * 8 / 1e6,
                    seen[LOSSY]["lost_pkts"] / seen[LOSSY]["tx_pkts"] * 100)

        def right(said):
            good, slow, lossy, missed, path, lost = said
            return (not good and slow.startswith("slow") and "is lost" in lossy and "what it sends is lost" in missed and
                    0.7 * SLOW_MBIT < path < 1.1 * SLOW_MBIT and 0.6 * LOSS < lost < 2 * LOSS)

        said = netlib.measured(told, right)  # a machine without CPU time loses packets itself
        assert right(said[-1]), said
        found = cluster.run(0, "sarissa", "doctor").stdout
        for node in (SLOW, LOSSY):
            assert f"warn  paths         node {node} at " in found, found
        return f"{said[-1][1]}; {said[-1][2]}"


def the_present_is_distinguished_from_the_past():
    """--over: loss that has ended is not spoken of any more."""
    netlib.need_daemons()
    with Cluster(2, "--store", 128) as cluster, netlib.scratch() as directory:
        cluster.verb("fault", 1, "--loss", 20)
        netlib.transfer(cluster, directory, 4 * MIB)
        cluster.verb("fault", 1)
        netlib.wait_for(lambda: peers(cluster, 0)[1]["note"], netlib.PATIENCE_S, "loss is told")
        now = netlib.until(lambda: peers(cluster, 0, "--over", 1)[1], lambda now: now["note"] is None, "the note of 1 s")
        assert now["tx_bytes"] < MIB and 0 < now["over_ns"] < 20e9, now


class Telemetry:
    """DPDK's socket of a node's dataplane."""

    def __init__(self, cluster, node):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        rundir = netlib.state.node_dir(cluster.config, node)
        self.socket.connect(str(rundir / "dpdk/rte/dpdk_telemetry.v2"))
        self.room = json.loads(self.socket.recv(4096))["max_output_len"]

    def ask(self, command):
        self.socket.send(command.encode())
        return json.loads(self.socket.recv(self.room))[command.split(",")[0]]


def telemetry_tells_the_same():
    netlib.need_daemons()
    with Cluster(2, "--store", 64) as cluster, netlib.scratch() as directory:
        netlib.transfer(cluster, directory, 4 * MIB)
        netlib.wait_for(lambda: peers(cluster, 0)[1]["tx_bytes"] > 4 * MIB, netlib.PATIENCE_S,
                        "what was sent is told")
        telemetry = Telemetry(cluster, 0)
        place, = telemetry.ask("/sarissa/peers")
        told = telemetry.ask(f"/sarissa/peer,0,{place}")
        peer = peers(cluster, 0)[1]
        assert (told["ip"], told["port"]) == (peer["ip"], peer["port"]), told
        assert told["tx_bytes"] > 4 * MIB and set(told) < set(peer), told
        assert telemetry.ask(f"/sarissa/peers,0,{place + 1}") == []
        for wrong in ("/sarissa/peers,1", f"/sarissa/peer,0,{place + 1}", "/sarissa/peer,x"):
            assert telemetry.ask(wrong) is None, wrong


def a_path_that_drops_long_packets_is_named():
    netlib.need_daemons()
    with Cluster(2, "--store", 64) as cluster, netlib.scratch() as directory:
        netlib.network.narrow(cluster.config, 1, 1400)
        source = directory / "object"
        source.write_bytes(os.urandom(MIB))
        cluster.must(0, "sarissa", "put", "object", source)
        cluster.must(1, "sarissa", "get", "object", directory / "copy", "--timeout", "20")
        assert (directory / "copy").read_bytes() == source.read_bytes(), "wrong bytes"

        def told():
            status = map(json.loads, cluster.must(0, "sarissa", "status", "--json").splitlines())
            carried = next(node["mtu"] for node in status if node["node"] == 1)
            return 1280 < carried < 1408 and "narrow" in (peers(cluster, 0)[1]["note"] or "")

        netlib.wait_for(told, netlib.PATIENCE_S, "status and peers say what the path carries")


def a_peer_that_does_not_answer_is_named():
    netlib.need_daemons()
    with Cluster(2, "--store", 64) as cluster:
        netlib.wait_for(lambda: 1 in peers(cluster, 0), netlib.PATIENCE_S, "they are connected")
        cluster.verb("link", 1, "down")
        netlib.wait_for(lambda: "has not answered" in (peers(cluster, 0).get(1, {}).get("note") or ""),
                        netlib.PATIENCE_S, "its silence is noticed")
        cluster.must(0, "sarissa", "peers")  # for people


netlib.run(bad_paths_are_named, the_present_is_distinguished_from_the_past,
           telemetry_tells_the_same, a_path_that_drops_long_packets_is_named,
           a_peer_that_does_not_answer_is_named)
