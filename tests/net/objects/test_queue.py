#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Queues of the library, on real nodes: many operations of one thread, and calls of many objects."""

import subprocess

import netlib
from netlib import Cluster, build_dir

NODES, MANY, WAITING = 3, 10000, 1000


def task(cluster, node, *argv):
    return cluster.start(node, build_dir() / "tests/net/queue_task", *argv, stdout=subprocess.PIPE,
                         text=True)


def says(child, what):
    line = child.stdout.readline().strip()
    assert line == what, f"the task says {line!r}, not {what!r}"


def ends(child):
    rest = child.communicate(timeout=netlib.TASK_S)[0]
    assert child.returncode == 0, f"the task ended with {child.returncode}: {rest}"
    return rest


def queues_on_nodes():
    """One cluster for all: what each of them leaves behind must not hinder the next."""
    netlib.need_daemons()
    with Cluster(NODES, "--store", 128) as cluster:
        told = cluster.must(0, build_dir() / "examples/hello")
        assert told == "Hello from the store\n", f"hello says {told!r}"
        thousands_in_constant_memory(cluster)
        woken_by_puts_elsewhere(cluster)
        all_ranks(cluster)
        cluster.check_daemons()


def thousands_in_constant_memory(cluster):
    first, last = map(int, ends(task(cluster, 1, "many", MANY)).split())
    assert last < first + 1024, f"{first} KiB after one round, {last} KiB after three"


def woken_by_puts_elsewhere(cluster):
    """Although control was killed in between."""
    child = task(cluster, 0, "wait", WAITING, "woken")
    says(child, "waiting")
    netlib.until_waiting(cluster, 0, WAITING)
    cluster.verb("kill", 0, "control")
    cluster.verb("start", 0, "control")
    netlib.until_waiting(cluster, 0, WAITING)
    says(task(cluster, 1, "put", WAITING, "woken"), "put")
    says(child, "got")
    ends(child)


def all_ranks(cluster):
    children = [task(cluster, node, "all", node, NODES) for node in range(NODES)]
    for child in children:
        says(child, "right")
        ends(child)


netlib.run(queues_on_nodes)
