#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""No single death takes a small object that was put, whichever node dies."""

import ctypes
import json

import netlib
from netlib import PATIENCE_S, Cluster, nodes

NODES = 5
OBJECTS = 30
SIZE = 1000
NAMES = [f"small-{i}" for i in range(OBJECTS)]


def put_all(cluster, directory, living, turn):
    """By the living nodes in turn. Returns the digests."""
    digests = {}
    for i, name in enumerate(NAMES):
        digests[name] = netlib.make_file(directory / "sent", SIZE + 100 * turn)
        cluster.must(living[i % len(living)], "sarissa", "put", name, directory / "sent")
    return digests


def lost(cluster, directory, living, digests):
    """Which objects a living node does not get, or not with the bytes that were put."""
    gone = []
    for i, name in enumerate(NAMES):
        got = directory / "got"
        done = cluster.run(living[i % len(living)], "sarissa", "get", name, got, "--timeout", 20)
        if done.returncode != 0 or netlib.digest_of(got) != digests[name]:
            gone.append(f"{name}: {netlib.tail(done.stderr) or 'other bytes'}")
        got.unlink(missing_ok=True)
    return gone


def shard_owner(object_id, living):
    """As cluster/ownership.c draws it."""
    draw = ctypes.CDLL("libxxhash.so.0").XXH3_64bits_withSeed
    draw.restype = ctypes.c_uint64
    return max(living, key=lambda node: draw(bytes.fromhex(object_id), ctypes.c_size_t(16),
                                             ctypes.c_uint64(node + 1)))


def on_two_machines(cluster, living, name):
    """Complete copies count, and the value that the shard owner has."""
    done = cluster.run(living[0], "sarissa", "stat", name, "--json")
    if done.returncode != 0:
        return False
    stat = json.loads(done.stdout)
    has = {h["node"] for h in stat["holders"] if h["complete"]} & set(living)
    return len(has | {shard_owner(stat["id"], living)} if stat["inline"] else has) >= 2


def renewed(cluster, living):
    """What a death has left on one machine is on two again."""
    for name in NAMES:
        netlib.wait_for(lambda: on_two_machines(cluster, living, name), PATIENCE_S,
                        f"{name} is on two machines of {living}")


def all_see(cluster, watchers, node, up):
    """The watchers have, or have not, that node among the living members."""
    def agreed():
        return all((state.get(node) == "up") == up and len(state) >= NODES - 1 for state in
                   ({line["node"]: line["state"]
                     for line in nodes.status_lines(cluster.config, n)} for n in watchers))
    netlib.wait_for(agreed, PATIENCE_S, f"node {node} is {'up' if up else 'dead'} for all others")


def kill(cluster, node):
    cluster.verb("kill", node, "node")
    assert not any(cluster.pid(node, kind) for kind in nodes.KINDS), f"node {node} lives"


def one_death_takes_no_small_object():
    """Each node dies in turn, with its store; nothing is lost, what is put again is not replaced by
    what was there before, and the node comes back empty."""
    netlib.need_daemons()
    with Cluster(NODES, "--store", 64) as cluster, netlib.scratch() as directory:
        for node in range(NODES):
            all_see(cluster, [n for n in range(NODES) if n != node], node, True)
        digests = put_all(cluster, directory, range(NODES), 0)
        for dead in range(NODES):
            living = [n for n in range(NODES) if n != dead]
            kill(cluster, dead)
            gone = lost(cluster, directory, living, digests)
            assert not gone, f"node {dead} died: {len(gone)} of {OBJECTS} lost: {gone[0]}"
            all_see(cluster, living, dead, False)
            renewed(cluster, living)
            for i, name in enumerate(NAMES):
                cluster.must(living[i % 4], "sarissa", "rm", name)
            digests = put_all(cluster, directory, living, dead + 1)
            cluster.verb("start", dead)
            all_see(cluster, living, dead, True)
            gone = lost(cluster, directory, range(NODES), digests)
            assert not gone, f"node {dead} is back: {len(gone)} of {OBJECTS} lost: {gone[0]}"


def deaths_in_turn_take_no_small_object():
    """Until one node is left, each time when all objects are on two machines again."""
    netlib.need_daemons()
    with Cluster(NODES, "--store", 64) as cluster, netlib.scratch() as directory:
        for node in range(NODES):
            all_see(cluster, [n for n in range(NODES) if n != node], node, True)
        digests = put_all(cluster, directory, range(NODES), 0)
        for dead in range(NODES - 1):
            living = list(range(dead + 1, NODES))
            kill(cluster, dead)
            all_see(cluster, living, dead, False)
            if len(living) > 1:
                renewed(cluster, living)
        gone = lost(cluster, directory, living, digests)
        assert not gone, f"{len(gone)} of {OBJECTS} lost: {gone[0]}"


netlib.run(one_death_takes_no_small_object, deaths_in_turn_take_no_small_object)
