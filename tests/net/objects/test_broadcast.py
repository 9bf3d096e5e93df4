#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""One object at many nodes: puts of one name, what stat shows, eviction, deaths on the way."""

import json
import subprocess

import netlib
from netlib import Cluster

MIB = 1 << 20


def stat(cluster, node, name):
    return json.loads(cluster.must(node, "sarissa", "stat", name, "--json"))


def begin_get(cluster, node, name, path, timeout=60):
    return cluster.start(node, "sarissa", "get", name, path, "--timeout", timeout,
                         stderr=subprocess.PIPE, text=True)


def end_get(child, path, expected, seconds=90):
    _, errors = child.communicate(timeout=seconds)
    assert child.returncode == 0, f"{path.name}: exit {child.returncode}: {errors.strip()}"
    assert netlib.digest_of(path) == expected, f"{path.name}: other bytes"


def refused(done, text, status=1):
    assert done.returncode == status, f"exit {done.returncode}: {done.stderr.strip()}"
    assert done.stderr.count("\n") == 1 and text in done.stderr, done.stderr


def a_name_is_put_twice():
    netlib.need_daemons()
    with Cluster(3, "--store", 64) as cluster, netlib.scratch() as directory:
        for size in (5, 100000, 5 * MIB):
            name = f"twice-{size}"
            netlib.make_file(directory / "one", size)
            netlib.make_file(directory / "other", size)
            netlib.make_file(directory / "longer", size + 1)
            for node in (0, 1, 0):
                cluster.must(node, "sarissa", "put", name, directory / "one")
            for node in range(3):
                refused(cluster.run(node, "sarissa", "put", name, directory / "other"),
                        "with other bytes")
                refused(cluster.run(node, "sarissa", "put", name, directory / "longer"),
                        f"{size} bytes, this one has {size + 1}")
        cluster.check_daemons()


def copies_come_before_somebody_asks():
    netlib.need_daemons()
    with Cluster(4, "--store", 64) as cluster, netlib.scratch() as directory:
        netlib.make_file(directory / "one", 5 * MIB)
        early = cluster.start(0, "sarissa", "prefetch", "early", 2, "--timeout", 60)
        for name in ("some", "all", "early"):
            cluster.must(0, "sarissa", "put", name, directory / "one")
        cluster.must(0, "sarissa", "prefetch", "some", 1, 3)
        cluster.must(0, "sarissa", "prefetch", "all")
        assert early.wait(60) == 0
        for name, nodes in (("some", [0, 1, 3]), ("all", [0, 1, 2, 3]), ("early", [0, 2])):
            assert sorted(h["node"] for h in stat(cluster, 1, name)["holders"]) == nodes, name
        refused(cluster.run(0, "sarissa", "prefetch", "some", 9), "no such node")
        cluster.check_daemons()


def two_nodes_put_one_name_at_once():
    """Exactly one of two different files wins; the same file is fine from everywhere."""
    netlib.need_daemons()
    with Cluster(4, "--store", 128) as cluster, netlib.scratch() as directory:
        digests = [netlib.make_file(directory / f"of-{k}", 3 * MIB) for k in range(2)]
        for turn in range(6):
            puts = [cluster.start(node, "sarissa", "put", f"race-{turn}",
                                  directory / f"of-{node % 2}", stderr=subprocess.PIPE, text=True)
                    for node in range(4)]
            errors = [child.communicate(timeout=60)[1] for child in puts]
            codes = [child.returncode for child in puts]
            cluster.must(3, "sarissa", "get", f"race-{turn}", directory / "got", "--timeout", 20)
            winner = digests.index(netlib.digest_of(directory / "got"))
            for node in range(4):
                if node % 2 == winner:
                    assert codes[node] == 0, f"node {node}: {errors[node]}"
                else:
                    assert codes[node] == 1 and "other bytes" in errors[node], errors[node]
        cluster.check_daemons()


def set_rate(cluster, node, mbit):
    """Of what leaves the node, from now on."""
    device = ["tc", "-n", cluster.switch_netns(), "class", "change", "dev", f"ifb{node}"]
    subprocess.run([*device, "parent", "1:", "classid", "1:1", "htb", "rate", f"{mbit}mbit",
                    "ceil", f"{mbit}mbit", "burst", "4000", "cburst", "4000", "quantum", "1514"],
                   check=True)


def arrived(seen):
    return sum(h["arrived"] for h in seen["holders"])


