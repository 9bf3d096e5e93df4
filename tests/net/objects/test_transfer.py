#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Objects of all sizes cross two nodes, byte for byte.

usage: test_transfer.py CLUSTER-UP-OPTION...    e.g. --vdev tap, --ipv6, --workers 2, --mtu 3498
"""

import sys

import netlib
from netlib import Cluster

SIZES = (0, 1, 63, 65535, 65536, 65537, (1 << 20) + 7, 16 << 20)
OPTIONS = sys.argv[1:]


def every_size_arrives_with_its_digest():
    netlib.need_daemons()
    with Cluster(2, "--store", 128, *OPTIONS) as cluster, netlib.scratch() as directory:
        for size in SIZES:
            netlib.transfer(cluster, directory, size)
        netlib.transfer(cluster, directory, (1 << 20) + 7, source=1, targets=(0,))
        for node in (0, 1):  # the largest one is cut, so that each worker has a part of it
            moved = [one["tx_chunk_bytes"] + one["rx_chunk_bytes"]
                     for one in cluster.worker_counters(node)]
            assert min(moved) > SIZES[-1] // len(moved) * 9 // 10, f"node {node} moved {moved}"
        cluster.check_daemons()


def both_directions_at_once():
    netlib.need_daemons()
    with Cluster(2, "--store", 256, *OPTIONS) as cluster, netlib.scratch() as directory:
        for node in (0, 1):
            netlib.make_file(directory / f"of-{node}", 24 << 20)
            cluster.must(node, "sarissa", "put", f"of-{node}", directory / f"of-{node}")
        children = [cluster.start(1 - node, "sarissa", "get", f"of-{node}",
                                  directory / f"got-{node}", "--timeout", 60)
                    for node in (0, 1)]
        for node, child in enumerate(children):
            assert child.wait(timeout=90) == 0, f"get of the object of node {node}"
            assert netlib.digest_of(directory / f"of-{node}") == \
                netlib.digest_of(directory / f"got-{node}"), f"bytes of node {node}"
        cluster.check_daemons()


def a_get_waits_for_the_put():
    netlib.need_daemons()
    with Cluster(2, "--store", 64, *OPTIONS) as cluster, netlib.scratch() as directory:
        netlib.make_file(directory / "sent", 300000)
        child = cluster.start(1, "sarissa", "get", "later", directory / "got", "--timeout", netlib.PATIENCE_S)
        netlib.until_waiting(cluster, 1)
        cluster.must(0, "sarissa", "put", "later", directory / "sent")
        assert child.wait(timeout=netlib.TASK_S) == 0
        assert netlib.digest_of(directory / "got") == netlib.digest_of(directory / "sent")


netlib.run(every_size_arrives_with_its_digest, both_directions_at_once, a_get_waits_for_the_put)
