#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Sixteen nodes on two cores: up within a minute, and idle they leave the machine alone."""

import time

import netlib
from netlib import Cluster, process

NODES = 16
WATCH_S = 10
SHARE_MAX = 0.25  # of one core, all processes together
UP_MAX_S = netlib.PATIENCE_S


def sixteen_nodes_come_up_and_sleep():
    netlib.need_daemons()
    begin = time.monotonic()
    with Cluster(NODES, "--store", 32) as cluster, netlib.scratch() as directory:
        took = time.monotonic() - begin
        assert took < UP_MAX_S, f"up took {took:.1f} s"
        time.sleep(3)
        pids = cluster.pids()
        assert len(pids) == 2 * NODES
        before, since = sum(process.cpu_seconds(pid) for pid in pids), time.monotonic()
        time.sleep(WATCH_S)
        spent = sum(process.cpu_seconds(pid) for pid in pids) - before
        share = spent / (time.monotonic() - since)
        assert share < SHARE_MAX, f"idle, they use {share:.0%} of a core"
        netlib.transfer(cluster, directory, 8 << 20, source=3, targets=(0, 7, 15))
        return f"up in {took:.1f} s, {share:.1%} of a core"


netlib.run(sixteen_nodes_come_up_and_sleep)
