#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Hostile packets at 200,000 a second while a transfer runs, ten seconds of some kinds, five of
others: it completes, no state grows, each cause is counted under its own name."""

import netlib
from netlib import Cluster

SIZE = 96 << 20  # four seconds at the rate below
PPS = 200000
GROWTH_BYTES = 4 << 20  # of private memory, over all the floods
# mode of the generator: seconds, the counters that must have moved
FLOODS = {
    "garbage": (10, ("drop_truncated", "drop_checksum")),
    "hello": (10, ("cookies_sent", "drop_hello_rate")),
    "truncated": (10, ("drop_truncated", "drop_checksum")),
    "header": (5, ("drop_version", "drop_type", "drop_flags")),
    "cookie": (5, ("drop_cookie",)),
    "resealed": (5, ("drop_truncated",)),
    "replay": (5, ("drop_duplicate",)),
}


def under(cluster, directory, mode, expected):
    """One transfer under one flood."""
    seconds, causes = FLOODS[mode]
    before = cluster.counters(1)
    get = cluster.start(1, "sarissa", "get", mode, directory / "got", "--timeout", 120)
    report = netlib.finish_flood(netlib.flood(cluster, 1, mode, seconds, PPS))
    assert get.wait(timeout=150) == 0, f"get ended with {get.returncode} under {mode}"
    assert netlib.digest_of(directory / "got") == expected, f"other bytes under {mode}"
    after = cluster.counters(1)
    moved = {name: after[name] - before[name] for name in causes}
    assert all(moved.values()), f"not counted: {moved}"
    opened = after["conns_opened"] - before["conns_opened"]
    assert opened < 5, f"{opened} connections were opened by forged packets ({mode})"
    print(f"     {mode}: {report['pps']:.0f} packets/s; {moved}", flush=True)


def floods_are_counted_and_harm_nothing():
    netlib.need_daemons()
    with Cluster(2, "--store", 256, "--rate", 200) as cluster, netlib.scratch() as directory:
        netlib.transfer(cluster, directory, 1 << 20)
        expected = netlib.make_file(directory / "sent", SIZE)
        private = {pid: netlib.private_bytes(pid) for pid in cluster.pids()}
        for mode in FLOODS:
            cluster.must(0, "sarissa", "put", mode, directory / "sent")
            under(cluster, directory, mode, expected)
            cluster.must(1, "sarissa", "rm", mode)
            cluster.must(1, "sarissa", "status")
        cluster.check_daemons()
        for pid, was in private.items():
            grown = netlib.private_bytes(pid) - was
            assert grown < GROWTH_BYTES, f"process {pid} grew by {grown} bytes"


netlib.run(floods_are_counted_and_harm_nothing)
