#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`sarissa doctor` names what is wrong with a machine or the way to another one."""

import array
import json
import os
import re
import time

import netlib
from netlib import Cluster, network, nodes

NARROW = 1400  # of a switch port, which lets a VLAN tag more pass


def findings(cluster, node):
    """What it says, by check."""
    done = cluster.run(node, "sarissa", "doctor", "--json")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(row["fix"] for row in rows if row["level"] != "ok"), rows
    return {row["check"]: row for row in rows if row["level"] != "ok"}


def wait_for_finding(cluster, node, check, text):
    def found():
        seen.append(findings(cluster, node))
        return text in seen[-1].get(check, {}).get("text", "")

    seen = []
    try:
        netlib.wait_for(found, netlib.PATIENCE_S, f"doctor says '{text}'")
    except AssertionError as error:
        raise AssertionError(f"{error}: {seen[-1]}") from None
    return seen[-1][check]


def a_port_that_somebody_filters_is_named():
    """A filter in the network that lets nothing of ours through: by the node, as never seen."""
    netlib.need_daemons()
    with Cluster(2, "--store", 32, daemons=False) as cluster:
        cluster.verb("fault", 1, "--loss", 100)
        nodes.start_all(cluster.config, range(2))
        never = wait_for_finding(cluster, 0, "peers", "was never seen")
        assert "UDP to that address and port" in never["fix"], never
        wait_for_finding(cluster, 0, "paths", "has not answered")
        cluster.verb("fault", 1)
        netlib.wait_for(lambda: not {"peers", "paths"} & findings(cluster, 0).keys(),
                        netlib.PATIENCE_S, "both findings end with the filter")


def a_path_that_becomes_narrow_is_named():
    """In the middle of a transfer, which goes on: chunks go in parts. So do those of a sum."""
    netlib.need_daemons()
    mtu = 9000 if os.environ.get("SARISSA_VDEV") == "udp" else 3498
    with Cluster(2, "--store", 128, "--mtu", mtu, "--rate", 300) as cluster, \
            netlib.scratch() as directory:
        expected = netlib.make_file(directory / "sent", 24 << 20)
        cluster.must(0, "sarissa", "put", "cut", directory / "sent")
        child = cluster.start(1, "sarissa", "get", "cut", directory / "got", "--timeout", 60)
        netlib.until_arrived(cluster, 1, 4 << 20)
        network.narrow(cluster.config, 1, NARROW)
        began = time.monotonic()
        netlib.wait_for(lambda: cluster.counters(1)["rx_parts"] > 0, netlib.PATIENCE_S, "parts come")
        paused = time.monotonic() - began
        assert child.wait(timeout=90) == 0
        assert netlib.digest_of(directory / "got") == expected, "other bytes"
        def carries():
            text = wait_for_finding(cluster, 0, "paths", f"bytes, the link here of {mtu}")["text"]
            return int(re.search(r"narrow: carries packets of (\d+) bytes", text).group(1))

        # the search ends 16 below, at most
        netlib.until(carries, lambda size: NARROW - 16 < size <= NARROW + 4, "what the path carries")
        parts = cluster.counters(1)["rx_parts"]
        sums_are_right(cluster, directory)
        assert cluster.counters(1)["rx_parts"] > parts, "the sum did not go in parts"
        cluster.check_daemons()
    return f"went on after {paused:.2f} s"


def sums_are_right(cluster, directory):
    count = 2 << 20
    for node in (0, 1):
        (directory / "term").write_bytes(array.array("f", [node + 1.0]).tobytes() * count)
        cluster.must(node, "sarissa", "put", f"term{node}", directory / "term")
    cluster.must(1, "sarissa", "reduce", "sum", "term0", "term1", "--wait", "--timeout", 60)
    cluster.must(1, "sarissa", "get", "sum", directory / "sum", "--timeout", 60)
    assert (directory / "sum").read_bytes() == array.array("f", [3.0]).tobytes() * count


def a_dataplane_without_its_rights_is_named():
    """It says which in its log, and doctor that it does not run. Over AF_XDP: sockets need none."""
    netlib.need_daemons()
    with Cluster(1, "--store", 32) as cluster:
        cluster.verb("kill", 0, "dataplane")
        wait_for_finding(cluster, 0, "dataplane", "has ended")
        argv = ["setpriv", "--bounding-set", "-bpf,-sys_admin", "--inh-caps", "-all",
                *map(str, nodes.dataplane_argv({**cluster.config, "vdev": "af_xdp"}, 0))]
        done = cluster.run(0, *argv)
        assert done.returncode == 1 and "needs the capabilities" in done.stderr, done.stderr


netlib.run(a_port_that_somebody_filters_is_named, a_path_that_becomes_narrow_is_named,
           a_dataplane_without_its_rights_is_named)
