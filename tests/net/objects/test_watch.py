#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What `sarissa watch` says of objects that come and go on other nodes."""

import json
import subprocess
import threading

import netlib
from netlib import Cluster

SIZE = 3 << 20


class Watch:
    def __init__(self, cluster, node, *prefix):
        self.child = cluster.start(node, "sarissa", "watch", *prefix, "--json", stdout=subprocess.PIPE,
                                   text=True)

    def next(self):
        late = threading.Timer(netlib.PATIENCE_S, self.child.kill)
        late.start()
        line = self.child.stdout.readline()
        late.cancel()
        assert line, f"the watch has ended, or was silent for {netlib.PATIENCE_S} s"
        row = json.loads(line)
        return row["event"], row.get("name")

    def expect(self, *events):
        for event in events:
            heard = self.next()
            assert heard == event, f"the watch says {heard}, not {event}"

    def until(self, event):
        """Returns what was said before."""
        before = []
        while (heard := self.next()) != event:
            before.append(heard)
        return before

    def end(self):
        self.child.terminate()
        self.child.wait(timeout=netlib.PATIENCE_S)


def names(cluster, node, prefix):
    """Of those that somebody has; a node that has just died may be named as missing (5)."""
    done = cluster.run(node, "sarissa", "ls", prefix, "--json")
    assert done.returncode in (0, 5), done.stderr
    return {row["name"] for row in map(json.loads, done.stdout.splitlines()) if row.get("copies")}


def what_other_nodes_do_is_told():
    """One cluster for all: puts, deletes, then the death of a node that owns a part of the directory."""
    netlib.need_daemons()
    with Cluster(3, "--store", 64) as cluster, netlib.scratch() as directory:
        netlib.make_file(directory / "large", SIZE)
        netlib.make_file(directory / "small", 100)
        cluster.must(1, "sarissa", "put", "job/before", directory / "large")
        watch = Watch(cluster, 0, "job/")
        watch.expect(("complete", "job/before"))
        for i in range(6):
            cluster.must(1 + i % 2, "sarissa", "put", "other", directory / "small")
            cluster.must(1 + i % 2, "sarissa", "put", f"job/large{i}", directory / "large")
            watch.expect(("appeared", f"job/large{i}"), ("complete", f"job/large{i}"))
            cluster.must(2, "sarissa", "put", f"job/small{i}", directory / "small")
            assert watch.until(("complete", f"job/small{i}")) in ([], [("appeared", f"job/small{i}")])
            cluster.must(1, "sarissa", "rm", "other", f"job/small{i}")
            watch.expect(("gone", f"job/small{i}"))
        an_owner_dies(cluster, watch, directory)
        watch.end()


def an_owner_dies(cluster, watch, directory):
    """What it alone had is gone, in the end, for who lists again after "missed" and goes on."""
    kept = {"job/before", "job/large0", "job/large2", "job/large4"}
    for daemon in ("control", "dataplane"):
        cluster.verb("kill", 2, daemon)
    before = watch.until(("missed", None))
    assert ("gone", "job/before") not in before, before
    state = names(cluster, 0, "job/")
    cluster.must(1, "sarissa", "put", "job/last", directory / "large")
    heard = watch.until(("complete", "job/last"))
    for event, name in heard:
        if event == "gone":
            state.discard(name)
        elif event == "missed":
            state = names(cluster, 0, "job/")
        elif event == "complete":
            state.add(name)
    assert state - {"job/last"} == kept, f"{state}, after {heard}"


netlib.run(what_other_nodes_do_is_told)
