#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Are busy hosts taken for narrow paths? Real nodes on a machine whose processors are full: each round
restarts a node and streams through full queues over its new connections. By hand, not a part of a suite.

usage: busy_paths.py [--rounds N] [--vdev udp|af_xdp]    (20, udp)
"""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys

import netlib
from netlib import Cluster

NODES = 6
MIB = 1 << 20
LOOPS = 2 * (os.cpu_count() or 2)
MTU = {"udp": 9000, "af_xdp": 3498}


@contextlib.contextmanager
def busy():
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(LOOPS)]
    try:
        yield
    finally:
        for loop in loops:
            loop.send_signal(signal.SIGKILL)
            loop.wait()


def ends(cluster, node):
    lines = cluster.must(node, "sarissa", "peers", "--json", timeout=60).splitlines()
    return [peer["mtu"] for peer in map(json.loads, lines) if peer.get("up", True)]


def measure(rounds, vdev):
    seen, narrow, verdicts = 0, 0, 0
    options = ("--store", 128, "--vdev", vdev, "--mtu", MTU[vdev], "--rate", 100)
    with Cluster(NODES, *options) as cluster, netlib.scratch() as directory, busy():
        for k in range(rounds):
            fresh = k % NODES
            if k > 0:
                verdicts += cluster.counters(fresh)["path_narrowed"]
                cluster.verb("kill", fresh, "dataplane")
                cluster.verb("start", fresh, "dataplane")
            others = [node for node in range(NODES) if node != fresh]
            netlib.transfer(cluster, directory, 2 * MIB, source=fresh, targets=others)
            gauges = [mtu for node in range(NODES) for mtu in ends(cluster, node)]
            narrow += sum(mtu < MTU[vdev] for mtu in gauges)
            seen += 2 * len(others) if k > 0 else len(gauges)
        verdicts += sum(cluster.counters(node)["path_narrowed"] for node in range(NODES))
    print(f"{vdev}, MTU {MTU[vdev]}, {LOOPS} busy loops: {seen} ends of connections in {rounds} "
          f"rounds, {narrow} below the MTU after their transfers, {verdicts} verdicts 'narrow'")
    return narrow or verdicts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--vdev", choices=sorted(MTU), default="udp")
    asked = parser.parse_args()
    netlib.need_daemons()
    sys.exit(1 if measure(asked.rounds, asked.vdev) else 0)


main()
