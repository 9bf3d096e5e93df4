#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Daemons killed and started again: what was sealed survives, what ran goes on or fails by name."""

import netlib
from netlib import Cluster

MIB = 1 << 20


def put(cluster, node, name, path):
    cluster.must(node, "sarissa", "put", name, path)


def get_matches(cluster, node, name, path, expected):
    cluster.must(node, "sarissa", "get", name, path, "--timeout", 30)
    assert netlib.digest_of(path) == expected, f"node {node}: other bytes of {name}"


def objects_survive_the_death_of(daemon):
    netlib.need_daemons()
    with Cluster(2, "--store", 64) as cluster, netlib.scratch() as directory:
        expected = netlib.make_file(directory / "sent", 9 * MIB + 5)
        put(cluster, 0, "keep", directory / "sent")
        for node in (0, 1):
            cluster.verb("kill", node, daemon)
            assert cluster.pid(node, daemon) is None
            cluster.verb("start", node, daemon)
        get_matches(cluster, 0, "keep", directory / "got", expected)
        get_matches(cluster, 1, "keep", directory / "got", expected)
        put(cluster, 1, "more", directory / "sent")
        get_matches(cluster, 0, "more", directory / "got", expected)


def objects_survive_the_death_of_control():
    objects_survive_the_death_of("control")


def objects_survive_the_death_of_the_dataplane():
    objects_survive_the_death_of("dataplane")


def a_transfer_goes_on_after(node, daemon):
    netlib.need_daemons()
    with Cluster(2, "--store", 128, "--rate", 100) as cluster, netlib.scratch() as directory:
        expected = netlib.make_file(directory / "sent", 32 * MIB)
        put(cluster, 0, "cut", directory / "sent")
        child = cluster.start(1, "sarissa", "get", "cut", directory / "got", "--timeout", 60)
        netlib.time.sleep(0.8)
        cluster.verb("kill", node, daemon)
        netlib.time.sleep(0.5)
        cluster.verb("start", node, daemon)
        assert child.wait(timeout=90) == 0, f"get ended with {child.returncode}"
        assert netlib.digest_of(directory / "got") == expected


def a_transfer_outlives_the_senders_dataplane():
    a_transfer_goes_on_after(0, "dataplane")


def a_transfer_outlives_the_receivers_dataplane():
    a_transfer_goes_on_after(1, "dataplane")


HOLD = """
import hashlib, sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import sarissa
node = sarissa.open()
view = node.get("held", timeout=30)
for _ in range(2):
    print(hashlib.sha256(view).hexdigest(), flush=True)
    sys.stdin.readline()
"""


def what_a_reader_holds_outlives_control():
    """The new control knows no pins of the old one's clients: it frees nothing under them."""
    netlib.need_daemons()
    with Cluster(1, "--store", 64) as cluster, netlib.scratch() as directory:
        netlib.make_file(directory / "sent", 20 * MIB)
        put(cluster, 0, "held", directory / "sent")
        library = netlib.build_dir() / "client/libsarissa.so"
        reader = cluster.start(0, "env", f"SARISSA_LIBRARY={library}", "/usr/bin/python3", "-c",
                               HOLD, netlib.ROOT / "client/python", stdin=netlib.subprocess.PIPE,
                               stdout=netlib.subprocess.PIPE, text=True)
        before = reader.stdout.readline()
        cluster.verb("kill", 0, "control")
        cluster.verb("start", 0, "control")
        cluster.must(0, "sarissa", "rm", "held")
        netlib.make_file(directory / "other", 20 * MIB)
        put(cluster, 0, "b", directory / "other")
        put(cluster, 0, "c", directory / "other")  # three do fit: the held one keeps its place
        full = cluster.run(0, "sarissa", "put", "d", directory / "other")
        assert full.returncode == 1, "a fourth has room: the held one was freed"
        reader.stdin.write("\n")
        reader.stdin.flush()
        after = reader.stdout.readline()
        assert before and before == after, f"held {before.strip()}, now {after.strip()}"
        reader.stdin.write("\n")
        reader.stdin.close()
        reader.wait(timeout=10)
        netlib.wait_for(lambda: cluster.run(0, "sarissa", "put", "d", directory / "other")
                        .returncode == 0, 5, "the space comes back")


def a_restarted_node_is_a_new_one():
    """All of node 0 dies, its objects with it; it is not mistaken for its earlier life."""
    netlib.need_daemons()
    with Cluster(2, "--store", 64) as cluster, netlib.scratch() as directory:
        expected = netlib.make_file(directory / "sent", 5 * MIB)
        put(cluster, 1, "here", directory / "sent")
        put(cluster, 0, "gone", directory / "sent")
        cluster.verb("kill", 0, "node")
        cluster.verb("start", 0)
        put(cluster, 0, "again", directory / "sent")
        get_matches(cluster, 1, "again", directory / "got", expected)
        get_matches(cluster, 0, "here", directory / "got", expected)
        done = cluster.run(1, "sarissa", "get", "gone", directory / "got", "--timeout", 2)
        assert done.returncode in (3, 4), f"exit {done.returncode}: {done.stderr}"


netlib.run(objects_survive_the_death_of_control, objects_survive_the_death_of_the_dataplane,
           a_transfer_outlives_the_senders_dataplane, a_transfer_outlives_the_receivers_dataplane,
           what_a_reader_holds_outlives_control, a_restarted_node_is_a_new_one)
