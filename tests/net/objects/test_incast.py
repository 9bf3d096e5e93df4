#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A hundred true senders into one link: each is an engine with credit, congestion and loss as on a
node, and the switch's port to the receiver holds 512 KiB.

environment: INCAST_SENDERS    (default: 100)
"""

import json
import os
import subprocess
import time

import netlib
from netlib import Cluster, scenarios

SENDERS = int(os.environ.get("INCAST_SENDERS", 100))
CHUNKS = 512  # of each
RATE_MBIT = 200
SHAPE = {"peers": SENDERS, "chunks": CHUNKS, "seconds": 90, "tell": True}
RESENT_SHARE = 0.1 if SENDERS <= 100 else 0.15  # at most; more is where late ones keep the port full
GROWTH_BYTES = 4 << 20


def an_incast():
    """(chunks that were sent again, a line of all)"""
    with Cluster(1, "--store", 256, "--rate", RATE_MBIT, daemons=False) as cluster, \
            netlib.dataplane_alone(cluster, 0) as rundir:
        pid = cluster.pid(0, "dataplane")
        receiver, asked = netlib.start_receiver(cluster, 0, rundir, SHAPE)
        private = netlib.private_bytes(pid)
        argv = ["ip", "netns", "exec", cluster.switch_netns(), scenarios.program("senders"),
                netlib.SENDERS_IP, SENDERS, CHUNKS, asked["chunk_bytes"], SHAPE["seconds"]]
        begin = time.monotonic()
        sent = subprocess.run([str(a) for a in argv], capture_output=True, text=True)
        took = time.monotonic() - begin
        told = json.loads(receiver.communicate(timeout=120)[0])
        counters = cluster.counters(0)
        grown = netlib.private_bytes(pid) - private
    assert sent.returncode == 0, f"senders: {sent.stdout}{netlib.tail(sent.stderr)}"
    assert told == {"taken": SENDERS, "wrong": 0}, told
    said = json.loads(sent.stdout)
    chunks = SENDERS * CHUNKS
    drops = {name: value for name, value in counters.items() if "drop" in name and value}
    assert counters["rx_chunks"] == chunks, counters["rx_chunks"]
    assert counters["tx_grants"] >= SENDERS, "nobody waited for credit"
    assert not counters["drop_over_credit"], drops
    assert said["failed"] == 0, f"streams ended early and restarted: {said}"
    assert grown < GROWTH_BYTES, f"the dataplane grew by {grown} bytes"
    bound = chunks * asked["chunk_bytes"] * 8 / (RATE_MBIT * 1e6)
    return said["resends"], (f"{took:.2f} s, {took / bound:.2f} of the bound; {said}; {counters['tx_grants']} grants; "
                            f"{counters['rx_chunk_duplicates']} chunks twice; {drops}")


def all_arrives_without_collapse():
    netlib.need_daemons()
    most = RESENT_SHARE * SENDERS * CHUNKS
    seen = netlib.measured(an_incast, lambda told: told[0] < most)
    assert seen[-1][0] < most, f"more than {most:.0f} chunks were sent again: {[line for _, line in seen]}"
    return seen[-1][1]


netlib.run(all_arrives_without_collapse)
