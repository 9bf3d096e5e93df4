#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`sarissa doctor` names what is wrong with a machine or the way to another one."""

import json

import netlib
from netlib import Cluster, network, nodes

NARROW = 1400  # of a switch port, which lets a VLAN tag more pass; both ends have 1500


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


def a_path_narrower_than_both_ends_is_named():
    netlib.need_daemons()
    with Cluster(2, "--store", 32) as cluster:
        network.narrow(cluster.config, 1, NARROW)
        cluster.verb("kill", 1, "node")
        cluster.verb("start", 1)
        wait_for_finding(cluster, 0, "paths", "narrow: carries packets of 1404 bytes, the link")


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


netlib.run(a_port_that_somebody_filters_is_named, a_path_narrower_than_both_ends_is_named,
           a_dataplane_without_its_rights_is_named)
