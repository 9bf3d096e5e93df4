#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Reduces of large objects on nodes of two workers: each adds up its part, and what fails is mended."""

import array
import json
import operator
import random

import netlib
from netlib import Cluster

SIZE = 24 << 20
RATE = 200  # Mbit/s: about 1 s for each


def source(i):
    """Its words follow from where they are."""
    block = random.Random(i).choices(range(1 << 24), k=65537)
    return array.array("I", (block * (SIZE // 4 // len(block) + 1))[:SIZE // 4])


def put_sources(cluster, directory, count):
    sources = {f"s{i}": source(i) for i in range(count)}
    for i, (name, words) in enumerate(sources.items()):
        (directory / "source").write_bytes(words.tobytes())
        cluster.must(i, "sarissa", "put", name, directory / "source")
    return sources


def total(sources, used):
    words = sources[used[0]]
    for name in used[1:]:
        words = array.array("I", map(operator.add, words, sources[name]))
    return words.tobytes()


def begin(cluster, directory, node, name, *argv):
    """Gets of it on all nodes but one, which asks for it."""
    gets = {n: cluster.start(n, "sarissa", "get", name, directory / f"got-{n}", "--timeout", 90)
            for n in range(cluster.count) if n != node}
    return gets, cluster.start(node, "sarissa", "reduce", name, *argv, "--dtype", "u32", "--wait",
                               "--timeout", 90, "--json", stdout=netlib.subprocess.PIPE, text=True)


def finish(cluster, directory, node, name, sources, asked, without=None):
    gets, caller = asked
    text, _ = caller.communicate(timeout=120)
    assert caller.returncode == 0, f"the reduce on node {node}: exit {caller.returncode}"
    used = json.loads(text)["used"]
    expected = total(sources, used)
    for n, child in gets.items():
        if n == without:
            child.kill()
            child.wait()
            continue
        assert child.wait(timeout=120) == 0, f"get on node {n}: exit {child.returncode}"
        same = (directory / f"got-{n}").read_bytes() == expected
        assert same, f"{name} on node {n} is not the sum of {used}"
    return used


def until_half(cluster, before):
    """Half of the traffic of one source has come to some node since then."""
    def there():
        return any(cluster.counters(n)["rx_chunk_bytes"] - before[n] > SIZE // 2
                   for n in range(cluster.count))
    netlib.wait_for(there, netlib.PATIENCE_S, "a node has half of a source")


def cluster_of(nodes, *options):
    return Cluster(nodes, "--store", 224, "--workers", 2, *options)


def both_workers_add_up():
    netlib.need_daemons()
    with cluster_of(4) as cluster, netlib.scratch() as directory:
        sources = put_sources(cluster, directory, 4)
        for name, options in (("sum", ()), ("spread", ("--spread",))):
            asked = begin(cluster, directory, 1, name, *sources, *options)
            used = finish(cluster, directory, 1, name, sources, asked)
            assert used == list(sources), used
            cluster.must(0, "sarissa", "rm", name)
        for node in range(4):
            came = [worker["rx_chunk_bytes"] for worker in cluster.worker_counters(node)]
            assert min(came) > sum(came) / 5, f"node {node}: {came}"
        cluster.check_daemons()


def the_dead_are_replaced():
    netlib.need_daemons()
    for options in ((), ("--spread",)):
        with cluster_of(5, "--rate", RATE) as cluster, netlib.scratch() as directory:
            sources = put_sources(cluster, directory, 5)
            before = [cluster.counters(n)["rx_chunk_bytes"] for n in range(5)]
            asked = begin(cluster, directory, 0, "sum", *sources, "--num", 4, *options)
            until_half(cluster, before)
            cluster.verb("kill", 2, "node")
            used = finish(cluster, directory, 0, "sum", sources, asked, without=2)
            assert len(used) == 4, used


def a_dataplane_begins_again():
    netlib.need_daemons()
    with cluster_of(4, "--rate", RATE) as cluster, netlib.scratch() as directory:
        sources = put_sources(cluster, directory, 4)
        before = [cluster.counters(n)["rx_chunk_bytes"] for n in range(4)]
        asked = begin(cluster, directory, 0, "sum", *sources)
        until_half(cluster, before)
        cluster.verb("kill", 2, "dataplane")
        cluster.verb("start", 2, "dataplane")
        finish(cluster, directory, 0, "sum", sources, asked)
        cluster.check_daemons()


netlib.run(both_workers_add_up, the_dead_are_replaced, a_dataplane_begins_again)
