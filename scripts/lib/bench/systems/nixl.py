# SPDX-License-Identifier: BSD-3-Clause
"""NIXL's side of a measurement: one agent per node, one-sided reads through UCX over TCP, from PyPI.

Fair to it: links of its own of the same shape, without our XDP programs and with segmentation off-loads for large
objects; memory is registered and agents know each other before the time. It has reads and notifications only: what
is written around them is in bench/peers/gets.py, with the tunings. A rank that waits asks with pauses (nixl_rank.py)."""

import tempfile

from lib.bench.systems.ranks import Ranks


class Nixl(Ranks):
    system, module, program = "nixl", "nixl_cu12._api", "nixl_rank.py"
    is_peer = True
    one_way = ("gather", "p2p")
    first_gathered = 1
    settings = {"UCX_TLS": "tcp", "UCX_NET_DEVICES": "eth0", "NIXL_LOG_LEVEL": "WARN"}

    def start_ranks(self):
        self.meeting = tempfile.mkdtemp(prefix="meet-", dir=self.directory)
        super().start_ranks()

    def arguments(self, rank):
        return [self.tuning, self.meeting]
