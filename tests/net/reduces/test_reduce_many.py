#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Many reduces at a time, and large ones that share links with each other and with broadcasts.

usage: test_reduce_many.py [many|fair]...
"""

import json
import sys

import netlib
from netlib import Cluster

NODES = 5
REDUCES = 1000
MIB = 1 << 20
LARGE = 8 * MIB
RATE_MBIT = 50  # so that a busy machine does not decide
FAIR = 1.3  # the one that ends last may take so many times as long; one after the other is 2


class Task:
    """A reduce_task.py on a node."""

    def __init__(self, cluster, node):
        self.node = node
        self.child = cluster.start(
            node, "/usr/bin/python3", netlib.ROOT / "tests/net/tasks/reduce_task.py",
            netlib.build_dir() / "client/python",
            stdin=netlib.subprocess.PIPE, stdout=netlib.subprocess.PIPE, text=True)

    def send(self, function, *arguments):
        self.child.stdin.write(json.dumps([function, *arguments]) + "\n")
        self.child.stdin.flush()

    def answer(self):
        line = self.child.stdout.readline()
        assert line, f"the task of node {self.node} has failed"
        return json.loads(line)

    def ask(self, function, *arguments):
        self.send(function, *arguments)
        return self.answer()


def ask_all(tasks, function, arguments_of):
    for task in tasks:
        task.send(function, *arguments_of(task.node))
    return [task.answer() for task in tasks]


def end(tasks):
    for task in tasks:
        task.child.stdin.close()
        task.child.wait(timeout=netlib.PATIENCE_S)


def a_thousand_small_reduces_at_once():
    """Each of 1 to 4 KiB from every node; all have begun before the last source of any is put."""
    netlib.need_daemons()
    with Cluster(NODES, "--store", 64) as cluster:
        tasks = [Task(cluster, node) for node in range(NODES)]
        *first, last = tasks
        ask_all(first, "put_small", lambda node: (node, REDUCES))
        begin = netlib.time.monotonic()
        ask_all(tasks, "begin_small", lambda node: (node, NODES, REDUCES, NODES))
        begun = netlib.time.monotonic() - begin
        waiting = ask_all(tasks, "in_flight", lambda node: (node, NODES, REDUCES))
        assert sum(waiting) == REDUCES, f"{waiting} are in flight"
        begin = netlib.time.monotonic()
        last.ask("put_small", NODES - 1, REDUCES)
        # every result on another node than its requester's
        ended = max(ask_all(tasks, "check_small",
                            lambda node: ((node + 1) % NODES, NODES, REDUCES, NODES)))
        took = ended - begin
        end(tasks)
        cluster.check_daemons()
        return (f"{REDUCES} reduces: begun in {begun:.2f} s; all results {took:.2f} s after the "
                "first of their last sources was put")


def share(task, origin, what, wanted, reduces):
    """How much longer the last takes than the first, and both times over the bound of both."""
    ends = []

    def turn():
        took = task.ask("get_all", wanted, reduces)
        ends.append(max(took) / (len(wanted) * LARGE * 8 / (RATE_MBIT * 1e6)))
        task.ask("delete", list(reduces))
        for name in set(wanted) - set(reduces):  # so that it comes over the wire again
            task.ask("delete", [name])
            origin.ask("put_large", name, LARGE, wanted[name])
        return max(took) / min(took)

    ratios = netlib.measured(turn, lambda ratio: ratio <= FAIR)
    assert ratios[-1] <= FAIR, f"{what}: the one that is last takes {ratios} x"
    return f"{what}: last/first {ratios[-1]:.2f}, end {ends[-1]:.2f} x the bound"


def large_ones_share_a_link_fairly():
    """Two reduces to one node, then a reduce and a broadcast: they end at about the same time."""
    netlib.need_daemons()
    with Cluster(NODES, "--store", 192, "--rate", RATE_MBIT) as cluster:
        tasks = [Task(cluster, node) for node in range(NODES)]
        for task in tasks[1:4]:
            for letter in "ab":
                task.ask("put_large", f"{letter}{task.node}", LARGE, task.node)
        tasks[4].ask("put_large", "other", LARGE, 77)
        sources = {letter: [f"{letter}{node}" for node in (1, 2, 3)] for letter in "ab"}
        words = [
            share(tasks[0], tasks[4], "two reduces", {"A": 6, "B": 6},
                  {"A": sources["a"], "B": sources["b"]}),
            share(tasks[0], tasks[4], "a reduce and a broadcast", {"A": 6, "other": 77},
                  {"A": sources["a"]}),
        ]
        end(tasks)
        cluster.check_daemons()
        return "; ".join(words)


CASES = {"many": a_thousand_small_reduces_at_once, "fair": large_ones_share_a_link_fairly}
netlib.run(*(CASES[name] for name in sys.argv[1:] or CASES))
