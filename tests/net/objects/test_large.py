#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""1 GiB over an unshaped link: right digest, flat memory."""

import netlib
from netlib import Cluster

GIB = 1 << 30
GROWTH_BYTES = 8 << 20


def a_gibibyte_crosses_with_flat_memory():
    netlib.need_daemons()
    with Cluster(2, "--store", 1280) as cluster, netlib.scratch() as directory:
        netlib.transfer(cluster, directory, 16 << 20)
        before = {pid: netlib.private_bytes(pid) for pid in cluster.pids()}
        took = netlib.transfer(cluster, directory, GIB, timeout=240)
        for pid, was in before.items():
            grown = netlib.private_bytes(pid) - was
            assert grown < GROWTH_BYTES, f"process {pid} grew by {grown} bytes of its own"
        cluster.check_daemons()
        return f"{GIB / took / 1e6:.0f} MB/s with the writing of the file"


def thousand_objects_leave_nothing_behind():
    netlib.need_daemons()
    with Cluster(2, "--store", 64) as cluster, netlib.scratch() as directory:
        netlib.make_file(directory / "file", 200000)
        script = ("for i in $(seq 250); do sarissa put o$i \"$1\" || exit 1; done;"
                  "sarissa rm $(seq -f o%g 250)")
        for _ in range(4):  # four times the store could hold
            cluster.must(0, "sh", "-c", script, "sh", directory / "file")
        netlib.transfer(cluster, directory, 40 << 20)


netlib.run(a_gibibyte_crosses_with_flat_memory, thousand_objects_leave_nothing_behind)
