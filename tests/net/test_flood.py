#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Hostile packets at 200,000 a second for ten seconds while a transfer runs: it completes, no
state grows, each cause is counted under its own name."""

import netlib
from netlib import Cluster

SIZE = 96 << 20  # four seconds at the rate below
PPS = 200000
SECONDS = 10
GROWTH_BYTES = 4 << 20  # of private memory, over the whole flood


def under(mode, causes, check=lambda before, after: None):
    """causes: counters of which each must have moved."""
    netlib.need_daemons()
    with Cluster(2, "--store", 256, "--rate", 200) as cluster, netlib.scratch() as directory:
        netlib.transfer(cluster, directory, 1 << 20)
        expected = netlib.make_file(directory / "sent", SIZE)
        cluster.must(0, "sarissa", "put", "victim", directory / "sent")
        before = cluster.counters(1)
        private = {pid: netlib.private_bytes(pid) for pid in cluster.pids()}
        get = cluster.start(1, "sarissa", "get", "victim", directory / "got", "--timeout", 120)
        report = netlib.finish_flood(netlib.flood(cluster, 1, mode, SECONDS, PPS))
        assert get.wait(timeout=150) == 0, f"get ended with {get.returncode} under {mode}"
        assert netlib.digest_of(directory / "got") == expected
        cluster.check_daemons()
        after = cluster.counters(1)
        moved = {name: after[name] - before[name] for name in causes}
        assert all(moved.values()), f"not counted: {moved}"
        for pid, was in private.items():
            grown = netlib.private_bytes(pid) - was
            assert grown < GROWTH_BYTES, f"process {pid} grew by {grown} bytes"
        check(before, after)
        cluster.must(1, "sarissa", "status")
        return f"{report['pps']:.0f} packets/s; {moved}"


def no_connection_opened(before, after):
    opened = after["conns_opened"] - before["conns_opened"]
    assert opened == 0, f"{opened} connections were opened by forged packets"


def garbage():
    return under("garbage", ("drop_truncated", "drop_checksum"), no_connection_opened)


def wrong_headers_with_a_right_checksum():
    return under("header", ("drop_version", "drop_type", "drop_flags"), no_connection_opened)


def forged_hellos():
    return under("hello", ("cookies_sent", "drop_hello_rate"), no_connection_opened)


def forged_cookies():
    return under("cookie", ("drop_cookie",), no_connection_opened)


def truncated_real_packets():
    return under("truncated", ("drop_truncated", "drop_checksum"), no_connection_opened)


def cut_packets_with_a_right_checksum():
    return under("resealed", ("drop_truncated",), no_connection_opened)


def replayed_real_packets():
    return under("replay", ("drop_duplicate",), no_connection_opened)


netlib.run(garbage, wrong_headers_with_a_right_checksum, forged_hellos, forged_cookies,
           truncated_real_packets, cut_packets_with_a_right_checksum, replayed_real_packets)
