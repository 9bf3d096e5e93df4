#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Daemons with sanitizers: what these report is heard, else the other tests with them could not fail."""

import signal

import netlib
from netlib import Cluster, nodes, process


def what_they_report_is_heard():
    """A wild access, which the signal stands for."""
    netlib.need_daemons()
    with Cluster(1, "--store", 64) as cluster:
        for kind in reversed(nodes.KINDS):
            assert process.end(cluster.pid(0, kind), signal.SIGSEGV, netlib.PATIENCE_S), f"{kind} lives"
    heard = netlib.sanitizer.heard()
    for kind in nodes.KINDS:
        assert f"sarissa-{kind}" in heard, f"nothing is heard of {kind}: {heard}"
    assert heard.count("ERROR: AddressSanitizer: SEGV") == len(nodes.KINDS), heard


netlib.run(what_they_report_is_heard)
