#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two nodes of five on the other side of a cut: both sides serve what they hold and take what is
put; when the cut is mended, all agree, and what either side put is to be had everywhere."""

import hashlib
import json
import subprocess
import time

import netlib
from netlib import Cluster, network, nodes

NODES = 5
SIZE = 300000
HERE, AWAY = (0, 1, 2), (3, 4)


def cli(cluster, node, *command, **options):
    return subprocess.run([str(nodes.binary("cli")), *map(str, command)], capture_output=True,
                          env=nodes.environment(cluster.config, node), timeout=60, **options)


def put(cluster, node, name, content):
    """Whether it was taken."""
    return cli(cluster, node, "put", name, "-", input=content).returncode == 0


def got(cluster, node, name, seconds=10):
    done = cli(cluster, node, "get", name, "-", "--timeout", seconds)
    return done.stdout if done.returncode == 0 else None


def listed(cluster, node):
    """What one node says that there is: name -> generation, size, copies. None while a part of the
    directory is missing."""
    done = cli(cluster, node, "ls", "--json")
    if done.returncode == 5:
        return None
    assert done.returncode == 0, f"ls on node {node}: {done.stderr.decode()}"
    return {o["name"]: (o["generation"], o["size"], o["copies"])
            for o in map(json.loads, done.stdout.splitlines())}


def sees(cluster, node):
    return {line["node"] for line in nodes.status_lines(cluster.config, node)
            if line["state"] == "up"}


def content(name, side):
    return (hashlib.sha256(f"{name} {side}".encode()).digest() * (SIZE // 32 + 1))[:SIZE]


def put_all(cluster, names, side, node):
    for name in names:
        assert put(cluster, node, name, content(name, side)), f"{name} on node {node}"


# [G1.9]
def both_sides_serve(cluster):
    """Each side has what its nodes held, and takes new objects; the names of the other are free."""
    for side, members in (("here", HERE), ("away", AWAY)):
        for node in members:
            assert got(cluster, node, f"{side}-before") == content(f"{side}-before", side)
        put_all(cluster, [f"{side}-during", "both"], side, members[0])
        assert got(cluster, members[-1], f"{side}-during") == content(f"{side}-during", side)
        assert got(cluster, members[-1], "both") == content("both", side)
        assert got(cluster, members[0], f"{side}-gone") == content(f"{side}-gone", side)
        done = cli(cluster, members[0], "rm", f"{side}-gone")
        assert done.returncode == 0, done.stderr.decode()


def all_agree(cluster):
    lists = [listed(cluster, node) for node in range(NODES)]
    return lists[0] if all(one == lists[0] for one in lists) else None


def a_cut_heals():
    netlib.need_daemons()
    with Cluster(NODES, "--store", 64) as cluster:
        for side, node in (("here", 1), ("away", 4)):
            put_all(cluster, [f"{side}-before", f"{side}-gone"], side, node)
        put_all(cluster, ["shared"], "here", 1)
        assert got(cluster, 4, "shared")
        network.split(cluster.config, AWAY)
        for side in HERE, AWAY:
            for node in side:
                netlib.wait_for(lambda: sees(cluster, node) == set(side), netlib.PATIENCE_S,
                                f"node {node} sees its own side only")
        both_sides_serve(cluster)
        assert cli(cluster, 0, "rm", "shared").returncode == 0
        assert got(cluster, 3, "shared") == content("shared", "here"), "the copy over there"
        since = time.monotonic()
        network.split(cluster.config, ())
        for node in range(NODES):
            netlib.wait_for(lambda: len(sees(cluster, node)) == NODES, netlib.PATIENCE_S,
                            f"node {node} sees all again")
        expected = {f"{side}-{when}" for side in ("here", "away") for when in ("before", "during")}
        netlib.wait_for(lambda: set(all_agree(cluster) or ()) == expected | {"both"},
                        netlib.PATIENCE_S, "all list the same objects, and none that was removed")
        took = time.monotonic() - since
        for node in range(NODES):
            for name in expected:
                assert got(cluster, node, name) == content(name, name.split("-")[0]), \
                    f"{name} on node {node}"
        ends = {got(cluster, node, "both") for node in range(NODES)}
        assert len(ends) == 1 and ends <= {content("both", side) for side in ("here", "away")}, \
            "the name that both sides put has one content in the end"
        cluster.check_daemons()
        return f"all agree {took:.1f} s after the cut was mended"


def tells(cluster, node):
    """What `ls` says: its exit status, the names, and whose parts of the directory are missing."""
    done = cli(cluster, node, "ls", "--json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    missing = [line["missing"] for line in lines if line.get("partial") is True and "missing" in line]
    return (done.returncode, {line["name"] for line in lines if "name" in line},
            set(missing[0]) if missing else set())


def denies_nothing(cluster, node, names):
    """`stat` shows each object, or says whose part of the directory does not answer."""
    unknown = 0
    for name in names:
        done = cli(cluster, node, "stat", name)
        assert done.returncode in (0, 5), f"stat {name}: {done.returncode}: {done.stderr.decode()}"
        unknown += done.returncode == 5
        assert done.returncode == 0 or b"node " in done.stderr, done.stderr.decode()
    assert unknown, "a node that is cut off knows all"


def whoever_is_cut_off_claims_nothing():
    """40 objects on 4 nodes, and the cable of node 0 is pulled: it knows a part of them."""
    netlib.need_daemons()
    count, names = 4, {f"object-{i}" for i in range(40)}
    with Cluster(count, "--store", 64) as cluster:
        for i, name in enumerate(sorted(names)):
            assert put(cluster, i % count, name, name.encode())
        assert tells(cluster, 0) == (0, names, set())
        cluster.verb("link", 0, "down")
        netlib.wait_for(lambda: 1 not in sees(cluster, 0), netlib.PATIENCE_S, "node 1 is out of reach")
        some = sorted(names)[::7]
        status, known, missing = tells(cluster, 0)
        assert status == 5 and known < names and missing == {1, 2, 3}, (status, len(known), missing)
        denies_nothing(cluster, 0, some)
        done = cli(cluster, 0, "ls")
        assert done.returncode == 5 and b"1, 2, 3" in done.stderr, done.stderr.decode()
        # long enough for all to be taken for dead on either side
        netlib.wait_for(lambda: tells(cluster, 1)[0] == 0, netlib.PATIENCE_S,
                        "the three others keep the whole directory")
        status, known, missing = tells(cluster, 0)
        assert status == 5 and missing == {1, 2, 3}, (status, len(known), missing)
        denies_nothing(cluster, 0, some)
        cluster.verb("link", 0, "up")
        for node in range(count):
            netlib.wait_for(lambda: tells(cluster, node) == (0, names, set()), netlib.PATIENCE_S,
                            f"node {node} lists all again")
        assert cli(cluster, 0, "stat", "never put").returncode == 4
        cluster.check_daemons()


netlib.run(a_cut_heals, whoever_is_cut_off_claims_nothing)
