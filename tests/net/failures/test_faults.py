#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A bad path, a pulled cable, killed processes: the transfer completes, the bytes are right."""

import netlib
from netlib import Cluster

MIB = 1 << 20


def everything_goes_wrong_at_once():
    netlib.need_daemons()
    with Cluster(2, "--store", 128) as cluster, netlib.scratch() as directory:
        cluster.verb("fault", "all", "--loss", 10, "--dup", 5, "--reorder", 5, "--corrupt", 1)
        for size in (0, 1, 65536, 65537, MIB + 7, 32 * MIB):
            netlib.transfer(cluster, directory, size, timeout=120)
        seen = cluster.counters(1)
        for name in ("drop_checksum", "drop_duplicate"):
            assert seen[name] > 0, f"{name} is {seen[name]} on a path that does just that"
        assert cluster.counters(0)["tx_chunk_resends"] > 0
        cluster.check_daemons()


def one_percent_loss_costs_at_most_a_tenth():
    netlib.need_daemons()
    with Cluster(2, "--store", 128, "--rate", 200) as cluster, netlib.scratch() as directory:
        def goodput(percent):
            cluster.verb("fault", "all", "--loss", percent)
            return 64 * MIB / netlib.transfer(cluster, directory, 64 * MIB)

        def share():
            clean.append(goodput(0))
            return goodput(1) / max(clean)

        clean = []
        shares = netlib.measured(share, lambda share: share >= 0.9)
    assert shares[-1] >= 0.9, f"{shares} of the goodput without loss"
    return f"{shares[-1]:.3f} of {max(clean) * 8 / 1e6:.1f} Mbit/s"


def a_pulled_cable_only_delays():
    netlib.need_daemons()
    with Cluster(2, "--store", 128, "--rate", 100) as cluster, netlib.scratch() as directory:
        expected = netlib.make_file(directory / "sent", 32 * MIB)
        cluster.must(0, "sarissa", "put", "cut", directory / "sent")
        child = cluster.start(1, "sarissa", "get", "cut", directory / "got", "--timeout", 60)
        netlib.until_arrived(cluster, 1, 8 * MIB)
        cluster.verb("link", 1, "down")
        netlib.time.sleep(1.5)
        cluster.verb("link", 1, "up")
        assert child.wait(timeout=90) == 0, f"get ended with {child.returncode}"
        assert netlib.digest_of(directory / "got") == expected
        cluster.check_daemons()


netlib.run(everything_goes_wrong_at_once, one_percent_loss_costs_at_most_a_tenth,
           a_pulled_cable_only_delays)