def stat_shows_the_tree():
    """More receivers than one answer has room for, while the object is on its way."""
    netlib.need_daemons()
    count = 19
    with Cluster(count, "--store", 64, "--rate", 50) as cluster, netlib.scratch() as directory:
        expected = netlib.make_file(directory / "sent", 8 * MIB)
        cluster.must(0, "sarissa", "put", "tree", directory / "sent")
        set_rate(cluster, 0, 2)  # until all have begun and been seen: 34 s at least
        gets = [begin_get(cluster, node, "tree", directory / f"got-{node}")
                for node in range(1, count)]
        netlib.wait_for(lambda: len(stat(cluster, 5, "tree")["holders"]) == count and
                        all(h["arrived"] for h in stat(cluster, 5, "tree")["holders"]),
                        netlib.PATIENCE_S, "every receiver is a holder of a part")
        seen = stat(cluster, 7, "tree")
        holders = {h["node"]: h for h in seen["holders"]}
        assert len(holders) == count, sorted(holders)
        assert sum(len(h["upstreams"]) for h in seen["holders"]) == \
            sum(h["sending"] for h in seen["holders"]), seen
        for h in seen["holders"]:
            assert h["complete"] or h["upstreams"], h
            assert h["upstream"] == (h["upstreams"][0] if h["upstreams"] else None), h
            assert h["arrived"] >= h["ready"], h
            root, steps = h, 0
            while root["upstreams"] and steps < count:
                root, steps = holders[root["upstreams"][0]], steps + 1
            assert root["node"] == 0, f"node {h['node']} hangs on node {root['node']}"
        assert 8 * MIB < arrived(seen) < count * 8 * MIB, seen
        netlib.wait_for(lambda: arrived(stat(cluster, 7, "tree")) > arrived(seen),
                        netlib.PATIENCE_S, "more has arrived")
        text = cluster.must(3, "sarissa", "stat", "tree")
        assert sum("%" in line or "complete " in line for line in text.splitlines()[7:]) == count
        netlib.wait_for(lambda: sum(row["arriving"] for row in
                                    netlib.nodes.status_lines(cluster.config, 0)) == count - 1,
                        netlib.PATIENCE_S, "node 0 has heard of every node that something arrives there")
        set_rate(cluster, 0, 50)
        for node, child in enumerate(gets, 1):
            end_get(child, directory / f"got-{node}", expected)
        netlib.until(lambda: stat(cluster, 2, "tree")["copies"], lambda copies: copies == count, "copies")


def wait_until_down(cluster, *nodes):
    netlib.wait_for(lambda: all("down" in cluster.must(node, "sarissa", "status")
                                for node in nodes), netlib.PATIENCE_S, "the loss is noticed")


def the_last_copy_is_not_evicted():
    """The node of the put dies; the holders of the two copies both need the room."""
    netlib.need_daemons()
    with Cluster(4, "--store", 32) as cluster, netlib.scratch() as directory:
        expected = netlib.make_file(directory / "sent", 12 * MIB)
        netlib.make_file(directory / "fill", 12 * MIB)
        cluster.must(0, "sarissa", "put", "precious", directory / "sent")
        for node in (1, 2):
            cluster.must(node, "sarissa", "get", "precious", directory / "got")
            cluster.must(node, "sarissa", "put", f"fill-{node}", directory / "fill")
        cluster.verb("kill", 0, "node")
        wait_until_down(cluster, 1, 2)
        codes, errors = [1, 1], []

        def put_on_both():
            puts = [cluster.start(node, "sarissa", "put", f"more-{node}", directory / "fill",
                                  stderr=subprocess.PIPE, text=True) for node in (1, 2)]
            errors[:] = [child.communicate(timeout=60)[1] for child in puts]
            codes[:] = sorted(child.returncode for child in puts)
            return codes != [1, 1]
        netlib.wait_for(put_on_both, netlib.PATIENCE_S, "one of the copies is pinned, one goes")
        assert codes == [0, 1], f"{codes}: {errors}"
        assert any("store full" in e for e in errors), errors
        cluster.must(3, "sarissa", "get", "precious", directory / "got", "--timeout", 20)
        assert netlib.digest_of(directory / "got") == expected


def a_holder_dies_while_several_feed():
    netlib.need_daemons()
    size, rate = 24 * MIB, 15e6
    with Cluster(4, "--store", 64, "--rate", 60) as cluster, netlib.scratch() as directory:
        expected = netlib.make_file(directory / "sent", size)
        cluster.must(0, "sarissa", "put", "cut", directory / "sent")
        for node in (1, 2):  # two more complete copies
            end_get(begin_get(cluster, node, "cut", directory / f"at-{node}"),
                    directory / f"at-{node}", expected)
        for node in range(3):  # so slow that it is not done before one is killed
            set_rate(cluster, node, int(rate / 5e6))
        begin = netlib.time.monotonic()
        child = begin_get(cluster, 3, "cut", directory / "got")

        def receiver():
            """What is known of it; {} when it is not in the list."""
            return next((h for h in stat(cluster, 1, "cut")["holders"] if h["node"] == 3), {})

        def several_feed():
            seen.append(receiver())
            return seen[-1].get("arrived", 0) > size // 5 and len(seen[-1]["upstreams"]) > 1

        seen = []
        netlib.wait_for(several_feed, netlib.PATIENCE_S, "a fifth has arrived, and several feed it")
        feeds = len(seen[-1]["upstreams"])
        victim = next(n for n in seen[-1]["upstreams"] if n != 1)  # node 1 is asked below
        cluster.verb("kill", victim, "node")
        killed = netlib.time.monotonic()
        for node in range(3):  # one alone cannot fill the link of the receiver
            set_rate(cluster, node, int(rate / 1e6))
        before = receiver().get("arrived", seen[-1]["arrived"])

        def goes_on():
            now = receiver()
            return now.get("complete") or now.get("arrived", 0) > before + 3 * MIB

        netlib.wait_for(goes_on, netlib.PATIENCE_S, "it goes on with another holder")
        resumed = netlib.time.monotonic() - killed
        end_get(child, directory / "got", expected)
        took = netlib.time.monotonic() - begin
        assert took < 3 * size * 8 / rate, f"{took:.1f} s"
        return f"{feeds} feeds; 3 MiB more after {resumed:.1f} s; {took:.1f} s in all, " \
               f"one holder needs {size * 8 / rate:.1f}"


