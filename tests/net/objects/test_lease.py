#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Objects that leases hold: they go with the lease, on every node, and the memory with them."""

import json
import os
import subprocess
import time
from pathlib import Path

import netlib
from netlib import Cluster, build_dir

TASK = netlib.ROOT / "tests/net/tasks/lease_task.py"
COUNT, TTL_S, NODES = 1000, 2, 3
CUT_COUNT = 40


class Driver:
    def __init__(self, cluster, node, *argv):
        self.child = cluster.start(node, "/usr/bin/python3", TASK, build_dir() / "client/libsarissa.so",
                                   *argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def expect(self, what):
        line = self.child.stdout.readline().strip()
        assert line == what, f"the driver says {line!r}, not {what!r}"

    def go_on(self, what=""):
        self.child.stdin.write(f"{what}\n")
        self.child.stdin.flush()

    def end(self):
        self.child.stdin.close()
        assert self.child.wait(timeout=netlib.PATIENCE_S) == 0

    def kill(self):
        self.child.kill()
        self.child.wait()


def used(cluster):
    """Of each node: objects, and bytes of its store."""
    rows = [netlib.own_status(cluster, node) for node in range(NODES)]
    return [(row["objects"], row["store_used"]) for row in rows]


def listed(cluster, node, *prefix):
    """Once no part of the directory is missing."""
    done = netlib.until(lambda: cluster.run(node, "sarissa", "ls", *prefix, "--json"), lambda done: done.returncode != 5,
                        "ls with all parts")
    assert done.returncode == 0, f"ls on node {node}: {done.stderr}"
    return [json.loads(line) for line in done.stdout.splitlines()]


def lone(cluster, node):
    rows = map(json.loads, cluster.run(node, "sarissa", "status", "--json").stdout.splitlines())
    return all(row["self"] or row["state"] != "up" for row in rows)


def killed(cluster, patient):
    """How long after the kill nothing was left anywhere."""
    before = used(cluster)
    driver = Driver(cluster, 0, "put", COUNT, TTL_S)
    driver.expect("ready")
    readers = [Driver(cluster, node, "get", COUNT) for node in range(1, NODES)]
    for reader in readers:
        reader.expect("got")
    for reader in readers:
        reader.end()
    assert len(listed(cluster, 1, "leased/")) == COUNT
    assert listed(cluster, 1, "leased/7")[0]["lease_node"] == 0
    time.sleep(TTL_S if patient else 0)  # the lease is its session's: nothing goes as long as that lives
    assert len(listed(cluster, 1, "leased/")) == COUNT
    died = time.monotonic()
    driver.kill()
    netlib.wait_for(lambda: used(cluster) == before, netlib.PATIENCE_S, "all of it is gone")
    took = time.monotonic() - died
    assert took > TTL_S - 0.1, f"gone {took:.2f} s after the kill"
    assert not listed(cluster, 2)
    return took


def what_a_killed_driver_held_goes():
    with Cluster(NODES, "--store", 256) as cluster:
        took = [killed(cluster, True)]
        cluster.verb("fault", "all", "--loss", 1)
        took += netlib.measured(lambda: killed(cluster, False), lambda lossy: min(*took, lossy) < TTL_S + 1)
        assert min(took) < TTL_S + 1, f"gone {took} s after the kill"
        cluster.check_daemons()
    return f"{COUNT} objects on {NODES} nodes, lease of {TTL_S} s: gone {took[0]:.2f} s after the kill, " \
           f"{took[-1]:.2f} s with 1 % loss"


def leases_outlive_control():
    """A driver that calls again keeps its lease at another control; a named one that nobody opens ends."""
    with Cluster(NODES, "--store", 64) as cluster:
        driver = Driver(cluster, 0, "put", 20, TTL_S)
        driver.expect("ready")
        cluster.must(0, "sarissa", "put", "left", os.path.abspath(__file__), "--lease", "job",
                     "--lease-ttl", TTL_S + 1)
        cluster.must(1, "sarissa", "put", "timed", os.path.abspath(__file__), "--ttl", 1)
        cluster.verb("kill", 0, "control")
        cluster.verb("start", 0)
        driver.go_on("put")
        driver.expect("ready")
        netlib.wait_for(lambda: len(listed(cluster, 1)) == 21, netlib.PATIENCE_S, "the lease 'job' has ended")
        time.sleep(1)
        assert len(listed(cluster, 1, "leased/")) == 21
        cluster.must(1, "sarissa", "rm", "--prefix", "leased/1")
        assert len(listed(cluster, 2, "leased/")) == 10
        driver.go_on()
        driver.end()
        netlib.wait_for(lambda: not listed(cluster, 1), netlib.PATIENCE_S, "all of it is gone")


def an_owner_that_is_cut_off_ends_no_lease():
    """Each node in turn is out for longer than leases live without their home: nothing that another node's lease
    holds goes, and all of it does when that lease ends."""
    with Cluster(NODES, "--store", 64) as cluster:
        before = used(cluster)
        driver = Driver(cluster, 0, "put", CUT_COUNT, TTL_S)
        driver.expect("ready")
        for node in (1, 2):
            cluster.verb("link", node, "down")
            netlib.wait_for(lambda node=node: lone(cluster, node), netlib.PATIENCE_S, f"node {node} sees nobody")
            time.sleep(TTL_S + 3)  # what its timers would do
            cluster.verb("link", node, "up")
            netlib.wait_for(lambda node=node: not lone(cluster, node), netlib.PATIENCE_S, f"node {node} is back")
            time.sleep(TTL_S + 2)
            netlib.until(lambda: len(listed(cluster, 0, "leased/")), lambda there: there == CUT_COUNT,
                         f"of {CUT_COUNT} leased objects after node {node} was out")
        driver.kill()
        netlib.wait_for(lambda: used(cluster) == before, netlib.PATIENCE_S, "all of it is gone")
        cluster.check_daemons()


netlib.run(what_a_killed_driver_held_goes, leases_outlive_control, an_owner_that_is_cut_off_ends_no_lease)
