#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Sixteen nodes on two cores: up within a minute, and idle they leave the machine alone. What a control
touches with each new object is there before the first."""

import mmap
import re
import time
from pathlib import Path

import netlib
from netlib import Cluster, nodes, process

NODES = 16
WATCH_S = 10
SHARE_MAX = 0.25  # of one core, all processes together
UP_MAX_S = netlib.PATIENCE_S
HUGE = Path("/sys/kernel/mm/transparent_hugepage/enabled")
TABLES_KIB = 3 << 10  # of a control's core (base_env)
POPULATE_WRITE = 23   # of madvise, which Python does not name
PRIVATE = re.compile(r"^\S+ rw-p 00000000 00:00 0 *\nSize: +(\d+) kB(?:\n.*)*?\nRss: +(\d+) kB", re.M)


def all_see_all(cluster):
    return all(sum(row["state"] == "up" for row in nodes.status_lines(cluster.config, node)) == NODES
               for node in range(NODES))


def share(pids):
    """Of a core that these processes use."""
    before, since = sum(process.cpu_seconds(pid) for pid in pids), time.monotonic()
    time.sleep(WATCH_S)
    return (sum(process.cpu_seconds(pid) for pid in pids) - before) / (time.monotonic() - since)


def sixteen_nodes_come_up_and_sleep():
    netlib.need_daemons()
    begin = time.monotonic()
    with Cluster(NODES, "--store", 32) as cluster, netlib.scratch() as directory:
        took = time.monotonic() - begin
        assert took < UP_MAX_S, f"up took {took:.1f} s"
        netlib.wait_for(lambda: all_see_all(cluster), netlib.PATIENCE_S, "all see all")
        time.sleep(3)
        pids = cluster.pids()
        assert len(pids) == 2 * NODES
        seen = netlib.measured(lambda: share(pids), lambda share: share < SHARE_MAX)
        assert seen[-1] < SHARE_MAX, f"idle, they use {seen} of a core"
        netlib.transfer(cluster, directory, 8 << 20, source=3, targets=(0, 7, 15))
        return f"up in {took:.1f} s, {seen[-1]:.1%} of a core"


def tables_are_there_before_the_first_object():
    """The largest piece of memory that is no file's is the core's."""
    try:
        mmap.mmap(-1, mmap.PAGESIZE).madvise(POPULATE_WRITE)
    except OSError:
        raise netlib.Skip("this kernel makes no pages ahead (MADV_POPULATE_WRITE)") from None
    if "[always]" in HUGE.read_text():
        raise netlib.Skip("huge pages by themselves (transparent_hugepage/enabled: always) count as more")
    with Cluster(1, "--store", 32) as cluster:
        pieces = PRIVATE.findall(Path(f"/proc/{cluster.pid(0, 'control')}/smaps").read_text())
    there = max((int(size), int(there)) for size, there in pieces)[1]
    assert TABLES_KIB < there < 2 * TABLES_KIB, f"{there} KiB are there"
    return f"{there} KiB are there"


netlib.run(tables_are_there_before_the_first_object, sixteen_nodes_come_up_and_sleep)