def an_owner_of_the_directory_dies_while_gets_wait():
    """The death of any shard owner loses neither waiters nor names."""
    netlib.need_daemons()
    with Cluster(5, "--store", 64) as cluster, netlib.scratch() as directory:
        expected = netlib.make_file(directory / "sent", 2 * MIB)
        names = [f"later-{k}" for k in range(12)]  # of all owners, so of the one that dies as well
        gets = [(begin_get(cluster, 1 + k % 3, name, directory / f"got-{name}"), name)
                for k, name in enumerate(names)]
        for node in (1, 2, 3):
            netlib.until_waiting(cluster, node, len(names) // 3)
        cluster.verb("kill", 4, "node")
        for name in names[:6]:  # before the death is noticed
            cluster.must(0, "sarissa", "put", name, directory / "sent")
        wait_until_down(cluster, 0)
        for name in names[6:]:
            cluster.must(0, "sarissa", "put", name, directory / "sent")
        for child, name in gets:
            end_get(child, directory / f"got-{name}", expected)


def an_unknown_name_times_out():
    netlib.need_daemons()
    with Cluster(2, "--store", 32) as cluster, netlib.scratch() as directory:
        def told():
            """A young directory does not swear that nobody has it."""
            begin = netlib.time.monotonic()
            done = cluster.run(1, "sarissa", "get", "nobody", directory / "out", "--timeout", 1)
            took = netlib.time.monotonic() - begin
            refused(done, "wait longer", 3)
            assert 1 <= took < 15, f"{took:.1f} s"
            assert not (directory / "out").exists()
            return "nobody has put such an object yet" in done.stderr
        netlib.wait_for(told, 60, "it says what it has waited for")


def objects_are_deleted_under_fifteen_receivers():
    netlib.need_daemons()
    count, size = 16, 2 * MIB
    with Cluster(count, "--store", 32, "--rate", 50) as cluster, netlib.scratch() as directory:
        set_rate(cluster, 0, 10)
        ended = {0: 0, 1: 0}
        for turn, share in enumerate((0.01, 0.3, 0.6)):
            name = f"gone-{turn}"
            expected = netlib.make_file(directory / "sent", size)
            cluster.must(0, "sarissa", "put", name, directory / "sent")
            gets = [(begin_get(cluster, node, name, directory / f"got-{turn}-{node}", 30),
                     directory / f"got-{turn}-{node}") for node in range(1, count)]
            netlib.wait_for(lambda: arrived(stat(cluster, 2, name)) > (1 + 15 * share) * size,
                            netlib.PATIENCE_S, f"{share:.0%} of it has arrived")
            cluster.must(turn, "sarissa", "rm", name)
            other = netlib.make_file(directory / "sent", size)  # the same name, other bytes
            cluster.must(1, "sarissa", "put", name, directory / "sent")
            for child, path in gets:
                _, errors = child.communicate(timeout=60)
                assert child.returncode in (0, 1), f"exit {child.returncode}: {errors}"
                ended[child.returncode] += 1
                if child.returncode == 0:
                    assert netlib.digest_of(path) in (expected, other), f"{path.name}: mixed bytes"
                    path.unlink()
                else:
                    assert "deleted" in errors or "given" in errors, errors
            cluster.must(2, "sarissa", "rm", name)
            refused(cluster.run(5, "sarissa", "get", name, directory / "late", "--timeout", 0),
                    "", 4)
        cluster.check_daemons()
        assert ended[1] > 0, "nobody was on the way"
        return f"{ended[0]} whole, {ended[1]} told of the deletion"


netlib.run(a_name_is_put_twice, copies_come_before_somebody_asks, two_nodes_put_one_name_at_once, stat_shows_the_tree,
           the_last_copy_is_not_evicted, a_holder_dies_while_several_feed,
           an_owner_of_the_directory_dies_while_gets_wait, an_unknown_name_times_out,
           objects_are_deleted_under_fifteen_receivers)
