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
    assert line == what, f"{child.args} says {line!r}, not {what!r}"


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
        other_examples(cluster)
        thousands_in_constant_memory(cluster)
        woken_by_puts_elsewhere(cluster)
        all_ranks(cluster)
        cluster.check_daemons()


def example(cluster, node, name, *argv, **options):
    return cluster.start(node, build_dir() / "examples" / name, *argv, stdout=subprocess.PIPE, text=True, **options)


def event(watch):
    """The next one. Nodes that have just met may tell, too, that a watcher has missed some."""
    while (line := watch.stdout.readline()).startswith("events are missing"):
        pass
    return line


def other_examples(cluster):
    """Who waits is started first; what it says in between, and the ends of its pipe, order the rest."""
    watch = example(cluster, 2, "watch", "ex-", 1)
    loop = example(cluster, 1, "loop", stdin=subprocess.PIPE)
    reader = example(cluster, 2, "stream", "read", "ex-stream")
    writer = example(cluster, 0, "stream", "write", "ex-stream", 200000, stdin=subprocess.PIPE)
    loop.stdin.write("ex-stream\nelsewhere\n")
    loop.stdin.flush()
    writer.stdin.write("a" * 100000)
    writer.stdin.flush()
    begin = reader.stdout.read(32768)  # while the rest is not there
    assert begin == "a" * 32768, f"{len(begin)} bytes: {begin[-200:]}"
    assert (line := event(watch)) == "appeared ex-stream\n", line
    told = writer.communicate("b" * 100000, timeout=netlib.TASK_S)[0]
    assert told == "" and writer.returncode == 0, f"the writer ended with {writer.returncode}: {told}"
    rest = ends(reader)
    assert rest == "a" * 67232 + "b" * 100000, f"{len(rest)} bytes: {rest[-200:]}"
    assert (line := event(watch)) == "complete ex-stream\n", line
    ends(watch)
    says(loop, "ex-stream: 200000 bytes")
    cluster.must(0, build_dir() / "client/cli/sarissa", "put", "elsewhere", "/dev/null")
    said = ends(loop)
    assert said == "elsewhere: 0 bytes\n", said
    sums = [ends(one) for one in [example(cluster, node, "allreduce", "ex", node, NODES) for node in range(NODES)]]
    assert sums == ["3 300000\n"] * NODES, sums


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
