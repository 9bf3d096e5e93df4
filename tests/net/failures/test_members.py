#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Nodes that must not be believed: one with another's number, one that was declared dead.

usage: test_members.py [CLUSTER-UP-OPTION...]
"""

import subprocess
import sys

import netlib
from netlib import Cluster, nodes

MIB = 1 << 20
OPTIONS = sys.argv[1:]


def states(cluster, node):
    """number -> state of the members, as a node sees them."""
    return {line["node"]: line["state"] for line in nodes.status_lines(cluster.config, node)}


def serves(cluster, directory, source, target, name):
    """An object goes from one to the other."""
    expected = netlib.make_file(directory / "sent", MIB + 7)
    cluster.must(source, "sarissa", "put", name, directory / "sent")
    cluster.must(target, "sarissa", "get", name, directory / "got", "--timeout", 20)
    assert netlib.digest_of(directory / "got") == expected, f"other bytes of {name}"


def a_taken_number_is_refused():
    """Node 2 comes back under the number of node 1, which lives."""
    netlib.need_daemons()
    with Cluster(3, "--store", 64, "--seeds", 1, *OPTIONS) as cluster, \
            netlib.scratch() as directory:
        serves(cluster, directory, 1, 0, "before")
        netlib.wait_for(lambda: len(states(cluster, 0)) == 3, netlib.PATIENCE_S,
                        "the seed knows of all three")
        taken = nodes.status_lines(cluster.config, 1)[0]["node"]  # itself comes first
        cluster.verb("kill", 2, "control")
        argv = [str(a) for a in nodes.control_argv(cluster.config, 2)]
        argv[argv.index("--node") + 1] = str(taken)
        done = subprocess.run(["ip", "netns", "exec", nodes.network.node_netns(cluster.name, 2),
                               *argv], capture_output=True, text=True, timeout=30)
        assert done.returncode > 0, f"exit {done.returncode}: {done.stderr}"
        for words in (f"number {taken} belongs to", "--node auto"):
            assert words in done.stderr, f"'{words}' is not in: {done.stderr}"
        serves(cluster, directory, 0, 1, "meanwhile")
        cluster.verb("start", 2, "control")  # with a number of its own
        serves(cluster, directory, 1, 2, "after")


def one_declared_dead_comes_back_as_a_new_life():
    """A cable is out until the others have given the node up; what it says then must outdo that."""
    netlib.need_daemons()
    with Cluster(3, "--store", 64, *OPTIONS) as cluster, netlib.scratch() as directory:
        serves(cluster, directory, 2, 0, "before")
        for node in (0, 1):
            netlib.wait_for(lambda: states(cluster, node).get(2) == "up", netlib.PATIENCE_S,
                            "all have met")
        cluster.verb("link", 2, "down")
        for node in (0, 1):
            netlib.wait_for(lambda: states(cluster, node).get(2) != "up", netlib.PATIENCE_S,
                            "the cut node is given up")
        serves(cluster, directory, 0, 1, "meanwhile")
        cluster.verb("link", 2, "up")
        for node in (0, 1):
            netlib.wait_for(lambda: states(cluster, node).get(2) == "up", netlib.PATIENCE_S,
                            "the node is believed again")
        serves(cluster, directory, 2, 1, "after")
        serves(cluster, directory, 0, 2, "after that")
        cluster.check_daemons()


netlib.run(a_taken_number_is_refused, one_declared_dead_comes_back_as_a_new_life)
